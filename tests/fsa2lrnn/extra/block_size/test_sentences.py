"""What blocks need, in sentences."""

import json

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.sentences import needs


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("group(S4)", {"real blocks": "3 (proved)", "rational blocks, exact in floats": "3 (proved)",
                       "columns of 1-norm at most 1": "3", "Householder factors per letter": "2 (proved)",
                       "any number of layers": "2 over the reals, for Z2, Z3"}),
        ("dyck(2,2)", {"one-hot block": "8", "real blocks": "7 (proved), since no fewer functions of the state",
                       "any number of layers": "1 over the reals, as no word permutes states"}),
        ("cerny(5)", {"Householder factors per letter": "no number of them does (proved)",
                      "any number of layers": "2 over the reals, for Z2, Z3, Z5"}),
        ("even_pair(5)", {"real blocks": "3 (proved)", "Householder factors per letter": "at least 1 (proved); no"}),
    ],
)  # fmt: skip
def test_named_machines(task, expected):
    lines = dict(needs(zoo.from_task(task)).sentences())
    for question, answer in expected.items():
        assert lines[question].startswith(answer)
    assert ("columns of 1-norm at most 1" in lines) == task.startswith("group")


def test_a_budget_that_is_spent_is_said():
    lines = dict(needs(zoo.random_dfa(300, 2, seed=0, minimal=True), budget=0).sentences())
    assert lines["real blocks"] == (
        "1 to 299 (both proved); 300 states are more than the 200 for which submodules are looked for"
    )


def test_as_json_with_both_bounds():
    found = json.loads(json.dumps(needs(zoo.cerny(4)).to_json()))
    assert found["real"] == {"lower": 3, "upper": 3, "note": ""}
    assert found["householder"] == {"lower": None, "upper": None, "note": ""}
    assert (found["columns"], found["one_hot"]) == (None, 4)
    assert found["any_depth"]["groups"] == ["Z2", "Z3"]
