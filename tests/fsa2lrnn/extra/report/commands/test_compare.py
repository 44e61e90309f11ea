"""`compare`: the failing word, what the heads carry, and a picture."""

import json
from pathlib import Path

import pytest

from fsa2lrnn import load, zoo
from fsa2lrnn.verdicts import Counterexample

KEPT = Path(__file__).parents[5] / "experiments" / "models"
EVEN5, SUM2 = str(KEPT / "even5" / "seed-4.safetensors"), str(KEPT / "sum2" / "seed-0.safetensors")


def test_compare_shows_the_failing_word_and_what_the_heads_carry(call):
    few = ("--lengths", "10,40", "--words", "50")
    code, out, _ = call("compare", EVEN5, "task:even_pair(5)", *few, "--json")
    facts = json.loads(out)
    name = "even5/seed-4"
    assert (code, set(facts["models"])) == (0, {name, "constructed"})
    assert facts["judged"][name]["verdict"] == "refuted"
    found = facts["judged"][name]["failure"]
    model, machine = load(EVEN5), zoo.even_pair(5)
    assert model.transduce(found["word"])[-1] != machine.transduce(found["word"])[-1]
    assert found["given"] == model.transduce(found["word"])
    assert found["length"] == len(found["word"]) <= 60
    assert facts["judged"][name]["alignment"]["carrying"]


def test_text_and_plot_show_the_same(call, wrong, tmp_path):
    code, out, _ = call("compare", *wrong, "--lengths", "10", "--words", "20", "--plot", "c.svg")
    assert code == 0
    assert "counterexample" in out
    assert "carry the state" in out
    assert "constructed" in out
    assert (tmp_path / "c.svg").read_text().count("<svg") == 1


@pytest.fixture
def wrong(call):
    """Return a model of another language than parity's, and parity."""
    assert call("compile", "regex:(0|1)*1(0|1)*", "-o", "wrong.safetensors")[0] == 0
    return "wrong.safetensors", "task:parity"


def test_a_failing_word_has_one_shape_in_json(call, wrong):
    """In `compare`, `falsify` and `verify`; the facts of a page have it too (tests of `report.facts`)."""
    compared = json.loads(call("compare", *wrong, "--lengths", "10", "--words", "20", "--json")[1])
    model, source = wrong
    found = [compared["judged"]["wrong"]]
    found += [json.loads(call(verb, model, source, "--json")[1]) for verb in ("falsify", "verify")]
    for verdict in found:
        assert verdict["verdict"] == "refuted"
        assert set(verdict) - {"alignment"} == set(found[2])
        assert set(verdict["failure"]) == set(Counterexample((0,), (0,), (1,)).to_json())
        assert verdict["failure"]["length"] == len(verdict["failure"]["word"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SUM2, SUM2, "task:sum_mod(2)"), "one is given twice"),
        (
            (SUM2, "task:sum_mod(2)", "--plot", "c.txt"),
            "a plot is written to a file ending in .svg or .png or",
        ),
        ((SUM2, "task:sum_mod(2)", "--plot", "no/c.svg"), "no such folder, make it first: 'no'"),
        ((SUM2, "task:sum_mod(3)"), "the alphabets differ (only the first has [], only the second ['2'])"),
        ((SUM2, "sum_mod(2)"), "did you mean task:sum_mod(2)?"),
        (
            (SUM2, "task:sum_mod(2)", "--lengths", "10,99999999999999", "--max-tokens", "9999"),
            "99999999999999 words or letters are too many to be meant: at most 1,000,000,000,000 are",
        ),
        (
            (SUM2, "task:sum_mod(2)", "--lengths", "10,3000000"),
            "length 3,000,000: one such word is longer than the 2,000,000 letters that a length may take: give shorter",
        ),
        ((SUM2, "task:sum_mod(2)", "--lengths", "4;5"), "--lengths '4;5': give whole numbers"),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("compare", *arguments)
    assert (code, out) == (2, "")
    assert message in err
