"""The least block size of a machine: the least b for which one layer of blocks of size at most b represents it.

V is the module of all functions of the state modulo constants, over the algebra of the letters. A block of size b is a
submodule of V of dimension b (T30 of docs/theory.md), so the question is which small submodules separate the states.
The lower bound comes from a chain of submodules that contains all small ones (T31), the upper bound from submodules
that a search finds. Both are certificates that `families.recheck` has accepted; if they do not meet, the answer is an
interval.

>>> from fsa2lrnn.automata import zoo
>>> answer = minimal_block(zoo.sum_mod(5), "R")
>>> answer.value, [block.real_size for block in answer.blocks], minimal_block(zoo.sum_mod(5), "Q").value
(2, [2], 4)
>>> answer.explain()
"real blocks of size 2 do, and smaller ones don't (both proved)"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExact, UnsupportedFormat
from fsa2lrnn.families.block_sizes.block_search import BlockSearch
from fsa2lrnn.families.block_sizes.chain import chain, chain_certificate
from fsa2lrnn.families.block_sizes.constituents import ModuleKind, constituents
from fsa2lrnn.families.block_sizes.state_blocks import StateBlock, whole_block
from fsa2lrnn.families.family_answers import certificate_header
from fsa2lrnn.families.function_modules import Module, functions_module
from fsa2lrnn.families.recheck import RejectedCertificate, recheck

Field = Literal["Q", "R", "C"]
FIELDS: dict[Field, str] = {"Q": "rational", "R": "real", "C": "complex"}
"""The fields from which blocks can take their entries, with their names."""


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


BUDGET = 60.0  # seconds
_KEPT = 8  # the number of machines whose kinds are kept, for questions over other fields
_OPEN = "submodules of these sizes were neither found nor excluded"
MAX_STATES = 200
"""The most states of a minimal machine for which submodules are searched; for more, the bounds are 1 and n − 1."""
MAX_WORK = 50_000_000  # the most multiplications of a matrix by all letters, so that a step keeps to the budget


def minimal_block(machine: MooreMachine, field: Field = "R", budget: float | Deadline = BUDGET) -> MinimalBlock:
    """Return bounds on the least block size of a machine over a field, with their certificates.

    Args:
        machine: any machine; its minimal machine is represented, with one vector per state.
        field: "Q", "R" or "C". Floats are rational, so blocks that are exact in floats need the size over "Q".
        budget: seconds after which no further step starts; the answer holds the bounds proved by then.

    Raises:
        UnsupportedFormat: for another field.
    """
    if field not in FIELDS:
        raise UnsupportedFormat(f"field {field!r} is not known: choose Q (rational), R (real) or C (complex)")
    minimal = minimise(machine)
    n = minimal.n_states
    if n <= 2:
        return MinimalBlock(minimal, field, n - 1, n - 1, None, None, "")  # no functions, or those of one dimension
    if note := too_large(minimal):
        return MinimalBlock(minimal, field, 1, n - 1, None, None, note)
    deadline = budget if isinstance(budget, Deadline) else Deadline(budget)
    check = partial(deadline.check, "looking for smaller blocks")
    return _accepted(_bounds(minimal, field, check))


def too_large(minimal: MooreMachine) -> str:
    """Return the reason why a minimal machine is too large for a search of submodules, "" if it is not.

    >>> from fsa2lrnn.automata import zoo
    >>> too_large(zoo.sum_mod(150))
    '150 letters on 150 states are more than steps of bounded time can take in'
    """
    n, n_letters = minimal.n_states, len(minimal.alphabet)
    if n > MAX_STATES:
        return f"{n} states are more than the {MAX_STATES} for which submodules are looked for"
    if n_letters * n**3 > MAX_WORK:
        return f"{n_letters} letters on {n} states are more than steps of bounded time can take in"
    return ""


def _accepted(answer: MinimalBlock) -> MinimalBlock:
    # A refused certificate costs its bound alone: V itself is a block of size n − 1, and the bound 1 needs no proof.
    if fault := refusal(answer.to_json()):
        note = f"the certificate of the upper bound was refused ({fault}): please report this machine"
        answer = replace(answer, upper=answer.machine.n_states - 1, found=None, note=note)
    if answer.impossible is not None and (fault := refusal(answer.impossible)):
        note = f"the certificate of the lower bound was refused ({fault}): please report this machine"
        answer = replace(answer, lower=1, impossible=None, note=note)
    return answer


def _bounds(minimal: MooreMachine, field: Field, check: Callable[[], None]) -> MinimalBlock:
    """Return bounds over a field: from below by submodules that any such layer merges, from above by blocks found.

    Sizes are tried from the lower bound up, so the first found is the least if it equals the bound. A search that runs
    out of its budget returns the bounds proved by then.
    """
    n, lower, impossible = minimal.n_states, 1, None
    try:
        # Without all kinds the condition of T31 cannot be checked, so only the trivial interval 1 … n − 1 remains.
        module, kinds = analysed(minimal, check)
        if kinds is None:
            note = "some constituent of the functions of the state was neither split nor proved irreducible"
            return MinimalBlock(minimal, field, 1, n - 1, None, None, note)
        found = chain(module, kinds, field, check)
        # T31: every submodule of smaller dimension lies in U_{lower−1}, which gives two states one vector.
        lower = found.bound
        if lower > 1:
            certificate = chain_certificate(minimal, f"block({lower - 1})", lower - 1, kinds, found)
            impossible = {**certificate, "field": field}
        search = BlockSearch(module, minimal, kinds, field, found, check)
        # Size n − 1 needs no search: V itself has dimension n − 1 and separates all states (T30).
        for size in range(lower, n - 1):
            if (blocks := search.blocks(size)) is not None:
                return MinimalBlock(minimal, field, lower, size, impossible, tuple(blocks), _OPEN * (size > lower))
        return MinimalBlock(minimal, field, lower, n - 1, impossible, None, _OPEN * (n - 1 > lower))
    except (BudgetExceeded, NotExact) as fault:
        return MinimalBlock(minimal, field, lower, n - 1, impossible, None, str(fault))


_kinds: dict[MooreMachine, tuple[Module, list[ModuleKind] | None]] = {}  # of the machines analysed last


def analysed(minimal: MooreMachine, check: Callable[[], None]) -> tuple[Module, list[ModuleKind] | None]:
    """Return V and the kinds of its constituents, None if some part was neither split nor proved irreducible."""
    # The kinds are rational and only their weights depend on the field, so that one analysis serves all three fields.
    if minimal not in _kinds:
        module = functions_module(minimal.delta)
        _kinds[minimal] = module, constituents(module, check)
        # Dictionaries keep the order of insertion: the machine that was analysed first is dropped.
        if len(_kinds) > _KEPT:
            del _kinds[next(iter(_kinds))]
    return _kinds[minimal]


__all__ = ["FIELDS", "MAX_STATES", "MinimalBlock", "StateBlock", "analysed", "minimal_block", "too_large"]
