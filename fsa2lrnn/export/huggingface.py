"""Save, load and run whole models of transformers, as `AutoModelForCausalLM` does, with the caches of transformers.

The tokenizer has one token per letter, then one per output, with `=` before it, then padding. A text with another
letter becomes `<unk>`, whose number is outside the embedding, so that the model raises an error.

The state of such a model has, for each of its linear layers, the recurrent state and the letters in the window of the
convolution that a nonzero tap will read. The weights of attention layers are zeros, so that they add zeros to the
stream however long their cache is. This includes q and k, because a score that overflows turns the zeros that it
weighs into NaN.

A position enters through rotary angles only. At frequencies of at most 1 each position of int64 gives a finite angle,
so cos and sin are at most 1, queries and keys stay zeros, and no output depends on the position. This includes
positions beyond `max_position_embeddings`, at which the plain frequencies do not change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fsa2lrnn import symbols
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.export.packages import Code, State, cache_name, described, said, transformers, versions
from fsa2lrnn.optional import require
from fsa2lrnn.reading import shown

PAD, UNKNOWN = "<pad>", "<unk>"
_PAIRED = 64  # letters whose pairs are read as a check
PADDING = 1  # the number of padding tokens; their embedding and logit are zero


def vocabulary(alphabet: Sequence[Hashable], outputs: Sequence[Hashable]) -> list[str]:
    """Return the texts of all tokens, letters first.

    Raises `UnsupportedFormat` for a letter whose text is empty or contains spaces, for two equal texts, and if all the
    characters of `<pad>` or `<unk>` stand in letters: tokenizers look for these two in any text first.

    >>> vocabulary("ab", [False, True])
    ['a', 'b', '=reject', '=accept', '<pad>', '<unk>']
    """
    letters = [str(letter) for letter in alphabet]
    tokens = [*letters, *(f"={symbols.show(output)}" for output in outputs), PAD, UNKNOWN]
    odd = next((token for token in letters if token.split() != [token] or re.search("[\ud800-\udfff]", token)), None)
    if odd is not None:
        raise UnsupportedFormat(
            f"letter {odd!r} is empty or holds spaces or half a character, and a tokenizer reads text: rename it"
        )
    characters = set("".join(letters))
    spelt = next((special for special in (PAD, UNKNOWN) if set(special) <= characters), None)
    if spelt is not None:
        raise UnsupportedFormat(f"letters may spell {spelt!r}, which the tokenizer reads as one token: rename a letter")
    twice = next((token for token in tokens if tokens.count(token) > 1), None)
    if twice is not None:
        raise UnsupportedFormat(f"two letters or outputs are written {twice!r}: rename one")
    return tokens


def is_prefix_free(letters: Sequence[str]) -> bool:
    """Return whether no letter is a prefix of another one, so that a text without spaces has a single reading.

    >>> is_prefix_free(["(1,2)", "(1,2,3)"]), is_prefix_free(["a", "ab"])
    (True, False)
    """
    ordered = sorted(letters)  # each letter stands right before those that begin with it
    return not any(later.startswith(letter) for letter, later in pairwise(ordered))


def tokenizer(alphabet: Sequence[Hashable], outputs: Sequence[Hashable]) -> Any:
    """Return a tokenizer of transformers that encodes letters as their numbers, with or without spaces between them.

    If a letter is a prefix of another one, and letters are not all single characters, texts need the spaces. Raises
    `UnsupportedFormat` if the tokenizer does not encode every letter as its number and decode every token as its text.
    """
    tokenizers = require("tokenizers", "hf", "a tokenizer")
    fast = require("transformers", "hf", "a tokenizer").PreTrainedTokenizerFast
    words = vocabulary(alphabet, outputs)
    numbers = {token: i for i, token in enumerate(words)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token=UNKNOWN))
    splits, letters = tokenizers.pre_tokenizers, words[: len(alphabet)]
    parts = [splits.WhitespaceSplit()]
    if symbols.is_character_alphabet(tuple(alphabet)):
        parts.append(splits.Split(tokenizers.Regex("."), "isolated"))
    elif is_prefix_free(letters):
        parts.append(splits.Split(tokenizers.Regex("|".join(map(re.escape, letters))), "isolated"))
    made.pre_tokenizer = splits.Sequence(parts)
    whole = fast(
        tokenizer_object=made, clean_up_tokenization_spaces=False, pad_token=PAD, unk_token=UNKNOWN,
        padding_side="right",
    )  # fmt: skip
    read, written = whole(" ".join(letters))["input_ids"], [whole.decode([i]) for i in range(len(words))]
    if len(parts) > 1 and read == list(range(len(letters))):  # letters need no spaces: every two of them side by side
        some = range(min(len(letters), _PAIRED))
        word = [*range(len(letters)), *(letter for pair in product(some, repeat=2) for letter in pair)]
        if (together := whole("".join(letters[i] for i in word))["input_ids"]) != word:
            read = together
    if read != list(range(len(letters))) or written != words:
        raise UnsupportedFormat(
            f"letters {shown(letters)} are read as {shown(read)} and tokens are written as {shown(written)}: rename "
            "letters and outputs to plain words"
        )
    return whole


# Attributes of transformers' objects that are not settings: where a folder is, who wrote it, a hash of other
# attributes, and two attributes whose contents are compared one by one.
_NO_SETTINGS = {
    "name_or_path", "_name_or_path", "_commit_hash", "transformers_version", "_original_object_hash", "_tokenizer",
    "init_kwargs",
}  # fmt: skip


@dataclass(frozen=True)
class HuggingFace(Code):
    """The interface to one architecture of transformers.

    Args:
        kind: the name of the class of the whole model.
        continues_by_pieces: whether a call of several tokens continues from a cache. If it does not, letters after the
            first call are read one by one.
    """

    kind: str
    continues_by_pieces: bool = True

    def save(self, model: Any, alphabet: Sequence[Hashable], outputs: Sequence[Hashable], folder: Path) -> None:
        with transformers():
            words = tokenizer(alphabet, outputs)
            model.save_pretrained(folder)
            words.save_pretrained(folder)

    def settings(self, folder: Path) -> dict[str, str]:
        """Return the values that transformers reads from the JSON files of a folder, by name, as text.

        They are the configuration, the generation settings and the tokenizer. Raises `CheckpointError` if transformers
        fails on the files.
        """
        with transformers() as package:
            try:
                # The tokenizer's rules come from `tokenizer.json`, its other settings from `tokenizer_config.json`.
                config = package.AutoConfig.from_pretrained(folder, local_files_only=True)
                generation = package.GenerationConfig.from_pretrained(folder, local_files_only=True)
                words = package.AutoTokenizer.from_pretrained(folder, local_files_only=True)
                rules = json.loads(words.backend_tokenizer.to_str())
            except Exception as fault:  # any error of the package's code on unexpected values
                raise CheckpointError(f"{folder} does not load by transformers ({said(fault)})") from None
        described = {
            "configuration": {**vars(config), "class": type(config).__name__},
            "generation setting": vars(generation),
            "tokenizer": {**vars(words), "class": type(words).__name__},
            "tokenizer argument": words.init_kwargs,
            "tokenizer rule": rules,
        }
        return {
            f"{kind} {name}": json.dumps(value, sort_keys=True, default=repr)
            for kind, values in described.items()
            for name, value in values.items()
            if name not in _NO_SETTINGS
        }

    def load(self, folder: Path) -> Any:
        with transformers() as package:
            try:
                model = package.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
            except Exception as fault:  # any error of the package's code on unexpected values
                raise CheckpointError(f"{folder} does not load by AutoModelForCausalLM ({said(fault)})") from None
            if type(model) is not getattr(package, self.kind):
                raise CheckpointError(
                    f"{folder} loads as a {type(model).__name__}, where a {self.kind} was written: export it again"
                )
        return model

    def describe(self, model: nn.Module) -> str:
        positions = ", at every position" if _rotary(model) else ""
        return f"{described(self.kind)}, one token per call with its cache{positions}"

    def versions(self) -> dict[str, str]:
        return versions()

    def read(self, model: nn.Module, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        is_one_call = cache is None or self.continues_by_pieces
        outputs, name = list[torch.Tensor](), cache_name(model)
        with transformers():
            for piece in tokens.split(len(tokens) if is_one_call else 1):
                try:
                    answer = model(input_ids=piece[None], use_cache=True, **{name: cache})
                except Exception as fault:
                    raise CheckpointError(
                        f"the code of {self.kind} fails on this model ({type(fault).__name__}: {said(fault)}): export "
                        "it again"
                    ) from None
                cache = getattr(answer, name)
                outputs.append(answer.logits[0].argmax(dim=1))
        return torch.cat(outputs), cache

    def state(self, model: nn.Module, cache: Any) -> State:
        parts = list[torch.Tensor]()
        for mixer in _mixers(model):
            layer, depth = cache.layers[mixer.layer_idx], _depth(mixer)
            window, S = layer.conv_states[0].clone(), layer.recurrent_states[0].clone()
            window[..., : window.shape[-1] - depth] = 0
            parts += [window + 0.0, S + 0.0]
        return tuple(parts)

    def cache(self, model: nn.Module, state: State) -> Any:
        made = require("transformers.cache_utils", "hf", "a proof").DynamicCache(config=model.config)
        for mixer, window, S in zip(_mixers(model), state[::2], state[1::2], strict=True):
            layer = made.layers[mixer.layer_idx]
            layer.update_conv_state(window.clone(), conv_kernel_size=window.shape[-1])
            layer.update_recurrent_state(S.clone())
        return made

    def check(self, model: nn.Module) -> None:
        for rotary in _rotary(model):
            is_plain = rotary.rope_type == "default" and rotary.attention_scaling == 1
            if not (is_plain and (rotary.inv_freq.abs() <= 1).all()):
                raise UnsupportedFormat(
                    f"rotary frequencies of type {shown(rotary.rope_type)}, up to {rotary.inv_freq.abs().max():.3g}: "
                    "only the plain ones, of at most 1, are known to give finite angles at every position; export it "
                    "again"
                )
        for part in model.modules():
            if not hasattr(part, "is_causal") or hasattr(part, "conv1d"):  # attention alone has the first
                continue
            if odd := [name for name, weight in part.named_parameters() if weight.ne(0).any()]:
                raise UnsupportedFormat(
                    f"layer {part.layer_idx} attends to more than zeros ({odd[0]}), so that what a model keeps grows "
                    "with the word: no proof by states is possible; export it again"
                )


def _mixers(model: nn.Module) -> list[Any]:
    """Return the layers with a convolution and a state, in order; each knows the number of its layer."""
    return [part for part in model.modules() if hasattr(part, "conv1d")]


def _rotary(model: nn.Module) -> list[Any]:
    return [part for part in model.modules() if hasattr(part, "inv_freq")]


def _depth(mixer: Any) -> int:
    taps = mixer.conv1d.weight[:, 0].ne(0).any(dim=0)  # the last is the current letter's
    return max((len(taps) - 1 - j for j in range(len(taps)) if taps[j]), default=0)
