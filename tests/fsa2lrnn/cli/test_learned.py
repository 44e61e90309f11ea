"""The verbs for learned models, on kept ones and on a compiled one that was disturbed."""

import json
from pathlib import Path

from typer.testing import CliRunner

import fsa2lrnn.cli as cli
from fsa2lrnn import MooreMachine, compile_machine, load, save, zoo
from fsa2lrnn.judge import Proved, prove_equivalent
from fsa2lrnn.verdicts import FailingWord

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


def test_every_verb_says_how_many_states_do_not_count(tmp_path):
    """The model lacks an output of the machine: what is certified where it counts is refuted where all count."""
    machine, model = MooreMachine([[1, 0], [1, 0]], [0, 1], 0, "ab"), tmp_path / "m.safetensors"
    save(compile_machine(machine), model)
    source, file = tmp_path / "m.json", tmp_path / "c.json"
    source.write_text(MooreMachine([[1, 0, 2], [2, 0, 2]], [0, 1, "?"], 0, "ab").to_json())
    said = "outputs of 1 of 3 states do not count: ?; nor does that of the empty word"
    for arguments, also in ((("--memory", "1", "-o", str(file)), "saved"), (("--check", str(file)), "accepted")):
        code, out = call("certify", str(model), str(source), *arguments)
        shown = " ".join(out.split())
        assert (code, "proved right on every word" in shown, said in shown, also in shown) == (0, True, True, True)
    scope = {"states": 3, "ignored_states": 1, "ignored": ["?"], "empty_word": False}
    code, out = call("certify", str(model), str(source), "--check", str(file), "--json")
    assert (code, json.loads(out)["scope"]) == (0, scope)
    code, out = call("verify", str(model), str(source))
    assert (code, "refuted" in out, "every output counts" in out) == (1, True, True)


def test_a_failing_word_has_one_shape_in_json():
    """In `compare`, in `verify`, and in the facts of a page."""
    few = ("--lengths", "10", "--words", "20")
    found = json.loads(call("compare", EVEN5, "--against", "task:even_pair(5)", *few, "--json")[1])
    compared = found["judged"]["even5/seed-4"]
    verified = json.loads(call("verify", "task:sum_mod(2)", "regex:(0|1)*1(0|1)*", "--no-empty-word", "--json")[1])
    assert compared["verdict"] == verified["verdict"] == "refuted"
    assert set(compared["failure"]) == set(verified["failure"]) == set(FailingWord((0,), (0,), (1,)).to_json())
    assert len(compared["failure"]["word"]) == compared["failure"]["length"]
    assert set(compared) - {"alignment"} == set(verified)


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
