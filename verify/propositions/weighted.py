"""Weighted automata against enumeration: equality and shortest words (T64), layers with a linear read-out (T66)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families import represent
from fsa2lrnn.families.linear_readouts import LinearReadout
from fsa2lrnn.verdicts import Verdict
from fsa2lrnn.weighted import SeparatingWord, WeightedAutomaton, compare
from verify.propositions.registry import Answer, Effort, Proposition, Tested, refuted

_LENGTH = 5  # of the words on which layers and machines are compared


def random_automaton(rng: np.random.Generator, most: int = 3) -> WeightedAutomaton:
    """Return an automaton of at most so many states over two letters, with small integers, many of them 0."""
    n = int(rng.integers(1, most + 1))
    numbers = rng.integers(-1, 3, (2, n, n)) * rng.integers(0, 2, (2, n, n))
    return WeightedAutomaton("ab", rng.integers(-1, 2, n), numbers, rng.integers(-1, 2, n))


def comparison_agrees_with_enumeration(
    effort: Effort, decide: Callable[[WeightedAutomaton, WeightedAutomaton], Verdict] = compare
) -> Answer:
    """Compare random pairs, and pairs that are equal by construction, with the values on all words that can differ."""
    rng = np.random.default_rng(effort.seed)
    for i in effort.track(range(2 * effort.examples)):
        f = random_automaton(rng)
        g = random_automaton(rng) if i % 2 else (f + f + f) * "1/3"
        verdict = decide(f, g)
        # As many letters as both have states separate, or no word does.
        lengths = range(f.n_states + g.n_states if i % 2 else 5)
        longer = (word for k in lengths for word in product("ab", repeat=k) if f(word) != g(word))
        first, word = next(longer, None), getattr(verdict, "word", None)
        if (None if first is None else len(first)) != (None if word is None else len(word)):
            return refuted(
                f"{verdict} for automata that first differ on {first}", first=f.to_json(), second=g.to_json()
            )
        if isinstance(verdict, SeparatingWord) and f(word or ()) == g(word or ()):
            return refuted(f"both are equal on {word}", first=f.to_json(), second=g.to_json())
    return Tested("random pairs and sums, all words of up to the number of states", 2 * effort.examples, effort.seed)


def _decide(machine: MooreMachine, family: str) -> LinearReadout:
    answer = represent(machine, family, readout="linear")
    if not isinstance(answer, LinearReadout):
        raise TypeError(f"{type(answer).__name__} is not an answer on linear read-outs")
    return answer


def no_layer_of_a_grid_reads_more(
    effort: Effort, decide: Callable[[MooreMachine, str], LinearReadout] = _decide
) -> Answer:
    """Find the machines whose outputs a diagonal layer of a grid reads linearly, and compare with the decision."""
    n = min(effort.exhaustive + 1, 3)
    words = [word for k in range(1, _LENGTH + 1) for word in product(range(2), repeat=k)]
    machines = dict[bytes, MooreMachine]()
    for size in range(1, n + 1):
        for flat in product(range(size), repeat=2 * size):
            for outputs in product((False, True), repeat=size):
                machine = MooreMachine(np.reshape(flat, (2, size)), outputs)
                seen = np.array([machine.outputs[machine.run(word)] for word in words])
                machines.setdefault(seen.tobytes(), machine)
    Y = np.array([np.frombuffer(seen, bool) for seen in machines]).T.astype(float)  # (words, machines)
    every, rng = list(machines.values()), np.random.default_rng(effort.seed)
    layers = [np.reshape(numbers, (2, 2, 1)) for numbers in product((-1, 0, 1), repeat=4)]
    layers += list(rng.integers(-1, 2, (20 * effort.examples, 2, 2, 2)))
    answers, cases = dict[tuple[int, str], LinearReadout](), 0
    for layer in effort.track(layers):
        (A, v), d = layer, layer.shape[-1]  # (|Σ|, d) each
        states: dict[tuple[int, ...], np.ndarray] = {(): np.zeros(d, int)}
        for word in words:
            states[word] = A[word[-1]] * states[word[:-1]] + v[word[-1]]
        X = np.array([[*states[word], 1.0] for word in words])
        coefficients = np.linalg.lstsq(X, Y, rcond=None)[0]
        for i in np.flatnonzero(np.abs(X @ coefficients - Y).max(0) < 1e-9).tolist():
            for family in ("diagonal[-1,1]",) if (A < 0).any() else ("diagonal[-1,1]", "diagonal[0,1]"):
                answer = answers.get((i, family)) or decide(every[i], family)
                answers[i, family], cases = answer, cases + 1
                if answer.answer == "no" or answer.least > d:
                    found = (
                        f"{answer}, and a layer of {d} reads {every[i].delta.tolist()}: A {A.tolist()}, v {v.tolist()}"
                    )
                    return refuted(found, A=A.tolist(), v=v.tolist())
    return Tested(f"diagonal layers of a grid, and {len(every):,} machines of at most {n} states", cases, effort.seed)


PROPOSITIONS = (
    Proposition(
        "T64-pairs",
        "Two weighted automata are called equal, or get a word, just if all words agree, or as a shortest one differs.",
        "at most three states each, two letters, small integers",
        "docs/theory.md, T64",
        comparison_agrees_with_enumeration,
        Tested,
    ),
    Proposition(
        "T66-grid",
        "No diagonal layer with numbers from a grid reads linearly a machine that T66 says none does, or with fewer "
        "dimensions than it says.",
        "at most two dimensions and three states, two letters, words of up to five letters",
        "docs/theory.md, T66",
        no_layer_of_a_grid_reads_more,
        Tested,
    ),
)
