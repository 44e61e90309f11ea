"""`falsify`: the shortest failing word with both traces, or what was searched in vain."""

import inspect
import json
from pathlib import Path

import pytest

from fsa2lrnn import MooreMachine, load, zoo
from fsa2lrnn import verification as judge
from fsa2lrnn.cli.verbs.falsify import falsify
from fsa2lrnn.verification import Budget

EVEN5 = str(Path(__file__).parents[4] / "experiments" / "models" / "even5" / "seed-4.safetensors")


def test_a_failing_word_exits_with_one_and_both_traces(call):
    code, out, _ = call("falsify", "regex:(ab)*", "regex:(ab)*a|b*&a*")
    assert code == 1
    assert "refuted: they differ on a (1 letter), and on no shorter word (exhaustive)" in out
    assert out.splitlines()[1:3] == ["  model   reject", "  machine accept"]


def test_a_learned_model_as_json(call):
    code, out, _ = call("falsify", EVEN5, "task:even_pair(5)", "--max-seconds", "5", "--max-length", "60", "--json")
    found = json.loads(out)
    assert (code, found["verdict"]) == (1, "refuted")
    failure = found["failure"]
    model, machine = load(EVEN5), zoo.even_pair(5)
    assert failure["given"] == model.transduce(failure["word"])
    assert failure["wanted"] == machine.transduce(failure["word"])
    assert failure["given"][-1] != failure["wanted"][-1]
    assert failure["length"] == len(failure["word"]) <= 60
    assert found["searches"][0]["name"] == "exhaustive"


def test_a_model_that_is_right(call):
    code, out, _ = call("falsify", "task:sum_mod(3)", "task:sum_mod(3)")
    assert code == 0
    assert out.startswith(
        "undecided: no counterexample was found; equal on every word of every length, by single steps"
    )
    assert "  exhaustive  " in out
    assert "every output counts but that of the empty word" in out
    found = json.loads(call("falsify", "task:sum_mod(3)", "task:sum_mod(3)", "--json")[1])
    assert (found["verdict"], found["checked_length"]) == ("undecided", None)


def test_outputs_that_a_model_was_never_shown_do_not_count(call, tmp_path):
    (tmp_path / "m.json").write_text(MooreMachine([[1, 0], [1, 0]], [0, 1], 0, "ab").to_json())
    (tmp_path / "more.json").write_text(MooreMachine([[1, 0, 2], [2, 0, 2]], [0, 1, "?"], 0, "ab").to_json())
    code, out, _ = call("falsify", "m.json", "more.json")
    assert code == 0
    assert "outputs of 1 of 3 states do not count: ?; nor does that of the empty word" in out


OPTION = {"words": "max_states", "length": "max_length"}  # of the fields with another name


def test_the_options_are_those_of_the_budget():
    defaults = {name: p.default for name, p in inspect.signature(falsify).parameters.items()}
    assert {name: defaults[OPTION.get(name, name)] for name in vars(Budget())} == vars(Budget())


def test_every_option_reaches_the_search(call, monkeypatch):
    seen, search = [], judge.falsify
    monkeypatch.setattr(judge, "falsify", lambda *given: seen.append(given[2]) or search(*given))
    wanted = {name: 2 + i for i, name in enumerate(vars(Budget()))}
    names = {**OPTION, "seconds": "max_seconds"}
    options = [f"--{names.get(name, name).replace('_', '-')}={value}" for name, value in wanted.items()]
    assert call("falsify", "task:parity", "task:parity", *options)[0] == 0
    assert [vars(budget) for budget in seen] == [wanted]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("task:parity", "task:sum_mod(3)"), "a model knows more letters where it is compiled with --alphabet '012'"),
        (("task:parity", "task:shift_register(1, output=content)"), "the model puts out (False, True), none of"),
        (("task:parity", "task:parity", "--max-seconds", "0"), "Invalid value for '--max-seconds'"),
        (("task:parity",), "Missing argument 'SOURCE'"),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("falsify", *arguments)
    assert (code, out) == (2, "")
    assert message in err
