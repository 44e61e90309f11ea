"""A few models by default, all of them on request; and the run can fail: a certificate of tables is none of gates."""

import json
from collections import Counter

import pytest

from verify.soundness import __main__ as command
from verify.soundness import run
from verify.soundness.models import RULES


def test_no_word_within_what_a_verdict_covers_is_wrong(monkeypatch):
    monkeypatch.setattr(run, "THREADS", (1,))
    monkeypatch.setattr(run, "BATCHES", (1, 3))
    counts = run.run(5)
    assert counts["models"] == len(RULES)
    assert counts["positions certified"] > 1_000
    assert not run.wrong(counts)


def test_a_horizon_too_long_is_found(monkeypatch):
    monkeypatch.setattr(run, "THREADS", (1,))
    monkeypatch.setattr(run, "BATCHES", (3,))
    choice, machine = run.drawn(0)
    counts = run.Counter()
    other = type(machine)(machine.delta, machine.outputs[1:] + machine.outputs[:1], machine.start, machine.alphabet)
    run._run(run.model(choice, machine), other, 5, iter([("sequential", 3, 1)]), "mutant", counts)
    assert counts["wrong mutant"] > 0


def test_counts_go_on_where_they_ended(tmp_path, monkeypatch):
    seen = []

    def counted(count, first):
        seen.append((count, first))
        return Counter({"models": count, "wrong certified": 0})

    monkeypatch.setattr(command, "run", counted)
    path = tmp_path / "counts.json"
    assert command.main(15, 100, path)["models"] == 15
    assert command.main(27, 100, path)["models"] == 27
    assert seen == [(10, 100), (5, 110), (10, 115), (2, 125)]
    with pytest.raises(SystemExit, match="begins with seed 100"):
        command.main(30, 0, path)


def test_the_committed_counts_hold_nothing_wrong():
    counts = Counter(json.loads(command.COUNTS.read_bytes())["counts"])
    assert counts["certified beyond 0"] > counts["models"] / 2 > 0
    assert not run.wrong(counts)


@pytest.mark.slow
def test_six_hundred_models():
    counts = run.run(600)
    print(dict(counts))
    assert counts["models"] == 600
    assert not run.wrong(counts)
