"""The demonstration's first half: the rooms, and what an answer that fails leads to."""

import json

import pytest

from fsa2lrnn.extra.report.demonstration import compiled
from fsa2lrnn.verdicts import Counterexample, Coverage, Proved, Refuted, Scope


def test_the_three_rooms():
    rooms = compiled.build_rooms()
    assert [component.name for component in rooms.cascade.components] == ["operator", "term", "accumulator"]
    assert rooms.cascade.block_sizes == ((1, 1), (5,), (5,))
    assert not rooms.model.config.token_shift
    assert list(rooms.verdicts) == ["float32", "bfloat16"]
    assert all(isinstance(verdict, Proved) for verdict in rooms.verdicts.values())
    assert rooms.given == 1


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
