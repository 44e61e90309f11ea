"""External mixers as layers for `fsa2lrnn train`.

Use `--set layer=experiments.studies.released_layers:OlmoHybrid`, or Qwen3Next, Mamba2, PdSsm. The modules are those of
the packages, with the weights that their constructors draw; embedding, norm, residual stream and read-out are ours. A
state is a row of numbers: whether a letter was read, the convolution's window, the recurrent state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.channels import check_stream
from fsa2lrnn.extra.huggingface.packages import modeling, pdssm, transformers
from fsa2lrnn.lrnn import Layer, LayerConfig
from fsa2lrnn.optional import require


@dataclass(frozen=True)
class MixerConfig(LayerConfig):
    """The configuration of a mixer: `heads` heads, keys and values of `block` numbers, the width of the stream."""

    heads: int
    block: int

    @property
    def width(self) -> int:
        """H·b, which must be the dimension of the embedding."""
        return self.heads * self.block

    @property
    def entries(self) -> int:
        """The number of entries per token: keys, values and matrices of chunks."""
        return 24 * self.width


class Mixer(Layer):
    """A mixer of transformers with its own cache, made anew for each call from the given state."""

    unproved: ClassVar[str | None] = "whose gates round as no judge models"
    layer: ClassVar[str]  # its name in `fsa2lrnn.extra.huggingface.LAYERS`
    kind: ClassVar[str]
    prefix: ClassVar[str]
    module: ClassVar[str]

    def __init__(self, width_in: int, config: MixerConfig) -> None:
        super().__init__()
        check_stream(width_in, config.width, type(self).__name__)
        with transformers():
            file = modeling(self.kind)
            shape = self._sizes(config)
            layers: Mapping[str, Any] = {"num_hidden_layers": 2, "hidden_size": config.width, "vocab_size": 2}
            self.settings = getattr(file, f"{self.prefix}Config")(**layers, **shape)
            self.mixer = getattr(file, self.module)(self.settings, 0)
        self.window, self.held = self._shapes(self.mixer)

    @staticmethod
    def _sizes(config: MixerConfig) -> dict[str, Any]:
        """Return the configuration fields of the package for heads and blocks."""
        heads, size = config.heads, config.block
        names = {"num_key_heads": heads, "num_value_heads": heads, "key_head_dim": size, "value_head_dim": size}
        unused = {"num_attention_heads": 1, "num_key_value_heads": 1}  # of a layer that there has to be
        linear = {f"linear_{name}": value for name, value in names.items()}
        return {**linear, **unused, "layer_types": ["linear_attention", "full_attention"]}

    @staticmethod
    def _shapes(mixer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of the window and of the state, for one word."""
        return (mixer.conv_dim, mixer.conv_kernel_size), (mixer.num_v_heads, mixer.head_k_dim, mixer.head_v_dim)

    def initial_state(self, batch: int) -> Tensor:
        """Return the state of the empty word: (B, 1 + window + state)."""
        return self.mixer.conv1d.weight.new_zeros(batch, 1 + prod(self.window) + prod(self.held))

    def emit(self, state: Tensor) -> Tensor:
        """Return zeros, because the output of a mixer depends on an input."""
        return state.new_zeros(len(state), self.settings.hidden_size)

    def forward(self, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:  # noqa: ARG002 - its own
        """Return the outputs and the last state: (B, T, d), (B, n) -> (B, T, d), (B, n)."""
        if not u.shape[1]:
            return u, state
        has_read = state[:, 0] != 0
        if has_read.any() != has_read.all():
            raise UnsupportedFormat("of a batch some words have begun and some have not: read them apart")
        kept = require("transformers.cache_utils", "hf", "a mixer").DynamicCache(config=self.settings)
        if has_read.any():
            window, held = state[:, 1:].split([prod(self.window), prod(self.held)], dim=1)
            kept.layers[0].update_conv_state(window.unflatten(1, self.window).clone(), conv_kernel_size=self.window[-1])
            kept.layers[0].update_recurrent_state(held.unflatten(1, self.held).clone())
        with transformers():
            y = self.mixer(u, cache_params=kept)
        parts = kept.layers[0].conv_states[0].flatten(1), kept.layers[0].recurrent_states[0].flatten(1)
        return y, torch.cat([torch.ones_like(state[:, :1]), *parts], dim=1)


@dataclass(frozen=True)
class OlmoHybridConfig(MixerConfig):
    """The configuration of OLMo-Hybrid, whose class names the layer in a model's file."""


class OlmoHybrid(Mixer):
    """OLMo-Hybrid's Gated DeltaNet, β in [0, 2]."""

    Config = OlmoHybridConfig
    layer, kind, prefix, module = "olmo-hybrid", "olmo_hybrid", "OlmoHybrid", "OlmoHybridGatedDeltaNet"


@dataclass(frozen=True)
class Qwen3NextConfig(MixerConfig):
    """The configuration of Qwen3-Next, whose class names the layer in a model's file."""


class Qwen3Next(Mixer):
    """Qwen3-Next's Gated DeltaNet, β in [0, 1]."""

    Config = Qwen3NextConfig
    layer, kind, prefix, module = "qwen3-next", "qwen3_next", "Qwen3Next", "Qwen3NextGatedDeltaNet"


@dataclass(frozen=True)
class Mamba2Config(MixerConfig):
    """The configuration of Mamba-2, whose class names the layer in a model's file."""


class Mamba2(Mixer):
    """Mamba-2's mixer: twice the stream inside, the state of each of its numbers `block` large."""

    Config = Mamba2Config
    layer, kind, prefix, module = "mamba-2", "mamba2", "Mamba2", "Mamba2Mixer"

    @staticmethod
    def _sizes(config: MixerConfig) -> dict[str, Any]:
        sizes = {"num_heads": 2 * config.heads, "head_dim": config.block, "state_size": config.block}
        return {**sizes, "n_groups": 1, "chunk_size": 64, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}

    @staticmethod
    def _shapes(mixer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (mixer.conv_dim, mixer.conv_kernel_size), (mixer.num_heads, mixer.head_dim, mixer.ssm_state_size)


@dataclass(frozen=True)
class PdSsmConfig(MixerConfig):
    """The configuration of PD-SSM, whose class names the layer in a model's file."""

    @property
    def entries(self) -> int:
        """The number of entries per token: a matrix per letter, several times."""
        return 6 * self.width**2


class PdSsm(Layer):
    """A block of IBM's pdssm.py, which starts at e₁ in each call: words are read whole."""

    Config = PdSsmConfig
    unproved: ClassVar[str | None] = "whose file gives no state back"
    layer: ClassVar[str] = "pd-ssm"

    def __init__(self, width_in: int, config: MixerConfig) -> None:
        super().__init__()
        check_stream(width_in, config.width, type(self).__name__)
        self.width = config.width
        self.block = pdssm().PD_Block(config.width, config.width, dictionary_size=8)

    @property
    def is_causal(self) -> bool:
        """False: outputs do not depend on later letters, but the layer cannot continue from a state."""
        return False

    def initial_state(self, batch: int) -> Tensor:
        """Return an empty state: (B, 1)."""
        return self.block.B_re.new_zeros(batch, 1)

    def emit(self, state: Tensor) -> Tensor:
        """Return zeros."""
        return state.new_zeros(len(state), self.width)

    def forward(self, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:  # noqa: ARG002 - its own
        """Return the outputs and the unchanged state: (B, T, d) -> (B, T, d)."""
        return (self.block(u) if u.shape[1] else u), state


MIXERS = {kind.layer: kind for kind in (OlmoHybrid, Qwen3Next, Mamba2, PdSsm)}
