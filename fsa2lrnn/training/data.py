"""Words and transductions of any Moore machine, in batches, determined by a seed.

A sampler defines which letters may come next, as a function of the machine's state and the position modulo a period;
they are equally likely. To draw a batch, every position of every word gets a number from 0 … D−1, where D is the least
common multiple of the numbers of choices, and a table maps the number and the state to a letter. A number thus acts on
states like a letter, and all words of a batch are walks on one table: a compiled loop on a CPU, composed maps on a GPU.

The label `UNCOUNTED` marks a position whose output counts neither in the loss nor in the accuracy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import output_classes
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.table_kernels import settled
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.nn.layers.index import pscan, sequential

SAMPLERS = ("uniform", "live", "balanced", "task")
_TABLE_ENTRIES = 1 << 26
_COMPOSED_ENTRIES = 1 << 27  # entries of maps held at once on a GPU; beyond it, one gather per position


class Sampler(NamedTuple):
    """The letters that may come next, `choices[k % period, q, a]`, and whether the output after position k counts.

    If `also` is not None, every second word is drawn from it instead.
    """

    choices: np.ndarray  # bool (period, n, |Σ|), at least one letter everywhere
    scored: tuple[bool, ...]  # (period,)
    also: np.ndarray | None = None  # of the same shape


class Walks(NamedTuple):
    """Partial words: their states, int64 (B,), and the number of letters of each."""

    states: Tensor
    position: int


class Batch(NamedTuple):
    """Words, int64 (B, T), and the index of the output after each letter or `UNCOUNTED`, int64 (B, T).

    In the batches of `learn` the labels are (B, T+1): that of the empty word comes first.
    """

    tokens: Tensor
    labels: Tensor


def make_sampler(name: str, machine: MooreMachine, source: str = "") -> Sampler:
    """Return the sampler of a name in `SAMPLERS` for a machine.

    - "uniform": all letters; every position counts.
    - "live": the letters that do not lead into a settled state, from which all further outputs are the same (in a
      minimal machine an absorbing state), or all letters if no other exists. Every position counts.
    - "balanced": every second word as "live", the others as "uniform", so that long words of a language like (ab)* are
      not all rejected.
    - "task": the distribution of the paper and its code for the task that `source` names. For Sum and EvenPair that is
      "uniform". ModArith and chains of subtractions alternate digits and operators, and only the outputs after a digit
      count, in the loss and in the accuracy. Any other source: "uniform".

    Raises `UnsupportedFormat` for another name.
    """
    n_letters, n = machine.delta.shape
    everything = Sampler(np.ones((1, n, n_letters), bool), (True,))
    if name == "uniform":
        return everything
    if name in ("live", "balanced"):
        alive = ~settled(machine.delta, output_classes(machine.outputs))[machine.delta.T]  # (n, |Σ|)
        live = (alive | ~alive.any(1, keepdims=True))[None]
        return Sampler(live, (True,)) if name == "live" else everything._replace(also=live)
    if name == "task":
        task = re.match(r"task:\s*(\w+)", source)
        return _OWN[task[1]](machine) if task and task[1] in _OWN else everything
    raise UnsupportedFormat(f"sampler {name!r} is not known: choose one of {', '.join(SAMPLERS)}")


def _digits_and_operators(machine: MooreMachine) -> Sampler:
    is_digit = np.array([str(letter).isdigit() for letter in machine.alphabet])
    choices = np.stack([is_digit, ~is_digit])[:, None].repeat(machine.n_states, 1)
    return Sampler(choices, (True, False))


_OWN: dict[str, Callable[[MooreMachine], Sampler]] = {
    "mod_arith": _digits_and_operators,
    "subtraction": _digits_and_operators,
}


@dataclass(frozen=True, eq=False)
class TaskWords:
    """The words of one machine under one sampler, on one device; `words` creates it.

    Attributes:
        alphabet: the letters that tokens index.
        starts: the states in which words begin, in turn; with `Sampler.also` there is a copy of each state.
        outputs: the symbols that labels index: by default those that occur at counted positions.
        scored: whether the output after position k counts, at index k % period.
        n_draws: D; a number drawn at position k selects row (k % period)·D + number of the tables.
        next_state, letters: int64 (period·D, n): the state and the letter that a drawn number gives.
        labels: int64 (period, n): the label of a state reached by a letter at position k % period.
    """

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    starts: tuple[int, ...]
    scored: tuple[bool, ...]
    n_draws: int
    next_state: Tensor
    letters: Tensor
    labels: Tensor

    @property
    def device(self) -> torch.device:
        """The device of the batches."""
        return self.letters.device

    def generator(self, seed: int) -> torch.Generator:
        """Return a random generator for `batch` and `advance`, on their device."""
        return torch.Generator(self.device).manual_seed(seed)

    def fit(self, length: int) -> int:
        """Return the largest length up to `length` at which the last output counts: 39 for ModArith's 40 (the paper's).

        Raises `UnsupportedFormat` if no such length exists.
        """
        for fitting in range(length, max(0, length - len(self.scored)), -1):
            if self.scored[(fitting - 1) % len(self.scored)]:
                return fitting
        raise UnsupportedFormat(f"length {length}: no word of this length or a little less has an output that counts")

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """Return `size` new words of `length` letters, with labels."""
        return self.advance(self.begin(size), length, generator)[0]

    def begin(self, size: int) -> Walks:
        """Return `size` empty words."""
        return Walks(torch.tensor(self.starts, device=self.device).repeat(-(-size // len(self.starts)))[:size], 0)

    def advance(self, walks: Walks, length: int, generator: torch.Generator) -> tuple[Batch, Walks]:
        """Return the next `length` letters of partial words, and the extended words."""
        size, period = len(walks.states), len(self.scored)
        phase = torch.arange(walks.position, walks.position + length, device=self.device) % period  # (T,)
        cells = torch.randint(self.n_draws, (size, length), generator=generator, device=self.device)
        # Rows of the tables: the phase's block of D rows, and the number drawn in it.
        cells += phase * self.n_draws
        walk = walk_compiled if self.device.type == "cpu" else walk_composed
        tokens, states = walk(self.next_state, self.letters, cells, walks.states)
        last = states[:, -1] if length else walks.states
        return Batch(tokens, self.labels[phase, states]), Walks(last, walks.position + length)


def words(
    machine: MooreMachine,
    sampler: Sampler,
    outputs: tuple[Hashable, ...] | None = None,
    device: str | torch.device = "cpu",
) -> TaskWords:
    """Return the tables from which words of a machine are drawn.

    Args:
        outputs: the symbols that labels index, for instance a model's.

    Raises:
        UnsupportedFormat: if a counted output is not among `outputs`.
        BudgetExceeded: if the least common multiple of the numbers of choices is too large for a table.

    >>> ab = words(m := MooreMachine.from_source("regex:(ab)*"), make_sampler("live", m))
    >>> tokens, labels = ab.batch(2, 5, ab.generator(0))
    >>> tokens.tolist(), [[ab.outputs[j] for j in row] for row in labels[:1].tolist()]
    ([[0, 1, 0, 1, 0], [0, 1, 0, 1, 0]], [[False, True, False, True, False]])
    """
    delta, of_states, choices, starts = machine.delta, machine.outputs, sampler.choices, (machine.start,)
    if sampler.also is not None:  # a copy of each state, from which letters are chosen as `also` says
        delta = np.concatenate([delta, delta + machine.n_states], axis=1)
        of_states, starts = of_states * 2, (machine.start, machine.start + machine.n_states)
        choices = np.concatenate([choices, sampler.also], axis=1)
    period, n, _ = choices.shape
    counts = choices.sum(2)  # (period, n)
    n_draws = math.lcm(*map(int, np.unique(counts)))
    if n_draws * period * n > _TABLE_ENTRIES:
        raise BudgetExceeded(
            f"a table of {n_draws:,} draws for {period * n:,} states is beyond {_TABLE_ENTRIES:,} entries: "
            'use the sampler "uniform"'
        )
    # The letter and the next state for each number and state.
    order = np.argsort(~choices, axis=2, kind="stable")  # the letters to choose from come first
    # D is a multiple of each number of choices, so that a uniform number modulo it is uniform.
    pick = np.arange(n_draws)[:, None, None] % counts  # (D, period, n)
    letters = np.take_along_axis(order[None], pick[..., None], 3)[..., 0]
    letters = letters.swapaxes(0, 1).reshape(period * n_draws, n)
    next_state = delta[letters, np.arange(n)]
    # The outputs that occur at counted positions, and the labels of states.
    met = _met(next_state.reshape(period, n_draws, n), starts) & np.array(sampler.scored)[:, None]
    occurring = {of_states[q] for q in np.flatnonzero(met.any(0))}
    if outputs is None:
        outputs = tuple(output for output in dict.fromkeys(machine.outputs) if output in occurring)
    number = {output: j for j, output in enumerate(outputs)}
    if unknown := [output for output in occurring if output not in number]:
        raise UnsupportedFormat(
            f"output {unknown[0]!r} of the machine is none of {', '.join(map(repr, outputs))}: "
            "take the machine that the model was made for"
        )
    labels = np.where(met, [number.get(output, UNCOUNTED) for output in of_states], UNCOUNTED)
    tables = (torch.from_numpy(np.ascontiguousarray(table)).to(device) for table in (next_state, letters, labels))
    return TaskWords(machine.alphabet, outputs, starts, sampler.scored, n_draws, *tables)


def shares_of(drawn: TaskWords, length: int) -> dict[Hashable, float]:
    """Return the probability of each output at the end of words of about `length` letters, by a Markov chain of states.

    >>> from fsa2lrnn.automata import zoo
    >>> shares_of(words(zoo.length_mod(2), make_sampler("uniform", zoo.length_mod(2))), 40)
    {0: 1.0, 1: 0.0}
    """
    n, period, fitted = len(drawn.labels[0]), len(drawn.scored), drawn.fit(length)
    next_state = drawn.next_state.numpy().reshape(period, drawn.n_draws, n)
    steps = np.zeros((period, n, n))  # from column to row
    for phase in range(period):
        for targets in next_state[phase]:
            # For one number the pairs (target, state) are distinct, so that `+=` on an index array adds each of them.
            steps[phase, targets, np.arange(n)] += 1 / drawn.n_draws
    states = np.eye(n)[list(drawn.starts)].mean(0)
    for k in range(fitted):
        states = steps[k % period] @ states
    shares = dict.fromkeys(drawn.outputs, 0.0)
    for label, share in zip(drawn.labels[(fitted - 1) % period].tolist(), states, strict=True):
        if share:
            shares[drawn.outputs[label]] += float(share)
    return shares


def _met(next_state: np.ndarray, starts: tuple[int, ...]) -> np.ndarray:
    """Return which states a letter at position k % period can lead to: (period, D, n) -> bool (period, n)."""
    period, _, n = next_state.shape
    met = np.zeros((period, n), bool)
    waiting = [(0, np.array(starts))]
    while waiting:
        phase, states = waiting.pop()
        targets = np.unique(next_state[phase][:, states])
        new = targets[~met[phase, targets]]
        if len(new):
            met[phase, new] = True
            waiting.append(((phase + 1) % period, new))
    return met


def walk_compiled(next_state: Tensor, letters: Tensor, cells: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """Return letters and states, int64 (B, T), along the table rows `cells` (B, T), from states `starts` (B,)."""
    tokens, states = torch.empty_like(cells), torch.empty_like(cells)
    _walk(*(tensor.numpy() for tensor in (next_state, letters, cells, starts, tokens, states)))
    return tokens, states


@njit(cache=True)
def _walk(next_state, letters, cells, starts, tokens, states):
    for i in range(cells.shape[0]):
        q = starts[i]
        for k in range(cells.shape[1]):
            tokens[i, k] = letters[cells[i, k], q]
            q = next_state[cells[i, k], q]
            states[i, k] = q


def walk_composed(next_state: Tensor, letters: Tensor, cells: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same as `walk_compiled`, by tensor operations: ⌈log₂T⌉ rounds if the maps fit in memory, else T."""
    fits = cells.numel() * next_state.shape[1] <= _COMPOSED_ENTRIES
    states = (pscan if fits else sequential)(next_state, cells, starts)
    # A letter is chosen in the state before it.
    before = torch.cat([starts[:, None], states], dim=1)[:, :-1]
    return letters[cells, before], states
