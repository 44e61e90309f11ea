"""Models from elsewhere: weights of the code published with the paper, and tables of any switched affine model."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.lrnn.config import BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine

# Names there, by names here; i is the number of a layer, L the number of layers.
_NAMES = {
    r"embedding\.weight": "embedding.weight",
    r"layers\.(\d+)\.a0": r"layers.\1.x0",
    r"layers\.(\d+)\.gen_block\.([02])\.(weight|bias)": r"layers.\1.transition.\2.\3",
    r"layers\.(\d+)\.gen_value\.([02])\.(weight|bias)": r"layers.\1.value.\2.\3",
    r"ln\.(\d+)\.(weight|bias)": r"norms.\1.\2",
    r"ln_final\.(weight|bias)": r"norms.L.\1",
    r"Wo1\.(weight|bias)": r"readout.0.\1",
    r"Wo2\.(weight|bias)": r"readout.2.\1",
}


def from_released(
    state_dict: Mapping[str, Tensor],
    alphabet: Sequence[Hashable] | None = None,
    outputs: Sequence[Hashable] | None = None,
    p: float = 1.2,
) -> LRNN:
    """The model that the code published with the paper has with these weights.

    There each block's columns are centred and the block is divided by its largest column p-norm (rule "released"),
    layers but the last add to their input (connection "residual"), and a LayerNorm stands before each layer and before
    the read-out.

    Args:
        state_dict: `embedding.weight`, `layers.i.a0`, `layers.i.gen_block.{0,2}.*`, `layers.i.gen_value.{0,2}.*`,
            `ln.i.*`, `ln_final.*`, `Wo1.*`, `Wo2.*`.
        alphabet, outputs: of the embedding's rows and of the logits; numbers unless given.
        p: order of the column norm.

    Raises:
        CheckpointError: naming every weight that is missing, unknown or of a wrong shape.
    """
    layers_there = {name.split(".")[1] for name in state_dict if re.match(r"layers\.\d+\.", name)}
    n_layers = max(1, len(layers_there))
    renamed = _renamed(state_dict, n_layers)
    n_letters, width = renamed["embedding.weight"].shape
    layers = []
    for i in range(n_layers):
        x0 = renamed[f"layers.{i}.x0"] = renamed[f"layers.{i}.x0"].squeeze(0)  # there (1, H, b)
        if x0.ndim != 2:
            raise CheckpointError(f"layers.{i}.a0 has shape {tuple(x0.shape)} where (1, H, b) is expected")
        hidden = (len(renamed[f"layers.{i}.{gate}.0.bias"]) for gate in ("transition", "value"))
        layers.append(BlockLayerConfig((x0.shape[1],) * x0.shape[0], *hidden))
    n_outputs = len(renamed["readout.2.bias"])
    config = LRNNConfig(
        alphabet=tuple(alphabet) if alphabet is not None else tuple(range(n_letters)),
        outputs=tuple(outputs) if outputs is not None else tuple(range(n_outputs)),
        layers=tuple(layers),
        embedding_dim=width,
        readout_hidden=len(renamed["readout.0.bias"]),
        normalisation="released",
        p=p,
        connection="residual",
        layer_norm=True,
    )
    model = LRNN(config).to(renamed["embedding.weight"].dtype)
    try:
        model.load_state_dict(renamed)
    except RuntimeError as error:
        raise CheckpointError(f"the weights do not fit together: {error}") from error
    return model


def _renamed(state_dict: Mapping[str, Tensor], n_layers: int) -> dict[str, Tensor]:
    """The weights by their names here. Raises `CheckpointError` for those that are unknown or missing."""
    renamed, faults = {}, []
    for name, tensor in state_dict.items():
        match = next(((found, new) for old, new in _NAMES.items() if (found := re.fullmatch(old, name))), None)
        if match is None:
            faults.append(f"{name} is no weight of the released code")
        else:
            renamed[match[0].expand(match[1]).replace("norms.L", f"norms.{n_layers}")] = tensor
    needed = ["embedding.weight", "readout.0.bias", "readout.2.bias"]
    for i in range(n_layers):
        needed += [f"layers.{i}.x0", f"layers.{i}.transition.0.bias", f"layers.{i}.value.0.bias"]
    faults += [f"{name} has no counterpart" for name in needed if name not in renamed]
    if faults:
        raise CheckpointError(
            f"{'; '.join(faults)}. Expected: embedding, layers.i.{{a0, gen_block, gen_value}}, ln.i, ln_final, Wo1, Wo2"
        )
    return renamed


def from_tables(tables: SwitchedAffine, normalisation: str = "none", p: float = 1.2) -> LRNN:
    """The model whose layer has exactly these tables: its embedding is one-hot, so that its gates are look-ups.

    Under the rule "clip" the tables are kept as they are only if no column's p-norm exceeds 1.

    Raises:
        CheckpointError: if the column rule would change a table.

    >>> from fsa2lrnn.lrnn.switched import Readout, switched
    >>> readout = Readout.linear(torch.eye(8), torch.zeros(8))
    >>> tables = SwitchedAffine.of(torch.randn(3, 2, 4, 4), torch.randn(3, 2, 4), torch.randn(2, 4), readout)
    >>> switched(from_tables(tables)).sha256 == tables.sha256
    True
    """
    n, heads, b = tables.v.shape
    readout = tables.readout
    config = LRNNConfig(
        alphabet=tables.alphabet,
        outputs=tables.outputs,
        layers=(BlockLayerConfig((b,) * heads, transition_hidden=n, value_hidden=n),),
        embedding_dim=n,
        readout_hidden=len(readout.b1),
        normalisation=normalisation,
        p=p,
        layer_norm="readout" if readout.norm_weight is not None else False,
    )
    eye, zero = torch.eye(n), torch.zeros(n)
    weights = {
        "embedding.weight": eye,
        "layers.0.x0": tables.x0,
        "readout.0.weight": readout.W1,
        "readout.0.bias": readout.b1,
        "readout.2.weight": readout.W2,
        "readout.2.bias": readout.b2,
    }
    for gate, table in (("transition", tables.A), ("value", tables.v)):
        rows = table.reshape(n, -1).T
        weights |= {f"layers.0.{gate}.0.weight": eye, f"layers.0.{gate}.0.bias": zero}
        weights |= {f"layers.0.{gate}.2.weight": rows, f"layers.0.{gate}.2.bias": torch.zeros(len(rows))}
    if readout.norm_weight is not None and readout.norm_bias is not None:
        weights |= {"norms.0.weight": readout.norm_weight, "norms.0.bias": readout.norm_bias}
    model = LRNN(config).to(tables.dtype)
    model.load_state_dict(weights)
    with torch.no_grad():
        A = model.layers[0].tables(model.first_inputs())[0]  # type: ignore[operator]
    if not torch.equal(A, tables.A):
        raise CheckpointError(
            f"the column rule {normalisation!r} changes the tables, by up to {float((A - tables.A).abs().max()):.2g}: "
            'columns of a p-norm above 1 need the rule "none"'
        )
    return model
