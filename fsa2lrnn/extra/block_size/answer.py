"""The answer on the least block size of a machine: two bounds, each with its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.extra.block_size.blocks import StateBlock, whole_block
from fsa2lrnn.families.recheck import RejectedCertificate, recheck
from fsa2lrnn.families.verdicts import certificate_header

Field = Literal["Q", "R", "C"]
FIELDS: dict[Field, str] = {"Q": "rational", "R": "real", "C": "complex"}
"""The fields from which blocks can take their entries, with their names."""


@dataclass(frozen=True)
class SizeBounds:
    """Bounds on a least block size.

    Args:
        lower: no blocks smaller than this represent the machine.
        upper: blocks of this size represent the machine.
        note: why the bounds do not meet; "" if they do.
    """

    lower: int
    upper: int
    note: str

    @property
    def value(self) -> int | None:
        """The least size b, if the bounds meet."""
        return self.lower if self.lower == self.upper else None


def refusal(certificate: dict[str, Any]) -> str | None:
    """Return the reason why `recheck` refuses a certificate, or None if it accepts it."""
    try:
        recheck(certificate)
    except RejectedCertificate as fault:
        return str(fault)
    return None


@dataclass(frozen=True)
class MinimalBlock(Brief):
    """The least b for which one layer of blocks of size at most b represents the machine, or an interval containing it.

    To represent means: one vector per state of the minimal machine, exact arithmetic, any norm. docs/theory.md §9
    describes other notions of representation, for which smaller blocks can suffice.

    Args:
        machine: the minimal machine.
        field: the field of the blocks' entries.
        lower: no layer with smaller blocks represents the machine.
        upper: one layer of blocks of this size represents the machine.
        impossible: the certificate of `lower`; None if `lower` is 0 or 1, which needs none.
        found: blocks that prove `upper`; None for the one block of all n − 1 functions.
        note: why the bounds do not meet; "" if they do.
    """

    machine: MooreMachine
    field: Field
    lower: int
    upper: int
    impossible: dict[str, Any] | None
    found: tuple[StateBlock, ...] | None
    note: str

    @property
    def value(self) -> int | None:
        """The least block size b, if the bounds meet."""
        return self.lower if self.lower == self.upper else None

    @cached_property
    def blocks(self) -> tuple[StateBlock, ...]:
        """The blocks of size at most `upper` that together represent the machine."""
        if self.found is not None:
            return self.found
        return (whole_block(self.machine.delta.tolist()),) if self.machine.n_states > 1 else ()

    def check(self) -> str:
        """Check both certificates by `recheck`, which shares no code with the search; return the proved claims.

        Raises `recheck.RejectedCertificate` for a certificate that does not prove its bound.
        """
        proved = [recheck(self.to_json())]
        if self.impossible is not None:
            proved.append(recheck(self.impossible))
        return "; ".join(proved)

    def explain(self) -> str:
        """Return a sentence that states the bounds."""
        name = FIELDS[self.field]
        if self.value is not None:
            return f"{name} blocks of size {self.value} do, and smaller ones don't (both proved)"
        return f"{name} blocks of size {self.upper} do, of less than {self.lower} don't; between: {self.note}"

    def to_json(self) -> dict[str, Any]:
        """Return the certificate of the upper bound, for `recheck`; `impossible` certifies the lower bound."""
        return {
            **certificate_header(self.machine, f"block({max(self.upper, 1)})", "representable"),
            "field": self.field,
            "blocks": [block.to_json() for block in self.blocks],
        }
