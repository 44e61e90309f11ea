"""The model card: what it says is so, and its example runs."""

import re

import pytest

pytest.importorskip("transformers")

from fsa2lrnn import zoo
from fsa2lrnn.extra.huggingface.folder import load


def test_a_card_says_what_is_proved_and_its_example_runs(exported, capsys):
    folder, written = exported(zoo.group("S3", "transpositions"), "olmo-hybrid")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"`{written.verdict.digest}`" in card
    assert load(folder).digest == written.verdict.digest  # the card is not part of it
    assert f"{written.verdict.pairs} joint states (model state" in card
    assert str(written.verdict.covers) in card
    assert written.plan.how in card
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    exec(compile(code.replace("FOLDER", str(folder)), "card", "exec"), {})
    expected = re.search(r"# (\[.*\])$", code, re.MULTILINE)[1]
    assert capsys.readouterr().out.strip() == expected
