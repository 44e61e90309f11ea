"""One block or a cascade? The cost model's choice, and why (docs/theory.md §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.cascade import build_stack
from fsa2lrnn.compile.factors import visible_factors
from fsa2lrnn.compile.onehot import share_cells
from fsa2lrnn.decomposition.cascade import Cascade
from fsa2lrnn.decomposition.cost import Cost
from fsa2lrnn.decomposition.search import LARGEST_BLOCK, CascadeSearch, Decomposition, NoCascade

LARGEST_SEARCHED = 500  # states; the search takes seconds there, minutes for thousands


@dataclass(frozen=True, eq=False)
class Choice:
    """What `form="auto"` takes.

    Args:
        form: the cheaper form.
        onehot: the cost of one layer of one-hot blocks.
        decomposition: the cascade, where it is the cheaper one.
        why: the reason, in words and numbers.
        search: the cascades that there are, for whoever wants one all the same.
    """

    form: Literal["onehot", "cascade"]
    onehot: Cost
    decomposition: Decomposition | None
    why: str
    search: CascadeSearch


def choose(machine: MooreMachine, max_block: int | None = None, token_shift: bool = True) -> Choice:
    """The cheaper of one layer of one-hot blocks and the best cascade; one layer if its blocks are small anyway.

    Args:
        machine: any Moore machine.
        max_block: the largest block allowed; if None, that of one layer is not limited, and a cascade's components are
            split down to 8 states.
        token_shift: whether a cascade may use token shift.

    Raises:
        NoCascade: a `NotExpressible`, if neither can be had with blocks of at most `max_block`.

    >>> from fsa2lrnn.automata import zoo
    >>> choose(zoo.sum_mod(5)).why
    'one layer: its blocks, of sizes 5, are no larger than 8'
    >>> choose(zoo.even_pair(5)).form
    'cascade'
    """
    minimal = minimise(machine)
    sizes = tuple(factor.size for factor in visible_factors(minimal))
    cells = int(share_cells(minimal.delta)[0].max()) + 1
    onehot = Cost.of([sizes], units=cells + minimal.n_states)
    search = CascadeSearch(minimal, max_block, token_shift, gate_units)
    if max(sizes) <= (max_block or LARGEST_BLOCK):
        shown = ", ".join(map(str, sizes))
        why = f"one layer: its blocks, of sizes {shown}, are no larger than {max_block or LARGEST_BLOCK}"
        return Choice("onehot", onehot, None, why, search)
    if max_block is not None:  # which is smaller than the largest block of one layer
        found = search.cheapest()
        why = f"a cascade, at a cost of {found.cost.explain()}: one layer needs a block of {max(sizes)}"
        return Choice("cascade", onehot, found, why, search)
    if minimal.n_states > LARGEST_SEARCHED:
        why = f"one layer: cascades of more than {LARGEST_SEARCHED} states are looked for only if max_block asks for it"
        return Choice("onehot", onehot, None, why, search)
    try:
        found = search.cheapest(below=onehot.total)
    except NoCascade as error:
        tried = "; ".join(candidate.explain() for candidate in error.candidates)
        why = f"one layer, at a cost of {onehot.explain()}: no cheaper cascade ({tried})"
        return Choice("onehot", onehot, None, why, search)
    why = f"a cascade, at a cost of {found.cost.explain()}: one layer costs {onehot.explain()}"
    return Choice("cascade", onehot, found, why, search)


def best_cascade(machine: MooreMachine, max_block: int | None = None, token_shift: bool = True) -> Decomposition:
    """`decompose`, with the hidden units that the gates really take. Arguments and errors as there."""
    return CascadeSearch(machine, max_block, token_shift, gate_units).cheapest()


def gate_units(cascade: Cascade) -> int:
    """The hidden units of all gates of the network that a cascade is compiled into, and of its read-out."""
    stack, readout = build_stack(cascade)
    return sum(layer.n_units for layer in stack.layers) + readout.gate.n_units
