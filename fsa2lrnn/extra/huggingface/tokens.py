"""A tokenizer for automata: one token a letter, then one an output, `=` before it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.optional import require
from fsa2lrnn.reading import shown


def vocabulary(alphabet: Sequence[Hashable], outputs: Sequence[Hashable]) -> list[str]:
    """The tokens as text, letters first. Raises `UnsupportedFormat` where text does not tell letters apart.

    >>> vocabulary("ab", [False, True])
    ['a', 'b', '=reject', '=accept']
    """
    letters = [str(letter) for letter in alphabet]
    tokens = [*letters, *(f"={symbols.show(output)}" for output in outputs)]
    odd = next((token for token in letters if token.split() != [token]), None)
    if odd is not None:
        raise UnsupportedFormat(f"letter {odd!r} is empty or holds spaces, and a tokenizer reads text: rename it")
    twice = next((token for token in tokens if tokens.count(token) > 1), None)
    if twice is not None:
        raise UnsupportedFormat(f"two letters or outputs are written {twice!r}: rename one")
    return tokens


def tokenizer(alphabet: Sequence[Hashable], outputs: Sequence[Hashable]) -> Any:
    """Make a tokenizer of transformers: letters together where all are single characters, else separated by spaces.

    Raises `UnsupportedFormat` where it does not read every letter as its number and write every output as its text.
    """
    tokenizers = require("tokenizers", "hf", "a tokenizer")
    fast = require("transformers", "hf", "a tokenizer").PreTrainedTokenizerFast
    words = vocabulary(alphabet, outputs)
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({token: i for i, token in enumerate(words)}))
    splits, between = tokenizers.pre_tokenizers, " "
    if symbols.is_character_alphabet(tuple(alphabet)):
        made.pre_tokenizer, between = splits.Split(tokenizers.Regex("."), "isolated"), ""
    else:
        made.pre_tokenizer = splits.WhitespaceSplit()
    whole = fast(tokenizer_object=made, clean_up_tokenization_spaces=False)
    letters = words[: len(alphabet)]
    read, written = whole(between.join(letters))["input_ids"], [whole.decode([i]) for i in range(len(words))]
    if read != list(range(len(letters))) or written != words:
        raise UnsupportedFormat(
            f"letters {shown(letters)} are read as {shown(read)} and tokens are written as {shown(written)}: rename "
            "letters and outputs to plain words"
        )
    return whole
