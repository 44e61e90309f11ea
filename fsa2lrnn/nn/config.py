"""The configuration of an LRNN, as frozen data that is saved with the weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import torch
from torch import Tensor

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import Columns, LayerConfig, layer_in_file, name_of
from fsa2lrnn.nn.normalise import RULES
from fsa2lrnn.reading import read

MAX_LAYERS = 256  # to bound what a small file can allocate


@dataclass(frozen=True)
class LRNNConfig:
    """All properties of an LRNN except its weights.

    Args:
        alphabet: Σ; token i is letter i.
        outputs: Γ; logit j is output symbol j.
        layers: from input to output, configurations of `fsa2lrnn.nn.layers` or user-defined ones.
        embedding_dim: the width of the token embedding (unused if a layer reads letters directly).
        readout_hidden: the hidden width of the read-out MLP (unused if a layer reads letters directly).
        normalisation: "clip", "paper", "none" or "onehot" (`normalise.normalise`).
        p: the order of the column norm, at least 1 and finite.
        connection: "chain", each layer reads the one below; "residual", all layers except the last add to a stream of
            width `embedding_dim`, as in the paper's code; "full-residual", all layers do; "concat", each layer reads
            the embedding and all layers below as in DenseNet, and the read-out all layers without the embedding.
        layer_norm: True for LayerNorm before every layer and the read-out, "readout" for the read-out only.
        token_shift: whether each layer reads its input at k and at k−1; for k = 1 that of x₀ (RWKV's token shift).

    Raises:
        UnsupportedFormat: with the first invalid value.
    """

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    layers: tuple[LayerConfig, ...]
    embedding_dim: int = 64
    readout_hidden: int = 64
    normalisation: str = "clip"
    p: float = 1.2
    connection: str = "chain"
    layer_norm: bool | str = False
    token_shift: bool = False

    def __post_init__(self) -> None:
        if not self.alphabet or not self.outputs or not self.layers:
            raise UnsupportedFormat("alphabet, outputs and layers must each have at least one entry")
        if len(self.layers) > MAX_LAYERS:
            raise UnsupportedFormat(f"{len(self.layers):,} layers: at most {MAX_LAYERS} make a model")
        for name in ("alphabet", "outputs"):
            if len(set(values := getattr(self, name))) != len(values):
                raise UnsupportedFormat(f"{name} = {values}: the entries must be distinct")
        if self.embedding_dim < 1 or self.readout_hidden < 1:
            raise UnsupportedFormat(
                f"embedding_dim = {self.embedding_dim} and readout_hidden = {self.readout_hidden} must be at least 1"
            )
        if self.normalisation not in RULES:
            raise UnsupportedFormat(f"normalisation {self.normalisation!r} is not known: one of {', '.join(RULES)}")
        if self.layer_norm not in (True, False, "readout"):
            raise UnsupportedFormat(f'layer_norm {self.layer_norm!r} is not known: True, False or "readout"')
        if not 1 <= self.p < float("inf"):
            raise UnsupportedFormat(f"p = {self.p}: a column norm needs a finite p of at least 1")
        if self.connection not in CONNECTIONS:
            raise UnsupportedFormat(f"connection {self.connection!r} is not known: one of {', '.join(CONNECTIONS)}")
        # Combinations of fields: an index layer reads letters directly, and a residual stream has one width.
        if self.reads_letters and len(self.layers) > 1:
            raise UnsupportedFormat("an index layer reads tokens and feeds the read-out: it must be the only layer")
        if self.reads_letters and (self.token_shift or self.layer_norm or self.connection != "chain"):
            raise UnsupportedFormat("an index layer takes no token_shift, no layer_norm and no connection but chain")
        for i, layer in enumerate(self.layers):
            if adds(self.connection, i + 1 == len(self.layers)) and layer.width != self.embedding_dim:
                raise UnsupportedFormat(
                    f"layer {i} is {layer.width} wide and the residual stream {self.embedding_dim}: "
                    "choose block sizes with H·b = embedding_dim"
                )
        for layer in self.layers:
            layer.check_columns(self.columns)

    @property
    def columns(self) -> Columns:
        """The column rule with its exponent p."""
        return Columns(self.normalisation, self.p)

    @property
    def reads_letters(self) -> bool:
        """Whether the only layer reads letters and the read-out reads its state, as for an index table."""
        return any(layer.reads_letters for layer in self.layers)

    @property
    def stream_widths(self) -> list[int]:
        """The widths of the inputs of all layers and of the read-out; the token shift doubles those of layers."""
        return stream_widths(self.connection, self.embedding_dim, [layer.width for layer in self.layers])

    @property
    def entries_per_token(self) -> int:
        """The largest count of numbers per token that a step stores: layer, input, read-out or logits."""
        if self.reads_letters:
            return len(self.outputs)
        shift = 2 if self.token_shift else 1
        widest = max(layer.entries for layer in self.layers)
        return max(shift * max(self.stream_widths), widest, self.readout_hidden, len(self.outputs))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "alphabet": [symbols.to_json(letter) for letter in self.alphabet],
            "outputs": [symbols.to_json(output) for output in self.outputs],
            "layers": [{"kind": name_of(layer), **vars(layer)} for layer in self.layers],
        }

    @classmethod
    def from_json(cls, value: object) -> LRNNConfig:
        """Return the configuration of a JSON object; raise `UnsupportedFormat` naming the invalid fields."""
        return read(cls, value, "config", {Hashable: _symbol, LayerConfig: _layer})


def _symbol(value: object, where: str) -> Hashable:
    try:
        return symbols.from_json(value)
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{where}: {error}") from None


def _layer(value: object, where: str) -> LayerConfig:
    rest = dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else {}
    try:
        kind = layer_in_file(rest.pop("kind", None))
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{where}: {error}") from None
    return read(kind.Config, rest, where)


# How layers read the stream, which starts as the embedding; the read-out reads its end (`LRNNConfig`).
CONNECTIONS = ("chain", "residual", "full-residual", "concat")


def connect(connection: str, stream: Tensor, x: Tensor, embedding_dim: int, is_last: bool) -> Tensor:
    """Return the stream after a layer that read `stream` (…, d) and returned `x` (…, w); see `stream_widths`."""
    if connection == "concat":
        whole = torch.cat([stream, x], dim=-1)  # (…, d + H·b)
        return whole[..., embedding_dim:] if is_last else whole
    return stream + x if adds(connection, is_last) else x


def stream_widths(connection: str, embedding_dim: int, layer_widths: Sequence[int]) -> list[int]:
    """Return the widths of the stream before each layer and before the read-out under `connect`.

    >>> [stream_widths(connection, 8, [8, 3]) for connection in CONNECTIONS]
    [[8, 8, 3], [8, 8, 3], [8, 8, 8], [8, 16, 11]]
    """
    widths = [embedding_dim]
    for i, width in enumerate(layer_widths):
        is_last = i + 1 == len(layer_widths)
        if connection == "concat":
            widths.append(widths[-1] + width - (embedding_dim if is_last else 0))
        else:
            widths.append(widths[-1] if adds(connection, is_last) else width)
    return widths


def adds(connection: str, is_last: bool) -> bool:
    """Return whether the outputs of the last layer, or of another one, are added to the stream."""
    return connection == "full-residual" or (connection == "residual" and not is_last)
