"""Cascades: many small blocks instead of a large one, still exact, and lower bounds on their size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fsa2lrnn import Budget, falsify
from fsa2lrnn import verification as judge
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cascade.bound import Bound, prime_bound
from fsa2lrnn.cascade.congruence import lattice, meet
from fsa2lrnn.cascade.coordinates import Cover, assemble
from fsa2lrnn.cascade.decomposition import Decomposition, decompose
from fsa2lrnn.cascade.holonomy import holonomy
from fsa2lrnn.cascade.layering import block_size
from fsa2lrnn.compile.choice import Choice, choose
from fsa2lrnn.compile.lower import DTYPES, compile_machine, lower
from fsa2lrnn.compile.recurrence import compile_recurrence
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.scans import METHODS
from fsa2lrnn.testing.strategies import aperiodic_machines, machines, permutation_machines, wreath_products
from verify import mutants
from verify.propositions.registry import Answer, Effort, Proposition, Proved, Refuted, Tested, refuted, trial

Compiler = Callable[..., LRNN]
Sizes = Callable[[np.ndarray, np.ndarray, np.ndarray], int]

# Each with the block size allowed: channels, signed channels, groups, registers and a holonomy decomposition.
EXACT = {
    "parity": None,
    "even_pair(5)": None,
    "mod_arith(3, completion=register)": None,
    "dyck(1, 3)": 3,
    "group(S4)": 4,
    "tomita(7)": 3,
}
WITHOUT_SHIFT = ("mod_arith(3, completion=register)", "even_pair(2)", "subtraction(3)")
PRICED = ("even_pair(5)", "mod_arith(3)", "group(S4)", "length_mod(12)", "sum_mod(5)", "elevator(9)")
SHIFTED = {"mod_arith(5, completion=register)": None, "dyck(2, 3)": None, "contains(abaab)": 4}
_SLOWER = 20  # a property that decomposes machines gets so many times fewer examples, 10 at least


def cascades_are_exact(effort: Effort, bridge: Callable[..., LRNN] = lower) -> Answer:
    """Compile machines of several kinds as cascades in every dtype; prove them equal for all lengths and all scans."""
    transitions = 0
    for name, max_block in effort.track(list(EXACT.items())):
        machine = zoo.from_task(name)
        recurrence = compile_recurrence(machine, "cascade", max_block)
        for dtype in DTYPES:
            verdict = judge.prove_equivalent(bridge(recurrence, dtype), machine)
            if not isinstance(verdict, judge.Proved) or set(verdict.scans) != set(METHODS):
                return refuted(f"{name} in {dtype}: {verdict}", machine=name)
            transitions += verdict.transitions
    return Proved(f"{len(EXACT)} machines in every dtype, each by closing the graph of joint states", transitions)


def random_cascades_are_exact(effort: Effort, compiler: Compiler = compile_machine) -> Answer:
    """Compile random machines, with congruences or without, as cascades in float32; prove them for all lengths."""

    def fault(machine: MooreMachine) -> str | None:
        verdict = judge.prove_equivalent(compiler(machine, form="cascade"), machine)
        return None if isinstance(verdict, judge.Proved) else f"{machine!r}: {verdict}"

    cases = wreath_products() | machines(max_states=6)
    return trial("random machines, for every length each", cases, fault, _fewer(effort), "machine")


def fibre_code_is_exact(effort: Effort, compiler: Compiler = compile_machine) -> Answer:
    """Compile cascades without token shift; check that the networks have none, and prove them."""
    transitions = 0
    for name in effort.track(WITHOUT_SHIFT):
        machine = zoo.from_task(name)
        model = compiler(machine, form="cascade", token_shift=False)
        verdict = judge.prove_equivalent(model, machine)
        if model.config.token_shift or not isinstance(verdict, judge.Proved):
            return refuted(f"{name}: token shift {model.config.token_shift}, {verdict}", machine=name)
        transitions += verdict.transitions
    return Proved(f"{', '.join(WITHOUT_SHIFT)}: compiled without token shift and proved for all lengths", transitions)


def finer_contexts_cost_no_more(effort: Effort, size_of: Sizes = block_size) -> Answer:
    """Compare costs on random machines with three of their congruences each."""

    def fault(case: tuple[np.ndarray, list[np.ndarray]]) -> str | None:
        maps, (context, other, tau) = case
        coarse, fine = size_of(maps, context, tau), size_of(maps, meet(context, other), tau)
        return f"{tau} has blocks of {coarse} in {context}, of {fine} in a finer one" if fine > coarse else None

    return trial("random machines, three congruences each", _congruences(), fault, effort)


@st.composite
def _congruences(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray]]:
    maps = np.unique(draw(_any_machine()).delta, axis=0)
    rows = lattice(maps, 40).partitions
    return maps, [rows[draw(st.integers(0, len(rows) - 1))] for _ in range(3)]


def _any_machine() -> st.SearchStrategy[MooreMachine]:
    return machines(6) | wreath_products() | aperiodic_machines() | permutation_machines(6)


def holonomy_moves_simply(effort: Effort, cover_of: Callable[[np.ndarray, int], Cover] = holonomy) -> Answer:
    """Check random machines and their holonomy decompositions."""

    def fault(machine: MooreMachine) -> str | None:
        minimal = machine.minimise()
        cascade = assemble(minimal, cover_of(minimal.delta, minimal.start))
        kinds = [component.kind for component in cascade.components]
        return f"{machine!r}: a component of kind general, {kinds}" if "general" in kinds else None

    how = "random machines, their holonomy decompositions built and checked"
    return trial(how, machines(5) | aperiodic_machines(6), fault, _fewer(effort), "machine")


def primes_bound_components(
    effort: Effort,
    bound_of: Callable[[MooreMachine], Bound] = prime_bound,
    find: Callable[[MooreMachine], Decomposition] = decompose,
) -> Answer:
    """Compare the largest permuting component with the primes of the groups, on random machines and groups."""

    def fault(machine: MooreMachine) -> str | None:
        prime, found = bound_of(machine).prime, find(machine)
        if found.largest_permuted < prime:
            return f"{machine!r}: prime {prime}, but no component moves more than {found.largest_permuted} states"
        return None

    return trial("random machines and permutations", _any_machine(), fault, _fewer(effort), "machine")


def auto_is_cheapest(effort: Effort, decide: Callable[[MooreMachine], Choice] = choose) -> Answer:
    """Compare the cost of the chosen form with that of one layer."""
    for name in effort.track(PRICED):
        choice = decide(zoo.from_task(name))
        cost = choice.onehot if choice.decomposition is None else choice.decomposition.cost
        if cost.total > choice.onehot.total:
            return refuted(f"{name}: {cost.explain()}, but one layer costs {choice.onehot.explain()}", machine=name)
    return Proved(f"by the cost model, for {', '.join(PRICED)}", len(PRICED))


def zeros_will_do(effort: Effort, shift: Callable[[LRNN], LRNN] = mutants.shift_by_zeros) -> Answer:
    """Search for a shortest counterexample of cascades whose token shift shows zeros at k = 1."""
    for name, max_block in effort.track(list(SHIFTED.items())):
        machine = zoo.from_task(name)
        broken = shift(compile_machine(machine, "cascade", max_block))
        verdict = falsify(broken, machine, Budget(length=8, periodic_words=0, random_words=0))
        if isinstance(verdict, judge.Refuted):
            found = verdict.failure.as_text()
            return refuted(
                f"{name} on {''.join(map(str, found.word))}: {found.given[-1]} instead of {found.wanted[-1]}",
                machine=name, failure=found.to_json(),
            )  # fmt: skip
    return Proved(f"{', '.join(SHIFTED)}: zeros do as well", len(SHIFTED))


def _fewer(effort: Effort) -> Effort:
    return replace(effort, examples=max(10, effort.examples // _SLOWER))


_THEORY = "docs/theory.md, §6"


def _proposition(name: str, statement: str, hypotheses: str, check: Callable[..., Answer], expects: Any) -> Proposition:
    return Proposition(name, statement, hypotheses, _THEORY, check, expects)


PROPOSITIONS = (
    _proposition(
        "cascade-exact",
        "A machine compiled into layers of small blocks is exact for every word of every length, in every float format "
        "and by every scan.",
        "the machines listed; where a gate's integers leave a format, compilation refuses",
        cascades_are_exact,
        Proved,
    ),
    _proposition(
        "cascade-random",
        "A machine compiled into layers of small blocks is exact for every word of every length.",
        "machines of at most 12 states; float32",
        random_cascades_are_exact,
        Tested,
    ),
    _proposition(
        "cascade-fibre",
        "With the fibre code a layer needs the states below after the letter only: no token shift.",
        "the machines listed",
        fibre_code_is_exact,
        Proved,
    ),
    _proposition(
        "cascade-context",
        "A finer context never raises the block size of a congruence's component.",
        "blocks as compiled: signed and diagonal channels count 1",
        finer_contexts_cost_no_more,
        Tested,
    ),
    _proposition(
        "cascade-holonomy",
        "Every component of a holonomy decomposition moves by permutations and resets only.",
        "machines of at most 6 states",
        holonomy_moves_simply,
        Tested,
    ),
    _proposition(
        "cascade-prime",
        "If a prime divides the order of a group of the machine, every cascade found has a component, not of resets, "
        "with at least as many states.",
        "machines of at most 12 states",
        primes_bound_components,
        Tested,
    ),
    _proposition(
        "cascade-auto",
        "The form that is chosen automatically costs no more than one layer.",
        "the machines listed; the cost model Σ b³ + gate units + 256 a layer",
        auto_is_cheapest,
        Proved,
    ),
    Proposition(
        "cascade-zeros",
        "A token shift may show zeros at k = 1.",
        "the machines listed",
        _THEORY,
        zeros_will_do,
        Refuted,
        instead="it shows what x₀ gives: the states of the layers below before the first letter",
    ),
)
