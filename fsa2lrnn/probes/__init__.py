"""Test kernels of linear recurrences by exact probes, without tolerance.

Inputs come from finite machines, so that every operation of every chunking, packing and split is exact. So the correct
result is one bit pattern, and one wrong bit is a fault of the kernel. The package needs only torch.

>>> from fsa2lrnn.probes import assert_exact, reference
>>> coverage = assert_exact(reference("kda"), op="kda", lengths=(1, 65), gradients=False)
"""

from .assertion import InexactKernel, ProbeReport, assert_exact
from .audit import Audit, InexactProbe
from .operators import OPERATORS, Operator, reference

__all__ = [
    "assert_exact",
    "InexactKernel",
    "ProbeReport",
    "OPERATORS",
    "Operator",
    "reference",
    "Audit",
    "InexactProbe",
]
