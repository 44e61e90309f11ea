"""The verbs for learned models, on kept ones and on a compiled one that was disturbed."""

import json
from pathlib import Path

from typer.testing import CliRunner

import fsa2lrnn.cli as cli
from fsa2lrnn import load, zoo
from fsa2lrnn.judge.equivalence import Proved, prove_equivalent

KEPT = Path(__file__).parents[3] / "experiments" / "models"
SUM2, EVEN5 = str(KEPT / "sum2" / "seed-0.safetensors"), str(KEPT / "even5" / "seed-4.safetensors")


def call(*arguments):
    result = CliRunner().invoke(cli.app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_compare_shows_the_failing_word_and_what_the_heads_carry(tmp_path):
    few = ("--lengths", "10,40", "--words", "50")
    code, out = call("compare", EVEN5, "--against", "task:even_pair(5)", *few, "--json")
    facts = json.loads(out)
    name = "even5/seed-4"
    assert (code, set(facts["models"])) == (0, {name, "constructed"})
    found = facts["judged"][name]["failure"]
    model, machine = load(EVEN5), zoo.even_pair(5)
    word = [next(a for a in model.alphabet if str(a) == text) for text in found["word"]]
    assert model.transduce(word)[-1] != machine.transduce(word)[-1]
    assert found["length"] == len(word) <= 60
    assert facts["judged"][name]["alignment"]["carrying"]
    picture = tmp_path / "c.svg"
    code, out = call("compare", EVEN5, "--against", "task:even_pair(5)", *few, "--plot", str(picture))
    assert code == 0
    assert "failing word" in out
    assert "carry the state" in out
    assert "constructed" in out
    assert picture.read_text().count("<svg") == 1


def test_a_certificate_is_written_checked_and_refused(tmp_path):
    file = tmp_path / "c.json"
    code, out = call("certify", EVEN5, "task:even_pair(5)", "--memory", "2", "-o", str(file), "--json")
    horizon = json.loads(out)["horizon"]
    assert (code, horizon >= 5) == (0, True)
    code, out = call("certify", EVEN5, "task:even_pair(5)", "--check", str(file))
    assert code == 0
    assert "accepted" in out
    assert f"at most {horizon:,} letters" in out
    other = str(KEPT / "even5" / "seed-3.safetensors")
    code, out = call("certify", other, "task:even_pair(5)", "--check", str(file), "--json")
    facts = json.loads(out)
    assert (code, facts["accepted"]) == (1, False)
    assert facts["why_not"]
    code, out = call("certify", EVEN5, "task:sum_mod(5)", "--check", str(file))
    assert code == 1
    assert "refused: it is of another machine: they differ after " in out


def test_repair_writes_a_model_that_is_proved(tmp_path):
    file = tmp_path / "r.safetensors"
    code, out = call("repair", SUM2, "task:sum_mod(2)", "--mode", "dyadic", "-o", str(file), "--json")
    facts = json.loads(out)
    assert (code, facts["accuracy"]) == (0, 1.0)
    assert facts["change"]["A"] < 1
    assert isinstance(prove_equivalent(load(file), zoo.sum_mod(2), empty_word=False), Proved)
    code, out = call("repair", SUM2, "task:sum_mod(2)", "--snap")
    assert code == 0
    assert "1.000000 along 500,000" in out


def test_extraction_of_a_learned_model():
    code, out = call("extract", SUM2, "--method", "suffixes", "--json")
    facts = json.loads(out)
    assert (code, facts["machine"]["states"]) == (0, 2)
    assert facts["evidence"]["held_out"]["agreement"] == 1.0
