"""Judges: what a model, learned or constructed, does on every word.

`goal` says what counts as right, `equivalence` proves or refutes for all lengths, `falsify` looks for a failing word,
`certify` proves that there is none up to a length, `check` judges such a proof.
"""

from fsa2lrnn.judge.equivalence import Proved, Refuted, Undecided, prove_equivalent

__all__ = ["Proved", "Refuted", "Undecided", "prove_equivalent"]
