"""Table 2 of the paper, whole: every layer on every task, and what guessing scores under the same protocol."""
