"""Settings: what they accept, and their files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.training.settings import PRESETS, Settings, preset


@given(
    st.builds(
        Settings, task=st.text(), sampler=st.sampled_from(["uniform", "live", "task"]),
        learning_rate=st.floats(1e-9, 1), gradient_clip=st.none() | st.floats(0.1, 10),
        stop_at=st.none() | st.floats(0.1, 1), layers=st.integers(1, 5), layer_norm=st.booleans(),
        seed=st.integers(0, 2**32 - 1),
    )
)  # fmt: skip
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


def test_schedules_presets_and_kinds_of_layers():
    settings = Settings("task:parity", schedule="cosine", steps=100, learning_rate=1.0)
    assert [round(settings.rate(step), 3) for step in (0, 50, 100)] == [1, 0.5, 0]
    assert Settings("task:parity", learning_rate=0.5).rate(99) == 0.5
    settings = Settings("task:parity", batch=3, seed=1)
    assert settings.with_seed(2) == Settings("task:parity", batch=3, seed=2)
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


@pytest.mark.parametrize(("changes", "message"), [
    ({"learning_rate": 0.0}, "learning_rate = 0.0 must be a number above 0"),
    ({"learning_rate": float("nan")}, "learning_rate = nan must be a number above 0"),
    ({"learning_rate": 10**400}, "learning_rate = 1000.* must be a number above 0"),
    ({"gradient_clip": float("inf")}, "gradient_clip = inf must be a number above 0, or None for no limit"),
    ({"p": 0.5}, "p = 0.5 must be a number of at least 1"),
    ({"steps": 10**10}, "steps = 10000000000 must be a whole number from 1 to 1,000,000,000"),
    ({"embedding_dim": 4 * 10**8}, "embedding_dim = 400000000 must be a whole number from 1 to 65,536"),
    ({"heads": 300, "block": 300}, "make a state of 90,000 numbers: at most 65,536 make a layer"),
    ({"options": {"when": object()}}, "no such option of BlockLayerConfig"),
])  # fmt: skip
def test_numbers_out_of_range(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        Settings(**{"task": "task:parity", **changes})


@pytest.mark.parametrize(("changes", "message"), [
    ({"precision": "half"}, "precision = 'half' must be one of full, mixed"),
    ({"block": 1}, "normalisation = 'paper' with block = 1: .*, take 'clip'"),
    ({"precision": "mixed"}, "precision = 'mixed' with device = 'cpu' and .*: it is for float32 on a GPU, take 'full'"),
    ({"precision": "mixed", "device": "cuda", "dtype": "float64"}, "device = 'cuda' and dtype = 'float64'"),
    ({"compile": 1}, "compile = 1 must be true or false"),
])  # fmt: skip
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


def test_settings_that_are_gone_are_read_if_they_changed_nothing():
    older = {"task": "task:parity", "init": "random", "noise": 0.0}
    assert Settings.from_json(json.dumps(older)) == Settings("task:parity")
    with pytest.raises(UnsupportedFormat, match="init: no such setting"):
        Settings.from_json(json.dumps(older | {"init": "compiled"}))


def test_a_file_does_not_import_a_module(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    text = json.dumps({"task": "task:parity", "layer": "trap:Layer"})
    with pytest.raises(UnsupportedFormat, match=r"layer kind 'trap:Layer' is not known: .* is made known first, by"):
        Settings.from_json(text)
