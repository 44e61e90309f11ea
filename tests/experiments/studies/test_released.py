"""The committed table of layers of others is what the code says today, wherever it is looked at."""

import pytest

from experiments import results_io
from experiments.studies import released
from fsa2lrnn.automata import zoo
from fsa2lrnn.released import LAYERS
from fsa2lrnn.released.answers import answer

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
    assert released.row(source) == ROWS[source]
