"""Choose between one layer of blocks and a cascade by the cost model (docs/theory.md §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fsa2lrnn.automata.language import minimise, share_cells
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.cascade.cascade import Cascade, Cost
from fsa2lrnn.cascade.decomposition import LARGEST_BLOCK, CascadeSearch, Decomposition, NoCascade, explain_all
from fsa2lrnn.compile.gated_cascade import stack_recurrence
from fsa2lrnn.compile.recurrence import visible_factors
from fsa2lrnn.display import Brief

LARGEST_SEARCHED = 500  # states; the search takes seconds up to here, and minutes for thousands


@dataclass(frozen=True, eq=False)
class Choice(Brief):
    """The form that `form="auto"` selects.

    Args:
        form: the selected form.
        onehot: the cost of one layer of one-hot blocks.
        decomposition: the cascade, if that form is selected, else None.
        why: the reason, as text with the costs.
    """

    form: Literal["onehot", "cascade"]
    onehot: Cost
    decomposition: Decomposition | None
    why: str


def choose(machine: MachineSource, max_block: int | None = None, token_shift: bool = True) -> Choice:
    """Return the choice between one layer of one-hot blocks and the cheapest cascade.

    One layer is chosen if its blocks have at most `max_block` states (8 if None), the cascade if only that satisfies
    `max_block`, and else the cheaper form. Without `max_block`, cascades of more than 500 states are not searched for.

    Args:
        machine: any Moore machine, or its source.
        max_block: the largest block allowed; if None, blocks of one layer are not limited, and a cascade's components
            are split down to 8 states.
        token_shift: whether a cascade may use token shift.

    Raises `NoCascade`, a `NotExpressible`, if no form with blocks of at most `max_block` was found.

    >>> from fsa2lrnn.automata import zoo
    >>> choose(zoo.sum_mod(5)).why
    'one layer: its blocks, of sizes 5, are no larger than 8'
    >>> choose(zoo.even_pair(5)).form
    'cascade'
    """
    minimal = minimise(as_machine(machine))
    sizes = tuple(factor.size for factor in visible_factors(minimal))
    # Letters that act alike share a cell, and a gate has one hidden unit per cell; the read-out has one per state.
    cells = int(share_cells(minimal.delta)[0].max()) + 1
    onehot = Cost.of([sizes], units=cells + minimal.n_states)
    search = CascadeSearch(minimal, max_block, token_shift, gate_units)
    if max(sizes) <= (max_block or LARGEST_BLOCK):
        text = ", ".join(map(str, sizes))
        why = f"one layer: its blocks, of sizes {text}, are no larger than {max_block or LARGEST_BLOCK}"
        return Choice("onehot", onehot, None, why)
    if max_block is not None:  # and one layer needs a larger block
        cheapest = search.cheapest()
        why = f"a cascade, at a cost of {cheapest.cost.explain()}: one layer needs a block of {max(sizes)}"
        return Choice("cascade", onehot, cheapest, why)
    if minimal.n_states > LARGEST_SEARCHED:
        why = f"one layer: cascades of more than {LARGEST_SEARCHED} states are looked for only with max_block=…"
        return Choice("onehot", onehot, None, why)
    try:
        cheapest = search.cheapest(below=onehot.total)
    except NoCascade as error:
        why = f"one layer, at a cost of {onehot.explain()}: no cheaper cascade ({explain_all(error.candidates)})"
        return Choice("onehot", onehot, None, why)
    why = f"a cascade, at a cost of {cheapest.cost.explain()}: one layer costs {onehot.explain()}"
    return Choice("cascade", onehot, cheapest, why)


def best_cascade(machine: MooreMachine, max_block: int | None = None, token_shift: bool = True) -> Decomposition:
    """Return the cheapest cascade with the true number of hidden units in its cost; raise `NoCascade` if none."""
    return CascadeSearch(machine, max_block, token_shift, gate_units).cheapest()


def gate_units(cascade: Cascade) -> int:
    """Return the number of hidden units of all gates and the read-out of a compiled cascade."""
    recurrence = stack_recurrence(cascade)
    return sum(layer.n_units for layer in recurrence.layers) + recurrence.readout.n_units  # type: ignore[union-attr]
