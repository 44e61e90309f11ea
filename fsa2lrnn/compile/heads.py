"""The automata of the heads of a layer with one-hot columns, and the machine of their joint states (T50)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.automata.language import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.model import LRNN

Joint = tuple[int, ...]  # one state per head


class Heads(NamedTuple):
    """The automata of a layer's H blocks.

    Args:
        next_state: the state after each letter, for each head and state, int64 (|Σ|, H, b).
        start: the start state of each head, int64 (H,).
    """

    next_state: np.ndarray
    start: np.ndarray

    def states(self, tokens: np.ndarray) -> np.ndarray:
        """Return the states before and after each letter of a batch of words: int64 (B, T) -> (B, T+1, H)."""
        _, H, b = self.next_state.shape
        # Flat index of (letter, head, state): letter·H·b + head·b + state.
        table, head = self.next_state.ravel(), np.arange(H) * b
        states = np.empty((tokens.shape[1] + 1, len(tokens), H), np.int64)
        states[0] = self.start
        for k, letters in enumerate(tokens.T):
            states[k + 1] = table.take(letters[:, None] * (H * b) + head + states[k])
        return states.swapaxes(0, 1)


def heads_of(model: LRNN) -> Heads:
    """Return the automata of the heads of a one-layer model with the column rule "onehot".

    Raises `UnsupportedFormat` for any other model.
    """
    layer = model.recurrences[0]
    if len(model.layers) > 1 or model.config.token_shift or not layer.has_maps:
        shift = " and a token shift" if model.config.token_shift else ""
        raise UnsupportedFormat(
            f"the model has {len(model.layers)} layers{shift} under the column rule {model.config.normalisation!r}: "
            'only a single layer over letters with the rule "onehot" is an automaton a head'
        )
    with torch.no_grad():
        start = layer.initial_state(1)[0].argmax(-1)
        return Heads(layer.maps(model.first_inputs()).cpu().numpy(), start.cpu().numpy())


def joint_machine(
    heads: Heads, selected: Sequence[int], output: dict[Joint, Hashable] | None, alphabet: tuple[Hashable, ...],
    max_states: int,
) -> MooreMachine:  # fmt: skip
    """Return the reachable part of the direct product of the selected heads, labelled with the joint states.

    `output` maps joint states to outputs; if None, the output is the joint state itself. Raises `BudgetExceeded` for
    more than `max_states` states.
    """
    columns = np.array(selected, np.int64)
    tables = {letter: table[columns] for letter, table in zip(alphabet, heads.next_state, strict=True)}
    rows = np.arange(len(columns))

    def step(state: Joint, letter: Hashable) -> Joint:
        return tuple(tables[letter][rows, state].tolist())

    start: Joint = tuple(heads.start[columns].tolist())
    return explore(alphabet, start, step, lambda q: q if output is None else output[q], max_states)
