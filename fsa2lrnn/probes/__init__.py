"""Test kernels of linear recurrences by exact probes, without tolerance.

Inputs come from finite machines, so that every operation of every chunking, packing and split is exact. So the correct
result is one bit pattern, and one wrong bit is a fault of the kernel. The package needs only torch, which is imported
at the first access to a name.

>>> from fsa2lrnn.extra.probes import assert_exact, reference
>>> coverage = assert_exact(reference("kda"), op="kda", lengths=(1, 65), gradients=False)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertion import InexactKernel, ProbeReport, assert_exact
    from .audit import Audit, InexactProbe
    from .operators import OPERATORS, Operator
    from .references import reference

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

if not TYPE_CHECKING:  # torch takes seconds to import, and a conftest.py that loads the plugin may never need it

    def __getattr__(name: str) -> Any:
        if name not in __all__:  # submodules as well, while they are imported
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import assertion, audit, operators, references

        return next(getattr(m, name) for m in (assertion, audit, operators, references) if hasattr(m, name))
