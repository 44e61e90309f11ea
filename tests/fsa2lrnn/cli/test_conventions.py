"""Conventions of all verbs: exit codes, messages, files."""

import json
import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest
import typer.main

from fsa2lrnn import __version__, cli
from fsa2lrnn.cli import console, sources
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import MissingFile, UnsupportedFormat

COMMANDS = {name: one for name, one in typer.main.get_command(cli.app).commands.items() if not one.hidden}


def test_quiet_leaves_out_suggestions(call):
    assert "next:" in call("compile", "task:parity")[1]
    assert "next:" not in call("compile", "task:parity", "--quiet")[1]


def test_long_work_says_its_stage_and_count_unless_it_is_quiet(capsys, monkeypatch):
    monkeypatch.setattr(console, "_ASKED_FOR", (0.01, 60.0))
    monkeypatch.setattr(console, "_IN_LOG", (0.01, 0.01))
    for quiet, progress, lines in [(False, True, {1}), (False, False, set(range(2, 20))), (True, True, {0})]:
        with console.displayed("verify", quiet, progress):
            console.note("m.safetensors")
            for _ in range(3):
                Deadline.of(None).check("exploring joint states")
            console.threading.Event().wait(0.1)
        line = "verify: 0 s, m.safetensors, exploring joint states (3)\n"
        assert capsys.readouterr().err.count(line) in lines


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "pytorch_model.bin"])
def test_pickle_files_are_answered_with_how_to_convert_them(tmp_path, name):
    both = r"is a pickle file.*weights_only=True.*a whole module.*weights_only=False.*fsa2lrnn\.save\(model, 'm\.safe"
    for read in (sources.model_of, sources.learned_model, sources.read_machine):
        with pytest.raises(MissingFile, match=f"no such file: .*{name}$"):
            read(str(tmp_path / name))
    (tmp_path / name).write_bytes(b"")
    for read in (sources.model_of, sources.learned_model, sources.read_machine):
        with pytest.raises(UnsupportedFormat, match=both):
            read(str(tmp_path / name))


def test_every_command_and_option_has_a_help_text():
    for name, command in COMMANDS.items():
        assert (command.help or "").strip().endswith("."), name
        assert all(parameter.help for parameter in command.params), name


SUM2 = str(Path(__file__).parents[3] / "experiments" / "models" / "sum2" / "seed-0.safetensors")
# A call of each verb up to what is wrong with it.
ALL_SOURCES = {
    "compile": (), "run": (), "explain": (), "verify": (), "extract": (), "falsify": (),
    "convert": ("-o", "m.dot"), "train": ("-o", "out"), "learn": ("-o", "out"), "certify": (SUM2,), "repair": (SUM2,),
    "compare": (SUM2,), "sweep": ("-o", "out"),
    "draw": ("-o", "p.html"), "tasks": (), "export": ("--layer", "olmo-hybrid", "-o", "out"),
}  # fmt: skip
ALL_SOURCES = {name: call for name, call in ALL_SOURCES.items() if name in COMMANDS}
MORE = {"run": ("a",), "verify": ("task:parity",), "falsify": ("task:parity",)}
# With outputs that can't be, and a source that would take long; where nothing is asked of torch, it is not there.
PLACES = [
    ("compile", "task:mod_arith(100)", "-o", "no/m.safetensors"),
    ("compile", "task:mod_arith(100)", "-o", "m.pt"),
    ("explain", "task:mod_arith(100)", "--certificates", "file/below"),
    ("draw", "task:mod_arith(100)", "-o", "no/p.html"),
    ("draw", "task:mod_arith(100)", "-o", "m.xyz"),
    ("extract", "task:mod_arith(100)", "-o", "no/m.dot"),
    ("extract", "task:mod_arith(100)", "-o", "m.xyz"),
    ("convert", "task:mod_arith(100)", "-o", "no/m.json"),
    ("export", "task:mod_arith(100)", "--layer", "olmo-hybrid", "-o", "file"),
    ("train", "task:mod_arith(100)", "-o", "file"),
    ("learn", "task:mod_arith(100)", "-o", "file"),
    ("compare", SUM2, "task:mod_arith(100)", "--plot", "no/c.svg"),
    ("certify", SUM2, "task:mod_arith(100)", "-o", "no/c.json", "--import", "nowhere:Layer"),
    ("repair", SUM2, "task:mod_arith(100)", "-o", "file/m.safetensors"),
    ("demo", "--output", "file"),
]
PLACES = [place for place in PLACES if place[0] in COMMANDS]
WITHOUT_TORCH = """
import json, sys
from fsa2lrnn import cli
sys.modules["torch"] = None
for arguments in json.loads(sys.argv[1]):
    try:
        cli.main(arguments)
    except SystemExit as stop:
        print(stop.code)
"""


@pytest.mark.long
def test_a_no_is_an_object_too_where_json_is_asked_for(call):
    """It was a line on standard error alone."""
    code, out, err = call("compile", "task:sum_mod(7)", "--form", "cascade", "--max-block", "3", "--json")
    found = json.loads(out)
    assert (code, found["answer"]) == (1, "no")
    assert err.replace("\n", " ").strip() == f"no: {found['evidence']}".strip()


def test_the_version_and_the_help(call):
    assert call("--version") == (0, f"fsa2lrnn {__version__}\n", "")
    code, out, _ = call()
    assert code == 2
    assert all(f" {name} " in out for name in COMMANDS)
    code, out, _ = call("-h")
    assert code == 0
    assert "Usage: fsa2lrnn" in out
    code, out, _ = call("certify", "--help")
    assert code == 0
    assert "Prove a learned model correct" in out


@pytest.mark.parametrize(("arguments", "message"), [
    (("compile",), "Missing argument 'SOURCE'. (`fsa2lrnn compile --help` tells what there is)"),
    (("compile", "task:parity", "--dtype", "int8"), "'int8' is not one of 'float64', 'float32', 'bfloat16',"),
    (("compile", "task:parity", "--max-block", "few"), "Invalid value for '--max-block': "),
    (("compile", "task:parity", "task:parity"), "Got unexpected extra argument"),
])  # fmt: skip
def test_a_wrong_call_is_one_line_and_says_where_help_is(call, arguments, message):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert "--help` tells what there is)" in err
    assert err.count("\n") == 1


KNOWS_MORE = "a model knows more letters where it is compiled with --alphabet '012'"
BAD = [
    (("compile", "machine.xyz"), "'machine.xyz' cannot be read, its kind is not known"),
    (("compile", "m.safetensors"), "m.safetensors is a model, where an automaton is asked for: `fsa2lrnn extract`"),
    (("train", "m.safetensors", "-o", "runs"), "m.safetensors is a model, where an automaton is asked for"),
    (("compile", "words.csv"), "words.csv holds words, where an automaton is asked for: `fsa2lrnn learn` learns one"),
    (("learn", ".", "-o", "runs"), ". is a folder: give a file of words (.jsonl .csv"),
    (("learn", "task:parity", "-o", "runs", "--layer", "x"), "No such option: --layer (settings are written --set"),
    (("verify", "task:parity", "m.safetensors"), "m.safetensors is a model, and stands first: give MODEL, then SOURCE"),
    (("run", "0 1", "m.safetensors"), "m.safetensors is a model, and stands first: give MODEL, then WORD"),
    (("compile", "regex:a", "--alphabet", " "), "--alphabet ' ': give at least one letter"),
    (("convert", "task:parity"), "Missing option '--output' / '-o'"),
    (("convert", "task:sum_mod(3)", "-o", "m.fst.txt"), "OpenFst"),
    (("run", "task:parity", "1" * 300 + "x"), "letter 'x' at position 301 is not in the alphabet"),
    (("run", "task:parity", "01\udcff"), "the word is not UTF-8 (byte 0xff at offset 2): type it in that encoding"),
    (("train", "task:parity", "-o", "runs", "--set", "stop_at"), "--set 'stop_at': write NAME=VALUE, layers=3"),
    (("train", "task:parity", "-o", "runs", "--set", "stop_at=no"), "stop_at = 'no' must be an accuracy above 0, or"),
    (("train", "task:parity", "-o", "runs", "--seeds", "a"), "--seeds 'a': give whole numbers separated by commas"),
    (("train", "task:parity", "-o", "runs", "--layer", "nowhere:Layer"), "nowhere"),
    (("verify", "task:parity"), "Missing argument 'SOURCE'"),
    (("falsify", "task:parity", "task:sum_mod(3)"), KNOWS_MORE),
    (("certify", SUM2, "task:sum_mod(2)", "--check", "c.json", "--memory", "2"), "goes without --memory and -o"),
    (("certify", SUM2, "task:sum_mod(2)", "--check", "c.json"), "No such file or directory: 'c.json'"),
    (("certify", SUM2, "task:sum_mod(3)"), KNOWS_MORE),
    (("certify", "task:parity", "task:parity"), "task:parity is not a model: give a file ending in .safetensors"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_leaves_nothing(call, tmp_path, arguments, message):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


LONG = ("x" * 100_000, "regex:" + "(" * 100_000, "task:" + "y" * 100_000, "(a|" * 30_000)
ESCAPES = ("\x1b[31m\u202e.dot", "regex:\x1b[31m\u202e(", "task:\x1b[31m\u202e", "\x1b[31m\u202e\udcff")


def dealt(texts):
    """Each verb with one of the texts in turn, as all of them read sources by the same function; the first with all."""
    verbs = list(ALL_SOURCES)
    return [(verbs[0], text) for text in texts] + list(zip(verbs[1:], cycle(texts), strict=False))


@pytest.mark.parametrize(("verb", "text"), dealt(LONG))
def test_what_is_echoed_is_shortened(call, verb, text):
    code, out, err = call(verb, *ALL_SOURCES[verb], text, *MORE.get(verb, ()))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err) < 2_000
    assert "Traceback" not in err


@pytest.mark.parametrize("option", ["--dtype", "--max-block", "--alphabet", "--" + "z" * 100_000, "-o"])
def test_so_are_values_of_options(call, option):
    code, _, err = call("compile", "regex:a", option, "x" * 100_000)
    assert code == 2
    assert len(err) < 2_000


@pytest.mark.parametrize(("verb", "text"), dealt(ESCAPES))
def test_what_a_terminal_would_obey_is_escaped(call, verb, text):
    code, out, err = call(verb, *ALL_SOURCES[verb], text, *MORE.get(verb, ()))
    assert (code, out) == (2, "")
    assert all(c.isprintable() or c == "\n" for c in err)
    assert "x1b[31m" in err


@pytest.mark.long
def test_places_are_tried_before_torch_is_loaded(tmp_path):
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-c", WITHOUT_TORCH, json.dumps(PLACES)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2"] * len(PLACES)
    lines = done.stderr.splitlines()
    for arguments, line in zip(PLACES, lines, strict=True):
        wanted = ("make it first", "give a folder", "ending in", "its kind is not known")
        assert any(piece in line for piece in wanted), (arguments, line)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(("fault", "code", "line"), [
    (MemoryError(), 2, "error: not enough memory: give smaller sizes\n"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 2, "error: not enough memory: give"),
    (OSError(28, "No space left on device", "m.safetensors"), 2, "error: No space left on device: 'm.safetensors'\n"),
    (ConnectionError("nothing answers"), 2, "error: nothing answers\n"),
    ("é".encode("latin-1"), 2, "error: 'utf-8' codec can't decode byte 0xe9"),
    (KeyboardInterrupt(), 130, ""),
])  # fmt: skip
def test_what_can_happen_to_any_verb_is_one_line(call, monkeypatch, fault, code, line):
    def fail(*_):
        if isinstance(fault, bytes):
            fault.decode()
        raise fault

    monkeypatch.setattr(cli.sources, "read_machine", fail)
    found, out, err = call("compile", "task:parity")
    assert (found, out) == (code, "")
    assert err.startswith(line)


@pytest.mark.parametrize("fault", [KeyError("a key"), RuntimeError("shapes do not fit")])
def test_a_fault_of_ours_is_not_hidden(call, monkeypatch, fault):
    def fail(*_):
        raise fault

    monkeypatch.setattr(cli.sources, "read_machine", fail)
    with pytest.raises(type(fault)):
        call("compile", "task:parity")


@pytest.mark.long
def test_a_pipe_that_is_closed_early_ends_in_silence():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        command = [sys.executable, "-m", "fsa2lrnn", "tasks"]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
