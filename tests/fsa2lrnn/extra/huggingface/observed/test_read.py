"""Models of random weights over texts and vocabularies, in memory and from disk; folders that are refused."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fsa2lrnn.errors import BudgetExceeded, CheckpointError, InvalidWord, UnsupportedFormat
from fsa2lrnn.extra.huggingface.observed import read
from fsa2lrnn.extra.huggingface.observed.loading import configuration, held, of_folder, of_weights
from fsa2lrnn.extra.huggingface.observed.read import letters, model_of, observe
from fsa2lrnn.extra.huggingface.packages import modeling

pytest.importorskip("transformers")


KINDS = {"olmo_hybrid": "olmo-hybrid", "qwen3_next": "qwen3-next", "qwen3_5": "qwen3.5", "mamba2": "mamba-2"}
TEXT = np.random.default_rng(1).integers(60, size=90)


@pytest.mark.parametrize("kind", KINDS)
def test_folders_weights_and_models_say_the_same(random_model, saved, kind):
    model = random_model(kind)
    wanted = observe(model, TEXT).to_json()
    assert wanted["layer"] == KINDS[kind]
    folder = saved(kind, max_shard_size="40KB")
    assert (folder / "model.safetensors.index.json").is_file()
    found = observe(str(folder), TEXT).to_json()
    again = observe(model_of(KINDS[kind], model.config.to_dict(), model.state_dict()), TEXT).to_json()
    body = "TextModel" if kind == "qwen3_5" else "Model"
    assert found["model"].pop("class") == wanted["model"].pop("class").removesuffix("ForCausalLM") + body
    again["model"].pop("class")
    assert found == wanted == again


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_is_each_token_alone(random_model, kind):
    model = random_model(kind, vocab_size=9)
    every, text = observe(model), observe(model, np.arange(9), window=1)
    assert (every.n_tokens, text.n_tokens) == (9, 9)
    assert every.read == "each of 9 tokens alone, as the first"
    for one, other in zip(every.heads, text.heads, strict=True):
        for name, spread in one.spreads.items():
            assert abs(spread.least - other.spreads[name].least) < 1e-6
            assert abs(spread.mean - other.spreads[name].mean) < 1e-6


def test_texts_are_read_in_windows_and_training_stays(random_model, exported, saved):
    model = random_model("olmo_hybrid")
    found, first = observe(model, np.tile(TEXT[:30], 3), window=30), observe(model, TEXT[:30])
    assert found.read == "a text of 90 tokens, 30 at a time"
    for three, one in zip(found.heads, first.heads, strict=True):
        assert (three.spreads["eigenvalue"].counts == 3 * one.spreads["eigenvalue"].counts).all()
    model = random_model("mamba2").train()
    observe(model, [1, 2])
    assert model.base_model.training
    model.eval()
    folder, written = exported("parity", "olmo-hybrid")
    assert letters(folder) == written.plan.machine.alphabet
    assert letters(saved("mamba2")) is None


def test_little_memory_makes_small_pieces(random_model, monkeypatch):
    from fsa2lrnn.extra.huggingface.observed import transformers_models

    model = random_model("qwen3_next")
    wanted = observe(model)
    monkeypatch.setattr(transformers_models, "FLOATS", 12_000)
    sizes = []
    hook = model.base_model.register_forward_pre_hook(
        lambda _module, _given, named: sizes.append(named["input_ids"].shape), with_kwargs=True
    )
    found = observe(model)
    hook.remove()
    assert 3 < len(sizes) < 30
    for one, other in zip(found.heads, wanted.heads, strict=True):
        assert abs(one.spreads["key"].mean - other.spreads["key"].mean) < 1e-6


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([60], "token 60, and the model knows 0 to 59"),
        ([-1], "token -1"),
        ([], "give a list of whole numbers"),
        ([0.5], "type float64"),
        ([[1]], r"tokens of shape \(1, 1\)"),
    ],
)
def test_tokens_that_are_none(random_model, tokens, message):
    with pytest.raises(InvalidWord, match=message):
        observe(random_model("mamba2"), tokens)


def test_what_is_refused(random_model, tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="no such folder"):
        observe(tmp_path / "nothing")
    with pytest.raises(UnsupportedFormat, match=r"holds no model of olmo-hybrid, .*save_pretrained wrote"):
        observe(tmp_path)
    with pytest.raises(UnsupportedFormat, match="a Linear has no layer of"):
        observe(torch.nn.Linear(2, 2))
    with pytest.raises(UnsupportedFormat, match="window = 0"):
        observe(random_model("mamba2"), window=0)
    with pytest.raises(UnsupportedFormat, match="models of rwkv-7 have no configuration"):
        model_of("rwkv-7", {}, {})
    monkeypatch.setattr(read, "MAX_HEADS", 7)
    with pytest.raises(BudgetExceeded, match="8 heads, and 7 at most"):
        observe(random_model("mamba2"))


def test_gates_that_are_no_numbers_are_named(random_model):
    model = random_model("olmo_hybrid", rms_norm_eps=1e-5)  # one of its own
    with torch.no_grad():
        model.model.layers[1].linear_attn.A_log[2] = torch.nan
    with pytest.raises(UnsupportedFormat, match="layer 1: alpha of head 2 is not finite"):
        observe(model, [1, 2])
    assert modeling("olmo_hybrid").l2norm.__name__ == "l2norm"  # theirs again


def changed(folder, **settings):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_size": 10**9}, "the configuration describes"),
        ({"vocab_size": 10**12}, r"describes a model of 48,000,0\d\d,\d\d\d,?\d* numbers|describes a model of"),
        ({"intermediate_size": 10**8}, "one of them is of another model"),
        ({"linear_value_head_dim": 10**7}, "one of them is of another model"),
        ({"linear_conv_kernel_dim": 10**9}, "one of them is of another model"),
        ({"hidden_size": 10**40}, "the configuration describes no OlmoHybrid"),
        ({"hidden_size": -3}, "the configuration describes no OlmoHybrid"),
        ({"hidden_size": "many"}, "the configuration describes no OlmoHybrid"),
        ({"linear_dt_max": 0}, "the configuration describes no OlmoHybrid"),
        ({"layer_types": 3}, "the configuration describes no OlmoHybrid"),
        ({"num_hidden_layers": 10**9}, r"num_hidden_layers = 1000000000, and the weights are \d+ tensors"),
        ({"num_hidden_layers": None}, "num_hidden_layers = None"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantized weights"),
        ({"intermediate_size": 16}, "does not load as OlmoHybridModel"),
        ({"vocab_size": 30}, "does not load as OlmoHybridModel"),
    ],
)
def test_configurations(saved, settings, message):
    with pytest.raises(CheckpointError, match=message):
        observe(changed(saved("olmo_hybrid"), **settings), [1])


def test_folders_run_no_code_of_their_own(saved):
    folder = changed(saved("mamba2"), auto_map={"AutoModel": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('run')")
    assert observe(folder, [1]).n_tokens == 1
    with pytest.raises(UnsupportedFormat, match="holds no model of olmo-hybrid"):
        observe(changed(saved("olmo_hybrid"), model_type="gpt2"), [1])


@pytest.mark.parametrize("text", ["[1]", "{", '{"model_type": NaN}', ""])
def test_a_configuration_that_is_none(saved, text):
    folder = saved("mamba2")
    (folder / "config.json").write_text(text)
    with pytest.raises(UnsupportedFormat, match=r"config\.json"):
        configuration(folder / "config.json")


def test_weights_that_are_missing_or_damaged(saved):
    folder = saved("olmo_hybrid")
    whole = folder / "model.safetensors"
    weights = load_file(whole)
    name = "model.layers.1.linear_attn.b_proj.weight"
    save_file({key: part for key, part in weights.items() if key != name}, whole, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"the weights lack layers\.1\.linear_attn\.b_proj\.weight"):
        observe(folder, [1])
    whole.write_bytes(whole.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="is missing, damaged or no safetensors file"):
        held(folder)
    whole.unlink()
    torch.save(weights, folder / "pytorch_model.bin")  # a pickle is not read
    with pytest.raises(CheckpointError, match="is missing, damaged or no safetensors file"):
        of_folder(folder, "olmo_hybrid", "OlmoHybrid")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": {"a": "../model.safetensors"}}, "which is not in its folder"),
        ({"weight_map": {"a": 3}}, "has no weight_map"),
        ([], "has no weight_map"),
        ({"weight_map": {"a": "other.safetensors"}}, "is missing"),
    ],
)
def test_an_index_that_leads_elsewhere(saved, index, message):
    folder = saved("mamba2")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=message):
        observe(folder, [1])


def test_weights_that_fit_no_configuration_and_missing_heads(random_model, tmp_path):
    model = random_model("mamba2")
    with pytest.raises(CheckpointError, match="the weights: the configuration describes a model of"):
        of_weights({**model.config.to_dict(), "vocab_size": 4_096}, model.state_dict(), "mamba2", "Mamba2Model")
    random_model("olmo_hybrid").model.save_pretrained(tmp_path)
    assert observe(tmp_path, [1]).n_tokens == 1


def test_numbers_that_no_file_holds_are_bounded(saved):
    folder = saved("qwen3_next")
    settings = json.loads((folder / "config.json").read_text())
    position = {**settings["rope_parameters"], "partial_rotary_factor": 1e8}
    with pytest.raises(CheckpointError, match=r"asks for [\d,]+ numbers that no file holds"):
        observe(changed(folder, rope_parameters=position), [1])


@pytest.mark.parametrize("limits", [[0.0], [0.0, 1.0, 2.0], [0, 10**400], [1.0] * 100_000])
def test_settings_that_their_code_uses_unseen(saved, limits):
    with pytest.raises(CheckpointError, match=r"does not run as its configuration says|describes no Mamba2") as caught:
        observe(changed(saved("mamba2"), time_step_limit=limits), [1])
    assert len(str(caught.value)) < 1_000


def test_more_layers_than_any_model_has_are_refused_however_many_tensors_there_are(saved):
    from safetensors.torch import load_file, save_file

    folder = changed(saved("mamba2"), num_hidden_layers=8_000)
    weights = load_file(folder / "model.safetensors")
    empty = {f"layers.{i}.empty": torch.zeros(0) for i in range(8_000)}
    save_file(weights | empty, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="num_hidden_layers = 8,000: models of up to 512 layers are loaded"):
        observe(folder, [1])
