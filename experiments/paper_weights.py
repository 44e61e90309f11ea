"""Import of weights of the code published with the paper."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.nn.checkpoint import state_shapes
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.layers import BlockLayerConfig
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.reading import shown

_FAULTS_SHOWN = 20


def from_paper_weights(
    state_dict: Mapping[str, Tensor],
    alphabet: Sequence[Hashable] | None = None,
    outputs: Sequence[Hashable] | None = None,
    p: float = 1.2,
) -> LRNN:
    """Return the model with weights in the format of the code published with the paper.

    That code centres each block's columns and divides the block by its largest column p-norm (rule "paper"); all
    layers except the last add to their input (connection "residual"), and a LayerNorm precedes each layer and the
    read-out.

    Args:
        state_dict: `embedding.weight`, `layers.i.a0`, `layers.i.gen_block.{0,2}.*`, `layers.i.gen_value.{0,2}.*`,
            `ln.i.*`, `ln_final.*`, `Wo1.*`, `Wo2.*`.
        alphabet, outputs: the symbols of the embedding's rows and of the logits; integers by default.
        p: the order of the column norm.

    Raises:
        CheckpointError: with up to 20 weights that are missing, unknown, of a wrong shape or of another dtype.
        UnsupportedFormat: if symbols are not distinct, p < 1, or the layers and the stream differ in width.
    """
    layers = {match[1] for name in state_dict if (match := re.match(r"layers\.(\d+)\.", str(name)))}
    ours = _names(max(1, len(layers)))
    faults = [
        f"{shown(name)[1:-1]} is not a weight of the code published with the paper"
        for name in state_dict
        if name not in ours
    ]
    _refuse(faults + [f"{name} is missing" for name in ours if name not in state_dict])
    _refuse([fault for name in ours if (fault := _fault_of(name, state_dict[name]))])
    config = _config(state_dict, max(1, len(layers)), alphabet, outputs, p)
    weights = {new: state_dict[old][0] if old.endswith("a0") else state_dict[old] for old, new in ours.items()}
    expected = state_shapes(lambda: LRNN(config))
    _refuse(
        [
            f"{old} has shape {tuple(weights[new].shape)} where the other weights ask for {shape}"
            for old, new in ours.items()
            if tuple(weights[new].shape) != (shape := expected[new][0])
        ]
    )
    model = LRNN(config).to(weights["embedding.weight"].dtype)
    model.load_state_dict(weights)
    return model


def _names(n_layers: int) -> dict[str, str]:
    names = {"embedding.weight": "embedding.weight"}
    names |= {f"layers.{i}.a0": f"layers.{i}.x0" for i in range(n_layers)}
    modules = {f"ln.{i}": f"norms.{i}" for i in range(n_layers)}
    modules |= {"ln_final": f"norms.{n_layers}", "Wo1": "readout.0", "Wo2": "readout.2"}
    for i in range(n_layers):
        for theirs, ours in (("gen_block", "transition"), ("gen_value", "value")):
            modules |= {f"layers.{i}.{theirs}.{j}": f"layers.{i}.{ours}.{j}" for j in (0, 2)}
    return names | {f"{old}.{kind}": f"{new}.{kind}" for old, new in modules.items() for kind in ("weight", "bias")}


def _config(
    weights: Mapping[str, Tensor],
    n_layers: int,
    alphabet: Sequence[Hashable] | None,
    outputs: Sequence[Hashable] | None,
    p: float,
) -> LRNNConfig:
    # The sizes of the model are those of a few weights, whose axes are checked first.
    forms = {"embedding.weight": "(|Σ|, d)", "Wo1.bias": "(m,)", "Wo2.bias": "(|Γ|,)"}
    for i in range(n_layers):
        forms |= {f"layers.{i}.a0": "(1, H, b)", f"layers.{i}.gen_block.0.bias": "(m,)"}
        forms |= {f"layers.{i}.gen_value.0.bias": "(m,)"}
    shapes = {name: tuple(weights[name].shape) for name in forms}
    faults = [
        f"{name} has shape {shapes[name]} where {form} is expected"
        for name, form in forms.items()
        if len(shapes[name]) != form.strip(",()").count(",") + 1 or (name.endswith("a0") and shapes[name][0] != 1)
    ]
    dtypes = {str(tensor.dtype) for tensor in weights.values()}
    if len(dtypes) > 1 or not weights["embedding.weight"].is_floating_point():
        faults.append(f"the dtypes are {', '.join(sorted(dtypes))}, not one of floats")
    _refuse(faults)
    for symbols, name in ((alphabet, "embedding.weight"), (outputs, "Wo2.bias")):
        if symbols is not None and len(symbols) != shapes[name][0]:
            faults.append(f"{name} has {shapes[name][0]} rows for {len(symbols)} symbols")
    _refuse(faults)
    layers = []
    for i in range(n_layers):
        _, heads, b = shapes[f"layers.{i}.a0"]
        of_A, of_v = (shapes[f"layers.{i}.{gate}.0.bias"][0] for gate in ("gen_block", "gen_value"))
        layers.append(BlockLayerConfig((b,) * heads, of_A, of_v))
    return LRNNConfig(
        alphabet=tuple(alphabet) if alphabet is not None else tuple(range(shapes["embedding.weight"][0])),
        outputs=tuple(outputs) if outputs is not None else tuple(range(shapes["Wo2.bias"][0])),
        layers=tuple(layers),
        embedding_dim=shapes["embedding.weight"][1],
        readout_hidden=shapes["Wo1.bias"][0],
        normalisation="paper",
        p=p,
        connection="residual",
        layer_norm=True,
    )


def _fault_of(name: str, weight: object) -> str | None:
    if not isinstance(weight, Tensor):
        return f"{name} is a {type(weight).__name__}, not a tensor"
    if weight.layout != torch.strided or weight.device.type == "meta":
        return f"{name} is a tensor of layout {weight.layout} on {weight.device}, without entries"
    if weight.untyped_storage().nbytes() < weight.numel() * weight.element_size():
        return f"{name} has shape {tuple(weight.shape)}, but entries are used twice: make it contiguous"
    return None


def _refuse(faults: list[str]) -> None:
    if faults:
        more = f"; and {len(faults) - _FAULTS_SHOWN} more" if len(faults) > _FAULTS_SHOWN else ""
        raise CheckpointError(
            f"{'; '.join(faults[:_FAULTS_SHOWN])}{more}. Expected are the weights that the code published with the "
            "paper saves: embedding, layers.i.{a0, gen_block, gen_value}, ln.i, ln_final, Wo1, Wo2"
        )
