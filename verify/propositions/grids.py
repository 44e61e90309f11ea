"""T3 against every layer whose entries come from a grid, on every small machine (`verify.brute_force`)."""

from __future__ import annotations

from collections.abc import Callable

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families import Verdict
from fsa2lrnn.families.identities import FORCED
from verify.brute_force import by_T3, compare
from verify.propositions.registry import Answer, Effort, Proposition, Proved, refuted


def no_layer_of_a_grid_contradicts(effort: Effort, decide: Callable[[MooreMachine, str], Verdict] = by_T3) -> Answer:
    """Compare T3 with the grid on all tables of few states over two letters, in every family that T3 decides."""
    machines, found, cases = 0, 0, [(family, n) for family in FORCED for n in range(1, effort.exhaustive + 1)]
    for family, n_states in effort.track(cases):
        seen = compare(family, n_states, decide=decide)
        for machine in seen.contradicted:
            shown = f"{machine.delta.tolist()} is called impossible for {family}, and a layer of the grid represents it"
            return refuted(shown, delta=machine.delta.tolist(), family=family)
        for machine in seen.unconfirmed:
            shown = f"the witness of {family} for {machine.delta.tolist()} is none when it is run"
            return refuted(shown, delta=machine.delta.tolist(), family=family)
        machines, found = machines + seen.machines, found + sum(seen.found.values())
    how = (
        f"all tables of at most {effort.exhaustive} states over two letters and {', '.join(FORCED)}: every layer of a "
        f"grid was tried, which has one for {found:,} of the pairs"
    )
    return Proved(how, machines)


PROPOSITIONS = (
    Proposition(
        "T3-grid",
        "No layer with numbers from a grid represents a machine of few states that T3 says none of its family does; "
        "what T3 constructs is a representation when it is run.",
        "as many states as stated, two letters, an output of its own for each state",
        "docs/theory.md, T3",
        no_layer_of_a_grid_contradicts,
        Proved,
    ),
)
