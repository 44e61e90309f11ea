"""What is said of a repair can be written down."""

import json

from fsa2lrnn import compile_machine
from fsa2lrnn.automata import zoo
from fsa2lrnn.repairing import repair


def test_a_repair_as_json():
    machine = zoo.sum_mod(3)
    found = repair(compile_machine(machine), machine, mode="dyadic")
    written = json.loads(json.dumps(found.to_json()))
    assert written["mode"] == "dyadic"
    assert set(written["places"]) == {"U", "W", "phi"}
    assert [head["rank"] for head in written["heads"]] == [2]
    assert len(written["heads"][0]["phi"]) == len(written["states"]) == 4
    assert set(written["change"]) == {"A", "v", "x0"}
