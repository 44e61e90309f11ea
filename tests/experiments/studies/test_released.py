"""Studies of released models, sweeps and families."""

from dataclasses import replace

import pytest

from experiments import results_io
from experiments.studies import families as families_table
from experiments.studies import released
from fsa2lrnn.automata import minimise, zoo
from fsa2lrnn.export.refuse import answer
from fsa2lrnn.families import represent
from fsa2lrnn.optional import is_installed

NEEDED = {"rwkv-7": ("rwkv",)}
ROWS = {row["machine"]: row for row in results_io.read("released_table")["results"]}


@pytest.mark.long_cases("sum_mod(7)")
@pytest.mark.parametrize("source", [source for source, row in ROWS.items() if row["states"] <= 12])
def test_answers_are_as_they_stand(source):
    machine = zoo.from_task(source)
    assert {layer: answer(machine, layer).kind for layer in released.COLUMNS} == {
        layer: said["answer"] for layer, said in ROWS[source]["layers"].items()
    }


@pytest.mark.long_cases("ab_star", "flip_flop")
@pytest.mark.parametrize("source", ["flip_flop", "ab_star", "parity"])
def test_a_row_is_regenerated_as_it_stands(source):
    pytest.importorskip("transformers")
    machine = zoo.from_task(source).minimise()
    there = [layer for layer in released.COLUMNS if all(map(is_installed, NEEDED.get(layer, ())))]
    assert {"olmo-hybrid", "qwen3-next", "mamba-2", "mamba", "kimi-linear"} <= set(there)
    for layer in there:
        assert released.cell(machine, layer) == ROWS[source]["layers"][layer]


RESULTS = results_io.read("families_table")["results"]
ROWS_OF_FAMILIES = {row["machine"]: row for row in RESULTS["machines"]}
SMALL = [source for source, row in ROWS_OF_FAMILIES.items() if row["states"] <= 6]


@pytest.mark.long_cases("length_mod(6)", "sum_mod(5)")
@pytest.mark.parametrize("source", [*SMALL, "mod_arith(5)", "subtraction(5)", "shift_register(3)"])
def test_a_row_is_regenerated_as_it_stands_of_families(source):
    assert families_table.row(source) == ROWS_OF_FAMILIES[source]


@pytest.mark.slow
def test_the_whole_table_is_regenerated_as_it_stands():
    assert [families_table.row(source) for source in ROWS_OF_FAMILIES] == RESULTS["machines"]
    assert families_table.summary(families_table.RANDOM) == RESULTS["random"]


def test_a_network_that_is_wrong_stops_the_table():
    for source, family in [("parity", "diagonal[-1,1]"), ("sum_mod(3)", "diagonal-complex")]:
        witness = represent(zoo.from_task(source), family)
        machine = minimise(zoo.from_task(source))
        flipped = replace(
            witness, form=tuple(replace(channel, shifts=channel.shifts[::-1]) for channel in witness.form)
        )
        assert families_table.running(witness).startswith("equal on")
        assert machine == witness.machine
        with pytest.raises(SystemExit, match="is wrong"):
            families_table.running(flipped)
