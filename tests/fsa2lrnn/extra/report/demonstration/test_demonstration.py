"""The demonstration's compiled and learned models."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.extra.report.demonstration import compiled, learned
from fsa2lrnn.training.settings import preset
from fsa2lrnn.verdicts import Counterexample, Coverage, Proved, Refuted, Scope
from fsa2lrnn.verification.falsify import Budget


def test_a_proof_of_the_rooms_that_fails_exits_with_one(monkeypatch, capsys):
    def prove(_model, machine):
        if machine.n_states == 51:
            return Proved(1, 1, Coverage("float32", (), "every", None), Scope(51), "0f")
        return Refuted(Counterexample(("1",), (1,), (0,)), 0, Scope(75))

    monkeypatch.setattr(compiled, "prove_equivalent", prove)
    with pytest.raises(SystemExit) as stop:
        compiled.main(None, as_json=True)
    assert stop.value.code == 1
    assert json.loads(capsys.readouterr().out)["rooms"]["proofs"]["float32"]["verdict"] == "refuted"


@given(st.integers(1, 30), st.integers(2, 7), st.integers(0, 10_000))
def test_expressions_have_the_value_that_python_gives_them(n_digits, modulus, seed):
    expression = compiled.random_expression(n_digits, modulus, np.random.default_rng(seed))
    assert len(expression) == 2 * n_digits - 1
    assert compiled.evaluate(expression) == eval(expression)


@pytest.mark.usefixtures("short_certificates")
def test_a_model_is_trained_judged_repaired_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learned, "TASK", "task:parity")
    monkeypatch.setattr(learned, "REPAIRS", learned.REPAIRS[-1:])
    monkeypatch.setattr(
        learned, "SETTINGS", {"steps": 400, "evaluate_every": 50, "learning_rate": 2e-3, "test_length": 100}
    )
    monkeypatch.setattr(learned, "SEARCH", Budget(seconds=3, length=300))
    monkeypatch.setattr(learned, "SHOWN", {"lengths": (10, 50), "n_words": 20, "letters": 1_000})
    facts = learned.show(tmp_path)
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
    assert preset("paper", "task:parity").steps > facts["steps"]
