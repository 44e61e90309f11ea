"""Broken models: what a judge must be able to reject (every check has a mutant).

Each function returns a copy of a compiled model with one fault. Letters that act alike share their weights, so a fault
in a letter's weights is a fault for all letters of its cell.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy

import torch
from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.symbols import encode


def flip_transition(model: LRNN, letter: Hashable, state: int, target: int, head: int = 0) -> LRNN:
    """Column `state` of the letter's block has its 1 in row `target`."""
    broken, weights, cell = _open(model, letter)
    if broken.config.index_layer:
        weights["layers.0.next_state"][cell, state] = target
    else:
        column = _block(broken, weights, cell, head)[:, state]
        column.zero_()
        column[target] = 1
    return broken


def transpose_block(model: LRNN, letter: Hashable, head: int = 0) -> LRNN:
    """The letter's block is its transpose: rows and columns confused. Dense models only."""
    broken, weights, cell = _open(model, letter)
    if broken.config.index_layer:
        raise UnsupportedFormat("an index table holds columns only, nothing to transpose: use a dense model")
    block = _block(broken, weights, cell, head)
    block.copy_(block.T.clone())
    return broken


def drop_letter(model: LRNN, letter: Hashable) -> LRNN:
    """The letter is read and ignored: its transition is the identity."""
    broken, weights, cell = _open(model, letter)
    if broken.config.index_layer:
        table = weights["layers.0.next_state"]
        table[cell] = torch.arange(table.shape[1])
    for layer in broken.config.block_layers:
        for head, size in enumerate(layer.block_sizes):
            _block(broken, weights, cell, head)[:size, :size] = torch.eye(size)
    return broken


def swap_outputs(model: LRNN, first: int, second: int) -> LRNN:
    """Output numbers `first` and `second` change places in the read-out."""
    broken = deepcopy(model)
    weights = broken.state_dict()
    if broken.config.index_layer:
        output = weights["readout.output"]
        is_first, is_second = output == first, output == second
        output[is_first], output[is_second] = second, first
    else:
        for part in (weights["readout.2.weight"], weights["readout.2.bias"]):
            part[[first, second]] = part[[second, first]].clone()
    return broken


def _open(model: LRNN, letter: Hashable) -> tuple[LRNN, dict[str, Tensor], int]:
    """A copy, its weights (detached, sharing its memory) and the number of the letter's cell."""
    token = int(encode([letter], model.alphabet)[0])
    broken = deepcopy(model)
    weights = broken.state_dict()
    if broken.config.index_layer:
        return broken, weights, int(weights["embedding.cell"][token])
    row = weights["embedding.weight"][token]
    if len(broken.layers) != 1 or not (row.max() == 1 and row.abs().sum() == 1):
        raise UnsupportedFormat("this is no compiled one-layer model: its embedding is not one-hot in cells")
    return broken, weights, int(row.argmax())


def _block(model: LRNN, weights: dict[str, Tensor], cell: int, head: int) -> Tensor:
    """A view (b, b) of the transition of one cell and head, where it stands in the gate's second matrix."""
    sizes = model.config.block_layers[0].block_sizes
    return weights["layers.0.transition.2.weight"].view(len(sizes), max(sizes), max(sizes), -1)[head, :, :, cell]
