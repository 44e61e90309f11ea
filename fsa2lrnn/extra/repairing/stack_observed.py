"""Observations of a trained model for the repair of several layers: each layer's inputs and states along words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.repairing.lookups import LookUp
from fsa2lrnn.extra.repairing.observed import RepairStates, times_met
from fsa2lrnn.extraction import output_numbers
from fsa2lrnn.lrnn.config import LRNNConfig
from fsa2lrnn.lrnn.model import LRNN

_WORDS, _LETTERS, AT_ONCE = 2_000, 32, 128


class StackObservations(NamedTuple):
    """Observations of a trained model along words, up to its first mistake in each.

    Args:
        tokens: int64 (B, T).
        states: int64 (B, T + 1), the machine's, from the initial one.
        u, x: for each layer its inputs (B, T, d) and its states (B, T, width), float64.
        right: bool (B, T), the positions before the model's first mistake.
    """

    tokens: np.ndarray
    states: np.ndarray
    u: list[np.ndarray]
    x: list[np.ndarray]
    right: np.ndarray


class LayerInputs(NamedTuple):
    """The distinct inputs S of a layer above exact layers.

    Args:
        look_up: the look-up of these inputs.
        delta: int64 (|S|, n + 1), the machine's state after an input that follows a state, −1 where it never does.
        numbers: int64 (N,), the input at each observed position before the model's first mistake.
    """

    look_up: LookUp
    delta: np.ndarray
    numbers: np.ndarray


def observe_stack(model: LRNN, states: RepairStates, seed: int = 0) -> StackObservations:
    """Run a model in float64 along random words of letters after which some output still counts.

    Raises `UnsupportedFormat` for layers without tables and for other ends than an embedding and a gate, and
    `NotExact`, naming a state, if no word reaches it without a mistake before it.
    """
    if not (model.has_plain_ends and all(layer.has_tables for layer in model.recurrences)):
        raise UnsupportedFormat("only layers with tables, between an embedding and a gate as read-out, are repaired")
    model = in_float64(model)
    tokens = states.random_words(np.random.default_rng(seed), _WORDS, _LETTERS)
    path = np.column_stack([np.full(len(tokens), states.initial), states.path(tokens)])
    pieces, outputs = [], []
    with torch.no_grad():
        for part in torch.from_numpy(tokens).split(AT_ONCE):
            pieces.append(model.trace(part, model.initial_state(len(part))))
            outputs.append(output_numbers(pieces[-1][-1][1]))
    u, x = ([np.concatenate([p[i][j].numpy() for p in pieces]) for i in range(len(model.layers))] for j in (0, 1))
    wrong = states.is_wrong(np.concatenate(outputs), path[:, 1:]) | ~states.coaccessible[path[:, 1:]]
    right = ~np.logical_or.accumulate(wrong, axis=1)
    times_met(states, path[:, 1:][right], states.coaccessible)
    return StackObservations(tokens, path, u, x, right)


def in_float64(model: LRNN) -> LRNN:
    """Return a copy of a model in float64."""
    copied = like(model, model.config, torch.float64)
    copied.load_state_dict(model.state_dict())
    return copied


def like(model: LRNN, config: LRNNConfig, dtype: torch.dtype) -> LRNN:
    """Return a new model of the class of `model`, with another configuration and dtype."""
    return type(model)(config).to(dtype)


def means_of(x: np.ndarray, numbers: np.ndarray, classes: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the mean vector for each pair of input and class, or the input's mean for an unseen pair: (|S|, k, b)."""
    total, count = np.zeros((*shape, x.shape[1])), np.zeros((*shape, 1))
    np.add.at(total, (numbers, classes), x)
    np.add.at(count, (numbers, classes), 1)
    of_input = np.where(count.sum(1) > 0, total.sum(1) / np.maximum(count.sum(1), 1), x.mean(0))
    return np.where(count > 0, total / np.maximum(count, 1), of_input[:, None])


def input_means(x: np.ndarray, inputs: LayerInputs, states: np.ndarray) -> np.ndarray:
    """Return for each vector the mean of those after the same input, in which each state after it has equal weight."""
    n = inputs.delta.shape[1]
    _, cell, count = np.unique(inputs.numbers * n + states, return_inverse=True, return_counts=True)
    weights = 1 / count[cell.ravel()]
    total, weight = np.zeros((len(inputs.delta), x.shape[1])), np.bincount(inputs.numbers, weights)
    np.add.at(total, inputs.numbers, x * weights[:, None])
    return total[inputs.numbers] / weight[inputs.numbers, None]
