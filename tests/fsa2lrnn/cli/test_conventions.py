"""One name for one meaning: options of all commands, their earlier names, `--quiet` and `--progress`."""

import warnings

import pytest
import typer.main

from fsa2lrnn import cli
from fsa2lrnn.cli import activity, sources
from fsa2lrnn.cli.conventions import RENAMED, renamed
from fsa2lrnn.errors import UnsupportedFormat

COMMANDS = {name: one for name, one in typer.main.get_command(cli.app).commands.items() if not one.hidden}
OPTIONS = {
    name: {o for p in one.params if p.param_type_name == "option" for o in p.opts} for name, one in COMMANDS.items()
}


def test_every_command_has_the_common_options():
    assert {name for name, options in OPTIONS.items() if not {"--json", "--quiet", "--progress"} <= options} == set()


def test_an_option_has_one_name_and_one_short_name():
    for name, options in OPTIONS.items():
        assert ("-o" in options) == ("--output" in options), name
        assert not {"--out", "--seconds", "--budget", "--letters", "--noise", "--against", "--to"} & options, name


@pytest.mark.parametrize("command", sorted(set(RENAMED) & set(COMMANDS)))
def test_earlier_names_are_accepted_with_a_warning(command):
    for old, new in RENAMED[command].items():
        assert old not in OPTIONS[command]
        assert not new or new in OPTIONS[command]
        with pytest.warns(UserWarning, match=f"{old} is an earlier name of `fsa2lrnn {command}`: (write {new}|give)"):
            assert renamed(command, ["a", old, "3", "--", old]) == ["a", *([new] if new else []), "3", "--", old]
        with pytest.warns(UserWarning, match=old):
            assert renamed(command, [f"{old}=3"]) == [*([new] if new else []), "3"]


def test_an_earlier_name_on_the_command_line(call):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, err = call("verify", "task:parity", "task:parity", "--budget", "100")
    assert (code, out.startswith("proved")) == (0, True)
    assert "warning: --budget is an earlier name of `fsa2lrnn verify`: write --max-states" in err


def test_quiet_leaves_out_suggestions(call):
    assert "next:" in call("compile", "task:parity")[1]
    assert "next:" not in call("compile", "task:parity", "--quiet")[1]


def test_long_work_is_shown_where_asked(capsys, monkeypatch):
    monkeypatch.setattr(activity, "_AFTER", 0.01)
    monkeypatch.setattr(activity, "_EVERY", 0.01)
    for quiet, progress, expected in [(False, True, True), (False, False, False), (True, True, False)]:
        with activity.displayed("verify", quiet, progress):
            activity.note("joint states")
            ended = activity.threading.Event()
            ended.wait(0.1)
        assert ("verify: 0 s, joint states\n" in capsys.readouterr().err) == expected


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "pytorch_model.bin"])
def test_files_of_pickle_are_answered_with_how_to_convert_them(name):
    for read in (sources.model_of, sources.learned_model, sources.read_machine):
        with pytest.raises(UnsupportedFormat, match=r"weights_only=True.*fsa2lrnn\.save\(model, 'm\.safetensors'\)"):
            read(name)


def test_models_and_then_a_source():
    assert sources.models_then_source(["a.safetensors", "b.safetensors", "task:parity"])[1] == "task:parity"
    for arguments in (["a.safetensors"], ["a.safetensors", "b.safetensors"], ["task:parity"]):
        with pytest.raises(UnsupportedFormat, match="give models, and then the SOURCE"):
            sources.models_then_source(arguments)
