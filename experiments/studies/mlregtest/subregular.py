"""Classes of the subregular hierarchy that contain the language of a machine (`subregular_facts`).

Strictly local, strictly piecewise and tier-based classes are properties of the language, not of its monoid alone: they
depend on the live states, which lead to an accepting state. A language is strictly k-local if two of its words may
exchange their continuations after a common factor of k − 1 letters (Rogers & Pullum 2011): every word of k − 1 letters
leads all states to at most one live state. It is strictly piecewise if it contains every subsequence of its words
(Rogers et al. 2010). A language is tier-based of a class if it belongs to this class after all letters are deleted that
lead every state to itself. Letters that may be deleted and inserted anywhere can be left out of any tier (Lambert &
Rogers 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from experiments.studies.mlregtest.factors import (
    is_dot_depth_one,
    is_locally_testable,
    is_locally_threshold_testable,
    on_cycle,
)
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.automata.monoid.facts import Action, Fact, Letters, refuted
from fsa2lrnn.automata.table_kernels import coaccessible

MAX_PAIRS = 4_000_000  # pairs of states times letters
_METHOD = "polynomial: by pairs of states"


def subregular_facts(machine: MooreMachine, max_monoid: int) -> tuple[dict[str, Fact], int | None]:
    """Return the facts on a language by the name of the class, and the least k if it is strictly k-local.

    Names with the prefix "tier_" are those of the language after all letters outside its tier are deleted.
    """
    algebra = classify(machine, max_monoid)
    minimal, action = algebra.machine, Action.of(algebra.machine)
    tier = tier_of(action)
    strictly_local, order = is_strictly_local(minimal, action)
    facts = _by_factors(action, algebra.j_trivial) | {"strictly_local": strictly_local}
    facts["strictly_piecewise"] = is_strictly_piecewise(minimal, action)
    # J-trivial on the tier if and only if the whole monoid is: the other letters are its identity.
    on_tier = _by_factors(tier, algebra.j_trivial) | {"strictly_local": is_strictly_local(minimal, tier)[0]}
    facts |= {f"tier_{name}": fact for name, fact in on_tier.items()} | {"j_trivial": algebra.j_trivial}
    # Dot-depth one implies aperiodicity, which may be undecided where the monoid is large.
    facts["aperiodic"] = facts["dot_depth_one"] if facts["dot_depth_one"].value else algebra.aperiodic
    return facts, order


def _by_factors(action: Action, j_trivial: Fact) -> dict[str, Fact]:
    """Return the facts on the factors of words by name, the widest class first."""
    dot_depth_one = is_dot_depth_one(action, j_trivial)
    threshold = is_locally_threshold_testable(action, dot_depth_one)
    ends = is_definite(action)[0], is_reverse_definite(action)[0]
    locally_testable = is_locally_testable(action, *ends, threshold)
    return {"dot_depth_one": dot_depth_one, "threshold_testable": threshold, "locally_testable": locally_testable}


def is_acceptor(machine: MooreMachine) -> bool:
    """Return whether all outputs of a machine are the booleans True or False."""
    return all(output is True or output is False for output in machine.outputs)


def tier_of(action: Action) -> Action:
    """Return the action of the tier, the letters that lead some state to another one."""
    moves = (action.letters != np.arange(action.n_states)).any(1)
    names = tuple(name for name, moving in zip(action.names, moves.tolist(), strict=True) if moving)
    return replace(action, letters=action.letters[moves], names=names)


def is_strictly_local(machine: MooreMachine, action: Action) -> tuple[Fact, int | None]:
    """Decide whether the language over the letters of `action` is strictly k-local for some k, and return the least k.

    Witness: words (w,), states (p, q): w fixes both of these distinct live states.
    """
    if (undecided := _undecided(machine, action)) is not None:
        return undecided, None
    n = machine.n_states
    live = coaccessible(machine.delta, np.array(machine.outputs, bool))
    apart = live[:, None] & live & ~np.eye(n, dtype=bool)
    k = 1
    while apart.any():
        # The pairs that one more letter leaves live and distinct.
        further = np.zeros_like(apart)
        for row in action.letters:
            further |= apart[row[:, None], row]
        further &= apart
        if (further == apart).all():
            # Each pair left has one letter that leads to another of them.
            word, (p, q) = fixed_pair(
                action, lambda p, q, of=apart: bool(of[p, q]), tuple(np.argwhere(apart)[0].tolist())
            )
            says = f"{action.spell(word)} fixes states {p} and {q}, from both of which a word is accepted"
            return refuted(_METHOD, says, [word], (p, q)), None
        apart, k = further, k + 1
    return Fact(True, _METHOD), k


def is_strictly_piecewise(machine: MooreMachine, action: Action) -> Fact:
    """Decide whether the language is strictly piecewise: it contains every subsequence of its words.

    Witness: words (a, w), states (q, p): the letter a leads q to p, and w is accepted from p but not from q.
    """
    if (undecided := _undecided(machine, action)) is not None:
        return undecided
    accepts = np.array(machine.outputs, bool)
    # The number of letters after which p accepts a word that q does not; −1 if p accepts nothing more than q.
    after = np.where(accepts[:, None] & ~accepts, 0, -1)
    length = 0
    while (new := np.any([after[row[:, None], row] == length for row in action.letters], 0) & (after < 0)).any():
        length += 1
        after[new] = length
    for a, row in enumerate(action.letters):
        wrong = np.flatnonzero(after[row, np.arange(machine.n_states)] >= 0)
        if len(wrong):
            q = int(wrong[0])
            p, numbers = int(row[q]), list[int]()
            pair = (p, q)
            while (left := after[pair]) > 0:
                b = next(b for b, to in enumerate(action.letters) if after[to[pair[0]], to[pair[1]]] == left - 1)
                numbers.append(b)
                pair = (int(action.letters[b, pair[0]]), int(action.letters[b, pair[1]]))
            letter, word = action.word([a]), action.word(numbers)
            says = (
                f"{action.spell(letter)} leads state {q} to {p}, from where {action.spell(word)} is accepted, yet not "
                f"from {q}"
            )
            return refuted(_METHOD, says, (letter, word), (q, p))
    return Fact(True, _METHOD)


def _undecided(machine: MooreMachine, action: Action) -> Fact | None:
    if not is_acceptor(machine):
        return Fact(None, "undecided: a class of languages, and the outputs are not True and False")
    if machine.n_states**2 * len(action.letters) > MAX_PAIRS:
        return Fact(None, f"undecided: {machine.n_states**2:,} pairs of states are too many")
    return None


def is_definite(action: Action) -> tuple[Fact, int | None]:
    """Decide whether, for some k, the last k letters determine the state, and return the least k.

    States are k-equivalent if every word of k letters leads them to the same state. The relation gets coarser with k
    until a step changes nothing. Then all states are equivalent, with k ≤ n − 1, or the machine is not definite.

    Witness: words (w,), states (p, q): w fixes p and q ≠ p.
    """
    method = "polynomial: by merging the states that k letters bring together"
    classes, k = np.arange(action.n_states), 0
    while classes.max() > 0:
        _, coarser = np.unique(classes[action.letters.T], axis=0, return_inverse=True)
        coarser = coarser.reshape(-1)  # some versions of numpy keep an axis
        if coarser.max() == classes.max():
            other = int((classes != classes[0]).argmax())
            word, (p, q) = fixed_pair(action, lambda p, q, of=classes: bool(of[p] != of[q]), (0, other))
            says = f"{action.spell(word)}, however often, keeps state {p} at {p} and state {q} at {q}"
            return refuted(method, says, [word], (p, q)), None
        classes, k = coarser, k + 1
    return Fact(True, method), k


def is_reverse_definite(action: Action) -> tuple[Fact, int | None]:
    """Decide whether, for some k, the first k letters determine all later states, and return the least k.

    This holds if and only if every state on a cycle is absorbing: no letter leaves it. Then k is the length of the
    longest path to such a state.

    Witness: words (w, a), states (q, r): w, not empty, leads from q back to q, the letter a to r ≠ q.
    """
    method = "polynomial: whether every state on a cycle is absorbing"
    graph = action.successors
    absorbing = (graph == np.arange(action.n_states)[:, None]).all(axis=1)
    for q in np.flatnonzero(on_cycle(graph) & ~absorbing).tolist():
        word = action.path(graph, q, q)
        a = int(np.flatnonzero(graph[q] != q)[0])
        letter, r = action.word([a]), int(graph[q, a])
        says = (
            f"{action.spell(word)} leads from state {q} back to it, so that {action.spell(letter)} may still come and "
            f"lead to {r}"
        )
        return refuted(method, says, (word, letter), (q, r)), None
    reached, k = np.arange(action.n_states), 0
    while not absorbing[reached].all():
        reached, k = np.unique(graph[reached]), k + 1
    return Fact(True, method), k


def fixed_pair(
    action: Action, apart: Callable[[int, int], bool], at: tuple[int, int]
) -> tuple[Letters, tuple[int, int]]:
    """Return a word that fixes both states of a pair, and this pair, reached from `at` within a set of pairs.

    The set of the pairs that are `apart` contains an image of each of its pairs under some letter.
    """
    before, numbers = dict[tuple[int, int], int](), list[int]()
    while at not in before:
        before[at] = len(numbers)
        a = next(a for a, row in enumerate(action.letters) if apart(row[at[0]], row[at[1]]))
        numbers.append(a)
        at = int(action.letters[a, at[0]]), int(action.letters[a, at[1]])
    return action.word(numbers[before[at] :]), at
