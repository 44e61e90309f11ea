"""`convert`: every format into every format that is written, and what each keeps."""

import json

import pytest

from fsa2lrnn.automata import MooreMachine, equivalent
from fsa2lrnn.cli.verbs import convert

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


def test_what_a_format_does_not_keep_is_said(call):
    code, out, _ = call("convert", "task:mod_arith(3)", "-o", "m.jff")
    assert code == 0
    assert "reads back  with outputs as text: .json keeps them" in out
    assert "reads back  as the same automaton" in call("convert", "task:mod_arith(3)", "-o", "m.dot")[1]


def test_a_machine_is_minimised_and_widened_if_that_is_asked_for(call):
    sizes = []
    for options in ((), ("--minimise",), ("--minimise", "--alphabet", "01234+-*x", "--completion", "sink")):
        facts = json.loads(call("convert", "task:mod_arith(5)", *options, "-o", "m.json", "--json")[1])
        sizes.append((facts["machine"]["states"], len(facts["machine"]["letters"])))
    assert sizes[1] == (51, 8)
    assert sizes[0][0] >= 51
    assert sizes[2][1] == 9


def test_a_writer_that_writes_another_machine_is_found_out(call, monkeypatch):
    read = convert.sources.read_machine

    def flipped(source, *rest):
        machine = read(source, *rest)
        if source != "m.dot":
            return machine
        return MooreMachine(machine.delta[::-1], machine.outputs, machine.start, machine.alphabet)

    monkeypatch.setattr(convert.sources, "read_machine", flipped)
    code, _, err = call("convert", "regex:(ab)*", "-o", "m.dot")
    assert code == 2
    assert "what was written is read back as another automaton" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("task:parity", "-o", "m.png"), "'m.png' can't be written, its kind is not known: understood are .dot, .gv,"),
        (("task:parity", "-o", "no/m.dot"), "no/m.dot can't be written (no such folder, make it first)"),
        (("nowhere.dot", "-o", "m.dot"), "no such file: nowhere.dot"),
        (("task:parity",), "Missing option '--output' / '-o'"),
        (("task:sum_mod(3)", "-o", "m.fst.txt"), "OpenFst"),
    ],
)
def test_bad_input_is_one_line(call, tmp_path, arguments, message):
    code, out, err = call("convert", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())
