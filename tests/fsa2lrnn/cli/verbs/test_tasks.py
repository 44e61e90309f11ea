"""`tasks`: every machine of the zoo, with its reason."""

import json

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.zoo import TASKS, ZOO


def test_all_tasks_with_their_reasons(call):
    code, out, _ = call("tasks")
    assert code == 0
    for piece in (
        "sum_mod(M)",
        "mod_arith(M, completion=sink)",
        "It requires the opposite of Sum",
        "parity",
    ):
        assert piece in out
    facts = json.loads(call("tasks", "--json")[1])["tasks"]
    assert [task["name"] for task in facts] == list(TASKS)
    assert all(task["computes"] and task["why"] for task in facts)
    by_name = {task["name"]: task for task in facts}
    assert by_name["tomita"]["parameters"] == [{"name": "i", "required": True}]
    assert by_name["cycle_navigation"]["parameters"] == [{"name": "n", "default": 5}]
    assert by_name["group"]["why"].startswith("A letter is the element it multiplies by")
    examples = [example for task in facts for example in task["examples"]]
    assert len(examples) == len(ZOO)
    assert MooreMachine.from_source(examples[0]["source"]).n_states == examples[0]["minimal_states"]


def test_one_task_in_full(call):
    for name in ("mod_arith", "task:mod_arith(5)"):
        code, out, _ = call("tasks", name)
        assert code == 0
        assert '| "register" | M² | 25 |' in out
        assert "task:mod_arith(5, completion=register)  25 states, mixed" in out
        assert "sum_mod(M)" not in out
    assert [task["name"] for task in json.loads(call("tasks", "parity", "--json")[1])["tasks"]] == ["parity"]


def test_an_unknown_task(call):
    code, out, err = call("tasks", "sum")
    assert (code, out) == (2, "")
    assert "task 'sum' is not known: did you mean sum_mod? the tasks are sum_mod, even_pair" in err
