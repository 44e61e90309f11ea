"""Cards of configurations, compared with the ranges that the installed code of each folder computes."""

import inspect
import json
import math
import types

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.export.configuration import CLASSES, MAX_BYTES, answer, of_config, read_card
from fsa2lrnn.export.model_folders import FOLDERS
from fsa2lrnn.export.packages import modeling
from fsa2lrnn.layers import EXPORTED, of_name

T, D = 48, 8  # tokens, and the size of a key
DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": D, "linear_value_head_dim": D}
KDA = {"linear_num_heads": 2, "linear_head_dim": D}
SSD = {"mamba_n_heads": 16, "mamba_d_head": 4, "mamba_expand": 2, "mamba_d_state": 2}
SMALL = {  # the class of a mixer, and the sizes of a small one
    "olmo_hybrid": ("OlmoHybridGatedDeltaNet", DELTA), "qwen3_next": ("Qwen3NextGatedDeltaNet", DELTA),
    "qwen3_5": ("Qwen3_5GatedDeltaNet", DELTA), "qwen3_5_moe": ("Qwen3_5MoeGatedDeltaNet", DELTA),
    "qwen4_exp": ("Qwen4ExpTextGatedDeltaNet", DELTA), "kimi_linear": ("KimiLinearDeltaAttention", KDA),
    "lara_mini": ("LaraMiniGatedDeltaNet", DELTA), "glm5_next": ("Glm5NextTextLinearAttention", KDA),
    "bailing_hybrid": ("BailingHybridDeltaAttention", {"num_attention_heads": 2, "head_dim": D}),
    "mamba2": ("Mamba2Mixer", {"num_heads": 16, "head_dim": 4, "state_size": 2, "n_groups": 1}),
    "bamba": ("BambaMixer", SSD), "granitemoehybrid": ("GraniteMoeHybridMambaLayer", SSD),
    "falcon_h1": ("FalconH1Mixer", SSD | {"mamba_d_ssm": None}),
    "zamba2": ("Zamba2MambaMixer", {"n_mamba_heads": 16, "mamba_d_state": 2, "num_attention_heads": 4,
                                     "layers_block_type": ["linear_attention"] * 4}),
    "nemotron_h": ("NemotronHMamba2Mixer",
                   {"mamba_num_heads": 16, "mamba_head_dim": 4, "ssm_state_size": 2, "n_groups": 1}),
    "mamba": ("MambaMixer", {"state_size": 2}), "falcon_mamba": ("FalconMambaMixer", {"state_size": 2}),
    "jamba": ("JambaMambaMixer", {"mamba_d_state": 2, "num_attention_heads": 4, "num_key_value_heads": 4}),
    "zamba": ("ZambaMambaMixer", {"mamba_d_state": 2, "num_attention_heads": 4}),
    "recurrent_gemma": ("RecurrentGemmaRglru", {"num_attention_heads": 4}),
    "minimax": ("MiniMaxLightningAttention", {"num_attention_heads": 4, "head_dim": D}),
    "xlstm": ("xLSTMLayer", {"num_heads": 4}), "rwkv": ("RwkvSelfAttention", {}),
}  # fmt: skip
CHANGED = [
    ("olmo_hybrid", {"linear_allow_neg_eigval": False}), ("olmo_hybrid", {"linear_conv_kernel_dim": 2}),
    ("qwen3_next", {"linear_allow_neg_eigval": True}), ("qwen3_5", {"allow_neg_eigval": True}),
    ("qwen4_exp", {"linear_lower_bound": -5.0}), ("kimi_linear", {"linear_lower_bound": -5.0}),
    ("glm5_next", {"linear_lower_bound": None}), ("glm5_next", {"linear_lower_bound": -0.5}),
    ("glm5_next", {"linear_lower_bound": -200.0}), ("bailing_hybrid", {"kda_safe_gate": False}),
    ("bailing_hybrid", {"kda_lower_bound": -1.0}), ("bailing_hybrid", {"kda_lower_bound": 0.0}),
    ("mamba2", {"time_step_limit": [0.0, 0.1]}), ("mamba2", {"time_step_limit": [0.001, 0.1]}),
    ("bamba", {"time_step_limit": [0.5, 2.0]}), ("granitemoehybrid", {"time_step_limit": [0.01, 1e9]}),
    ("falcon_h1", {"time_step_limit": [0.0, 0.001]}), ("nemotron_h", {"time_step_min": 0.5}),
    ("nemotron_h", {"time_step_limit": [0.001, 0.1]}), ("zamba2", {"time_step_min": 0.0}),
    ("recurrent_gemma", {"lru_width": 16}), ("minimax", {"num_hidden_layers": 3}),
    ("minimax", {"num_attention_heads": 2}),
    ("xlstm", {"gate_soft_cap": 3.0}), ("xlstm", {"gate_soft_cap": 40.0}), ("xlstm", {"gate_soft_cap": 120.0}),
]  # fmt: skip
INSTALLED = [name for name in FOLDERS if name in SMALL]


class Reached(Exception):
    """Raised in place of a kernel, with its arguments by name."""


def stop_at(monkeypatch, code, kernel):
    """Return the kernel, which raises `Reached` in the code of its module from now on."""
    original = getattr(code, kernel)

    def stop(*args, **named):
        raise Reached(inspect.signature(original).bind(*args, **named).arguments)

    monkeypatch.setattr(code, kernel, stop)
    return original


def config_of(code, name, changes):
    """Return the configuration class's small instance, with these changes."""
    kinds = [kind for kind in vars(code).values() if isinstance(kind, type) and kind.__name__.endswith("Config")]
    kind = next(one for one in kinds if getattr(one, "model_type", "") in (name, f"{name}_text") and not (
        one.model_type == name and any(other.model_type == f"{name}_text" for other in kinds)
    ))  # fmt: skip
    return kind(**{"hidden_size": 32, "num_hidden_layers": 4, **SMALL[name][1], **changes})


def drawn(code, name, changes):
    """Return a mixer with random weights whose gates saturate in both directions."""
    config = config_of(code, name, changes)
    kind = getattr(code, SMALL[name][0])
    if name == "falcon_mamba":  # whose mixer cannot be made alone
        mixer = code.FalconMambaModel(config).layers[1].mixer
    else:
        mixer = kind(config, 1) if "layer_i" in str(inspect.signature(kind)) else kind(config)
    if name == "falcon_h1":
        mixer.mup_vector = torch.ones(1)  # which the model makes
    for parameter_name, parameter in mixer.named_parameters():
        spread = 40 if "A_log" in parameter_name or "time_decay" in parameter_name else 30
        if FOLDERS[name].layer == "mamba-2" and parameter_name in ("in_proj.weight", "dt_bias"):
            spread = 1e11  # a head that keeps at the least Δ and forgets at the largest needs a ratio of 3.5e9
        parameter.data = spread * torch.randn(parameter.shape)
        if "A_log" in parameter_name:
            parameter.data = torch.linspace(-spread, spread, parameter.numel()).view(parameter.shape)
    return mixer


def steps(name, mixer, kernel, code, x):
    """Return the decays and the eigenvalues of the transitions of tokens, as the kernels change states."""
    if name == "recurrent_gemma":
        found = []
        for t in range(T):
            ends = []
            for start in (0.0, 1.0):
                mixer.recurrent_states = torch.full((1, x.shape[-1]), start)
                mixer(x[:, t : t + 1], torch.tensor([[5]]))
                ends.append(mixer.recurrent_states)
            found.append(ends[1] - ends[0])
        return torch.stack(found)[:, 0], None
    if name == "minimax":
        cache = types.SimpleNamespace(
            get_linear_cache=lambda _i: torch.ones(1, mixer.num_attention_heads, D, D),
            set_linear_cache=lambda _i, state: found.append(state[..., 0, 0]),
        )
        found = []
        mixer(0 * x[:, :1], None, None, cache)
        return found[0], None
    if name == "xlstm":
        for part in (mixer.k.weight, mixer.igate_preact.weight, mixer.igate_preact.bias):
            part.data.zero_()
        shape = 1, mixer.config.num_heads, mixer.qk_dim // mixer.config.num_heads
        found = []
        for t in range(T):
            state = torch.ones(*shape, mixer.v_dim // shape[1]), torch.ones(shape), torch.zeros(*shape[:2], 1)
            _, (_, n, m) = mixer(x[:, t : t + 1], state)
            found.append(n[..., 0].double() * m[..., 0].double().exp())
        return torch.cat(found), None
    if name == "rwkv":
        state = [torch.ones(1, mixer.time_decay.numel()), *(torch.zeros(1, mixer.time_decay.numel()) for _ in range(2))]
        nothing = torch.full((1, 1, mixer.time_decay.numel()), -1e30)
        _, (num, _, most) = code.rwkv_linear_attention_cpu(mixer.time_decay, mixer.time_first, nothing, nothing, state)
        return num * most.exp(), None
    with pytest.raises(Reached) as reached:
        mixer(x)
    (given,) = reached.value.args
    if "g" in given:  # a matrix S, from the identity
        eye = torch.eye(D).expand(1, 2, D, D)

        def step(t, key):
            one = {name: given[name][:, t : t + 1] for name in ("query", "value", "g", "beta")}
            one["value"] = torch.zeros(1, 1, 2, D)
            more = {"initial_state": eye, "output_final_state": True, "use_qk_l2norm_in_kernel": True}
            return kernel(key=key[:, t : t + 1], **one, **more)[1][0]

        decays = [torch.diagonal(step(t, 0 * given["key"]), dim1=-2, dim2=-1) for t in range(T)]
        values = [torch.linalg.eigvals(step(t, given["key"]).double()).real for t in range(T)]
        return torch.stack(decays), torch.stack(values)
    x, dt = given["hidden_states"], given["dt"]
    if "chunk_size" in given:
        ones = torch.ones(1, x.shape[2], x.shape[3], given["B"].shape[-1])
        found = [
            kernel(**given | {"hidden_states": 0 * x[:, t : t + 1], "dt": dt[:, t : t + 1], "B": given["B"][:, :1],
                              "C": given["C"][:, :1], "initial_states": ones, "return_final_states": True})[1]
            for t in range(T)
        ]  # fmt: skip
        return torch.stack([state[0, :, 0, 0] for state in found]), None
    found = []
    for t in range(T):
        state = torch.ones(1, x.shape[1], given["A"].shape[-1])
        B, C = given["B"][..., 0], given["C"][..., 0]
        code.mamba_selective_state_update(
            state, 0 * x[..., t], dt[..., t], given["A"], B, C, None,
            dt_bias=given.get("delta_bias"), dt_softplus=given["delta_softplus"],
        )  # fmt: skip
        found.append(state)
    return torch.stack(found), None


@pytest.mark.long
@pytest.mark.parametrize(("name", "changes"), [*((name, {}) for name in INSTALLED), *CHANGED])
def test_the_ranges_of_a_card_are_those_of_the_installed_code(name, changes, monkeypatch):
    torch.manual_seed(0)
    code = modeling(name)
    of_layer = FOLDERS[name].layer
    kernel = {"kda": "chunk_kimi_delta_attention", "mamba-2": "mamba2_chunk_scan", "mamba": "mamba_selective_scan"}.get(
        of_layer.removesuffix("-bounded"), "torch_chunk_gated_delta_rule" if "deltanet" in of_layer else ""
    )
    original = stop_at(monkeypatch, code, kernel) if kernel else None
    mixer = drawn(code, name, changes)
    width = changes.get("lru_width", 32)
    with torch.no_grad():
        decays, values = steps(name, mixer, original, code, torch.randn(1, T, width))
    sizes = {"num_hidden_layers": 4, "num_attention_heads": 4} if name == "minimax" else {}  # which decide its decays
    card = of_config({"model_type": name, **sizes, **changes})
    of = card.ranges[0]
    values = decays if values is None else values
    assert (decays.min().item(), decays.max().item()) == pytest.approx(of.decay, rel=3e-6, abs=0)
    assert (values.min().item(), values.max().item()) == pytest.approx(of.eigenvalue, rel=3e-6, abs=2e-5)
    if of_layer == "mamba-2":  # (tokens, heads), whose rates lie far apart
        both = ((decays == 0).any(dim=0) & (decays == 1).any(dim=0)).any()
        assert both == (card.holds is CLASSES["counter-free"])


@pytest.mark.long
def test_decays_of_lightning_attention_in_every_layer():
    code, card = modeling("minimax"), of_config({"model_type": "minimax"})
    assert len(card.ranges) == 16
    for i, of in enumerate(card.ranges):
        decay = torch.exp(-code.MiniMaxLightningAttention(code.MiniMaxConfig(), 2 * i + 1).slope_rate)
        assert (decay.min().item(), decay.max().item()) == pytest.approx(of.decay, rel=1.2e-7)
        assert max(of.decay[1], decay.max().item()) < 1


LAYERS_OF = [
    ("olmo_hybrid", {"num_hidden_layers": 3}), ("qwen3_next", {"full_attention_interval": 3}),
    ("kimi_linear", {"num_hidden_layers": 4, "linear_attn_config": {"full_attn_layers": [2], "kda_layers": [1, 3, 4]}}),
    ("bailing_hybrid", {"layer_group_size": 2}), ("bamba", {"attn_layer_indices": [1, 7]}),
    ("granitemoehybrid", {"num_hidden_layers": 2, "layer_types": ["attention", "mamba"]}),
    ("nemotron_h", {"hybrid_override_pattern": "M-M*E"}), ("jamba", {"attn_layer_period": 3, "attn_layer_offset": 0}),
    ("zamba", {"num_hidden_layers": 9}), ("recurrent_gemma", {"block_types": ["attention", "recurrent"]}),
]  # fmt: skip
KIND = {"linear_attention": "recurrent", "hybrid": "recurrent and attention", "mlp": "units", "moe": "units"}


@pytest.mark.long
@pytest.mark.parametrize(("name", "changes"), [*((name, {}) for name in INSTALLED), *LAYERS_OF])
def test_layers_and_sizes_are_those_of_the_installed_configuration(name, changes, tmp_path):
    code = modeling(name)
    made = type(config_of(code, name, {}))(**changes)
    made.save_pretrained(tmp_path)
    saved, empty = read_card(tmp_path), of_config({"model_type": name, **changes})
    given = getattr(made, "layer_types", None) or ["linear_attention"] * made.num_hidden_layers
    if name == "falcon_h1":
        given = ["hybrid"] * made.num_hidden_layers
    assert saved.types == tuple(KIND.get(kind, "attention") for kind in given)
    # What is missing in a file has the code's default, and `save_pretrained` writes it.
    assert (saved.types, saved.ranges, saved.room, saved.notes) == (empty.types, empty.ranges, empty.room, empty.notes)
    if name == "bailing_hybrid":  # as `from_pretrained` reads it
        assert type(made).from_pretrained(tmp_path).linear_head_dim == saved.room["key"]


HOSTILE = [
    ([], "a configuration is an object"), ({}, "model_type = None"), ({"model_type": ["mamba"]}, "model_type ="),
    ({"model_type": "llama"}, "known are those with a linear recurrence, olmo_hybrid, "),
    ({"model_type": "mamba", "num_hidden_layers": 10**9}, "num_hidden_layers = 1000000000 must be"),
    ({"model_type": "mamba", "num_hidden_layers": True}, "num_hidden_layers = True must be"),
    ({"model_type": "mamba", "hidden_size": "big"}, "hidden_size = 'big' must be"),
    ({"model_type": "mamba", "hidden_size": 0}, "hidden_size = 0 must be"),
    ({"model_type": "mamba2", "time_step_limit": [1, 0]}, "two ascending numbers"),
    ({"model_type": "mamba2", "time_step_limit": {"a": 1}}, "two ascending numbers"),
    ({"model_type": "mamba2", "time_step_limit": [0, {"__float__": "inf"}]}, "two ascending numbers"),
    ({"model_type": "zamba2", "time_step_min": -1}, "time_step_min = -1 must be a number from 0 on"),
    ({"model_type": "glm5_next", "linear_lower_bound": 3}, "linear_lower_bound = 3 must be a number of at most 0"),
    ({"model_type": "glm5_next", "linear_attn_config": [1]}, "linear_attn_config = [1] must be an object"),
    ({"model_type": "glm5_next", "linear_attn_config": {"head_dim": 8}, "linear_head_dim": 9}, "differ: give one"),
    ({"model_type": "kimi_linear", "linear_attn_config": {"full_attn_layers": [0], "kda_layers": [9]}}, "share the"),
    ({"model_type": "qwen3_next", "layer_types": []}, "layer_types: 0 are given"),
    ({"model_type": "qwen3_next", "layer_types": ["x"] * 48}, "layer_types: 'x' is not known"),
    ({"model_type": "qwen3_next", "layer_types": ["full_attention"] * 48}, "none of the layers has a recurrence"),
    ({"model_type": "qwen3_next", "num_hidden_layers": 9, "layer_types": ["mamba"]}, "1 types of layers are given"),
    ({"model_type": "nemotron_h", "hybrid_override_pattern": "M?"}, "'?' is not known"),
    ({"model_type": "xlstm", "gate_soft_cap": 0}, "gate_soft_cap = 0 must be a number above 0"),
    ({"model_type": "jamba", "attn_layer_period": 0}, "attn_layer_period = 0 must be"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "fault"), HOSTILE)
def test_a_hostile_configuration_is_refused_by_its_field(config, fault):
    with pytest.raises(UnsupportedFormat) as refused:
        of_config(config)
    assert fault in str(refused.value)


def test_files_are_bounded_before_they_are_read(tmp_path):
    path = tmp_path / "config.json"
    with pytest.raises(UnsupportedFormat, match="no such configuration"):
        read_card(tmp_path)
    path.write_text(json.dumps({"model_type": "mamba", "more": "x" * MAX_BYTES}))
    with pytest.raises(UnsupportedFormat, match=f"more than {MAX_BYTES:,} bytes"):
        read_card(tmp_path)
    path.write_text("[" * 100_000)
    with pytest.raises(UnsupportedFormat, match="nested deeper"):
        read_card(path)
    path.write_text('{"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text", "num_hidden_layers": 4}}')
    assert read_card(path).types == ("recurrent", "recurrent", "recurrent", "attention")


NARROW = {"time_step_limit": [0.001, 0.1]}


def machine(source):
    return MooreMachine.from_source(source)


@pytest.mark.parametrize("name", FOLDERS)
def test_the_examples_of_a_card_are_answered_as_it_says(name):
    row = FOLDERS[name]
    assert row.layer == of_name(name).name
    assert not row.export or (row.export in EXPORTED and of_name(row.export).name == row.layer)
    card = of_config({"model_type": name})
    for source, _ in card.holds.cannot:
        no = answer(machine(source), card)
        assert no.kind == "no"
        assert no.certificate is not None
        assert no.certificate.check().startswith("impossible")
        assert json.loads(json.dumps(no.to_json()))["scope"] == card.scope
    for source, _ in card.holds.can:
        # A model with the fewest layers may have no room for what a stack can hold.
        assert answer(machine(source), card).kind == "yes"
    assert answer(machine("regex:(a|b)*"), card).kind == "yes"
    n = sum("attention" in kind for kind in card.types)
    assert (f"the layers that attend, {n}, are left out" in card.scope) == bool(n)
    assert json.loads(json.dumps(card.to_json()))["model"] == name


@pytest.mark.parametrize(("name", "changes", "source", "kind", "why"), [
    ("olmo_hybrid", {"linear_allow_neg_eigval": False}, "task:parity", "no", "again and again"),
    ("olmo_hybrid", {"num_hidden_layers": 2}, "task:group(S3)", "unknown", "does not fit: stages "),
    ("olmo_hybrid", {"linear_key_head_dim": 1}, "task:group(S4, transpositions)", "unknown", "key"),
    ("qwen3_next", {"num_hidden_layers": 2}, "regex:(ab)*", "yes", "2 of 2 stages"),
    ("qwen3_next", {"num_hidden_layers": 2, "linear_conv_kernel_dim": 1}, "regex:(ab)*", "unknown", ""),
    ("mamba2", NARROW, "regex:b*a(a|b)*", "no", "whether or not"),
    ("mamba2", NARROW | {"num_hidden_layers": 1}, "task:shift_register(4)", "yes", "last 4"),
    ("mamba2", NARROW | {"num_hidden_layers": 1}, "task:shift_register(5)", "unknown", "last 5"),
    ("rwkv", {}, "regex:a(a|b)*", "unknown", "first letters count"),
    ("nemotron_h", {}, "regex:(ab)*", "no", "which has all these letters"),
    ("nemotron_h", {"conv_kernel": 5}, "regex:(ab)*", "unknown", "stages 2 of 1"),
    ("nemotron_h", {}, "task:even_pair(2)", "unknown", "stages 2 of 1"),
    ("nemotron_h", {}, "task:shift_register(2)", "yes", "the last 2 letters count"),
    ("nemotron_h", {}, "task:shift_register(5)", "unknown", "stages"),
    ("qwen3_next", {"moe_intermediate_size": 7}, "regex:(ab)*", "yes", "a cascade of 2 components, in 3 layers; 3 of"),
    ("qwen3_next", {"moe_intermediate_size": 5}, "regex:(ab)*", "unknown", "units 8 of 5"),
    ("mamba2", {"num_hidden_layers": 1}, "regex:(ab)*", "no", "(T69)"),
    ("mamba2", {"num_hidden_layers": 2}, "regex:(ab)*", "unknown", "stages 2 of 1"),
    ("xlstm", {"gate_soft_cap": 200.0}, "regex:b*a(a|b)*", "yes", "of 32 stages"),
    ("minimax", {}, "regex:b*a(a|b)*", "no", "would be the same"),
])  # fmt: skip
def test_sizes_and_flags_decide(name, changes, source, kind, why):
    found = answer(machine(source), of_config({"model_type": name, **changes}))
    assert (found.kind, why in found.why) == (kind, True)


def test_fields_that_the_code_does_not_read_are_named():
    config = {"model_type": "nemotron_h", "time_step_limit": [0, 1], "time_step_min": 0.1, "allow_neg_eigval": True}
    card = of_config(config)
    assert card.ignored == ("allow_neg_eigval", "time_step_limit")
    assert card.notes == (
        "calls of several tokens limit Δ to [0.1, inf], a call of one token does not; in the former a head keeps only "
        "where its decay rounds to 1",
        "one recurrent layer, whose decays read the current letter, holds fewer machines than a stack (T69)",
    )
    assert of_config({"model_type": "olmo_hybrid", "linear_allow_neg_eigval": False}).ignored == ()
    assert math.isclose(of_config({"model_type": "glm5_next"}).ranges[0].decay[0], math.exp(-5), rel_tol=1e-6)
    assert np.isclose(of_config({"model_type": "minimax"}).ranges[0].decay[0], 0.44318, atol=1e-5)
    assert answer(zoo.parity(), of_config({"model_type": "kimi_linear"})).kind == "no"
