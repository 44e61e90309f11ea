"""The committed table is what the code says today, wherever it is looked at."""

from dataclasses import replace

import pytest

from experiments import results_io
from experiments.studies import families as families_table
from fsa2lrnn.automata import minimise, zoo
from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED

RESULTS = results_io.read("families_table")["results"]
ROWS = {row["machine"]: row for row in RESULTS["machines"]}
SMALL = [source for source, row in ROWS.items() if row["states"] <= 6]


def test_the_table_has_every_machine_once():
    assert list(ROWS) == [*families_table.TRIED, *families_table.SERIES]
    assert len(RESULTS["machines"]) == len(ROWS)


@pytest.mark.parametrize("source", [*SMALL, "mod_arith(5)", "subtraction(5)", "shift_register(3)"])
def test_a_row_is_regenerated_as_it_stands(source):
    assert families_table.row(source) == ROWS[source]


@pytest.mark.slow
def test_the_whole_table_is_regenerated_as_it_stands():
    assert [families_table.row(source) for source in ROWS] == RESULTS["machines"]
    assert families_table.summary(families_table.RANDOM) == RESULTS["random"]


def test_random_machines_are_as_they_were():
    sample = families_table.RANDOM[::9]
    for family, counts in families_table.summary(sample).items():
        assert counts["yes"] == [source for source in RESULTS["random"][family]["yes"] if source in sample]
        assert len(counts["yes"]) + counts["no"] == len(sample)


def test_every_random_machine_is_counted():
    for counts in RESULTS["random"].values():
        assert len(counts["yes"]) + counts["no"] == len(families_table.RANDOM) == 100
        assert counts["four_words"] <= counts["no"]


def test_every_network_is_as_right_as_it_can_be_shown():
    networks = [found["network"] for row in ROWS.values() for found in row["families"].values() if "network" in found]
    assert set(networks) == {
        "equal on all words (float64)",
        "equal on 50 random words of at most 500 letters (float64)",
    }


def test_no_is_said_with_four_words_where_there_are_any():
    found = ROWS["subtraction(5)"]["families"]["diagonal-complex"]
    assert found["four_words"] == '"-0" and "0-", at first and after "-"'
    assert ROWS["group(S3)"]["families"]["lti"]["four_words"] is None
    assert ROWS["parity"]["families"]["diagonal[-1,1]"]["dimension"] == 1


def test_a_network_that_is_wrong_stops_the_table():
    for source, family in [("parity", "diagonal[-1,1]"), ("sum_mod(3)", "diagonal-complex")]:
        witness = represent(zoo.from_task(source), family)
        machine = minimise(zoo.from_task(source))
        flipped = replace(witness, form=tuple(replace(lane, shifts=lane.shifts[::-1]) for lane in witness.form))
        assert families_table.running(witness).startswith("equal on")
        assert machine == witness.machine
        with pytest.raises(SystemExit, match="is wrong"):
            families_table.running(flipped)


def test_words_are_written_as_people_write_them():
    assert families_table.text("0-1") == "0-1"
    assert families_table.text(["(1,2)", "(1,2,3)"]) == "(1,2) (1,2,3)"
    assert families_table.text([]) == ""
    assert set(RESULTS["random"]) == set(FORCED)
