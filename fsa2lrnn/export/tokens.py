"""Make a tokenizer for an automaton: one token per letter, then one per output, with `=` before it, then padding.

A text with another letter becomes `<unk>`, whose number is outside the embedding, so that the model raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from itertools import pairwise, product
from typing import Any

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
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
    odd = next((token for token in letters if token.split() != [token]), None)
    if odd is not None:
        raise UnsupportedFormat(f"letter {odd!r} is empty or holds spaces, and a tokenizer reads text: rename it")
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
