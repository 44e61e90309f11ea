"""Lower exact tables to a network: those of a `Recurrence` (`lower`), or of a family's witness (`lower_witness`)."""

from fsa2lrnn.lower.harden import harden
from fsa2lrnn.lower.recurrence import DTYPES, compile_machine, lower
from fsa2lrnn.lower.witness import lower_witness, safe_length

__all__ = ["DTYPES", "compile_machine", "harden", "lower", "lower_witness", "safe_length"]
