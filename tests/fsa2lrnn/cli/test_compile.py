"""`compile`, `convert`, `tasks`, `explain` and `extract`."""

import json
from pathlib import Path

import pytest

from fsa2lrnn import MooreMachine, equivalent, load
from fsa2lrnn.automata.zoo import TASKS, ZOO
from fsa2lrnn.cli import sources


def test_models_are_written_read_and_described_in_json(call, tmp_path):
    code, out, _ = call("compile", "regex:(ab)*", "-o", "ab.safetensors")
    assert code == 0
    assert "1 block of 3" in out
    assert "saved         ab.safetensors" in out
    assert load(tmp_path / "ab.safetensors").transduce("abab") == [False, True, False, True]
    facts = json.loads(call("compile", "task:mod_arith(5)", "--json", "--dtype", "bfloat16")[1])
    assert facts["machine"]["minimal_states"] == 51
    assert (facts["model"]["layers"], facts["model"]["dtype"]) == ([{"block_sizes": [51], "n_heads": 1}], "bfloat16")


@pytest.mark.long
def test_cascades_and_the_choice_of_a_form(call):
    source = "task:mod_arith(5, completion=eager)"
    arguments = ("compile", source, "--form", "cascade", "--max-block", "8")
    code, out, _ = call(*arguments, "-o", "rooms.safetensors")
    assert code == 0
    assert "1 block of 4 and 1 channel" in out
    assert "yes: gates see the step before too" in out
    assert "chosen" not in out
    assert call("verify", "rooms.safetensors", source)[0] == 0
    out = call("compile", "task:even_pair(5)", "--form", "auto")[1]
    assert "chosen a cascade, at a cost of 535 = Σb³ 9 + 14 gate units + 256 × 2 layers: one" in " ".join(out.split())
    facts = json.loads(call("compile", "task:sum_mod(5)", "--form", "auto", "--json")[1])
    assert facts["why"] == "one layer: its blocks, of sizes 5, are no larger than 8"
    assert json.loads(call("compile", "task:sum_mod(5)", "--json")[1])["why"] is None


def test_letters_of_sources_and_what_can_not_be_expressed(call, tmp_path):
    assert call("compile", "regex:(ab)*", "--alphabet", "abc", "-o", "abc.safetensors")[0] == 0
    assert load(tmp_path / "abc.safetensors").transduce("abc") == [False, True, False]
    code, _, err = call("compile", "task:sum_mod(2)", "--alphabet", "012")
    assert code == 2
    assert "no transition for state 0 on '2', state 1 on '2': add them, or choose --completion sink" in err
    facts = json.loads(call("compile", "task:sum_mod(2)", "--alphabet", "012", "--completion", "ignore", "--json")[1])
    assert (facts["machine"]["letters"], facts["machine"]["minimal_states"]) == (["0", "1", "2"], 2)
    code, _, err = call("compile", "task:sum_mod(5)", "--normalisation", "paper")
    assert code == 1
    assert "at block size 5 a permutation is scaled by 0.7812" in err
    assert call("compile", "task:mod_arith(5)", "--max-block", "8")[0] == 1
    code, _, err = call("compile", "task:sum_mod(7)", "--form", "cascade", "--max-block", "3")
    assert code == 1
    assert "no cascade with blocks of at most 3 states was found" in err


FORMATS = ("m.dot", "m.gv", "m.jff", "m.fst.txt", "m.json")


@pytest.mark.parametrize("name", FORMATS)
def test_acceptors_go_everywhere_and_come_back(call, tmp_path, name):
    code, out, _ = call("convert", "regex:(ab)*c", "-o", name, "--json")
    assert (code, json.loads(out)["read_back"]) == (0, "equal")
    wanted = MooreMachine.from_source("regex:(ab)*c")
    assert equivalent(MooreMachine.from_source(tmp_path / name), wanted) is None
    for other in FORMATS:
        assert call("convert", name, "-o", f"again-{other}")[0] == 0
        assert equivalent(MooreMachine.from_source(tmp_path / f"again-{other}"), wanted) is None


def test_formats_say_what_they_do_not_keep(call):
    code, out, _ = call("convert", "task:mod_arith(3)", "-o", "m.jff")
    assert code == 0
    assert "reads back  with outputs as text: .json keeps them" in out
    assert "reads back  as the same automaton" in call("convert", "task:mod_arith(3)", "-o", "m.dot")[1]
    sizes = []
    for options in ((), ("--minimise",), ("--minimise", "--alphabet", "01234+-*x", "--completion", "sink")):
        facts = json.loads(call("convert", "task:mod_arith(5)", *options, "-o", "m.json", "--json")[1])
        sizes.append((facts["machine"]["states"], len(facts["machine"]["letters"])))
    assert sizes[1] == (51, 8)
    assert sizes[0][0] >= 51
    assert sizes[2][1] == 9


def test_a_writer_that_writes_another_machine_is_found_out(call, monkeypatch):
    read = sources.read_machine

    def flipped(source, *rest):
        machine = read(source, *rest)
        if source != "m.dot":
            return machine
        return MooreMachine(machine.delta[::-1], machine.outputs, machine.start, machine.alphabet)

    monkeypatch.setattr(sources, "read_machine", flipped)
    code, _, err = call("convert", "regex:(ab)*", "-o", "m.dot")
    assert code == 2
    assert "what was written is read back as another automaton" in err


def test_tasks_with_their_reasons(call):
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
    assert by_name["group"]["why"].startswith("Letter a maps element q to q·a")
    examples = [example for task in facts for example in task["examples"]]
    assert len(examples) == len(ZOO)
    assert MooreMachine.from_source(examples[0]["source"]).n_states == examples[0]["minimal_states"]
    for name in ("mod_arith", "task:mod_arith(5)"):
        code, out, _ = call("tasks", name)
        assert code == 0
        assert '| "register" | M² | 25 |' in out
        assert "task:mod_arith(5, completion=register)  25 states, mixed" in out
        assert "sum_mod(M)" not in out
    assert [task["name"] for task in json.loads(call("tasks", "parity", "--json")[1])["tasks"]] == ["parity"]
    code, out, err = call("tasks", "sum")
    assert (code, out) == (2, "")
    assert "task 'sum' is not known: did you mean sum_mod? the tasks are sum_mod, even_pair" in err


def test_one_family(call, tmp_path):
    code, out, _ = call("explain", "task:parity", "--family", "diagonal[-1,1]", "--json")
    assert code == 0
    assert json.loads(out)["families"]["diagonal[-1,1]"]["answer"] == "yes"
    assert call("explain", "task:parity", "--family", "lti", "--certificates", "new/folder")[0] == 1
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["lti.json"]


def test_letters_with_spaces_are_told_apart(call, tmp_path):
    """'go up down' was of one letter, of two or of three."""
    machine = MooreMachine([[1, 2, 2], [0, 0, 2]], [False, True, False], alphabet=("go up", "down"))
    (tmp_path / "lift.json").write_text(machine.to_json())
    code, out, _ = call("explain", "lift.json", "--family", "diagonal[0,1]", "--json")
    found = json.loads(out)
    assert code == 1
    says = [fact["witness"]["says"] for fact in found["monoid"]["facts"].values() if fact["witness"]]
    assert any('["go up", "down"]' in text for text in says)
    assert not any("go up down" in text or "'go up" in text for text in says)
    assert '["go up"' in found["families"]["diagonal[0,1]"]["evidence"]


SUM2 = str(Path(__file__).parents[3] / "experiments" / "models" / "sum2" / "seed-0.safetensors")


def test_automata_of_compiled_and_learned_models(call, tmp_path):
    assert call("compile", "regex:(ab)*", "-o", "ab.safetensors")[0] == 0
    assert call("extract", "ab.safetensors", "-o", "ab.json")[0] == 0
    machine = MooreMachine.from_source(tmp_path / "ab.json")
    assert equivalent(machine, MooreMachine.from_source("regex:(ab)*")) is None
    assert json.loads(call("extract", "task:sum_mod(4)", "--json")[1])["machine"]["states"] == 4
    out = call("extract", "task:parity")[1]
    assert "→ 0" in out
    assert "output" in out
    code, out, _ = call("extract", SUM2, "--method", "suffixes", "--json")
    facts = json.loads(out)
    assert (code, facts["machine"]["states"]) == (0, 2)
    assert facts["evidence"]["held_out"]["agreement"] == 1.0
