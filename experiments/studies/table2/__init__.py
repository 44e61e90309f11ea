"""Table 2 of the paper: every layer on every task, and chance levels under the same protocol."""
