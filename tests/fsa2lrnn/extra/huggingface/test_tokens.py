"""One token a letter, from text and back."""

import pytest

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.huggingface.huggingface import tokenizer, vocabulary


@pytest.mark.parametrize(("alphabet", "text"), [("ab", "abba"), (("up", "down"), "up down down up")])
def test_text_becomes_numbers_of_letters(alphabet, text):
    pytest.importorskip("transformers")
    made = tokenizer(alphabet, (False, True))
    assert made(text)["input_ids"] == [0, 1, 1, 0]
    assert made.decode([len(alphabet) + 1]) == "=accept"


def test_a_tokenizer_that_reads_other_numbers_is_refused(monkeypatch):
    """As one of another version may: here words are taken apart into characters."""
    pytest.importorskip("transformers")
    monkeypatch.setattr(symbols, "is_character_alphabet", lambda _: True)
    with pytest.raises(UnsupportedFormat, match=r"letters \['ab', 'a', 'b'\] are read as \[1, 2, 1, 2\]"):
        tokenizer(("ab", "a", "b"), (False, True))


@pytest.mark.parametrize(
    ("alphabet", "message"),
    [(("a b", "c"), "holds spaces"), ((0, "0"), "are written '0'"), (("=1", "b"), "are written")],
)
def test_what_text_does_not_tell(alphabet, message):
    with pytest.raises(UnsupportedFormat, match=message):
        vocabulary(alphabet, (1, 2))
