"""`compile`: what it prints, writes and refuses."""

import json

import pytest

from fsa2lrnn import load


def test_a_model_is_written_and_read(call, tmp_path):
    code, out, _ = call("compile", "regex:(ab)*", "-o", "ab.safetensors")
    assert code == 0
    assert "1 block of 3" in out
    assert "saved         ab.safetensors" in out
    assert load(tmp_path / "ab.safetensors").transduce("abab") == [False, True, False, True]


def test_json(call):
    facts = json.loads(call("compile", "task:mod_arith(5)", "--json", "--dtype", "bfloat16")[1])
    assert facts["machine"]["minimal_states"] == 51
    assert facts["model"]["layers"] == [{"block_sizes": [51], "n_heads": 1}]
    assert facts["model"]["dtype"] == "bfloat16"


def test_a_cascade(call):
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


def test_more_letters_than_the_source_knows(call, tmp_path):
    assert call("compile", "regex:(ab)*", "--alphabet", "abc", "-o", "abc.safetensors")[0] == 0
    assert load(tmp_path / "abc.safetensors").transduce("abc") == [False, True, False]
    code, _, err = call("compile", "task:sum_mod(2)", "--alphabet", "012")
    assert code == 2
    assert "no transition for state 0 on '2', state 1 on '2': add them, or choose completion='sink'" in err
    facts = json.loads(call("compile", "task:sum_mod(2)", "--alphabet", "012", "--completion", "ignore", "--json")[1])
    assert (facts["machine"]["letters"], facts["machine"]["minimal_states"]) == (["0", "1", "2"], 2)


def test_what_cannot_be_expressed_exits_with_one(call):
    code, _, err = call("compile", "task:sum_mod(5)", "--normalisation", "released")
    assert code == 1
    assert "at block size 5 a permutation is scaled by 0.7812" in err
    assert call("compile", "task:mod_arith(5)", "--max-block", "8")[0] == 1
    code, _, err = call("compile", "task:sum_mod(7)", "--form", "cascade", "--max-block", "3")
    assert code == 1
    assert "no cascade with blocks of at most 3 states was found" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("task:sum_mod(5)", "-o", "model.pt"), "a model is written to a file ending in .safetensors"),
        (("task:sum_mod(5)", "-o", "no/such/folder/m.safetensors"), "no such folder, make it first: 'no/such/folder'"),
        (("regex:(ab",), "(ab"),
        (("task:sum_modd(5)",), "did you mean sum_mod?"),
        (("machine.xyz",), "'machine.xyz' can't be read, its kind is not known"),
        (("(ab)*",), "(ab)*: no such file; did you mean regex:(ab)*?"),
        (("mod_arith(5)",), "mod_arith(5): no such file; did you mean task:mod_arith(5)?"),
        (("m.safetensors",), "m.safetensors is a model, where an automaton is asked for: `fsa2lrnn extract` reads"),
        (("regex:a", "--alphabet", " "), "--alphabet ' ': give at least one letter"),
        (("regex:ab", "--alphabet", "a"), "letter 'b' at position 2 is not in the alphabet ('a',): add it there"),
        (("task:parity", "--alphabet", "[0, 1]"), "lacks '0' (str), a letter of the machine: add it"),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("compile", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
