"""Eigenvalues, norms and rates of models with random weights, against the matrices that their own steps apply."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fsa2lrnn.cli.gates import encode
from fsa2lrnn.errors import CheckpointError, InvalidWord, UnsupportedFormat
from fsa2lrnn.export.eigenvalues import ARCHITECTURES, eigenvalues, measure, spectrum
from fsa2lrnn.export.huggingface import tokenizer
from fsa2lrnn.export.packages import modeling

pytest.importorskip("transformers")
WORD = np.random.default_rng(0).integers(60, size=70)
KINDS = {
    "olmo_hybrid": "olmo-hybrid", "qwen3_next": "qwen3-next", "qwen3_5": "qwen3.5", "qwen3_5_moe": "qwen3.5-moe",
    "mamba2": "mamba-2", "bamba": "bamba", "falcon_h1": "falcon-h1", "granitemoehybrid": "granite-moe-hybrid",
    "nemotron_h": "nemotron-h", "zamba2": "zamba2",
}  # fmt: skip
_BAMBA = {
    "hidden_size": 32, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "mamba_n_heads": 4,
    "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 2, "num_hidden_layers": 3, "mamba_chunk_size": 32,
    "attn_implementation": "eager",
}  # fmt: skip
_KINDS = ["linear_attention", "full_attention", "linear_attention"]
LINEAR = {  # the numbers of the linear layers of models whose last layer is not the only other one
    "mamba2": {0, 1}, "falcon_h1": {0, 1, 2}, "bamba": {0, 2}, "granitemoehybrid": {0, 2}, "nemotron_h": {0, 2},
    "zamba2": {0, 1, 2},
}  # fmt: skip
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
    "qwen3_5_moe": {
        "prefix": "Qwen3_5Moe", "config": "TextConfig", "hidden_size": 48, "num_hidden_layers": 4,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    },
    "bamba": {"prefix": "Bamba", "attn_layer_indices": [1], **_BAMBA},
    "falcon_h1": {
        "prefix": "FalconH1", "mamba_d_ssm": 64, "ssm_in_multiplier": 0.75, "ssm_multipliers": [1.0] * 4 + [3.0],
        **_BAMBA,
    },
    "granitemoehybrid": {
        "prefix": "GraniteMoeHybrid", "layer_types": _KINDS, "num_local_experts": 4, "shared_intermediate_size": 16,
        **_BAMBA,
    },
    "nemotron_h": {
        "prefix": "NemotronH", "hidden_size": 32, "mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 8,
        "n_groups": 2, "layers_block_type": [_KINDS[0], "moe", _KINDS[0], "mlp", _KINDS[1]], "chunk_size": 32,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 16,
        "moe_intermediate_size": 16, "moe_shared_expert_intermediate_size": 16, "n_routed_experts": 4,
    },
    "zamba2": {
        "prefix": "Zamba2", "hidden_size": 32, "n_mamba_heads": 4, "mamba_d_state": 8, "mamba_ngroups": 2,
        "layers_block_type": [_KINDS[0], "hybrid", _KINDS[0]], "num_hidden_layers": 3, "chunk_size": 32,
        "num_attention_heads": 2, "intermediate_size": 16, "adapter_rank": 4,
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
    from fsa2lrnn.export.packages import modeling, transformers

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
    from fsa2lrnn.export.packages import transformers

    def save(kind, **given):
        with transformers():
            random_model(kind).save_pretrained(tmp_path / kind, **given)
        return tmp_path / kind

    return save


def dense(w, c, k):
    return w[..., None] * np.eye(k.shape[-1]) - k[..., :, None] * (c * k)[..., None, :]


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("is_scalar", [True, False])
def test_the_spectrum_is_that_of_the_matrix(size, is_scalar):
    rng = np.random.default_rng(0)
    shape = (300, 2, size)
    w, c = rng.uniform(0.5, 1, shape), rng.choice([0, 0.3, 1, 2], shape)
    k = rng.normal(size=shape)
    k /= np.linalg.norm(k, axis=-1, keepdims=True) * rng.uniform(1, 2, (300, 2, 1))
    k[:50, :, ::2], w[20:80, :, 1:] = 0, 1
    c[:20], k[80:90] = 0, 0
    if is_scalar:
        w, c = w[..., :1], c[..., :1]
    matrices = dense(np.broadcast_to(w, shape), c, k)
    expected = np.sort(np.linalg.eigvals(matrices).real)
    least, largest, norm = spectrum(w, c, k)
    assert np.abs(least - expected[..., 0]).max() < 1e-6
    assert np.abs(largest - expected[..., -1]).max() < 1e-6
    assert np.abs(norm - np.linalg.norm(matrices, 2, axis=(-2, -1))).max() < 1e-6
    assert least.min() < -0.3
    assert is_scalar or norm.max() > 1.01


@torch.no_grad()
def calls_of(file, name, model):
    """The arguments that the module passes to its recurrence, layer by layer."""
    calls, recurrence = [], getattr(file, name)

    def note(*given, **named):
        calls.append((given, named))
        return recurrence(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, name, note)
        model(input_ids=torch.tensor(WORD)[None], use_cache=False)
    return calls


def transitions_of(kind, model):
    with torch.no_grad():
        return ARCHITECTURES[KINDS[kind]].read(model, torch.tensor(WORD))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["olmo_hybrid", "qwen3_next", "qwen3_5", "qwen3_5_moe"])
def test_one_step_of_a_gated_delta_layer_multiplies_the_state_by_the_transition(random_model, kind, dtype):
    """The module's one-token recurrence from S = I with a value of 0 gives the matrix itself."""
    model, file = random_model(kind, dtype), modeling(kind)
    calls = calls_of(file, "torch_chunk_gated_delta_rule", model)
    found = list(transitions_of(kind, model))
    assert [i for i, _ in found] == [0, 1, 2]
    for (given, named), (_, (w, c, beta, k)) in zip(calls, found, strict=True):
        key, g = given[1], named["g"]
        T, heads, d = g.shape[1], g.shape[2], key.shape[3]
        assert w.shape == beta.shape == (T, heads, 1)
        assert np.array_equal(beta[..., 0], named["beta"][0].double().numpy())
        assert np.abs(beta).max() < (2 if kind == "olmo_hybrid" else 1)
        ranges = measure(w, c, beta, k)
        for t in (0, 1, 37, T - 1):
            at = slice(t, t + 1)
            _, S = file.torch_recurrent_gated_delta_rule(
                key[:, at], key[:, at], torch.zeros(1, 1, heads, d), g=g[:, at], beta=named["beta"][:, at],
                initial_state=torch.eye(d).expand(1, heads, d, d).clone(), output_final_state=True,
                use_qk_l2norm_in_kernel=True,
            )  # fmt: skip
            matrix = S[0].double().numpy()
            assert np.abs(dense(w[t] + 0 * k[t], c[t], k[t]) - matrix).max() < 1e-6
            values = np.linalg.eigvalsh(matrix)
            assert np.abs(values[:, 0] - ranges["eigenvalue"][0][t]).max() < 1e-6
            assert np.abs(values[:, -1] - ranges["eigenvalue"][1][t]).max() < 1e-6
            assert np.abs(np.abs(values).max(axis=-1) - ranges["norm"][0][t]).max() < 1e-6


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("settings", [(), (("use_bias", True), ("time_step_limit", (0.002, 0.004)))])
def test_one_step_of_mamba2_multiplies_the_state_by_the_decay(random_model, dtype, settings):
    file, model = modeling("mamba2"), random_model("mamba2", dtype, **dict(settings))
    calls = calls_of(file, "mamba2_chunk_scan", model)
    for (given, named), (_, (w, *_)) in zip(calls, transitions_of("mamba2", model), strict=True):
        dt, A, heads = given[1], given[2], len(given[2])
        if settings:
            delta = torch.nn.functional.softplus(dt + named["dt_bias"]).clamp(*named["dt_limit"])
            assert np.array_equal(w[..., 0], torch.exp(A * delta[0].float()).numpy())
            continue
        for t in (0, 33, 69):
            state, zero = torch.ones(1, heads, 1, 1), torch.zeros(1, heads, 1)
            file.mamba2_selective_state_update(
                state, zero, dt[:, t, :, None], A[:, None, None], torch.zeros(1, 1, 1), torch.zeros(1, 1, 1),
                zero[0], z=None, dt_bias=named["dt_bias"][:, None], dt_softplus=True,
            )  # fmt: skip
            assert np.array_equal(state.flatten().numpy(), w[t, :, 0])


@torch.no_grad()
@pytest.mark.parametrize("kind", ["bamba", "falcon_h1", "granitemoehybrid", "nemotron_h", "zamba2"])
def test_decays_of_siblings_are_those_of_their_own_code(random_model, kind):
    calls = calls_of(modeling(kind), "mamba2_chunk_scan", model := random_model(kind))
    found = list(transitions_of(kind, model))
    assert len(calls) == len(found) == len(LINEAR[kind])
    for (given, named), (_, (w, *_)) in zip(calls, found, strict=True):
        delta = torch.nn.functional.softplus(given[1] + named["dt_bias"]).clamp(*named["dt_limit"])
        assert np.abs(w[..., 0] - torch.exp(given[2] * delta[0]).numpy()).max() < 1e-6


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_enclosures_over_all_inputs_are_reached_by_some_input(random_model, kind):
    model, known = random_model(kind), ARCHITECTURES[KINDS[kind]]
    for i, (low, high) in ((i, ranges["decay"]) for i, ranges in known.bounds(model).items()):
        block = known._blocks(model)[i]
        mixer, norm = getattr(block, known.place), getattr(block, known.norm)
        weight = known.projections(mixer).decay * (norm.weight + known.offset)
        for sign, ends in ((-1, high), (1, low)):  # before the norm: the direction in which Wx grows fastest
            x = norm(sign * 1e3 * weight / weight.norm(dim=1, keepdim=True))[None]
            w = known.transition(mixer, x)[0][..., 0]
            assert np.abs(np.diagonal(w) - ends).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_of_a_folder_is_that_of_the_model(random_model, saved, kind):
    model = random_model(kind)
    expected, found = eigenvalues(model, WORD), eigenvalues(str(saved(kind, max_shard_size="40KB")), WORD)
    assert (found.layer, found.n_tokens, found.heads) == (KINDS[kind], 70, expected.heads)
    low, high = ARCHITECTURES[KINDS[kind]].eigenvalues
    for head in found.heads:
        for name, (least, most) in head.possible.items():
            assert least - 1e-6 <= head.observed[name][0] <= head.observed[name][1] <= most + 1e-6
        assert low <= head.possible["eigenvalue"][0]
        assert head.possible["eigenvalue"][1] <= high
        assert (head.negative > 0) == (head.observed["eigenvalue"][0] < 0)
    assert {head.layer for head in found.heads} == LINEAR.get(kind, {0, 1, 2})
    assert all(not head.observed for head in eigenvalues(model).heads)


def test_windows_training_and_the_answer(random_model):
    model = random_model("olmo_hybrid").train()
    found = eigenvalues(model, np.tile(WORD[:30], 3), window=30)
    assert model.base_model.training
    assert found.heads == eigenvalues(model.eval(), WORD[:30]).heads
    negative = np.mean([head.negative for head in found.heads])
    least = min(head.observed["eigenvalue"][0] for head in found.heads)
    assert f"at {negative:.2%} of tokens and heads; the least is {least:.4g}" in found.explain()
    without = eigenvalues(random_model("olmo_hybrid", linear_allow_neg_eigval=False), WORD)
    assert without.explain().startswith("0 of 9 heads may have negative eigenvalues")


@pytest.mark.parametrize(("machine", "layer", "seen"), [
    ("group(S3, transpositions)", "olmo-hybrid", {"decay": (1, 1), "beta": (2, 2), "eigenvalue": (-1, 1)}),
    ("flip_flop", "mamba-2", {"decay": (0, 1), "beta": (0, 0), "eigenvalue": (0, 1)}),
])  # fmt: skip
def test_an_exported_model_reflects_or_keeps_or_erases(exported, machine, layer, seen):
    folder, _ = exported(machine, layer)
    head = eigenvalues(folder, [0, 1, 0] if layer == "olmo-hybrid" else [0, 1, 2]).heads[0]
    for name, interval in seen.items():
        assert head.observed[name] == pytest.approx(interval, abs=1e-6)
    assert head.negative == (layer == "olmo-hybrid")


def test_text_by_letters_or_by_a_tokenizer(exported, tmp_path):
    folder, _ = exported("group(S3, transpositions)", "olmo-hybrid")
    assert encode(folder, "(1,2) (2,3)\n(1,2)\n").tolist() == [0, 1, 0]
    with pytest.raises(InvalidWord, match="alphabet"):
        encode(folder, "(1,4)")
    tokenizer("abc", [True]).save_pretrained(tmp_path)
    assert encode(tmp_path, "cab").tolist() == [2, 0, 1]
    with pytest.raises(CheckpointError, match=r"has no tokenizer\.json"):
        encode(tmp_path / "nothing", "a")


@pytest.mark.parametrize(("tokens", "message"), [
    ([60], "token 60, and the model knows 0 to 59"), ([-1], "token -1"), ([], "give a list of whole numbers"),
    (np.zeros(0, np.int64), "give a list of whole numbers"), ([0.5], "type float64"),
    ([[1]], "give a list of whole numbers"),
])  # fmt: skip
def test_tokens_that_are_refused(random_model, tokens, message):
    with pytest.raises(InvalidWord, match=message):
        eigenvalues(random_model("mamba2"), tokens)


def test_models_and_folders_that_are_refused(random_model, tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        eigenvalues(tmp_path / "nothing")
    with pytest.raises(UnsupportedFormat, match="holds no model of olmo-hybrid"):
        eigenvalues(tmp_path)
    with pytest.raises(UnsupportedFormat, match="a Linear holds no model of"):
        eigenvalues(torch.nn.Linear(2, 2))
    model = random_model("olmo_hybrid", rms_norm_eps=1e-5)  # one of its own
    with torch.no_grad():
        model.model.layers[1].linear_attn.A_log[2] = torch.nan
    with pytest.raises(UnsupportedFormat, match="layer 1: decay of head 2 is not finite"):
        eigenvalues(model, [1, 2])
    with pytest.raises(UnsupportedFormat, match="layer 1: decay of head 2 is not finite"):
        eigenvalues(model)


def changed(folder, **settings):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


@pytest.mark.parametrize(("settings", "message"), [
    ({"hidden_size": 10**9}, "config.json describes"),
    ({"vocab_size": 10**12}, "config.json describes"),
    ({"linear_conv_kernel_dim": 10**9}, "one of them is of another model"),
    ({"hidden_size": 10**40}, "its package's code fails"),
    ({"hidden_size": "many"}, "its package's code fails"),
    ({"linear_dt_max": 0}, "its package's code fails"),
    ({"layer_types": 3}, "its package's code fails"),
    ({"num_hidden_layers": None}, "its package's code fails"),
    ({"quantization_config": {"quant_method": "bitsandbytes"}}, "its weights are quantized"),
    ({"intermediate_size": 16}, "its package's code fails"),
    ({"vocab_size": 30}, "its package's code fails"),
])  # fmt: skip
def test_configurations_that_are_refused(saved, settings, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        eigenvalues(changed(saved("olmo_hybrid"), **settings), [1])
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("settings", [{"time_step_limit": limit} for limit in ([0.0], [0, 10**400], [1.0] * 100_000)] +
                         [{"chunk_size": 10**9}, {"chunk_size": 0}, {"num_hidden_layers": 8_000}])  # fmt: skip
def test_settings_of_mamba2_that_are_refused(saved, settings):
    with pytest.raises(
        CheckpointError, match=r"its package's code fails|chunk_size is not from 1 to 1024|describes inf numbers"
    ):
        eigenvalues(changed(saved("mamba2"), **settings), [1])


def test_tables_that_no_file_holds_are_bounded(saved):
    folder = saved("qwen3_next")
    rope = json.loads((folder / "config.json").read_text())["rope_parameters"]
    with pytest.raises(CheckpointError, match="one of them is of another model"):
        eigenvalues(changed(folder, rope_parameters={**rope, "partial_rotary_factor": 1e8}))


def test_folders_run_no_code_of_their_own_and_need_their_weights_in_safetensors(saved):
    folder = changed(saved("mamba2"), auto_map={"AutoModel": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('run')")
    assert eigenvalues(folder, [1]).n_tokens == 1
    path = folder / "model.safetensors"
    weights = load_file(path)
    save_file({name: part for name, part in weights.items() if "layers.1.norm" not in name}, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"the weights lack layers\.1\.norm\.weight"):
        eigenvalues(folder)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="its package's code fails"):
        eigenvalues(folder)
    path.unlink()
    torch.save(weights, folder / "pytorch_model.bin")  # a pickle is not read
    with pytest.raises(CheckpointError, match=r"0 bytes of safetensors|its package's code fails"):
        eigenvalues(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(UnsupportedFormat, match=r"config\.json"):
        eigenvalues(folder)
