"""Models of random weights over texts and vocabularies, in memory and from disk; what is refused."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn.errors import BudgetExceeded, CheckpointError, InvalidWord, UnsupportedFormat
from fsa2lrnn.extra.huggingface.observed import read
from fsa2lrnn.extra.huggingface.observed.read import letters, model_of, observe
from fsa2lrnn.extra.huggingface.packages import modeling

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


def test_a_text_is_read_in_windows(random_model):
    model = random_model("olmo_hybrid")
    found, first = observe(model, np.tile(TEXT[:30], 3), window=30), observe(model, TEXT[:30])
    assert found.read == "a text of 90 tokens, 30 at a time"
    for three, one in zip(found.heads, first.heads, strict=True):
        assert (three.spreads["eigenvalue"].counts == 3 * one.spreads["eigenvalue"].counts).all()


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


def test_a_model_in_training_stays_so(random_model):
    model = random_model("mamba2").train()
    observe(model, [1, 2])
    assert model.base_model.training
    model.eval()


def test_letters_of_an_exported_folder(exported, saved):
    folder, written = exported("parity", "olmo-hybrid")
    assert letters(folder) == written.plan.machine.alphabet
    assert letters(saved("mamba2")) is None


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
