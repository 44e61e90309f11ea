"""From exact tables to the network: a `Recurrence` (`lower`, `compile_machine`), or the witness of a family."""

from fsa2lrnn.lower.harden import harden
from fsa2lrnn.lower.recurrence import DTYPES, compile_machine, lower
from fsa2lrnn.lower.witness import lower_witness, safe_length

__all__ = ["DTYPES", "compile_machine", "harden", "lower", "lower_witness", "safe_length"]
