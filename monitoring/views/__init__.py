"""The pages: each view asks one selector, translates for a template and computes nothing itself."""
