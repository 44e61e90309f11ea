"""Convert a layer with one-hot columns to an automaton: index tables of the joint states of its heads (T50)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, cast

import numpy as np
import torch

from fsa2lrnn.automata.language import explore, share_cells
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.integer_tables import IndexTables
from fsa2lrnn.compile.lower import lower
from fsa2lrnn.compile.recurrence import Recurrence, StateReadout
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched

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


def harden(model: LRNN, max_states: int = 100_000) -> LRNN:
    """Return the automaton of a model with one-hot columns as an index model (T50).

    Its states are the reachable joint states of all heads. One evaluation of the gates chooses the transitions, and one
    of the read-out the output of each state, the one with the largest logit. Where another evaluation of the model
    (another batch, dtype or computer) rounds a choice otherwise, its outputs may differ from the automaton's.

    Raises:
        UnsupportedFormat: for a model that is not one layer over letters with the column rule "onehot".
        BudgetExceeded: if more than `max_states` joint states are reachable; prune heads first.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> model = compile_machine(zoo.sum_mod(3), normalisation="onehot")
    >>> harden(model).transduce("112"), harden(model).layers[0].block_sizes
    ([1, 2, 1], (3,))
    """
    heads = heads_of(model)
    joint = joint_machine(heads, range(len(heads.start)), None, model.alphabet, max_states)
    numbers = np.array(output_numbers(model, cast("list[Joint]", joint.outputs)))
    cell, representatives = share_cells(joint.delta)
    tables = IndexTables(joint.delta[representatives], joint.start, cell)
    return lower(Recurrence(model.alphabet, model.outputs, tables, StateReadout(numbers)), model.dtype)


@torch.no_grad()
def output_numbers(model: LRNN, states: Sequence[Joint]) -> list[int]:
    """Return the output index of each joint state, computed by the model's own read-out."""
    affine = switched(model)
    x = torch.zeros(len(states), *affine.x0.shape, dtype=affine.dtype)
    x.scatter_(-1, torch.tensor(states)[..., None], 1)
    return affine.logits(x).argmax(-1).tolist()
