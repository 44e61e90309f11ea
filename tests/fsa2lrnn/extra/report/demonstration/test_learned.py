"""The demonstration's second half, on a task that is learnt in seconds."""

import json

import pytest

from fsa2lrnn.extra.report.demonstration import learned
from fsa2lrnn.training.settings import preset
from fsa2lrnn.verification import Budget


@pytest.mark.usefixtures("short_certificates")
def test_a_model_is_trained_judged_mended_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learned, "TASK", "task:parity")
    monkeypatch.setattr(
        learned, "SETTINGS", {"steps": 400, "evaluate_every": 50, "learning_rate": 2e-3, "test_length": 100}
    )
    monkeypatch.setattr(learned, "SEARCH", Budget(seconds=3, length=300))
    monkeypatch.setattr(learned, "SHOWN", {"lengths": (10, 50), "n_words": 20, "letters": 1_000})
    facts = learned.show(tmp_path, as_json=False)
    assert facts["ok"]
    assert facts["extraction"]["isomorphic"]
    out = " ".join(capsys.readouterr().out.split())
    for piece in (
        "7. A learned one.",
        "Extracted from its behaviour",
        "proved right",
        "repair, dyadic",
        "sum5.html",
        "8. Learned",
    ):
        assert piece in out
    assert json.loads((tmp_path / "sum5.json").read_text())["source"] == "task:parity"
    assert (tmp_path / "sum5-dyadic.safetensors").exists()
    assert facts["learned_and_proved"]["verdict"]["verdict"] == "proved"
    assert (tmp_path / "proved" / "machine.dot").exists()
    assert preset("released", "task:parity").steps > facts["steps"]
