"""The cascade section of `explain`: the best cascade found, a lower bound, and the cheaper form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cascade.bound import Bound, prime_bound
from fsa2lrnn.cascade.cascade import LAYER_PRICE, Cascade
from fsa2lrnn.cascade.description import blocks_of, describe, title, to_dot, to_svg
from fsa2lrnn.cascade.search import CascadeCandidate, Decomposition, one_a_key
from fsa2lrnn.compile.choice import Choice, choose
from fsa2lrnn.display import blocks_text
from fsa2lrnn.errors import BudgetExceeded, NotExact, NotExpressible
from fsa2lrnn.files import write_atomically

LARGEST = 200  # the most states of a minimal machine that is searched without an explicit `max_block`
_KEYS = 2_000  # the most maps of a cascade whose gate units are counted, in about a second
_SHOWN = 4  # candidates displayed


@dataclass(frozen=True, eq=False)
class CascadeSearchResult:
    """The result of a cascade search.

    Args:
        found: the best cascade, None if no cascade was found.
        counted: whether the units of its gates are counted; if not, costs are lower bounds.
        why_not: the reason if no cascade was found.
        bound: the lower bound for every cascade of the machine, None if not computed.
        choice: the choice of `form="auto"`, None if it has no choice or was not computed.
    """

    found: Decomposition | None
    counted: bool
    why_not: str
    bound: Bound | None
    choice: Choice | None


def look(machine: MooreMachine, max_block: int | None = None, token_shift: bool = True) -> CascadeSearchResult:
    """Return the best cascade of a machine; a large machine is searched only if the largest block is given."""
    n_states = machine.minimise().n_states
    if n_states > LARGEST and max_block is None:
        why = f"not looked for in a machine of {n_states:,} states, more than {LARGEST}: --max-block 8 asks for it"
        return CascadeSearchResult(None, False, why, None, None)
    choice = None
    try:
        choice = choose(machine, max_block, token_shift)
        if (best := choice.decomposition) is not None:
            return CascadeSearchResult(best, True, "", best.bound, choice)
        best = choice.search.cheapest(counted=False)
        if counted := one_a_key(best.cascade) <= _KEYS:
            best = choice.search.cheapest()
        return CascadeSearchResult(best, counted, "", best.bound, choice)
    except (BudgetExceeded, NotExact, NotExpressible) as error:
        try:
            bound = prime_bound(machine)
        except BudgetExceeded:
            bound = None
        return CascadeSearchResult(None, False, str(error), bound, choice)


def draw(answer: CascadeSearchResult, path: Path) -> None:
    """Write the drawing as SVG or DOT, by the path's ending; raise `NotExpressible` without a cascade."""
    if answer.found is None:
        raise NotExpressible(f"there is no cascade to draw into {path}: {answer.why_not}")
    written = to_svg if path.suffix == ".svg" else to_dot
    write_atomically(path, written(answer.found.cascade).encode())


def rows(answer: CascadeSearchResult) -> list[tuple[str, str]]:
    """Return the result as a list of names and values."""
    if answer.found is None:
        return [("none", answer.why_not), *_bound_rows(answer), *_choice_rows(answer)]
    cascade, cost = answer.found.cascade, answer.found.cost
    shift = "with" if cascade.has_reads and not cascade.reads_now else "without"
    bound = (
        f"at least {cost.total:,} = Σb³ {cost.scan:,} + {LAYER_PRICE} × {cost.layers} layers, gate units not counted"
    )
    return [
        ("layers", f"{cascade.n_layers}: {sizes_text(cascade)}; {shift} token shift"),
        *describe(cascade),
        *_bound_rows(answer),
        ("cost", cost.explain() if answer.counted else bound),
        *_choice_rows(answer),
        *_candidate_rows(answer),
    ]


def to_json(answer: CascadeSearchResult) -> dict[str, object]:
    """Return the result as a JSON object, with null for what was not found."""
    best, choice = answer.found, answer.choice
    return {
        "found": best is not None,
        "why_not": answer.why_not or None,
        "components": _components_json(best.cascade) if best else None,
        "block_sizes": best.cascade.block_sizes if best else None,
        "output_reads": best.cascade.output_reads if best else None,
        "reads": _when(best.cascade) if best else None,
        "bound": {**vars(answer.bound), "says": answer.bound.says} if answer.bound else None,
        "largest_permuted": best.largest_permuted if best else None,
        "meets_bound": best.meets_bound if best else None,
        "cost": vars(best.cost) if best else None,
        "gate_units_counted": answer.counted,
        "one_layer_cost": vars(choice.onehot) if choice else None,
        "candidates": [_candidate_json(candidate, answer) for candidate in best.candidates] if best else [],
        "auto": {"form": choice.form, "why": choice.why} if choice else None,
    }


def sizes_text(cascade: Cascade) -> str:
    """Return the block sizes of each layer as text."""
    return " · ".join(map(blocks_text, cascade.block_sizes))


def _bound_rows(answer: CascadeSearchResult) -> list[tuple[str, str]]:
    if answer.bound is None:
        return []
    return [("lower bound", answer.bound.says), *([("  met", _met(answer.found))] if answer.found else [])]


def _met(best: Decomposition) -> str:
    if best.largest_permuted == 1:
        return "yes: all components only reset"
    largest = f"the largest component that does more than reset has {best.largest_permuted} states"
    return f"yes: {largest}" if best.meets_bound else f"no: {largest}, and a smaller one is not ruled out"


def _choice_rows(answer: CascadeSearchResult) -> list[tuple[str, str]]:
    if (choice := answer.choice) is None:
        return []
    # Without a cascade, the row "none" states the reason.
    why = choice.why if answer.found else choice.why.partition(" (")[0]
    return [("one layer costs", choice.onehot.explain()), ("auto takes", why)]


def _candidate_rows(answer: CascadeSearchResult) -> list[tuple[str, str]]:
    """Return a row for each cascade that was considered, with its cost or why there is none."""
    candidates = answer.found.candidates if answer.found else ()
    lines = [
        f"{candidate.how}: {'' if answer.counted else 'at least '}{candidate.cost.total:,}"
        if candidate.cost
        else f"{candidate.how}: {candidate.why_not}"
        for candidate in candidates
    ]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [("considered" if i == 0 else "", line) for i, line in enumerate([*lines[:_SHOWN], *more])]


def _components_json(cascade: Cascade) -> list[dict[str, object]]:
    """Return the small machines of a cascade as JSON objects, in the order in which they read each other."""
    return [
        {
            "name": title(cascade, i),
            "layer": component.layer,
            "n_states": component.n_states,
            "kind": component.kind,
            "reads": component.reads,
            "block_sizes": component.block_sizes,
            "blocks": blocks_of(component),
        }
        for i, component in enumerate(cascade.components)
    ]


def _candidate_json(candidate: CascadeCandidate, answer: CascadeSearchResult) -> dict[str, object]:
    cost = vars(candidate.cost) if candidate.cost else None
    return {"how": candidate.how, "cost": cost, "why_not": candidate.why_not or None, "exact": answer.counted}


def _when(cascade: Cascade) -> str | None:
    if not cascade.has_reads:
        return None
    return "after the letter" if cascade.reads_now else "before the letter"
