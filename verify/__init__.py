"""Judges of models and machines: proofs, and the strategies that test them. Imports fsa2lrnn, never the reverse."""

from verify.equivalence import Proved, Refuted, Undecided, prove_equivalent

__all__ = ["Proved", "Refuted", "Undecided", "prove_equivalent"]
