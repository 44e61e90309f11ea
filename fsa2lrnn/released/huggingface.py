"""Whole models of transformers: folders that `AutoModelForCausalLM` loads, run with caches as transformers makes them.

What such a model keeps is, of each of its linear layers, the recurrent state and the window of the convolution, of
which letters count that a tap other than 0 will read. Layers that attend are of zeros, so that they add zeros to the
stream however long their cache is: q and k too, as a score that overflows makes NaN of the zeros that it weighs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.extras import require
from fsa2lrnn.released.declared import State
from fsa2lrnn.released.observed.loading import said, whole_of_folder
from fsa2lrnn.released.packages import transformers, versions
from fsa2lrnn.released.tokens import tokenizer


@dataclass(frozen=True)
class HuggingFace:
    """One architecture of transformers.

    Args:
        kind: the class of the whole model.
        stack: the attribute of the whole model that has `layers`.
        mixer: the attribute of a layer that has a convolution and a state; it may be that of layers that attend too.
        cache_name: what the model calls its cache.
        continues_by_pieces: whether a call of more than one token goes on from a cache; where it starts anew, letters
            after the first call are read one by one.
    """

    kind: str
    stack: str = "model"
    mixer: str = "linear_attn"
    cache_name: str = "past_key_values"
    continues_by_pieces: bool = True

    def save(self, model: Any, alphabet: Sequence[Hashable], outputs: Sequence[Hashable], folder: Path) -> None:
        """Weights, configuration and tokenizer. Raises `UnsupportedFormat` for letters without text."""
        with transformers():
            words = tokenizer(alphabet, outputs)
            model.save_pretrained(folder)
            words.save_pretrained(folder)

    def load(self, folder: Path) -> Any:
        """As any user of transformers would, but that no weight may be missing, which would be drawn at random.

        Raises `CheckpointError` for another architecture, or weights that are not the configuration's.
        """
        return whole_of_folder(folder, self.kind)

    def describe(self) -> str:
        """Class, versions, and which calls."""
        known = versions()
        code = f"{self.kind} of transformers {known['transformers']} on torch {known['torch']}"
        return f"{code}, one token a call with its cache"

    def versions(self) -> dict[str, str]:
        """Of transformers, torch and what they read files with."""
        return versions()

    def n_tokens(self, model: Any) -> int:
        """Letters and outputs."""
        return model.config.vocab_size

    def dtype(self, model: Any) -> str:
        """Of the weights."""
        return str(next(model.parameters()).dtype).removeprefix("torch.")

    def n_parameters(self, model: Any) -> int:
        """How many numbers the weights are."""
        return sum(parameter.numel() for parameter in model.parameters())

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Tokens put out, (T,) -> (T,), and the cache. Raises `CheckpointError` where their code fails on the model's
        configuration, which is looked at by nobody before its values are used."""
        is_one_call = cache is None or self.continues_by_pieces
        found = list[torch.Tensor]()
        with transformers():
            for piece in tokens.split(len(tokens) if is_one_call else 1):
                try:
                    answer = model(input_ids=piece[None], use_cache=True, **{self.cache_name: cache})
                except Exception as fault:
                    raise CheckpointError(
                        f"the code of {self.kind} does not run as its configuration says ({type(fault).__name__}: "
                        f"{said(fault)}): export it again"
                    ) from None
                cache = getattr(answer, self.cache_name)
                found.append(answer.logits[0].argmax(dim=1))
        return torch.cat(found), cache

    def state(self, model: Any, cache: Any) -> State:
        """Window and recurrent state of each linear layer; zeros without their sign, as nothing here divides by any."""
        kept = list[torch.Tensor]()
        for i, mixer in self._mixers(model):
            layer, depth = cache.layers[i], _depth(mixer)
            window, S = layer.conv_states[0].clone(), layer.recurrent_states[0].clone()
            window[..., : window.shape[-1] - depth] = 0
            kept += [window + 0.0, S + 0.0]
        return tuple(kept)

    def cache(self, model: Any, state: State) -> Any:
        """As their code makes it; layers that attend start anew, which adds the same zeros."""
        made = require("transformers.cache_utils", "hf", "a proof").DynamicCache(config=model.config)
        for (i, _), window, S in zip(self._mixers(model), state[::2], state[1::2], strict=True):
            made.layers[i].update_conv_state(window.clone(), conv_kernel_size=window.shape[-1])
            made.layers[i].update_recurrent_state(S.clone())
        return made

    def check(self, model: Any) -> None:
        """Raises `UnsupportedFormat` unless layers that attend have no weight but zeros."""
        for i, layer in enumerate(getattr(model, self.stack).layers):
            attends = getattr(layer, "self_attn", None)
            if attends is None or hasattr(attends, "conv1d"):
                continue
            if odd := [name for name, part in attends.named_parameters() if part.ne(0).any()]:
                raise UnsupportedFormat(
                    f"layer {i} attends to more than zeros ({odd[0]}), so that what a model keeps grows with the word: "
                    "no proof by states is possible; export it again"
                )

    def _mixers(self, model: Any) -> Iterator[tuple[int, Any]]:
        """Layers with a convolution and a state, by number."""
        for i, layer in enumerate(getattr(model, self.stack).layers):
            if hasattr(mixer := getattr(layer, self.mixer, None), "conv1d"):
                yield i, mixer


def _depth(mixer: Any) -> int:
    """How many letters of its window a layer reads again."""
    taps = mixer.conv1d.weight[:, 0].ne(0).any(dim=0)  # the last is the current letter's
    return max((len(taps) - 1 - j for j in range(len(taps)) if taps[j]), default=0)
