"""Tools for test suites: Hypothesis strategies, and broken objects (mutants) that verifiers must reject."""
