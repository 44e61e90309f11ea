"""Observe the gates of an external model over a text, or over each token of its vocabulary."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsa2lrnn import symbols
from fsa2lrnn.errors import BudgetExceeded, CheckpointError, InvalidWord, UnsupportedFormat
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.folder import FILE, described
from fsa2lrnn.extra.huggingface.observed.observer import Observer
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE, GateObservations, ObservedHead
from fsa2lrnn.extra.huggingface.observed.transformers_models import Architecture
from fsa2lrnn.extra.huggingface.observed.values import HeadValues
from fsa2lrnn.layers import EXPORTED
from fsa2lrnn.optional import require

WINDOW = 1_024  # the most tokens of a text that are read from one start
MAX_HEADS = 10_000


def observe(
    model: Path | str | Any, tokens: Sequence[int] | np.ndarray | None = None, window: int = WINDOW
) -> GateObservations:
    """Return the values of a model's gates, layer by layer and head by head, as its own code computes them.

    Args:
        model: a folder that `save_pretrained` or `fsa2lrnn export` wrote, or a loaded model.
        tokens: the tokens of a text, read in pieces of at most `window` tokens, each from the start state; None for
            every token of the vocabulary, or every letter of an exported folder, each as a word of one token.
        window: the most tokens per piece.

    Raises:
        UnsupportedFormat: for another architecture, a window below 1, or gates that are not finite.
        CheckpointError: for a folder that holds no such model.
        InvalidWord: for a token outside the model's vocabulary, or no tokens at all.
        BudgetExceeded: for more than 10,000 heads.

    >>> from fsa2lrnn.extra.huggingface.packages import modeling
    >>> code = modeling("olmo_hybrid")
    >>> config = code.OlmoHybridConfig(
    ...     vocab_size=9, hidden_size=32, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
    ...     layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=2,
    ...     linear_key_head_dim=8, linear_value_head_dim=8, pad_token_id=None, eos_token_id=None)
    >>> found = observe(code.OlmoHybridModel(config))
    >>> found.reach, found.n_tokens, [(head.layer, head.head) for head in found.heads]
    ((-1.0, 1.0), 9, [(0, 0), (0, 1)])
    """
    if window < 1:
        raise UnsupportedFormat(f"window = {window}: texts are read at least one token at a time")
    name, observer, loaded, n = _found(model)
    heads = observer.heads(loaded)
    if sum(heads.values()) > MAX_HEADS:
        raise BudgetExceeded(f"{sum(heads.values()):,} heads, and {MAX_HEADS:,} at most are told apart")
    gathered = {
        number: {measure.name: HeadValues(measure, count) for measure in observer.measures}
        for number, count in heads.items()
    }

    def take(number: int, values: Mapping[str, np.ndarray]) -> None:
        for key, part in values.items():
            try:
                gathered[number][key].add(part)
            except UnsupportedFormat as fault:
                raise UnsupportedFormat(f"layer {number}: {fault}") from None

    together, piece = observer.pieces(loaded, window)
    if tokens is None:
        every = torch.arange(n)
        for words in every.split(together):
            observer.read(loaded, words[:, None], take)
        read, n_read = f"each of {n:,} tokens alone, as the first", n
    else:
        text = _checked(tokens, n)
        for part in text.split(piece):
            observer.read(loaded, part[None], take)
        read, n_read = f"a text of {len(text):,} tokens, {min(piece, len(text)):,} at a time", len(text)
    shown = tuple(
        ObservedHead(
            number,
            head,
            parts[EIGENVALUE].below_zero(head),
            {key: part.spread(head) for key, part in parts.items()},
        )
        for number, parts in sorted(gathered.items())
        for head in range(heads[number])
    )
    return GateObservations(
        name, observer.describe(loaded), read, n_read, observer.reach(loaded), observer.measures, shown
    )


def _found(model: Path | str | Any) -> tuple[str, Observer, Any, int]:
    known = {name: found for name in EXPORTED if (found := getattr(layer_file(name), "OBSERVER", None)) is not None}
    if not isinstance(model, Path | str):
        for name, observer in known.items():
            if observer.owns(model):
                return name, observer, model, observer.n_tokens(model)
        raise UnsupportedFormat(f"a {type(model).__name__} has no layer of {', '.join(known)}: give a model with some")
    folder = Path(model)
    if not folder.is_dir():
        raise CheckpointError(f"no such folder: {folder}")
    for name, observer in known.items():
        if observer.is_in(folder):
            loaded = observer.open(folder)
            if not observer.heads(loaded):
                raise UnsupportedFormat(f"{folder}: a model of {name} in which no layer has a state")
            n = observer.n_tokens(loaded)
            return name, observer, loaded, min(n, len(letters(folder) or range(n)))
    raise UnsupportedFormat(f"{folder} holds no model of {', '.join(known)}: give a folder that save_pretrained wrote")


def model_of(layer: str, config: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> Any:
    """Return the model of a layer with a configuration (as in config.json) and a state dict, for `observe`.

    Raises `UnsupportedFormat` for a layer whose models have no configuration, `CheckpointError` for a mismatch.
    """
    observer = layer_file(layer).OBSERVER
    if not isinstance(observer, Architecture):
        raise UnsupportedFormat(f"models of {layer} have no configuration: load them by their package")
    return observer.made(config, weights)


def letters(folder: Path) -> tuple[Hashable, ...] | None:
    """Return the letters of a folder that `fsa2lrnn export` wrote, which are its first tokens; None for others."""
    return described(folder)[0].alphabet if (folder / FILE).is_file() else None


def _checked(tokens: Sequence[int] | np.ndarray, n: int) -> torch.Tensor:
    text = np.asarray(tokens)
    if text.ndim != 1 or not text.size or not np.issubdtype(text.dtype, np.integer):
        raise InvalidWord(f"tokens of shape {text.shape} and type {text.dtype}: give a list of whole numbers")
    if (odd := text[(text < 0) | (text >= n)]).size:
        raise InvalidWord(f"token {odd[0]}, and the model knows 0 to {n - 1}: give a text in its tokens")
    return torch.from_numpy(text.astype(np.int64))


_FILE = "tokenizer.json"


def encode(folder: Path, text: str) -> np.ndarray:
    """Return the tokens of a text, int64 (T,), by the tokenizer or the alphabet of a folder.

    Raises:
        InvalidWord: for a text without tokens, or a letter outside an exported model's alphabet.
        CheckpointError: for a folder without a readable tokenizer.
    """
    alphabet = letters(folder)
    if alphabet is not None:
        pieces = list(symbols.encode_text([text.strip()], alphabet))
        found = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    else:
        path = folder / _FILE
        if not path.is_file():
            raise CheckpointError(f"{folder} has no {_FILE}, which makes tokens of a text: give --tokens")
        tokenizers = require("tokenizers", "hf", "a tokenizer")
        try:
            found = np.array(tokenizers.Tokenizer.from_file(str(path)).encode(text).ids, np.int64)
        except Exception as fault:  # the package raises plain exceptions
            raise CheckpointError(f"{path} is not a tokenizer that can be read ({str(fault)[:200]})") from None
    if not len(found):
        raise InvalidWord("the text is empty: give one with a token or more")
    return found
