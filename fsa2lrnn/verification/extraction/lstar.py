"""Angluin's L* by AALpy, with membership queries answered by a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from aalpy.base import SUL, Oracle
from aalpy.learning_algs import run_Lstar

from fsa2lrnn.automata.counting import BLANK, UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.table_kernels import paths
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.verification.extraction.runner import MaskedModel
from fsa2lrnn.verification.extraction.suffixes import Classes

_WORDS = 400  # words per search for a counterexample


def learn(masked: MaskedModel, horizon: int, max_classes: int, seed: int) -> Classes:
    """Return the final hypothesis of Angluin's L*, with random words of `horizon` letters as equivalence queries.

    The length is limited because on longer words L* would learn the errors of a trained model as additional states.
    Raises `BudgetExceeded` if a hypothesis has more than `max_classes` states.
    """
    letters = list(range(len(masked.model.alphabet)))
    sul = _Teacher(masked)
    oracle = _RandomWords(letters, sul, horizon, max_classes, seed)
    options: dict[str, Any] = {"cache_and_non_det_check": False, "return_data": True, "print_level": 0}
    result: Any = run_Lstar(letters, sul, oracle, "moore", **options)
    automaton, info = result
    suffixes = [len(suffix) for suffix in info["characterization_set"]]
    machine, longest = _machine(masked, automaton), max(suffixes, default=0)
    return Classes(machine, sul.longest, None, sul.num_queries, len(suffixes), longest, machine.n_states, 0)


class _Teacher(SUL):
    def __init__(self, masked: MaskedModel) -> None:
        super().__init__()
        self.masked = masked
        start = np.array([masked.mask.start])
        first = int(masked.numbers(masked.model.initial_logits()[None], start)[0])
        self._outputs: dict[tuple[int, ...], int] = {(): first}
        self._word: tuple[int, ...] = ()
        self.longest = 0

    def query(self, word: tuple[int, ...]) -> list[int]:
        if word not in self._outputs:
            self.num_queries += 1
            self.num_steps += len(word)
            self.longest = max(self.longest, len(word))
            outputs = self.masked.words(np.array([word], np.int64))[0].tolist()
            self._outputs |= {word[: k + 1]: output for k, output in enumerate(outputs)}
        return [self._outputs[word[: k + 1]] for k in range(len(word))] or [self._outputs[()]]

    def pre(self) -> None:
        self._word = ()

    def post(self) -> None:
        """Do nothing: a query needs no cleanup."""

    def step(self, letter: int | None) -> int:
        self._word += () if letter is None else (letter,)
        return self.query(self._word)[-1]


class _RandomWords(Oracle):
    def __init__(self, letters: list[int], sul: _Teacher, horizon: int, max_classes: int, seed: int) -> None:
        super().__init__(letters, sul)
        self._masked, self._horizon, self._max_classes = sul.masked, horizon, max_classes
        self._rng = np.random.default_rng(seed)

    def find_cex(self, hypothesis: Any) -> tuple[int, ...] | None:
        """Return a word on whose last letter the hypothesis is wrong, None if no such word is found.

        Raises `BudgetExceeded` for a hypothesis with too many states.
        """
        if len(hypothesis.states) > self._max_classes:
            raise BudgetExceeded(
                f"L* has a hypothesis of {len(hypothesis.states):,} states, more than {self._max_classes:,}: raise "
                "max_classes or lower the horizon, beyond which a trained model fails and L* learns that"
            )
        tokens = self._masked.mask.random_words(self._rng, _WORDS, self._horizon)
        self.num_queries += len(tokens)
        delta, outputs, start = _tables(hypothesis, self.alphabet)
        wrong = outputs[paths(delta, np.full(len(tokens), start), tokens)] != self._masked.words(tokens)
        if not wrong.any():
            return None
        length = int(wrong.any(0).argmax()) + 1
        return tuple(tokens[wrong[:, length - 1].argmax(), :length].tolist())


def _tables(automaton: Any, letters: list[int]) -> tuple[np.ndarray, np.ndarray, int]:
    """Return δ (|Σ|, n), the output numbers (n,) and the start of an AALpy machine."""
    number = {state.state_id: i for i, state in enumerate(automaton.states)}
    delta = np.array([[number[state.transitions[a].state_id] for state in automaton.states] for a in letters])
    outputs = np.array([state.output for state in automaton.states])
    return delta, outputs, number[automaton.initial_state.state_id]


def _machine(masked: MaskedModel, automaton: Any) -> MooreMachine:
    delta, numbers, start = _tables(automaton, list(range(len(masked.model.alphabet))))
    outputs = [masked.model.outputs[j] if j != UNCOUNTED else BLANK for j in numbers.tolist()]
    return MooreMachine(delta, outputs, start, masked.model.alphabet)
