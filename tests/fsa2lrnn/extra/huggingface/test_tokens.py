"""One token a letter, from text and back."""

import pytest

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.huggingface.tokens import tokenizer, vocabulary


@pytest.mark.parametrize(
    ("alphabet", "text"),
    [("ab", "abba"), ("ab", "a b\n b a"), (("up", "down"), "up down down up"), (("up", "down"), "updown downup"),
     (("(1,2)", "(1,2,3)"), "(1,2)(1,2,3) (1,2,3)(1,2)"), (("a", "ab"), "a ab ab a")],
)  # fmt: skip
def test_text_becomes_numbers_of_letters(alphabet, text):
    pytest.importorskip("transformers")
    made = tokenizer(alphabet, (False, True))
    assert made(text)["input_ids"] == [0, 1, 1, 0]
    assert made.decode([len(alphabet) + 1]) == "=accept"


def test_other_letters_are_unknown_and_short_texts_are_padded():
    pytest.importorskip("transformers")
    made = tokenizer("ab", (False, True))
    assert made("abc")["input_ids"] == [0, 1, 5]
    assert made.convert_tokens_to_ids(["<pad>", "<unk>"]) == [4, 5]
    padded = made(["ab", "a"], padding=True)
    assert (padded["input_ids"], padded["attention_mask"]) == ([[0, 1], [0, 4]], [[1, 1], [1, 0]])
    assert made.decode([3, 4], skip_special_tokens=True) == "=accept"


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
