"""Tools for test suites: strategies for hypothesis, and broken objects that every verifier must reject."""
