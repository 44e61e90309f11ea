"""What an LRNN is made of, as frozen data that is written beside the weights."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.connection import CONNECTIONS, stream_widths
from fsa2lrnn.lrnn.normalise import RULES


@dataclass(frozen=True)
class BlockLayerConfig:
    """A layer of H = len(block_sizes) dense blocks whose transitions come from gates Linear–ReLU–Linear.

    `transition_hidden` and `value_hidden` are the gates' hidden widths.
    """

    block_sizes: tuple[int, ...]
    transition_hidden: int
    value_hidden: int

    def __post_init__(self) -> None:
        if not self.block_sizes or min(self.block_sizes) < 1:
            raise UnsupportedFormat(
                f"block_sizes = {self.block_sizes}: give at least one block, each of size 1 or more"
            )
        for name in ("transition_hidden", "value_hidden"):
            if getattr(self, name) < 1:
                raise UnsupportedFormat(f"{name} = {getattr(self, name)}: a gate needs at least one hidden unit")

    @property
    def width(self) -> int:
        """Width of the layer's output: H·b, blocks padded to the largest."""
        return len(self.block_sizes) * max(self.block_sizes)


@dataclass(frozen=True)
class HouseholderLayerConfig:
    """A layer of `n_heads` blocks of size `size`, each transition a product of `n_factors` factors I − β k kᵀ.

    With `unit_keys` each k is divided by its norm and 0 < β < 2, so that no factor makes a state longer: what training
    needs. Without, both are what the gates give, and integers make exact products. The column rule of the model
    (`normalisation`, `p`) is for blocks that a gate writes out, not for products.
    """

    size: int
    n_factors: int
    transition_hidden: int
    value_hidden: int
    n_heads: int = 1
    unit_keys: bool = False

    def __post_init__(self) -> None:
        for name in ("size", "n_factors", "transition_hidden", "value_hidden", "n_heads"):
            if (value := getattr(self, name)) < 1:
                raise UnsupportedFormat(f"{name} = {value}: a Householder layer needs a positive one")

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The size of each block, all alike."""
        return (self.size,) * self.n_heads

    @property
    def width(self) -> int:
        """Width of the layer's output: H·n."""
        return self.n_heads * self.size


@dataclass(frozen=True)
class IndexLayerConfig:
    """A layer of one one-hot block of `n_states`, kept as a table of `n_maps` maps. It holds no parameters."""

    n_states: int
    n_maps: int


LayerConfig = BlockLayerConfig | HouseholderLayerConfig | IndexLayerConfig
_KINDS: dict[str, type] = {"block": BlockLayerConfig, "householder": HouseholderLayerConfig, "index": IndexLayerConfig}


@dataclass(frozen=True)
class LRNNConfig:
    """Everything about an LRNN but its weights.

    Args:
        alphabet: Σ; token i is letter i.
        outputs: Γ; logit j is output symbol j.
        layers: from input to output, `BlockLayerConfig` or `HouseholderLayerConfig`, or a single `IndexLayerConfig`.
        embedding_dim: width of the token embedding (unused by an index layer).
        readout_hidden: hidden width of the read-out MLP (unused by an index layer).
        normalisation: "clip", "released" or "none" (`normalise.normalise`).
        p: order of the column norm, at least 1; infinity is not offered.
        connection: "chain", each layer reads the one below; "residual", each layer adds to a stream of width
            `embedding_dim`, the last excepted, as in the paper's released code; "concat", each layer reads the
            embedding and all layers below, the read-out all layers (`fsa2lrnn.lrnn.connection`).
        layer_norm: True for LayerNorm before every layer and before the read-out, "readout" for the latter alone.
        token_shift: each layer sees its input at k and at k−1; at k = 1 it sees what x₀ gives (RWKV's token shift).

    Raises:
        UnsupportedFormat: naming the value that does not fit.
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
        if self.index_layer and len(self.layers) > 1:
            raise UnsupportedFormat("an index layer reads tokens and feeds the read-out: it must be the only layer")
        if self.index_layer and (self.token_shift or self.layer_norm or self.connection != "chain"):
            raise UnsupportedFormat("an index layer takes no token_shift, no layer_norm and no connection but chain")
        if self.connection == "residual":
            self._check_residual_widths()
        for layer in self.block_layers:
            if self.normalisation == "released" and len(set(layer.block_sizes)) > 1:
                raise UnsupportedFormat(
                    f"block_sizes = {layer.block_sizes}: the released rule takes blocks of one size"
                )

    @property
    def index_layer(self) -> IndexLayerConfig | None:
        """The layer of a model that is an index table of a linear map, None for dense blocks."""
        return next((layer for layer in self.layers if isinstance(layer, IndexLayerConfig)), None)

    @property
    def block_layers(self) -> tuple[BlockLayerConfig | HouseholderLayerConfig, ...]:
        """The layers with parameters, none for an index table."""
        return tuple(layer for layer in self.layers if not isinstance(layer, IndexLayerConfig))

    @property
    def stream_widths(self) -> list[int]:
        """Widths of what is read before each layer and before the read-out; the token shift doubles a layer's."""
        return stream_widths(self.connection, self.embedding_dim, [layer.width for layer in self.block_layers])

    @property
    def entries_per_token(self) -> int:
        """Numbers that the widest step materialises for one token: H·b² of A(u), a gate's input or hidden units, those
        of the read-out, or the logits."""
        if self.index_layer is not None:
            return len(self.outputs)
        shift = 2 if self.token_shift else 1
        entries = [shift * max(self.stream_widths), self.readout_hidden, len(self.outputs)]
        for layer in self.block_layers:
            entries += [len(layer.block_sizes) * max(layer.block_sizes) ** 2]
            entries += [layer.transition_hidden, layer.value_hidden]
        return max(entries)

    def _check_residual_widths(self) -> None:
        for i, layer in enumerate(self.block_layers[:-1]):
            if layer.width != self.embedding_dim:
                raise UnsupportedFormat(
                    f"layer {i} is {layer.width} wide and the residual stream {self.embedding_dim}: "
                    "choose block sizes with H·b = embedding_dim"
                )

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "alphabet": [symbols.to_json(letter) for letter in self.alphabet],
            "outputs": [symbols.to_json(output) for output in self.outputs],
            "layers": [
                {"kind": kind, **vars(layer)}
                for layer in self.layers
                for kind, cls in _KINDS.items()
                if type(layer) is cls
            ],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> LRNNConfig:
        """Inverse of `to_json`. Raises `UnsupportedFormat`, `KeyError` or `TypeError` on anything else."""
        layers: list[LayerConfig] = []
        for layer in value["layers"]:
            if layer["kind"] not in _KINDS:
                raise UnsupportedFormat(f"layer kind {layer['kind']!r} is not known: one of {', '.join(_KINDS)}")
            rest = {name: tuple(x) if isinstance(x, list) else x for name, x in layer.items() if name != "kind"}
            layers.append(_KINDS[layer["kind"]](**rest))
        return cls(
            alphabet=tuple(symbols.from_json(letter) for letter in value["alphabet"]),
            outputs=tuple(symbols.from_json(output) for output in value["outputs"]),
            layers=tuple(layers),
            **{name: value[name] for name in _PLAIN},
        )


_PLAIN = ("embedding_dim", "readout_hidden", "normalisation", "p", "connection", "layer_norm", "token_shift")
