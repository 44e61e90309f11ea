"""Angluin's L* through AALpy, with a model for a teacher."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from aalpy.base import SUL, Oracle
from aalpy.learning_algs import run_Lstar

from fsa2lrnn.automata.counting import BLANK, UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.reach import paths
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extraction.asking import MaskedModel

_WORDS = 400  # in each search for a counterexample


class LStarResult(NamedTuple):
    """The machine that L* ends with, and what it asked for."""

    machine: MooreMachine
    queries: int
    suffixes: int
    suffix_length: int
    longest: int


def learn(asked: MaskedModel, horizon: int, max_classes: int, seed: int) -> LStarResult:
    """The machine that L* learns, with random words of up to `horizon` letters in place of equivalence queries.

    Words are capped, since on longer ones L* would learn the failures of a trained model, state after state.

    Raises:
        BudgetExceeded: if a hypothesis has more than `max_classes` states.
    """
    letters = list(range(len(asked.model.alphabet)))
    teacher = _Teacher(asked)
    oracle = _RandomWords(letters, teacher, horizon, max_classes, seed)
    options: dict[str, Any] = {"cache_and_non_det_check": False, "return_data": True, "print_level": 0}
    found: Any = run_Lstar(letters, teacher, oracle, "moore", **options)
    automaton, info = found
    suffixes = [len(suffix) for suffix in info["characterization_set"]]
    return LStarResult(
        _machine(asked, automaton), teacher.num_queries, len(suffixes), max(suffixes, default=0), teacher.longest
    )


class _Teacher(SUL):
    """Answers membership queries with output numbers; what was asked once is not asked again."""

    def __init__(self, asked: MaskedModel) -> None:
        super().__init__()
        self.asked = asked
        start = np.array([asked.mask.start])
        self._known: dict[tuple[int, ...], int] = {(): int(asked.numbers(asked.model.initial_logits()[None], start)[0])}
        self._word: tuple[int, ...] = ()
        self.longest = 0

    def query(self, word: tuple[int, ...]) -> list[int]:
        """The outputs along a word, that of the empty word if it is empty."""
        if word not in self._known:
            self.num_queries += 1
            self.num_steps += len(word)
            self.longest = max(self.longest, len(word))
            outputs = self.asked.words(np.array([word], np.int64))[0].tolist()
            self._known |= {word[: k + 1]: output for k, output in enumerate(outputs)}
        return [self._known[word[: k + 1]] for k in range(len(word))] or [self._known[()]]

    def pre(self) -> None:
        """Back to the start."""
        self._word = ()

    def post(self) -> None:
        """Nothing to clear away."""

    def step(self, letter: int | None) -> int:
        """The output after one letter more."""
        self._word += () if letter is None else (letter,)
        return self.query(self._word)[-1]


class _RandomWords(Oracle):
    """Looks for a counterexample among random words, all of them run side by side: the shortest one found."""

    def __init__(self, letters: list[int], teacher: _Teacher, horizon: int, max_classes: int, seed: int) -> None:
        super().__init__(letters, teacher)
        self._asked, self._horizon, self._max_classes = teacher.asked, horizon, max_classes
        self._rng = np.random.default_rng(seed)

    def find_cex(self, hypothesis: Any) -> tuple[int, ...] | None:
        """A word on whose last letter the hypothesis is wrong."""
        if len(hypothesis.states) > self._max_classes:
            raise BudgetExceeded(
                f"L* has a hypothesis of {len(hypothesis.states):,} states, more than {self._max_classes:,}: raise "
                "max_classes or lower the horizon, beyond which a trained model fails and L* learns that"
            )
        tokens = self._asked.mask.random_words(self._rng, _WORDS, self._horizon)
        self.num_queries += len(tokens)
        delta, outputs, start = _tables(hypothesis, self.alphabet)
        wrong = outputs[paths(delta, np.full(len(tokens), start), tokens)] != self._asked.words(tokens)
        if not wrong.any():
            return None
        length = int(wrong.any(0).argmax()) + 1
        return tuple(tokens[wrong[:, length - 1].argmax(), :length].tolist())


def _tables(automaton: Any, letters: list[int]) -> tuple[np.ndarray, np.ndarray, int]:
    """δ (|Σ|, n), the output numbers (n,) and the start of a machine of AALpy."""
    number = {state.state_id: i for i, state in enumerate(automaton.states)}
    delta = np.array([[number[state.transitions[a].state_id] for state in automaton.states] for a in letters])
    outputs = np.array([state.output for state in automaton.states])
    return delta, outputs, number[automaton.initial_state.state_id]


def _machine(asked: MaskedModel, automaton: Any) -> MooreMachine:
    delta, numbers, start = _tables(automaton, list(range(len(asked.model.alphabet))))
    outputs = [asked.model.outputs[j] if j != UNCOUNTED else BLANK for j in numbers.tolist()]
    return MooreMachine(delta, outputs, start, asked.model.alphabet)
