"""Models of random weights, in the shape of those that are released, and folders of them."""

from functools import cache

import pytest
import torch

SIZES = {
    "olmo_hybrid": {
        "prefix": "OlmoHybrid", "hidden_size": 48, "intermediate_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 3, "linear_num_key_heads": 3, "linear_num_value_heads": 3, "linear_key_head_dim": 12,
        "linear_value_head_dim": 24, "pad_token_id": None, "eos_token_id": None,
    },
    "qwen3_next": {
        "prefix": "Qwen3Next", "hidden_size": 48, "intermediate_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    },
    "qwen3_5": {
        "prefix": "Qwen3_5", "config": "TextConfig", "hidden_size": 48, "intermediate_size": 32,
        "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
    },
    "mamba2": {
        "prefix": "Mamba2", "hidden_size": 32, "num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 2,
        "num_hidden_layers": 2, "chunk_size": 32,
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def random_model():
    """A whole model of an architecture: f("olmo_hybrid", dtype, other settings)."""
    pytest.importorskip("transformers")
    from fsa2lrnn.extra.huggingface.packages import modeling, transformers

    @cache
    def make(kind, dtype=torch.float32, **settings):
        given = {**SIZES[kind], "vocab_size": 60, **settings}
        prefix, config = given.pop("prefix"), given.pop("config", "Config")
        torch.manual_seed(0)
        with transformers():
            code = modeling(kind)
            model = getattr(code, f"{prefix}ForCausalLM")(getattr(code, f"{prefix}{config}")(**given))
        return model.to(dtype).eval()

    return make


@pytest.fixture
def saved(random_model, tmp_path):
    """A folder of a random model: f("olmo_hybrid")."""
    from fsa2lrnn.extra.huggingface.packages import transformers

    def save(kind, **given):
        with transformers():
            random_model(kind).save_pretrained(tmp_path / kind, **given)
        return tmp_path / kind

    return save


@pytest.fixture
def values():
    """What an observer hands over for a word, each measure by layer: f(observer, model, tokens)."""

    def read(observer, model, tokens):
        found = {}
        observer.read(model, torch.tensor(tokens), lambda number, parts: found.setdefault(number, dict(parts)))
        return found

    return read
