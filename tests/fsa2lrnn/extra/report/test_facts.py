import json
from dataclasses import replace

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import repairs_of, verdict


def test_facts_are_written_as_json(facts):
    value = json.loads(json.dumps(facts.to_json()))
    assert value["models"][0]["failure"] == json.loads(json.dumps(facts.models[0].failure.to_json()))
    assert value["models"][1]["failure"] is None


def test_facts_that_contradict_themselves_are_refused(facts):
    learned, repaired, constructed = facts.models
    for models, message in [
        ([learned, learned], "is the name of several models"),
        ([replace(learned, kind="guessed")], "'guessed', none of learned, repaired, constructed"),
        ([repaired], "which is not there"),
        ([replace(learned, proof="closed")], "is proved right on all words and has a failing word"),
        ([replace(constructed, wrong="at 1 %")], "is proved right on all words and has a failing word"),
        ([replace(learned, proved=3)], "is proved right up to 3 letters and fails at letter 3"),
    ]:
        with pytest.raises(UnsupportedFormat, match=message):
            replace(facts, models=models)
    assert repairs_of(facts, learned) == [repaired]
    assert repairs_of(facts, constructed) == []


def test_verdicts_are_sentences(facts):
    learned, repaired, constructed = facts.models
    ever = "right on all words, of every length (proved: closed, 7 joint states)"
    assert verdict(learned) == "Right on every word of up to 2 letters (proved); fails on a word of 3 letters."
    assert verdict(repaired) == verdict(constructed) == f"R{ever[1:]}."
    unknown = replace(learned, proved=None, failure=None)
    assert verdict(replace(unknown, name="x")) == "No failing word found (all short words)."
    assert verdict(replace(unknown, name="x", searched=None)) == "Not judged."
    assert verdict(replace(unknown, name="x", searched=None, proved=1)).startswith("Right on every word of up to 1 l")
    seen = replace(constructed, proof=None, searched="10 letters", wrong="at 1 % of 10 letters")
    assert verdict(seen) == "Wrong at 1 % of 10 letters."
    some = replace(learned, scope="outputs of 2 of 5 states do not count: ?")
    assert verdict(some) == f"{verdict(learned)[:-1]}; outputs of 2 of 5 states do not count: ?."


def test_long_labels_give_way_to_numbers():
    assert DrawnMachine(["p", "q"], ["a"], ["0", "1"], [[0, 1]], 0).names == ["p", "q"]
    assert DrawnMachine(["p", "quiescent"], ["a"], ["0", "1"], [[0, 1]], 0).names == ["1", "2"]
    assert DrawnMachine(["p", "p"], ["a"], ["0", "1"], [[0, 1]], 0).names == ["1", "2"]
