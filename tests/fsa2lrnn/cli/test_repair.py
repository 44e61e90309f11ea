"""`repair`."""

import json
from pathlib import Path
from typing import get_args

import pytest

from fsa2lrnn import Proved, load, prove_equivalent, repairing, zoo
from fsa2lrnn.checker import program as checker_program
from fsa2lrnn.cli.repair import RepairMode

SUM2 = str(Path(__file__).parents[3] / "experiments" / "models" / "sum2" / "seed-0.safetensors")


@pytest.mark.long
def test_repairs_are_proved(call, tmp_path):
    code, out, _ = call("repair", SUM2, "task:sum_mod(2)", "--mode", "dyadic", "-o", "r.safetensors", "--json")
    facts = json.loads(out)
    assert (code, facts["accuracy"]) == (0, 1.0)
    assert facts["change"]["A"] < 1
    assert isinstance(prove_equivalent(load(tmp_path / "r.safetensors"), zoo.sum_mod(2), empty_word=False), Proved)
    # The checker, without torch, validates the proof of the repaired model.
    assert call("convert", "task:sum_mod(2)", "-o", "m.json")[0] == 0
    more = ("--no-empty-word", "--certificate", "c.safetensors")
    assert call("verify", "r.safetensors", "task:sum_mod(2)", *more)[0] == 0
    assert checker_program.main(["c.safetensors", "r.safetensors", "m.json"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "x.pt"), "a model is written to a file ending in"),
        (("-o", "no/x.safetensors"), "no such folder, make it first: 'no'"),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("repair", SUM2, "task:sum_mod(2)", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.usefixtures("out_of_time")
@pytest.mark.parametrize("more", [(), ("--mode", "dyadic")])
def test_a_time_limit_ends_a_repair_and_is_no_answer(call, more):
    code, out, err = call("repair", SUM2, "task:sum_mod(2)", *more, "--max-seconds", "3", "-o", "r.safetensors")
    assert (code, out) == (2, "")
    assert "error: repair: looking for an affine image of the machine: a share of 0 s of the limit of 3 s" in err
    assert not Path("r.safetensors").exists()


def test_the_choices_are_those_of_the_code():
    assert get_args(RepairMode) == get_args(repairing.Mode)
