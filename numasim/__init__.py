"""A cluster that is not there: writes the trees of named server models and runs the real agent on them.

Who may call it: `make run`, tests and benchmarks. Product code never imports it.
"""
