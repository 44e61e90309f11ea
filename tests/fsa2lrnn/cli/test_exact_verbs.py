"""The verbs for automata and exact models: what they print, what they write, how they exit."""

import json
import subprocess
import sys

import pytest

from fsa2lrnn.automata import MooreMachine, equivalent, zoo
from fsa2lrnn.lrnn.scans import METHODS


def test_the_whole_way(call, tmp_path):
    code, out, _ = call("compile", "regex:(ab)*", "-o", "ab.safetensors")
    assert code == 0
    assert "1 block of 3" in out
    assert (tmp_path / "ab.safetensors").exists()
    assert call("run", "ab.safetensors", "abab")[1].startswith("accept  (4 letters, float32)")
    code, out, _ = call("verify", "ab.safetensors", "regex:(ab)*")
    assert code == 0
    assert "proved: equal on every word of every length, computed in float32" in out
    code, out, _ = call("extract", "ab.safetensors", "-o", "ab.json")
    assert code == 0
    machine = MooreMachine.from_source(tmp_path / "ab.json")
    assert equivalent(machine, MooreMachine.from_source("regex:(ab)*")) is None


def test_a_refutation_shows_a_shortest_word_and_exits_with_one(call):
    code, out, _ = call("verify", "regex:(ab)*", "regex:(ab)*a|b*&a*", "--json")
    assert code == 1
    verdict = json.loads(out)
    assert (verdict["verdict"], verdict["failure"]["word"]) == ("refuted", ["a"])
    code, out, _ = call("verify", "task:sum_mod(3)", "task:sum_mod(3)", "--budget", "1")
    assert code == 1
    assert "undecided" in out


def test_json_of_every_verb(call):
    machine = json.loads(call("compile", "task:mod_arith(5)", "--json", "--dtype", "bfloat16")[1])
    assert machine["machine"]["minimal_states"] == 51
    assert machine["model"]["layers"] == [{"block_sizes": [51], "n_heads": 1}]
    assert machine["model"]["dtype"] == "bfloat16"
    result = json.loads(call("run", "task:mod_arith(5)", "1+2-3*4", "--json", "--trace")[1])
    assert result["output"] == 1
    assert result["trace"] == [1, None, 3, None, 0, None, 1]
    verdict = json.loads(call("verify", "task:parity", "task:parity", "--json")[1])
    assert verdict["verdict"] == "proved"
    assert verdict["scans"] == list(METHODS)
    extracted = json.loads(call("extract", "task:sum_mod(4)", "--json")[1])
    assert extracted["machine"]["states"] == 4


def test_a_cascade_from_the_command_line(call):
    source = "task:mod_arith(5, completion=eager)"
    arguments = ("compile", source, "--form", "cascade", "--no-token-shift", "--max-block", "8")
    code, out, _ = call(*arguments, "-o", "rooms.safetensors")
    assert code == 0
    assert "1 block of 4 and 1 lane" in out
    assert "no: gates see this step alone" in out
    assert "chosen" not in out
    assert call("verify", "rooms.safetensors", source)[0] == 0


def test_auto_says_why(call):
    out = call("compile", "task:even_pair(5)", "--form", "auto")[1]
    assert "chosen a cascade, at a cost of 535 = Σb³ 9 + 14 gate units + 256 × 2 layers: one" in " ".join(out.split())
    facts = json.loads(call("compile", "task:sum_mod(5)", "--form", "auto", "--json")[1])
    assert facts["why"] == "one layer: its blocks, of sizes 5, are no larger than 8"
    facts = json.loads(call("compile", "task:even_pair(5)", "--form", "auto", "--layout", "index", "--json")[1])
    assert (facts["why"], facts["model"]["layout"]) == ("one layer: layout index holds one large block", "index")
    assert json.loads(call("compile", "task:sum_mod(5)", "--json")[1])["why"] is None


def test_the_demo_tells_the_story(call):
    code, out, _ = call("demo", "--no-learned")
    assert code == 0
    for piece in (
        "ModArith(5)",
        "1+2-3*4 = 1 (mod 5); integers: 1  equal",
        "10,000 digits",
        "51 joint states",
        "bfloat16",
        "5. Three rooms.",
        "layer 3, accumulator",
        "2 lanes · 1 block of 5 · 1 block of 5, and 39 hidden units, instead of a block of 75",
        "75 joint states, 600 transitions, closed",
        "6. And back.",
    ):
        assert piece in out
    code, out, _ = call("demo", "--no-learned", "--json")
    facts = json.loads(out)
    assert facts["extracted_machine_is_the_source"]
    assert [e["model"] == e["integers"] for e in facts["evaluated"]] == [True, True]
    assert [layer["block_sizes"] for layer in facts["rooms"]["layers"]] == [[1, 1], [5], [5]]
    assert {proof["verdict"] for proof in facts["rooms"]["proofs"].values()} == {"proved"}


def test_a_trace_prints_one_output_a_line(call):
    code, out, _ = call("run", "task:sum_mod(3)", "-", "--trace", stdin="1 2 2\n1\n")
    assert (code, out.split()) == (0, ["1", "0", "2", "0"])


def test_words_of_long_letters_are_separated_by_spaces(call, tmp_path):
    (tmp_path / "lift.json").write_text(
        MooreMachine([[1, 1], [0, 0]], [False, True], alphabet=["up", "down"]).to_json()
    )
    assert call("run", "lift.json", "up down up")[1].startswith("accept  (3 letters")


def test_the_empty_word(call):
    assert call("run", "task:sum_mod(3)", "")[1].startswith("0  (the empty word")


def test_a_scan_by_name(call):
    assert call("run", "task:mod_arith(5)", "1+2×3", "--scan", "pscan")[1].startswith("2  (5 letters, float32, pscan)")


def test_a_small_extracted_machine_is_shown_as_a_table(call):
    out = call("extract", "task:parity")[1]
    assert "→ 0" in out
    assert "output" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "task:sum_mod(5)", "017"),
            "letter '7' at position 3 is not in the alphabet ('0', '1', '2', '3', '4')",
        ),
        (("run", "nowhere.safetensors", "a"), "no such file: nowhere.safetensors"),
        (("run", "nowhere.dot", "a"), "nowhere.dot"),
        (("compile", "task:sum_mod(5)", "-o", "model.pt"), "a model is written to a file ending in .safetensors"),
        (("compile", "regex:(ab"), "(ab"),
        (("compile", "task:sum_modd(5)"), "sum_mod"),
        (("compile", "machine.xyz"), "machine.xyz"),
        (("compile", "task:sum_mod(5)", "-o", "no/such/folder/m.safetensors"), "no/such/folder"),
        (("verify", "task:sum_mod(5)", "task:sum_mod(3)"), "the alphabets differ"),
        (("extract", "task:length_mod(50)", "--max-states", "10"), "more than 10 states are reached"),
        (("extract", "task:parity", "-o", "m.xyz"), "m.xyz"),
    ],
)
def test_bad_input_is_one_message_and_exits_with_two(call, arguments, message):
    code, out, err = call(*arguments)
    assert code == 2
    assert not out
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err


def test_what_cannot_be_expressed_exits_with_one(call):
    code, _, err = call("compile", "task:sum_mod(5)", "--normalisation", "released")
    assert code == 1
    assert "at block size 5 a permutation is scaled by 0.7812" in err
    assert call("compile", "task:mod_arith(5)", "--max-block", "8")[0] == 1
    code, _, err = call("compile", "task:sum_mod(7)", "--form", "cascade", "--max-block", "3")
    assert code == 1
    assert "no cascade with blocks of at most 3 states was found" in err


@pytest.mark.parametrize("arguments", [("compile",), ("fly",), ("compile", "task:parity", "--dtype", "int8")])
def test_a_wrong_call_exits_with_two(call, arguments):
    assert call(*arguments)[0] == 2


def test_a_corrupt_model(call, tmp_path):
    (tmp_path / "m.safetensors").write_bytes(b"not a model")
    code, _, err = call("run", "m.safetensors", "a")
    assert code == 2
    assert "is damaged or no safetensors file" in err


def test_brackets_in_messages_are_not_taken_for_markup(call):
    code, _, err = call("run", "task:parity", "[bold]")
    assert code == 2
    assert "letter '[' at position 1" in err


def test_an_index_table_is_composed_when_asked(call):
    assert call("compile", "task:sum_mod(5)", "--layout", "index", "-o", "m.safetensors")[0] == 0
    code, out, _ = call("run", "m.safetensors", "0123" * 50 + "4", "--scan", "compose", "--json")
    answer = json.loads(out)
    assert (code, answer["output"], answer["method"]) == (0, (50 * 6 + 4) % 5, "compose")


def test_a_long_pipe_through_the_installed_command():
    word = "1+2-3*4+" * 100_000 + "1"
    command = [sys.executable, "-m", "fsa2lrnn", "run", "task:mod_arith(5)", "-", "--json"]
    answer = json.loads(subprocess.run(command, input=word, capture_output=True, text=True, check=True).stdout)
    assert answer["length"] == 800_001
    assert answer["output"] == (100_000 * (1 + 2 - 12) + 1) % 5
    assert answer["method"] == "walked on the model's 51-state table, 2 letters at a time"
    assert zoo.mod_arith(5).transduce(word)[-1] == answer["output"]


def test_verify_asks_for_both(call):
    code, _, err = call("verify", "task:parity")
    assert code == 2
    assert "Missing argument" in err
