"""From a machine to a folder, and what is refused on the way."""

import sys

import pytest

pytest.importorskip("transformers")

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import CheckpointError, MissingPackage, NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import export as module
from fsa2lrnn.extra.huggingface.export import export
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.verdicts import Proved, Scope, Undecided


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("task", ["group(S4, transpositions)", "group(S4)", "group(Z2xZ2)", "shift_register(2)"])
def test_what_is_written_is_proved(exported, task, dtype):
    _, written = exported(task, "olmo-hybrid", dtype)
    assert isinstance(written.verdict, Proved)
    assert written.verdict.arithmetic == dtype


def test_one_letter_is_an_alphabet(tmp_path):
    written = export(MooreMachine([[1, 0]], [False, True]), "olmo-hybrid", tmp_path / "m")
    assert written.verdict.pairs == 3


@pytest.mark.parametrize(
    ("machine", "layer", "dtype", "kind", "message"),
    [
        (zoo.parity(), "olmo-hybrid", "float16", UnsupportedFormat, "dtype float16: weights are written for float32"),
        (zoo.parity(), "gpt", "float32", UnsupportedFormat, "layer 'gpt' is not known"),
        (zoo.length_mod(29), "olmo-hybrid", "float32", NotExpressible, "no stack of the known constructions was found"),
        (zoo.parity(), "qwen3-next", "float32", NotExpressible, "no stack of qwen3-next layers without attention can"),
    ],
)
def test_bad_input(tmp_path, machine, layer, dtype, kind, message):
    with pytest.raises(kind, match=message):
        export(machine, layer, tmp_path / "m", dtype)
    assert not (tmp_path / "m").exists()


def test_nothing_is_written_where_the_proof_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "prove", lambda _: Undecided(3, Scope(2), 10))
    with pytest.raises(NotExact, match="does not run this machine on the code that is installed"):
        export(zoo.parity(), "olmo-hybrid", tmp_path / "to" / "m")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_without_the_package(tmp_path, monkeypatch):
    """It left model.pth."""
    monkeypatch.setitem(sys.modules, "rwkv", None)
    monkeypatch.delitem(sys.modules, "rwkv.model", raising=False)
    with pytest.raises(MissingPackage, match="pip install rwkv"):
        export(zoo.flip_flop(), "rwkv-7", tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_leaves_the_one_before(tmp_path, monkeypatch):
    export(zoo.parity(), "olmo-hybrid", tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text("ours")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(module, "prove", lambda _: Undecided(3, Scope(2), 10))
        with pytest.raises(NotExact):
            export(zoo.flip_flop(), "olmo-hybrid", tmp_path / "m")
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before
    export(zoo.flip_flop(), "mamba-2", tmp_path / "m")
    model = load(tmp_path / "m")
    assert (model.layer, model.machine) == ("mamba-2", zoo.flip_flop())
    assert {path.name for path in (tmp_path / "m").iterdir()} == set(before)


def test_a_folder_with_files_that_a_package_may_read_is_not_written_to(tmp_path):
    (tmp_path / "chat_template.jinja").write_text("x")
    with pytest.raises(CheckpointError, match=r"chat_template.jinja' is not a file that `export` writes"):
        export(zoo.parity(), "olmo-hybrid", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["chat_template.jinja"]
