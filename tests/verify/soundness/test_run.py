"""A few models by default, all of them on request; and the run can fail: a certificate of tables is none of gates."""

import pytest

from verify.soundness import run
from verify.soundness.models import RULES


def wrong(counts):
    return {name: value for name, value in counts.items() if name.startswith("wrong") and value}


def test_no_word_within_what_a_verdict_covers_is_wrong(monkeypatch):
    monkeypatch.setattr(run, "THREADS", (1,))
    monkeypatch.setattr(run, "BATCHES", (1, 3))
    counts = run.run(5)
    assert counts["models"] == len(RULES)
    assert counts["positions certified"] > 1_000
    assert not wrong(counts)


def test_a_horizon_too_long_is_found(monkeypatch):
    monkeypatch.setattr(run, "THREADS", (1,))
    monkeypatch.setattr(run, "BATCHES", (3,))
    choice, machine = run.drawn(0)
    counts = run.Counter()
    other = type(machine)(machine.delta, machine.outputs[1:] + machine.outputs[:1], machine.start, machine.alphabet)
    run._run(run.model(choice, machine), other, 5, iter([("sequential", 3, 1)]), "mutant", counts)
    assert counts["wrong mutant"] > 0


@pytest.mark.slow
def test_six_hundred_models():
    counts = run.run(600)
    print(dict(counts))
    assert counts["models"] == 600
    assert not wrong(counts)
