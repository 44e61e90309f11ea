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
from fsa2lrnn.errors import UnsupportedFormat

COMMANDS = {name: one for name, one in typer.main.get_command(cli.app).commands.items() if not one.hidden}
OPTIONS = {
    name: {o for p in one.params if p.param_type_name == "option" for o in p.opts} for name, one in COMMANDS.items()
}


def test_options_have_one_name_and_every_command_the_common_ones():
    assert {name for name, options in OPTIONS.items() if not {"--json", "--quiet", "--progress"} <= options} == {"demo"}
    for name, options in OPTIONS.items():
        assert ("-o" in options) == ("--output" in options), name
        assert not {"--out", "--seconds", "--budget", "--letters", "--noise", "--against", "--to"} & options, name
    assert set(ALL_SOURCES) | ({"demo", "gates"} & set(COMMANDS)) == set(COMMANDS)  # which take no source
    assert {place[0] for place in PLACES} | {"run", "verify", "falsify", "tasks", "gates", "sweep"} == set(COMMANDS)


def test_quiet_leaves_out_suggestions(call):
    assert "next:" in call("compile", "task:parity")[1]
    assert "next:" not in call("compile", "task:parity", "--quiet")[1]


def test_long_work_is_shown_where_asked(capsys, monkeypatch):
    monkeypatch.setattr(console, "_AFTER", 0.01)
    monkeypatch.setattr(console, "_EVERY", 0.01)
    for quiet, progress, expected in [(False, True, True), (False, False, False), (True, True, False)]:
        with console.displayed("verify", quiet, progress):
            console.note("joint states")
            ended = console.threading.Event()
            ended.wait(0.1)
        assert ("verify: 0 s, joint states\n" in capsys.readouterr().err) == expected


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "pytorch_model.bin"])
def test_pickle_files_are_answered_with_how_to_convert_them(tmp_path, name):
    both = r"is a pickle file.*weights_only=True.*a whole module.*weights_only=False.*fsa2lrnn\.save\(model, 'm\.safe"
    for read in (sources.model_of, sources.learned_model, sources.read_machine):
        with pytest.raises(UnsupportedFormat, match=f"no such file: .*{name}$"):
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compile",), "Missing argument 'SOURCE'. (`fsa2lrnn compile --help` tells what there is)"),
        (("fly",), "No such command 'fly'"),
        (
            ("compile", "task:parity", "--dtype", "int8"),
            "'int8' is not one of 'float64', 'float32', 'bfloat16',",
        ),
        (("compile", "task:parity", "--max-block", "few"), "Invalid value for '--max-block': "),
        (("compile", "task:parity", "--flyy"), "No such option: --flyy"),
        (("compile", "task:parity", "task:parity"), "Got unexpected extra argument"),
    ],
)
def test_a_wrong_call_is_one_line_and_says_where_help_is(call, arguments, message):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert "--help` tells what there is)" in err
    assert err.count("\n") == 1


KNOWS_MORE = "a model knows more letters where it is compiled with --alphabet '012'"
BAD = [
    (("compile", "regex:(ab"), "(ab"),
    (("compile", "task:sum_modd(5)"), "did you mean sum_mod?"),
    (("compile", "machine.xyz"), "'machine.xyz' cannot be read, its kind is not known"),
    (("compile", "(ab)*"), "(ab)*: no such file; did you mean regex:(ab)*?"),
    (("compile", "mod_arith(5)"), "mod_arith(5): no such file; did you mean task:mod_arith(5)?"),
    (("compile", "m.safetensors"), "m.safetensors is a model, where an automaton is asked for: `fsa2lrnn extract`"),
    (("compile", "regex:a", "--alphabet", " "), "--alphabet ' ': give at least one letter"),
    (("compile", "regex:ab", "--alphabet", "a"), "letter 'b' at position 2 is not in the alphabet ('a',): add it"),
    (("compile", "task:parity", "--alphabet", "[0, 1]"), "lacks '0' (str), a letter of the machine: add it"),
    (("convert", "nowhere.dot", "-o", "m.dot"), "no such file: nowhere.dot"),
    (("convert", "task:parity"), "Missing option '--output' / '-o'"),
    (("convert", "task:sum_mod(3)", "-o", "m.fst.txt"), "OpenFst"),
    (("explain", "task:parity", "--family", "lstm"), "family 'lstm' is not known"),
    (("extract", "task:length_mod(50)", "--max-states", "10"), "more than 10 states are reached"),
    (("run", "task:sum_mod(5)", "017"), "letter '7' at position 3 is not in the alphabet ('0', '1', '2', '3', '4')"),
    (("run", "nowhere.safetensors", "a"), "no such file: nowhere.safetensors"),
    (("run", "task:parity", "01\udcff"), "the word is not UTF-8 (byte 0xff at offset 2): type it in that encoding"),
    (("run", "task:parity", "1" * 100_000 + "x"), "letter 'x' at position 100001 is not in the alphabet"),
    (("train", "task:parity", "-o", "runs", "--set", "stop_at"), "--set 'stop_at': write NAME=VALUE, layers=3"),
    (("train", "task:parity", "-o", "runs", "--set", "stop_at=no"), "stop_at = 'no' must be an accuracy above 0, or"),
    (("train", "task:parity", "-o", "runs", "--seeds", "a"), "--seeds 'a': give whole numbers separated by commas"),
    (("train", "task:parity", "-o", "runs", "--layer", "spiral"), "layer 'spiral' is not known: one of block, "),
    (("train", "task:parity", "-o", "runs", "--layer", "nowhere:Layer"), "nowhere"),
    (("verify", "task:parity"), "Missing argument 'SOURCE'"),
    (("verify", "task:parity", "m.safetensors"), "m.safetensors is a model, where"),
    (("falsify", "task:parity", "task:sum_mod(3)"), KNOWS_MORE),
    (("falsify", "task:parity", "task:shift_register(1, output=content)"), "the model puts out (False, True), none of"),
    (("certify", SUM2, "task:sum_mod(2)", "--check", "c.json", "--memory", "2"), "goes without --memory, --max-secon"),
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


@pytest.mark.parametrize(
    ("fault", "code", "line"),
    [
        (MemoryError(), 2, "error: not enough memory: give smaller sizes\n"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 2, "error: not enough memory: give"),
        (
            OSError(28, "No space left on device", "m.safetensors"),
            2,
            "error: No space left on device: 'm.safetensors'\n",
        ),
        (ConnectionError("nothing answers"), 2, "error: nothing answers\n"),
        ("é".encode("latin-1"), 2, "error: 'utf-8' codec can't decode byte 0xe9"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
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
