"""Texts by a folder's tokenizer, or in the letters of an exported model."""

import pytest

pytest.importorskip("transformers")

from fsa2lrnn.errors import CheckpointError, InvalidWord
from fsa2lrnn.extra.huggingface.observed.read import encode
from fsa2lrnn.extra.huggingface.tokens import tokenizer


def test_letters(exported):
    folder, _ = exported("group(S3, transpositions)", "olmo-hybrid")
    assert encode(folder, "(1,2) (2,3)\n(1,2)\n").tolist() == [0, 1, 0]
    with pytest.raises(InvalidWord, match="alphabet"):
        encode(folder, "(1,4)")


def test_a_tokenizer_beside_a_model(tmp_path):
    tokenizer("abc", [True]).save_pretrained(tmp_path)
    assert encode(tmp_path, "cab").tolist() == [2, 0, 1]
    with pytest.raises(InvalidWord, match="the text is empty"):
        encode(tmp_path, "")


@pytest.mark.parametrize("content", [None, "{", '{"model": 3}'])
def test_none_that_can_be_read(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match="has no tokenizer.json" if content is None else "is no tokenizer"):
        encode(tmp_path, "a")
