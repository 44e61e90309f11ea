"""Folders: exported, read, refused where something was changed."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import CheckpointError, MissingPackage, NotExact
from fsa2lrnn.export import whole_model as module
from fsa2lrnn.export.folder import FILE, load, run
from fsa2lrnn.export.whole_model import export, folder_written_whole, prove
from fsa2lrnn.verdicts import Proved, Scope, Undecided
from tests.fsa2lrnn.export.mutated_folders import try_all, violations, write_all

pytest.importorskip("transformers")


def test_what_is_loaded_is_what_was_written_and_what_the_auto_class_loads(exported):
    folder, written = exported("parity")
    model = load(folder)
    assert model.machine == zoo.parity()
    assert (model.layer, model.dtype) == ("olmo-hybrid", "float32")
    assert sum(parameter.numel() for parameter in model.model.parameters()) == written.n_parameters
    assert "trust_remote_code" not in (folder / "config.json").read_text()
    assert run(load(exported("parity")[0]), torch.zeros(0, dtype=torch.int64))[0].tolist() == []
    from transformers import AutoModelForCausalLM

    folder = exported("parity")[0]
    model, theirs = load(folder).model, AutoModelForCausalLM.from_pretrained(folder)
    assert type(model) is type(theirs)
    assert model.config.to_dict() == theirs.config.to_dict()
    assert not model.training


@pytest.mark.parametrize(("text", "message"), [
    ("{}", "is not a folder that `fsa2lrnn export` wrote"),
    ('{"format": "x", "version": 1}', "'x', version 1, where"),
    (None, "is not a folder"),
])  # fmt: skip
def test_another_folder_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path)


def described_with(**fields):
    def change(folder):
        value = json.loads((folder / FILE).read_text())
        value["machine"] |= fields
        (folder / FILE).write_text(json.dumps(value))

    return change


def lacks(name):
    def change(folder):
        weights = load_file(folder / "model.safetensors")
        # as many numbers as before, so that it is the name that is missed
        save_file(
            {key if key != name else "other": part for key, part in weights.items()},
            folder / "model.safetensors",
            {"format": "pt"},
        )

    return change


def in_json(name, change):
    def act(folder):
        value = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(change(value) or value))

    return act


def configured(**settings):
    return in_json("config.json", lambda value: {**value, **settings})


def with_file(name, content="{}"):
    return lambda folder: (folder / name).write_text(content) and None


def swapped(value):
    value["model"]["vocab"] |= {"0": 1, "1": 0}


ROPE = {"rope_theta": 10000.0, "rope_type": "linear", "factor": 1e-38}


@pytest.mark.parametrize(("change", "message"), [
    (lacks("lm_head.weight"), "the weight lm_head.weight is missing"),  # drawn at random where they are asked for
    (lacks("model.layers.1.self_attn.q_proj.weight"), r"the weight model\.layers\.1\.self_attn\.q_proj\.weight is"),
    (configured(vocab_size=10**12), "vocab_size is 1000000000000, where `export` writes 5"),
    (configured(hidden_size="many"), "hidden_size is 'many', where `export` writes 64"),
    (configured(hidden_size=64.0), r"hidden_size is 64\.0, where `export` writes 64"),
    (configured(architectures=["MambaForCausalLM"]), r"architectures is \['MambaForCausalLM'\], where"),
    (configured(rope_parameters=ROPE), "rope_type is 'linear', .* factor is a field that `export` does not write"),
    (configured(auto_map={"AutoModelForCausalLM": "evil.Evil"}), "auto_map is a field that `export` does not write"),
    (configured(dtype="bfloat16"), "dtype is 'bfloat16', where `export` writes 'float32'"),
    (
        in_json("config.json", lambda value: value.pop("hidden_size") and None),
        r"configuration hidden_size becomes \d+, where `export` leads to 64",
    ),
    (in_json("tokenizer.json", swapped), "0 is 1, where `export` writes 0"),
    (
        in_json("tokenizer.json", lambda value: {**value, "post_processor": None}),
        "post_processor is None, where `export` writes",
    ),
    (
        in_json("tokenizer_config.json", lambda value: {**value, "add_bos_token": True, "bos_token": "0"}),
        "add_bos_token is a field that `export` does not write",
    ),
    (
        in_json("generation_config.json", lambda value: {**value, "suppress_tokens": [2]}),
        "suppress_tokens is a field that `export` does not write",
    ),
    (described_with(outputs=[True, False]), "=reject is 2, where `export` writes 3"),
    (described_with(outputs=[7, 7]), "where `export`"),
    (described_with(alphabet=["1", "0"]), "0 is 0, where `export` writes 1"),
    (in_json(FILE, lambda value: {**value, "layer": "qwen3-next"}), "`export` writes no qwen3-next for that machine"),
    (with_file("chat_template.jinja", "x"), "'chat_template.jinja' is not a file that `export` writes"),
    (with_file("config.5.0.0.json"), "'config.5.0.0.json' is not a file that `export` writes"),
    (lambda folder: (folder / "generation_config.json").unlink(), "generation_config.json cannot be read"),
    (lambda folder: (folder / "model.safetensors").write_bytes(b"no such file"), "no safetensors file"),
])  # fmt: skip
def test_a_folder_that_is_not_as_export_writes_it_is_refused(exported, tmp_path, change, message):
    folder = tmp_path / "changed"
    shutil.copytree(exported("parity")[0], folder)
    change(folder)
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_notes_for_people_may_differ(exported, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(exported("parity")[0], folder)
    configured(transformers_version="5.0.0")(folder)
    in_json(FILE, lambda value: {**value, "how": "", "written_with": {}})(folder)
    in_json("config.json", lambda value: value.pop("attention_dropout") and None)(folder)  # 0 where it is missing
    with_file("README.md", "# Parity")(folder)
    assert isinstance(prove(load(folder)), Proved)


def test_weights_that_answer_alike_letter_by_letter_are_not_proved(exported, tmp_path):
    """With A_log = 80 a reset is still α = exp(−2.8e37) = 0, but in one call 13 add up to −∞, and −∞ + ∞ is NaN."""
    folder = tmp_path / "changed"
    resets = MooreMachine([[1, 0], [0, 0], [0, 1]], [False, True], alphabet="frk")
    shutil.copytree(exported(resets)[0], folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.0.linear_attn.A_log"].fill_(80)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    model = load(folder)
    assert model.changed == ("model.layers.0.linear_attn.A_log",)
    word = torch.tensor([1] * 20)
    assert (set(run(model, word, chunk=1)[0].tolist()), set(run(model, word)[0].tolist())) == ({3}, {0})
    with pytest.raises(CheckpointError, match=r"weights differ from those .* \(model.layers.0.linear_attn.A_log\)"):
        prove(model)


def test_a_model_on_which_their_code_fails_is_said_to_be(exported):
    model = load(exported("flip_flop", "mamba-2")[0])
    model.model.backbone.layers[0].mixer.chunk_size = 0
    with pytest.raises(CheckpointError, match="the code of Mamba2ForCausalLM fails on this model"):
        run(model, torch.zeros(1, dtype=torch.int64))


@pytest.mark.parametrize(
    "machine",
    [
        MooreMachine([[(i + 1) % 1_500 for i in range(1_500)]] * 2, [i == 0 for i in range(1_500)], alphabet="01"),
        MooreMachine(
            [[i and i - 1 for i in range(16)], [min(i + 1, 15) for i in range(16)]], range(2, 18), alphabet="01"
        ),
        MooreMachine([[(i + 1) % 14 for i in range(14)]] * 2, [i % 2 == 1 for i in range(14)], alphabet="01"),
    ],
    ids=["large", "slow to plan", "not minimal"],
)
def test_a_recorded_machine_that_would_take_long_to_write_again_is_refused(exported, tmp_path, machine):
    """Planning these takes 5 to 30 s, and the machine to compare with has two states."""
    folder = tmp_path / "model"
    shutil.copytree(exported("parity")[0], folder)
    described_with(**{name: part for name, part in json.loads(machine.to_json()).items() if name != "format"})(folder)
    begun = time.process_time()
    with pytest.raises(CheckpointError, match=rf"of {machine.n_states:,} states, .* are read up to 12 states"):
        load(folder, zoo.parity())
    assert time.process_time() - begun < 2


@pytest.mark.long
def test_larger_machines_and_single_letters(exported, tmp_path):
    machine = MooreMachine([range(13), *([q] * 13 for q in range(13))], range(13))
    folder = exported(machine)[0]
    assert load(folder, machine).machine.n_states == 13
    other = MooreMachine(machine.delta, ["no", *["yes"] * 12])
    with pytest.raises(CheckpointError, match="of 13 states"):
        load(folder, other)
    written = export(MooreMachine([[1, 0]], [False, True]), "olmo-hybrid", tmp_path / "m")
    assert written.verdict.pairs == 3


def test_nothing_is_written_where_the_proof_fails_or_the_package_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "prove", lambda _: Undecided(3, Scope(2), 10))
    with pytest.raises(NotExact, match="does not run this machine on the code that is installed"):
        export(zoo.parity(), "olmo-hybrid", tmp_path / "to" / "m")
    assert list(tmp_path.iterdir()) == []
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


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("mutated"))


@pytest.mark.long
def test_a_few_mutated_folders(folders):
    assert violations(try_all(12, 0, folders)) == []


@pytest.mark.slow
def test_mutated_folders(folders):
    """MUTATED_FOLDERS says how many, 100 if it is not set."""
    assert violations(try_all(int(os.environ.get("MUTATED_FOLDERS", "100")), 1, folders)) == []


KILLED_FOLDER = """
import os, signal, sys
from pathlib import Path
from fsa2lrnn.export.whole_model import folder_written_whole
with folder_written_whole(Path(sys.argv[1]), "mark") as place:
    (place / "part").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def fail_in(path):
    with folder_written_whole(path, "mark") as place:
        (place / "mark").write_bytes(b"half")
        raise RuntimeError


def test_a_folder_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "to" / "f"
    path.parent.mkdir()
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED_FOLDER, path], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(list(path.parent.glob(".f.*"))) == 1  # the second removed what the first left
    with pytest.raises(RuntimeError):
        fail_in(path)
    assert list(path.parent.iterdir()) == []
    with folder_written_whole(path, "mark") as place:
        (place / "mark").write_bytes(b"one")
        assert not path.exists()
    assert [(file.name, file.read_bytes()) for file in path.iterdir()] == [("mark", b"one")]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask
    assert [entry.name for entry in path.parent.iterdir()] == ["f"]


def test_a_folder_that_exists_keeps_its_other_files_and_gets_its_mark_last(tmp_path, monkeypatch):
    for name in ("mark", "part", "ours"):
        (tmp_path / name).write_bytes(b"old")
    with pytest.raises(RuntimeError):
        fail_in(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == dict.fromkeys(
        ("mark", "part", "ours"), b"old"
    )

    def write():
        with folder_written_whole(tmp_path, "mark") as place:
            for name in ("mark", "part"):
                (place / name).write_bytes(b"new")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: exec("raise OSError(28, 'No space left on device')"))
        with pytest.raises(OSError, match="No space left"):
            write()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"part": b"old", "ours": b"old"}
    write()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        "mark": b"new", "part": b"new", "ours": b"old"
    }  # fmt: skip
