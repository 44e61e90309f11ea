"""What `explain` says of cascades, of machines that have one and of machines that have none."""

import json

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.cli import cascades
from fsa2lrnn.cli.cascades import CascadeRequest
from fsa2lrnn.compile.choice import best_cascade
from fsa2lrnn.decomposition import search
from fsa2lrnn.errors import NotExpressible

UNLIMITED = CascadeRequest()


def answered(machine, wanted=UNLIMITED):
    answer = cascades.look(machine, wanted)
    return dict(cascades.rows(answer)), json.loads(json.dumps(cascades.to_json(answer)))


def test_the_rooms_of_mod_arith():
    rows, facts = answered(zoo.mod_arith(5, "eager"))
    assert rows["layers"] == "3: 2 lanes · 1 block of 4 and 1 lane · 1 block of 5; with token shift"
    assert rows["layer 3, accumulator"].startswith("5 states, permutation: a one-hot block of 5; reads the letter, and")
    assert rows["  met"] == "yes: the largest component that does more than reset has 5 states"
    assert rows["cost"].startswith("1,001 = ")
    assert rows["one layer costs"].startswith("422,214 = ")
    assert rows["auto takes"].startswith("a cascade, at a cost of 1,001 = ")
    assert rows["considered"] == "congruences, blocks of 1 in the first 2 layers, then of 8: 1,001"
    assert facts["auto"]["form"] == "cascade"
    assert facts["bound"]["prime"] == 5
    assert facts["meets_bound"]
    assert facts["gate_units_counted"]
    assert facts["candidates"][0]["cost"] == facts["cost"]
    last = facts["components"][-1]
    assert (last["name"], last["layer"], last["n_states"], last["reads"], last["block_sizes"]) == (
        "accumulator",
        2,
        5,
        [1, 2],
        [5],
    )


def test_where_auto_takes_one_layer_the_cascade_is_the_one_that_is_compiled():
    for machine in (zoo.parity(), zoo.tomita(5), zoo.sum_mod(7)):
        answer = cascades.look(machine, UNLIMITED)
        assert answer.choice.form == "onehot"
        assert answer.counted
        assert answer.found.cost == best_cascade(machine).cost


@pytest.mark.parametrize("source", ["parity", "even_pair(5)", "random_dfa(8, 2, seed=1)"])
def test_a_cascade_is_searched_once(source, monkeypatch):
    searches, covers = [], search._covers
    monkeypatch.setattr(search, "_covers", lambda *given: searches.append(given) or covers(*given))
    assert cascades.look(zoo.from_task(source), UNLIMITED).found is not None
    assert len(searches) == 1


def test_many_gate_units_are_not_counted():
    rows, facts = answered(zoo.random_dfa(12, 3, seed=2, minimal=True))
    assert rows["cost"].startswith("at least ")
    assert rows["cost"].endswith("gate units not counted")
    assert rows["considered"].startswith("holonomy: at least ")
    assert rows["  met"].startswith("no: the largest component that does more than reset has 8 states, and a smaller")
    assert not facts["gate_units_counted"]
    assert facts["auto"]["form"] == "onehot"


def test_resets_alone():
    rows, facts = answered(zoo.dyck(2, 3))
    assert rows["  met"] == "yes: all components only reset"
    assert facts["largest_permuted"] == 1


def test_no_cascade_but_a_reason_and_a_bound():
    rows, facts = answered(zoo.random_dfa(35, 4, seed=0))
    assert rows["none"].startswith("no cascade with blocks of at most 8 states was found (holonomy: words lead the set")
    assert rows["auto takes"].startswith("one layer")
    assert "in a group whose order 7 divides" in rows["lower bound"]
    assert (facts["found"], facts["components"], facts["candidates"]) == (False, None, [])


@pytest.mark.slow
def test_a_limit_that_nothing_meets():
    rows, facts = answered(zoo.sum_mod(7), CascadeRequest(3))
    assert "group of order 7" in rows["none"]
    assert "auto takes" not in rows
    assert facts["auto"] is None
    assert facts["bound"]["prime"] == 7


def test_large_machines_are_searched_if_that_is_asked_for():
    rows, facts = answered(zoo.length_mod(210))
    why = "not looked for in a machine of 210 states, more than 200: --max-block 8 asks for it"
    assert rows == {"none": why}
    assert facts["bound"] is None
    rows, facts = answered(zoo.length_mod(210), CascadeRequest(8))
    assert facts["block_sizes"] is not None
    assert facts["meets_bound"]


def test_without_token_shift():
    rows, facts = answered(zoo.mod_arith(5, "register"), CascadeRequest(8, token_shift=False))
    assert rows["layers"].endswith("; without token shift")
    assert facts["reads"] == "after the letter"


def test_nothing_is_drawn_where_there_is_no_cascade(tmp_path):
    answer = cascades.look(zoo.sum_mod(7), CascadeRequest(3))
    with pytest.raises(NotExpressible, match=r"there is no cascade to draw into .*no\.dot: no cascade with blocks"):
        cascades.draw(answer, tmp_path / "no.dot")
    assert not (tmp_path / "no.dot").exists()
