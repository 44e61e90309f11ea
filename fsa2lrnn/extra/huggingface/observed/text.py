"""Texts as tokens: by the tokenizer beside a model, or as letters of an exported one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.errors import CheckpointError, InvalidWord
from fsa2lrnn.extra.huggingface.observed.read import letters
from fsa2lrnn.optional import require

_FILE = "tokenizer.json"


def encode(folder: Path, text: str) -> np.ndarray:
    """The tokens of a text, int64 (T,).

    Raises:
        InvalidWord: for a text without tokens, or a letter that an exported model does not know.
        CheckpointError: for a folder without a tokenizer that can be read.
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
        except Exception as fault:  # their errors have no kind of their own
            raise CheckpointError(f"{path} is no tokenizer that can be read ({str(fault)[:200]})") from None
    if not len(found):
        raise InvalidWord("the text is empty: give one with a token or more")
    return found
