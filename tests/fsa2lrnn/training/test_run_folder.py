"""Settings and folders of runs."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import files
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, load, save, tensor_file
from fsa2lrnn.lrnn.tensor_file import write_tensors
from fsa2lrnn.training import run_folder
from fsa2lrnn.training import train as training
from fsa2lrnn.training.run_folder import (
    CHECKPOINT,
    FORM,
    METRICS,
    MODEL,
    Evaluation,
    IntervalStatistics,
    RunState,
    prepare,
    read_records,
    write_records,
    write_state,
)
from fsa2lrnn.training.settings import PRESETS, Settings, preset
from fsa2lrnn.training.train import Stop, train

from .runs import TINY, equal, weights, without_speed


@given(
    st.builds(
        Settings,
        task=st.text(),
        sampler=st.sampled_from(["uniform", "live", "task"]),
        learning_rate=st.floats(1e-9, 1),
        gradient_clip=st.none() | st.floats(0.1, 10),
        stop_at=st.none() | st.floats(0.1, 1),
        layers=st.integers(1, 5),
        layer_norm=st.booleans(),
        seed=st.integers(0, 2**32 - 1),
    )
)
def test_json_round_trip(settings):
    assert Settings.from_json(settings.to_json()) == settings


def test_the_settings_of_the_paper():
    total, pair, arithmetic = (preset("paper", f"task:{name}(5)") for name in ("sum_mod", "even_pair", "mod_arith"))
    assert [s.layers for s in (total, pair, arithmetic)] == [1, 1, 3]
    assert [s.learning_rate for s in (total, pair, arithmetic)] == [1e-4, 2e-4, 2e-4]
    assert [s.weight_decay for s in (total, pair, arithmetic)] == [0, 0, 1e-4]
    for s in (total, pair, arithmetic):
        assert (s.block, s.heads, s.p, s.normalisation, s.connection, s.layer_norm) == (
            8, 8, 1.2, "paper", "residual", True,
        )  # fmt: skip
        assert (s.batch, s.length, s.test_length, s.steps, s.evaluate_every) == (128, 40, 500, 40_000, 1_000)
        assert (s.optimiser, s.schedule, s.gradient_clip, s.stop_at) == ("adam", "constant", None, 1.0)
    settings = preset("paper", "task:sum_mod(5)")
    model = LRNN(settings.network(tuple("01234"), tuple(range(5))))
    sizes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert sizes["embedding.weight"] == (5, 64)
    assert sizes["layers.0.transition.0.weight"] == (512, 64)
    assert sizes["layers.0.transition.2.weight"] == (512, 512)
    assert sizes["layers.0.value.0.weight"] == sizes["layers.0.value.2.weight"] == sizes["readout.0.weight"] == (64, 64)
    assert sizes["readout.2.weight"] == (5, 64)
    assert [name for name in sizes if name.startswith("norms")] == [
        f"norms.{i}.{part}" for i in (0, 1) for part in ("weight", "bias")
    ]


def test_schedules_presets_and_kinds_of_layers():
    settings = Settings("task:parity", schedule="cosine", steps=100, learning_rate=1.0)
    assert [round(settings.rate(step), 3) for step in (0, 50, 100)] == [1, 0.5, 0]
    assert Settings("task:parity", learning_rate=0.5).rate(99) == 0.5
    settings = Settings("task:parity", batch=3, seed=1)
    assert settings.with_seed(2) == Settings("task:parity", batch=3, seed=2)
    assert preset("released", "task:mod_arith(5)") == preset("paper", "task:mod_arith(5)")  # the earlier name
    earlier = preset("quick", "task:parity", layer="hard_lanes", normalisation="released")
    assert (earlier.layer, earlier.normalisation) == ("hard_channels", "paper")
    assert all(preset(name, "regex:(ab)*").task == "regex:(ab)*" for name in PRESETS)
    assert preset("quick", "task:parity", steps=3).steps == 3
    with pytest.raises(UnsupportedFormat, match="preset 'slow' is not known: choose one of paper, quick"):
        preset("slow", "task:parity")
    with pytest.raises(UnsupportedFormat, match="colour, size: no such setting; there are task, sampler, "):
        preset("quick", "task:parity", size=1, colour=2)
    settings = preset("quick", "task:parity", layer="householder", factors=2, normalisation="none", block=4, heads=2)
    assert settings.options == {"factors": 2}
    (layer,) = settings.network((0, 1), (0, 1)).layers
    assert (layer.n_factors, layer.size, layer.n_heads, layer.unit_keys) == (2, 4, 2, True)
    assert hash(settings) == hash(Settings.from_json(settings.to_json()))
    for changes, message in [
        ({"layer": "s5000"}, "layer 's5000' is not known: one of block, "),
        ({"factors": 2}, "factors: no such setting, nor an option of the layer 'block'; it is one of householder"),
        ({"layer": "householder", "order": 2}, "order: no such setting"),
        ({"options": {"order": 2}}, "order: no such option of BlockLayerConfig, it takes gate, temperature"),
    ]:
        with pytest.raises(UnsupportedFormat, match=message):
            preset("quick", "task:parity", **changes)


def test_all_faults_are_named_at_once():
    with pytest.raises(UnsupportedFormat) as caught:
        Settings("task:parity", sampler="x", optimiser="sgd", block=0, batch=1.5, seed=-1, stop_at=2, device="tpu")
    for piece in (
        "sampler = 'x' must be one of uniform, live, balanced, task",
        "optimiser = 'sgd' must be one of adam, adamw",
        "block = 0 must be a whole number from 1",
        "batch = 1.5 must be a whole number",
        "seed = -1 must be",
        "stop_at = 2 must be",
        "device = 'tpu' must be one of cpu, cuda",
    ):
        assert piece in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate = 0.0 must be a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate = nan must be a number above 0"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0 must be a number of at least 0"),
        ({"learning_rate": 10**400}, "learning_rate = 1000.* must be a number above 0"),
        ({"gradient_clip": float("inf")}, "gradient_clip = inf must be a number above 0, or None for no limit"),
        ({"p": 0.5}, "p = 0.5 must be a number of at least 1"),
        ({"task": 3}, "task = 3 must be text"),
        ({"layer_norm": 1}, "layer_norm = 1 must be true or false"),
        ({"steps": 10**10}, "steps = 10000000000 must be a whole number from 1 to 1,000,000,000"),
        ({"embedding_dim": 4 * 10**8}, "embedding_dim = 400000000 must be a whole number from 1 to 65,536"),
        ({"heads": 300, "block": 300}, "make a state of 90,000 numbers: at most 65,536 make a layer"),
        ({"options": {"when": object()}}, "no such option of BlockLayerConfig"),
    ],
)
def test_numbers_out_of_range(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        Settings(**{"task": "task:parity", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precision": "half"}, "precision = 'half' must be one of full, mixed"),
        (
            {"precision": "mixed"},
            "precision = 'mixed' with device = 'cpu' and .*: it is for float32 on a GPU, take 'full'",
        ),
        ({"precision": "mixed", "device": "cuda", "dtype": "float64"}, "device = 'cuda' and dtype = 'float64'"),
        ({"compile": 1}, "compile = 1 must be true or false"),
    ],
)
def test_speed_that_is_not_to_be_had(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        Settings("task:parity", **changes)
    assert Settings("task:parity", precision="mixed", device="cuda:1", compile=True).compile


@pytest.mark.parametrize(
    "text",
    ["{", "[1]", '{"task": "task:parity", "colour": 1}', "{}", "[" * 100_000, b"\xff", '{"task": "a", "task": "b"}'],
)
def test_text_that_is_no_settings(text):
    with pytest.raises(UnsupportedFormat, match=r"settings cannot be read .*give a JSON object of task, sampler"):
        Settings.from_json(text)
    with pytest.raises(UnsupportedFormat, match="batch = 0 must be"):
        Settings.from_json(json.dumps({"task": "task:parity", "batch": 0}))


def test_settings_of_version_0_1_are_read():
    kept = json.loads(preset("quick", "task:parity").to_json())
    del kept["layer"], kept["options"]
    assert Settings.from_json(json.dumps({**kept, "factors": 0})) == preset("quick", "task:parity")
    old = Settings.from_json(json.dumps({**kept, "factors": 3}))
    assert (old.layer, old.options) == ("householder", {"factors": 3})


def test_a_file_does_not_import_a_module(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    text = json.dumps({"task": "task:parity", "layer": "trap:Layer"})
    with pytest.raises(UnsupportedFormat, match=r"layer kind 'trap:Layer' is not known: .* is made known first, by"):
        Settings.from_json(text)


SETTINGS = Settings("task:parity", embedding_dim=2, block=1, heads=2, normalisation="clip", connection="chain")
LOOK = Evaluation(1, 0.5, 0.25, 0.125, 40, 8, 1.5, float("inf"), 1e-4, 100.0)
TENSORS = {"model.x": torch.arange(3.0), "optimiser.0.step": torch.tensor(1.0), "training": torch.zeros(5).byte()}
WANTED = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in TENSORS.items()}
WANTED |= {"optimiser.1.step": ((), torch.float32)}  # of a weight that nothing has moved yet


def prepared(folder, settings=SETTINGS, resume=True):
    return prepare(folder, settings, resume, WANTED)


@pytest.fixture
def folder(tmp_path):
    """A run with a checkpoint after its first of two records."""
    folder = tmp_path / "a" / "run"
    assert prepared(folder) is None
    model = LRNN(SETTINGS.network(("0", "1"), (False, True)))
    write_state(folder / CHECKPOINT, FORM, RunState(7, (LOOK,), IntervalStatistics(0.1, 0.2, 3)), TENSORS)
    save(model, folder / MODEL)
    write_records(folder, [asdict(LOOK), asdict(replace(LOOK, step=2))])
    return folder


def test_metrics_go_back_to_the_checkpoint(folder):
    assert [record["step"] for record in read_records(folder)] == [1, 2]
    checkpoint = prepared(folder)
    assert checkpoint is not None
    state, tensors = checkpoint
    assert state == RunState(7, (LOOK,), IntervalStatistics(0.1, 0.2, 3))
    assert all(torch.equal(tensors[name], tensor) for name, tensor in TENSORS.items())
    assert read_records(folder) == [asdict(LOOK)]
    assert load(folder / run_folder.MODEL).alphabet == ("0", "1")


def test_a_fresh_start_forgets_the_run(folder):
    assert prepared(folder, replace(SETTINGS, seed=3), resume=False) is None
    assert read_records(folder) == []
    assert sorted(path.name for path in folder.iterdir()) == ["metrics.jsonl", "settings.json"]


def test_a_folder_keeps_to_its_settings(folder):
    with pytest.raises(
        UnsupportedFormat, match=r"holds another run \(batch = 128 there and 64 here, seed = 0 there and 1"
    ):
        prepared(folder, replace(SETTINGS, seed=1, batch=64))
    assert prepared(folder, replace(SETTINGS, steps=7, stop_at=None)) is not None
    falling = replace(SETTINGS, schedule="cosine")
    prepared(folder, falling, resume=False)
    with pytest.raises(UnsupportedFormat, match="steps = 40000 there and 7 here"):
        prepared(folder, replace(falling, steps=7))


def test_damaged_checkpoints_records_and_settings_are_named(folder):
    path = folder / run_folder.CHECKPOINT
    for content in (b"", b"rubbish", path.read_bytes()[:-2]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"checkpoint.bin cannot be resumed \(.*is damaged or .*afresh"):
            prepared(folder)
    with (folder / run_folder.METRICS).open("a") as file:
        file.write('{"step": 3}\n')
    with pytest.raises(UnsupportedFormat, match=r"metrics.jsonl, line 3.loss is missing"):
        read_records(folder)
    (folder / run_folder.SETTINGS).write_bytes(b"[" * 100_000)
    with pytest.raises(UnsupportedFormat, match=r"settings cannot be read .the text: nested deeper than 100"):
        prepared(folder)


def test_a_checkpoint_of_another_version_is_named(folder, monkeypatch):
    monkeypatch.setattr(run_folder, "FORM", FORM._replace(version=3))
    with pytest.raises(CheckpointError, match=r"is of format version '2', and this fsa2lrnn reads up to 3.*afresh"):
        prepared(folder)


STANDING = asdict(RunState(7, (LOOK,), IntervalStatistics()))


@pytest.mark.parametrize(
    ("standing", "reason"),
    [
        ("{", "standing: line 1, column 2"),
        ("null", "standing = None must be an object"),
        (json.dumps(STANDING | {"step": 7.0}), "standing.step = 7.0 must be a whole number"),
        (json.dumps(STANDING | {"records": [{}]}), r"standing.records\[0\].step is missing"),
        (
            json.dumps(STANDING | {"since_test": {"loss": "0"}}),
            "standing.since_test.loss = '0' must be a finite n",
        ),
        (
            json.dumps(STANDING | {"since_test": {"steps": 1e999}}),
            "standing.since_test.steps = inf must be a whole",
        ),
        (json.dumps(STANDING | {"more": 1}), "standing.more is not known"),
    ],
)
def test_a_standing_of_other_types_is_named(folder, standing, reason):
    write_tensors(folder / run_folder.CHECKPOINT, FORM, TENSORS, {"standing": standing})
    with pytest.raises(CheckpointError, match=f"cannot be resumed .*{reason}.*start afresh"):
        prepared(folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model.x": torch.zeros(4)}, r"model.x has shape \(4,\) in place of \(3,\)"),
        ({"model.x": torch.zeros(3).double()}, "model.x is of torch.float64 in place of torch.float32"),
        ({"model.y": torch.zeros(3)}, "model.y is unknown"),
        ({"training": torch.zeros(6).byte()}, "training has shape"),
    ],
)
def test_tensors_of_another_network_are_named(folder, changes, reason):
    standing = {"standing": json.dumps(STANDING)}
    write_tensors(folder / run_folder.CHECKPOINT, FORM, TENSORS | changes, standing)
    with pytest.raises(CheckpointError, match=reason):
        prepared(folder)


KILLED = """
import os, signal, sys
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import train

def report(progress):
    if progress.step == 10:
        os.kill(os.getpid(), signal.SIGKILL)

train(Settings.from_json(sys.argv[1]), sys.argv[2], report=report)
"""


def test_a_killed_run_goes_on_to_the_last_bit(straight, tmp_path, read_records):
    killed = subprocess.run([sys.executable, "-c", KILLED, TINY.to_json(), tmp_path], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(read_records(tmp_path)) == 2
    (tmp_path / ".checkpoint.bin.12345678.fsa2lrnn-part").touch()  # left where it was killed while writing
    steps = []
    train(TINY, tmp_path, report=lambda progress: steps.append(progress.step) if progress.record else None)
    assert steps == [15, 20]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"settings.json", CHECKPOINT, MODEL, METRICS, files.LOCK}
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


def test_another_run_into_the_same_folder_is_refused(tmp_path):
    with files.alone(tmp_path, "run"), pytest.raises(UnsupportedFormat, match="another run is at work in"):
        train(TINY, tmp_path)


@pytest.mark.parametrize("name", [CHECKPOINT, MODEL, METRICS])
@pytest.mark.parametrize("step", [10, 20])
def test_a_full_disk_is_named_and_costs_no_step_that_was_saved(
    straight, tmp_path, monkeypatch, name, step, read_records
):
    def full(path, content, write=files.write_atomically):
        metrics = tmp_path / METRICS
        if path.name == name and metrics.exists() and len(metrics.read_text().splitlines()) == step // 5 - 1:
            raise OSError(28, "No space left on device", str(path))
        write(path, content)

    for module in (run_folder, tensor_file):
        monkeypatch.setattr(module, "write_atomically", full)
    with pytest.raises(OSError, match=f"No space left on device: .*{name}"):
        train(TINY, tmp_path)
    monkeypatch.undo()
    train(TINY, tmp_path)
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


def test_a_run_killed_between_its_two_files_goes_on_too(straight, tmp_path, read_records):
    train(replace(TINY, steps=10), tmp_path)
    model = (tmp_path / MODEL).read_bytes()
    train(replace(TINY, steps=15), tmp_path)
    (tmp_path / MODEL).write_bytes(model)
    with (tmp_path / METRICS).open("a") as file:
        file.write('{"step": 17')
    train(TINY, tmp_path)
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_between_two_tests(straight, tmp_path, monkeypatch, number, read_records):
    monkeypatch.setattr(training, "_REPORT_SECONDS", 0.0)

    def report(progress):
        if progress.step == 7:
            os.kill(os.getpid(), number)

    handler = signal.getsignal(number)
    outcome = train(TINY, tmp_path, report=report)
    assert (outcome.end, outcome.step) == ("interrupted", 7)
    assert signal.getsignal(number) is handler
    steps = []
    assert train(TINY, tmp_path, report=lambda progress: steps.append(progress.step)).end == "steps"
    assert steps[0] == 8
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


def test_signals_end_runs_and_threads_hear_none(tmp_path):
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    ends = []
    thread = threading.Thread(target=lambda: ends.append(train(replace(TINY, steps=1), tmp_path).end))
    thread.start()
    thread.join()
    assert ends == ["steps"]
