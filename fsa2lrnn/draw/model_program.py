"""Convert a model to a program for the explorer's page: its parameters, bit for bit, for `engine.js`.

The first layer's A and v are tables by letter if it reads only letters. Later layers, and all layers with a token
shift, compute A and v from the outputs of their gates, by the column rule that the layer declares.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.affine import EPS
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layers import name_of
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.normalise import bounded

NUMBERS = 3_000_000  # the most numbers of all models of a page: 16 MB of float32 in Base64
_DTYPES = {torch.float32: "f32", torch.float64: "f64"}
_INSTEAD = "`LRNN.advance` in Python gives the states of any model"


def programs(models: Mapping[str, LRNN]) -> dict[str, dict[str, Any]]:
    """Return the programs of models as JSON objects, by name.

    Raises `UnsupportedFormat` for layers whose A and v a page cannot compute, for dtypes other than float32 and
    float64, and for more than `NUMBERS` numbers.
    """
    for name, model in models.items():
        _check(name, model)
    sizes = {name: size(model) for name, model in models.items()}
    if sum(sizes.values()) > NUMBERS:
        each = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
        raise UnsupportedFormat(
            f"the models hold {sum(sizes.values()):,} numbers ({each}) and a page at most {NUMBERS:,}: draw fewer "
            f"models, or one with fewer heads or smaller blocks; {_INSTEAD}"
        )
    return {name: program(model) for name, model in models.items()}


def size(model: LRNN) -> int:
    """Return the number of numbers in the program of a model."""
    if model.config.reads_letters:
        return sum(buffer.numel() for buffer in model.buffers())
    numbers = sum(part.numel() for part in model.readout.parameters()) + _of_embedding(model)
    for i, layer in enumerate(model.recurrences):
        numbers += _of_tables(model) if _by_letter(model, i) else sum(p.numel() for p in layer.parameters())
    return numbers


def program(model: LRNN) -> dict[str, Any]:
    """Return the program of one model as a JSON object.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> found = program(compile_machine(zoo.parity()))
    >>> found["dtype"], [layer["kind"] for layer in found["layers"]], found["layers"][0]["A"]["shape"]
    ('f32', ['tables'], [2, 1, 2, 2])
    """
    config = model.config
    common = {"dtype": _DTYPES[model.dtype], "connection": config.connection, "shift": config.token_shift}
    with torch.no_grad():
        if config.reads_letters:
            return {**common, "embedding": None, "layers": [_index(model)], "readout": None}
        norms = [None] * (len(model.layers) + 1 - len(model.norms)) + [_norm(norm) for norm in model.norms]
        layers = [_layer(model, i, norms[i]) for i in range(len(model.layers))]
        readout = {**_gate(cast("Gate", model.readout)), "norm": norms[-1]}
        embedding = array(cast("Tensor", model.embedding.weight))
    return {**common, "embedding": embedding, "layers": layers, "readout": readout}


def array(values: Tensor) -> dict[str, Any]:
    """Return a float32, float64 or int64 (as int32) tensor as a JSON object with little-endian bytes in Base64."""
    found = values.detach().cpu().contiguous().numpy()
    kind = {"float32": "f32", "float64": "f64", "int64": "i32"}[found.dtype.name]
    data = np.ascontiguousarray(found, {"f32": "<f4", "f64": "<f8", "i32": "<i4"}[kind]).tobytes()
    return {"type": kind, "shape": list(found.shape), "data": base64.b64encode(data).decode()}


def _check(name: str, model: LRNN) -> None:
    if model.dtype not in _DTYPES:
        dtype = str(model.dtype).removeprefix("torch.")
        raise UnsupportedFormat(
            f"model {name!r} computes in {dtype}, and a page in float32 or float64: give it in one of these "
            "(model.float()), which rounds otherwise"
        )
    for i, layer in enumerate(model.recurrences):
        if not (model.config.reads_letters or _by_letter(model, i) or layer.written_by is not None):
            raise UnsupportedFormat(
                f"model {name!r}: layers.{i} is of kind {name_of(model.config.layers[i])}, whose transitions are no "
                "tables that a page could look up, nor blocks that a gate writes: draw models of blocks, or one layer "
                f"of Householder products; {_INSTEAD}"
            )


def _by_letter(model: LRNN, i: int) -> bool:
    return i == 0 and not model.config.token_shift and model.recurrences[0].has_tables


def _of_embedding(model: LRNN) -> int:
    return sum(part.numel() for part in model.embedding.parameters())


def _of_tables(model: LRNN) -> int:
    _, n_heads, b = model.recurrences[0].initial_state(1).shape
    return len(model.alphabet) * n_heads * b * (b + 1) + n_heads * b


def _layer(model: LRNN, i: int, norm: dict[str, Any] | None) -> dict[str, Any]:
    layer = model.recurrences[i]
    start = layer.initial_state(1)[0]
    sizes = list(layer.block_sizes) or [start.shape[1]] * len(start)  # a user's layer may declare none
    common = {"sizes": sizes, "x0": array(start), "norm": norm}
    if _by_letter(model, i):
        A, v = layer.tables(model.first_inputs())
        return {**common, "kind": "tables", "A": array(A), "v": array(v)}
    rule, p = cast("Any", layer.written_by)
    gates = {name: _gate(gate) for name, gate in layer.gates}
    return {**common, "kind": "gates", "rule": rule, "p": bounded(p), **gates}


def _index(model: LRNN) -> dict[str, Any]:
    layer, embedding, readout = model.recurrences[0], model.embedding, model.readout
    return {
        "kind": "index",
        "sizes": list(layer.block_sizes),
        "start": int(layer.initial_state(1)[0]),
        "next": array(layer.get_buffer("next_state")),
        "cell": array(embedding.get_buffer("cell")),
        "output": array(readout.get_buffer("output")),
        "outputs": len(model.outputs),
        "norm": None,
    }


def _gate(gate: Gate) -> dict[str, Any]:
    return {name: array(part) for name, part in gate.weights._asdict().items()}


def _norm(norm: nn.Module) -> dict[str, Any]:
    return {"weight": array(norm.get_parameter("weight")), "bias": array(norm.get_parameter("bias")), "eps": EPS}
