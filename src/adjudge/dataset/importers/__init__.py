"""Suites of other tools, as cases."""
