"""`extract`: from weights, exactly or by behaviour, to a file or a table."""

import json
from pathlib import Path

import pytest

from fsa2lrnn.automata import MooreMachine, equivalent

SUM2 = str(Path(__file__).parents[4] / "experiments" / "models" / "sum2" / "seed-0.safetensors")


def test_the_way_back(call, tmp_path):
    assert call("compile", "regex:(ab)*", "-o", "ab.safetensors")[0] == 0
    assert call("extract", "ab.safetensors", "-o", "ab.json")[0] == 0
    machine = MooreMachine.from_source(tmp_path / "ab.json")
    assert equivalent(machine, MooreMachine.from_source("regex:(ab)*")) is None
    assert json.loads(call("extract", "task:sum_mod(4)", "--json")[1])["machine"]["states"] == 4


def test_a_small_machine_is_shown_as_a_table(call):
    out = call("extract", "task:parity")[1]
    assert "→ 0" in out
    assert "output" in out


def test_a_learned_model(call):
    code, out, _ = call("extract", SUM2, "--method", "suffixes", "--json")
    facts = json.loads(out)
    assert (code, facts["machine"]["states"]) == (0, 2)
    assert facts["evidence"]["held_out"]["agreement"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("task:length_mod(50)", "--max-states", "10"), "more than 10 states are reached"),
        (("task:parity", "-o", "m.xyz"), "'m.xyz' can't be written, its kind is not known"),
        (("task:parity", "-o", "no/m.dot"), "no/m.dot can't be written (no such folder, make it first)"),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("extract", *arguments)
    assert (code, out) == (2, "")
    assert message in err
