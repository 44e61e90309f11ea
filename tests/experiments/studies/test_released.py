"""The committed table of layers of others is what the code says today, wherever it is looked at."""

import pytest

from experiments import results_io
from experiments.studies import released
from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.huggingface import LAYERS
from fsa2lrnn.extra.huggingface.refuse import answer
from fsa2lrnn.optional import is_installed

NEEDED = {"rwkv-7": ("rwkv",), "pd-ssm": ("pdssm", "einops"), "slstm": ("xlstm",)}
ROWS = {row["machine"]: row for row in results_io.read("released_table")["results"]}


def test_the_table_has_every_machine_once():
    assert list(ROWS) == list(dict.fromkeys(released.MACHINES))


@pytest.mark.parametrize("source", [source for source, row in ROWS.items() if row["states"] <= 12])
def test_answers_are_as_they_stand(source):
    machine = zoo.from_task(source)
    assert {layer: answer(machine, layer).kind for layer in LAYERS} == {
        layer: said["answer"] for layer, said in ROWS[source]["layers"].items()
    }


@pytest.mark.parametrize("source", ["flip_flop", "ab_star", "parity"])
def test_a_row_is_regenerated_as_it_stands(source):
    pytest.importorskip("transformers")
    machine = zoo.from_task(source).minimise()
    there = [layer for layer in LAYERS if all(map(is_installed, NEEDED.get(layer, ())))]
    assert {"olmo-hybrid", "qwen3-next", "mamba-2", "mamba", "kimi-linear"} <= set(there)
    for layer in there:
        assert released.cell(machine, layer) == ROWS[source]["layers"][layer]


def test_a_column_alone_is_computed(monkeypatch):
    asked = []
    monkeypatch.setattr(released, "cell", lambda _, layer: asked.append(layer) or {"answer": "no"})
    kept = {layer: said for layer, said in ROWS["parity"]["layers"].items() if layer != "mamba"}
    line = released.row("parity", kept)
    assert asked == ["mamba"]
    assert line["layers"] == {**ROWS["parity"]["layers"], "mamba": {"answer": "no"}}


def test_nine_of_ten_answers_are_known():
    answers = [said["answer"] for row in ROWS.values() for said in row["layers"].values()]
    assert answers.count("unknown") < len(answers) / 10
