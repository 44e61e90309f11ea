"""Tools for test suites: Hypothesis strategies."""
