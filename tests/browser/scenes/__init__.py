"""What is put into the database of a running site: each module has a `scene()`, which `python -m tests.browser.stage NAME` calls."""
