"""From exact tables to the network: the bridge `Recurrence` → `LRNN`, and the call users make, `compile_machine`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile import DENSE_MEMORY, Form, Layout, compile_recurrence
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.lrnn.config import BlockLayerConfig, IndexLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.normalise import released_scale
from fsa2lrnn.recurrence import DenseReadout, DenseTables, IndexReadout, IndexTables, Recurrence

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def compile_machine(
    machine: MooreMachine,
    form: Form = "onehot",
    max_block: int | None = None,
    token_shift: bool = True,  # noqa: ARG001 - a permission; one-hot blocks never need it
    dtype: torch.dtype = torch.float32,
    layout: Layout = "auto",
    normalisation: str = "clip",
    p: float = 1.2,
    dense_memory: int = DENSE_MEMORY,
) -> LRNN:
    """An LRNN with exact weights that computes `machine` on every word of every length (T1 of docs/theory.md).

    Args:
        machine: any complete Moore machine.
        form: "onehot": a single layer of one-hot blocks.
        max_block: refuse blocks larger than this.
        token_shift: whether a layer may look at the letter before; the one-hot form never needs to.
        dtype: float64, float32, bfloat16 or float16; the result is exact in each.
        layout: "dense" weights, an "index" table of the same linear map, or "auto" (dense up to 64 states a block).
        normalisation: the column rule of the model, "clip" or "none"; "released" can't hold one-hot columns.
        p: order of the column norm.
        dense_memory: bytes that dense weights (float32) may take.

    Returns:
        An `LRNN` of the class that is trained, its weights set. An index layout has no weights to train.

    Raises:
        NotExpressible: if a block exceeds `max_block`, or for `normalisation="released"`, with the numbers.
        BudgetExceeded: if dense weights are asked for and would not fit.
        UnsupportedFormat: for an unknown form, layout, dtype or normalisation.

    >>> model = compile_machine(MooreMachine([[0, 1], [1, 0]], [False, True]))
    >>> model.transduce([1, 0, 1]), model.layers[0].block_sizes
    ([True, True, False], (2,))
    """
    recurrence = compile_recurrence(machine, form, max_block, layout, dense_memory)
    return lower(recurrence, dtype, normalisation, p)


def lower(
    recurrence: Recurrence, dtype: torch.dtype = torch.float32, normalisation: str = "clip", p: float = 1.2
) -> LRNN:
    """The network with the tables of `recurrence` as its weights. Raises as `compile_machine` does."""
    if dtype not in DTYPES:
        raise UnsupportedFormat(f"dtype {dtype} is not offered: choose one of {', '.join(map(str, DTYPES))}")
    layer, readout = recurrence.layer, recurrence.readout
    with torch.no_grad():
        if isinstance(layer, IndexTables) and isinstance(readout, IndexReadout):
            return _lower_index(recurrence, layer, readout).to(dtype)
        if isinstance(layer, DenseTables) and isinstance(readout, DenseReadout):
            if normalisation == "released":
                raise NotExpressible(_why_not_released(layer, p))
            return _lower_dense(recurrence, layer, readout, normalisation, p).to(dtype)
    raise UnsupportedFormat(f"no network for {type(layer).__name__} with {type(readout).__name__}")


def _lower_dense(
    recurrence: Recurrence, layer: DenseTables, readout: DenseReadout, normalisation: str, p: float
) -> LRNN:
    """The embedding is one-hot in the cell, so each gate is a table look-up: relu(I e_c) picks column c of the second
    matrix, which holds A[c] or v[c]."""
    n_cells = len(layer.A)
    model = _blank(
        LRNNConfig(
            alphabet=recurrence.alphabet,
            outputs=recurrence.outputs,
            layers=(BlockLayerConfig(layer.block_sizes, transition_hidden=n_cells, value_hidden=n_cells),),
            embedding_dim=n_cells,
            readout_hidden=len(readout.W1),
            normalisation=normalisation,
            p=p,
        )
    )
    identity = np.eye(n_cells)
    weights = {
        "embedding.weight": identity[layer.cell],
        "layers.0.transition.0.weight": identity,
        "layers.0.transition.2.weight": layer.A.reshape(n_cells, -1).T,
        "layers.0.value.0.weight": identity,
        "layers.0.value.2.weight": layer.v.reshape(n_cells, -1).T,
        "layers.0.x0": layer.x0,
        "readout.0.weight": readout.W1,
        "readout.0.bias": readout.b1,
        "readout.2.weight": readout.W2,
        "readout.2.bias": readout.b2,
    }
    _set(model, weights)
    return model


def _lower_index(recurrence: Recurrence, layer: IndexTables, readout: IndexReadout) -> LRNN:
    n_maps, n_states = layer.next_state.shape
    config = LRNNConfig(recurrence.alphabet, recurrence.outputs, (IndexLayerConfig(n_states, n_maps),))
    model = LRNN(config)
    _set(
        model,
        {
            "embedding.cell": layer.cell,
            "layers.0.next_state": layer.next_state,
            "layers.0.start": np.array(layer.start),
            "readout.output": readout.output,
        },
    )
    return model


def _blank(config: LRNNConfig) -> LRNN:
    """A model with every weight zero."""
    model = LRNN(config)
    for parameter in model.parameters():
        parameter.zero_()
    return model


def _set(model: LRNN, weights: dict[str, np.ndarray]) -> None:
    state: dict[str, Tensor] = model.state_dict()
    for name, value in weights.items():
        target = state[name]
        target.copy_(torch.tensor(value).reshape(target.shape))


def _why_not_released(layer: DenseTables, p: float) -> str:
    b = max(layer.block_sizes)
    if b == 1:
        return (
            "the released normalisation centres a block of size 1 to 0 and divides 0 by 0: "
            "compile with normalisation='clip' (the paper's Eq. 6)"
        )
    return (
        "the released normalisation (centre each column, divide the block by its largest column "
        f"{p}-norm) can't hold one-hot columns: at block size {b} a permutation is scaled by "
        f"{released_scale(b, p):.4f} a step, so states fade or grow with time, and a block of zeros gives 0/0: "
        "compile with normalisation='clip' (the paper's Eq. 6) or 'none'"
    )
