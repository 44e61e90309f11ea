"""What each architecture of transformers holds and computes, bit for bit, and models as torch has them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fsa2lrnn import Proved, zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.export import mamba_models, target
from fsa2lrnn.export.constructions import construct
from fsa2lrnn.export.folder import ExportedModel, load, run
from fsa2lrnn.export.packages import cache_name, modeling, transformers
from fsa2lrnn.export.plan import Shape, orbit
from fsa2lrnn.export.refuse import refuse
from fsa2lrnn.export.whole_model import prove
from fsa2lrnn.layers import of_name
from fsa2lrnn.optional import is_installed

from .conftest import MACHINES

pytest.importorskip("transformers")


@pytest.mark.long_cases("bfloat16", "float32")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_layer_of_a_stack_rounds(exported, dtype):
    """In every layer each head holds a matrix of its plan after each letter, times a power of two."""
    folder, written = exported("sum_mod(3)", "olmo-hybrid", dtype)
    model, cache = load(folder), None
    for a in np.random.default_rng(3).integers(3, size=25).tolist():
        cache = run(model, torch.tensor([a]), cache=cache)[1]
        for layer, stage in zip(cache.layers, written.plan.stages, strict=False):
            held = layer.recurrent_states[0][0].numpy() / np.sqrt(layer.recurrent_states[0][0, 0].numel())
            for S, head in zip(held, stage.orbits, strict=False):
                rows, columns = head.states[0].shape
                assert any(np.array_equal(S[:rows, :columns], state) for state in head.states)


@pytest.mark.long_cases("kimi-linear-256.0-place0")
@pytest.mark.parametrize(
    ("layer", "held", "place"),
    [("kimi-linear", 2.0**8, (0, 0, 0)), ("mamba", 2.0**21, (0, ..., 0)), ("mamba-2", 2.0**21, (0, 0, ..., 0))],
)
def test_what_is_held_is_one_number_a_value_exactly(exported, layer, held, place):
    """What was written last, times powers of two, is the same after any number of letters that keep it."""
    model = load(exported(MACHINES["register"], layer)[0])
    cache, states = None, set()
    for a in [1, 0, 0, 3, 0, 5, 5, 3, *[0] * 50]:
        _, cache = model.code.read(model.model, torch.tensor([a]), cache)
        states.add(tuple(cache.layers[0].recurrent_states[0][place].flatten()[:5].tolist()))
    assert states == {tuple(held * (q == value) for q in range(5)) for value in (0, 2, 4)}


def decay_of_kimi(logit):
    config = modeling("kimi_linear").KimiLinearConfig(hidden_size=2, linear_num_heads=1, linear_head_dim=2)
    gate = modeling("kimi_linear").KimiLinearForgetGate(config)
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter.zero_()
        gate.dt_bias.fill_(float(logit))
        return gate(torch.zeros(1, 1, 2)).exp().unique().item()


def decay_of_a_step(logit):
    h, nothing = torch.tensor([[[0.7]]]), torch.zeros(1, 1)  # a number that no power of two hides
    A, dt = torch.tensor([[-1.0]]), torch.tensor([[float(logit)]])
    modeling("mamba").mamba_selective_state_update(h, nothing, dt, A, nothing, nothing, dt_softplus=True)
    return (h / 0.7).item()


def decay_of_a_scan(logit):
    """The first letter writes 0.7: Δ·B·x with Δ = 512."""
    x, dts = torch.tensor([[[0.7 / 512, 0.0]]]), torch.tensor([[[512.0, float(logit)]]])
    A, ones = torch.tensor([[-1.0]]), torch.ones(1, 1, 2)
    _, h = modeling("mamba").mamba_selective_scan(x, dts, A, ones, ones, delta_softplus=True, return_last_state=True)
    return (h / (512 * x[0, 0, 0])).item()


@pytest.mark.parametrize(("decay", "least"), [(decay_of_kimi, -17), (decay_of_a_step, -103), (decay_of_a_scan, -103)])
def test_gates_are_exact_at_their_ends_and_not_between(decay, least):
    """exp(−log(1 + exp(logit))), by the code of the layers."""
    assert (decay(-512), decay(least), decay(104), decay(512)) == (1.0, 1.0, 0.0, 0.0)
    assert 0 < decay(10) < decay(-10) < 1


@pytest.mark.long
def test_a_cascade_through_ten_layers(exported, agrees):
    """Ramps are flat, so that what is written in a layer is no less right than in the one before."""
    model = load(exported("dyck(1, 2)", "mamba", "bfloat16")[0])
    assert model.model.config.num_hidden_layers == 10
    assert agrees(model, np.random.default_rng(1).integers(2, size=40).tolist())


def test_mamba_forgets_between_calls_and_channels_that_keep_all_are_noticed(exported):
    model = load(exported("flip_flop", "mamba")[0])
    tokens = torch.tensor([0, *[2] * 7])  # set, and then keep
    wanted, _ = model.code.read(model.model, tokens, None)
    _, cache = model.code.read(model.model, tokens[:4], None)
    with transformers(), torch.no_grad():
        more = {"use_cache": True, cache_name(model.model): cache}
        anew = model.model(input_ids=tokens[None, 4:], **more).logits[0].argmax(dim=1)
    assert wanted[-1] != anew[-1]
    _, cache = model.code.read(model.model, tokens[:4], None)
    assert model.code.read(model.model, tokens[4:], cache)[0].tolist() == wanted[4:].tolist()
    model = load(exported(MACHINES["ab_star"], "mamba")[0])
    with torch.no_grad():
        model.model.backbone.layers[2].mixer.A_log.fill_(-torch.inf)  # A = 0
    assert not isinstance(prove(model, budget=200), Proved)
    with pytest.raises(NotExpressible, match="one value of 64 at a time"):
        mamba_models.build_mamba(_with_values_of_32(), torch.float32)


def _with_values_of_32():
    plan = construct(zoo.flip_flop(), has_reflections=False)
    (stage,) = plan.stages
    head = stage.orbits[0].head
    smaller = orbit(replace(head, values=head.values / 2))
    return replace(plan, stages=(replace(stage, orbits=(smaller,)),))


pytest.importorskip("transformers")
NEEDS = {"rwkv-7": ["rwkv"]}
SIBLINGS = (
    "qwen3.5-moe", "lara-mini", "bailing-hybrid", "bamba", "falcon-h1", "granite-moe-hybrid", "nemotron-h", "zamba2",
    "falcon-mamba", "jamba",
)  # fmt: skip
CLASSES = {
    "kimi-linear": "KimiLinearForCausalLM", "mamba": "MambaForCausalLM", "mamba-2": "Mamba2ForCausalLM",
    "rwkv-7": "RWKV_x070 of rwkv", "olmo-hybrid": "OlmoHybridForCausalLM",
}  # fmt: skip
TASKS = {
    **dict.fromkeys(["kimi-linear", "mamba", "mamba-2", "rwkv-7"], tuple(MACHINES)),
    **dict.fromkeys(["qwen3-next", "qwen3.5"], ("flip_flop", "ab_star", "register")),
    "olmo-hybrid": ["parity", "flip_flop", "group(S3, transpositions)", "ab_star", "group(S4)"],
    **dict.fromkeys(SIBLINGS, ("flip_flop", "ab_star", "cascade")),
}
LONG = {
    **TASKS, "qwen3.5": [], **dict.fromkeys(SIBLINGS, ("cascade",)),
    "olmo-hybrid": ["group(S3, transpositions)", "group(S4, transpositions)", "group(S5, transpositions)"],
}  # fmt: skip


def cases(table, dtypes=lambda _: ["float32"]):
    for layer, tasks in table.items():
        lacks = [name for name in NEEDS.get(layer, ()) if not is_installed(name)]
        for task in tasks:
            for dtype in dtypes(layer):
                mark = pytest.mark.skipif(bool(lacks), reason=f"{', '.join(lacks)} is not installed")
                yield pytest.param(layer, MACHINES.get(task, task), dtype, marks=mark, id=f"{layer}-{task}-{dtype}")


def in_turn(table):
    """Each task of a layer in one precision, in turn, where the layer has both; the slow tests take the other."""
    found = [*cases(table, lambda _: ["float32", "bfloat16"])]
    for case in found:
        layer, _, dtype = case.values
        i = sum(other.values[0] == layer and other.values[2] == dtype for other in found[: found.index(case)])
        is_due = dtype == ("float32", "bfloat16")[i % 2]
        yield case if is_due else pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)


@pytest.mark.long_cases(
    "kimi-linear-shift_register-float32", "mamba-2-shift_register-float32", "mamba-register-bfloat16",
    "olmo-hybrid-group(S4)-float32", "qwen3-next-register-float32",
    *(f"{layer}-{case}" for layer in SIBLINGS for case in ("ab_star-bfloat16", "cascade-float32")),
)  # fmt: skip
@pytest.mark.parametrize(("layer", "machine", "dtype"), [*in_turn(TASKS)])
def test_whole_words_pieces_and_single_letters_agree_with_the_machine(exported, agrees, layer, machine, dtype):
    folder, written = exported(machine, layer, dtype)
    assert (CLASSES.get(layer) or target(layer).code.kind) in str(written.verdict.covers)
    model = load(folder)
    assert model.dtype == dtype
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=130).tolist()
    for chunk, letters in ((130, 130), (50, 130), (7, 50), (1, 30)):
        assert agrees(model, word[:letters], chunk)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layer", SIBLINGS)
def test_siblings_with_experts_and_attention_between_layers(agrees, layer, dtype):
    """Plans in the shape of canaries: experts where the model has them, heads of 16, attention after two stages."""
    plan = construct(MACHINES["cascade"], has_reflections=False)
    model = target(layer).build(replace(plan, shape=Shape(16, 1, 2, 4)), getattr(torch, dtype))
    has_experts = any("experts" in name for name, _ in model.named_parameters())
    assert has_experts == (layer in ("qwen3.5-moe", "lara-mini", "granite-moe-hybrid", "nemotron-h", "jamba"))
    exported = ExportedModel(model, layer, plan.machine, plan.outputs, target(layer).code, "")
    assert isinstance(prove(exported), Proved)
    word = np.random.default_rng(4).integers(len(plan.machine.alphabet), size=300).tolist()
    assert all(agrees(exported, word, chunk) for chunk in (300, 50, 1))


@pytest.mark.parametrize("layer", SIBLINGS)
def test_answers_about_siblings_are_those_about_the_layer_in_them(layer):
    first = of_name(layer).exported_to[0]
    assert target(layer).plan is target(first).plan
    refusals = [refuse(zoo.parity(), name) for name in (layer, first)]
    assert refusals[0] == refusals[1] is not None


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "machine", "dtype"), [*cases(LONG)])
def test_a_hundred_thousand_letters(exported, agrees, layer, machine, dtype):
    model = load(exported(machine, layer, dtype)[0])
    word = np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist()
    assert agrees(model, word, 2_048 if model.code.continues_by_pieces else len(word))
    assert agrees(model, word[:3_000], 1)
    if machine == zoo.ab_star():
        assert agrees(model, [0, 1] * 50_000, 100_000)


WEIGHTS = {
    ("kimi-linear", "register"): "model.layers.0.self_attn: q_proj k_proj v_proj forget_gate.f_b_proj o_proj",
    ("mamba", "ab_star"): "backbone.layers.2.mixer: in_proj x_proj dt_proj out_proj",
    ("mamba-2", "ab_star"): "backbone.layers.1.mixer: in_proj out_proj",
    ("olmo-hybrid", "group(S3, transpositions)"): "model.layers.0.linear_attn: k_proj v_proj b_proj o_proj",
    ("falcon-h1", "ab_star"): "model.layers.1: mamba.in_proj mamba.out_proj feed_forward.up_proj",
    ("jamba", "ab_star"): "model.layers.1: mamba.x_proj mamba.b_layernorm feed_forward.gate_proj",
    ("nemotron-h", "ab_star"): "model.layers: 2.mixer.in_proj 3.mixer.up_proj",
    ("rwkv-7", "ab_star"): "blocks.1: att.a1 att.value ffn.key",
}


@pytest.mark.long_cases("kimi-linear-register-float32")
@pytest.mark.parametrize(("layer", "machine", "dtype"), [*cases({layer: [task] for layer, task in WEIGHTS})])
def test_a_changed_weight_is_noticed(exported, layer, machine, dtype):
    ((place, _, names),) = (text.partition(": ") for (known, _), text in WEIGHTS.items() if known == layer)
    for name in names.split():
        model = load(exported(machine, layer, dtype)[0])
        weights = getattr(model.model, "z", None) or dict(model.model.named_parameters())
        with torch.no_grad():
            (weights.get(f"{place}.{name}.weight", weights.get(f"{place}.{name}"))).neg_()
        assert not isinstance(prove(model, budget=200), Proved)


@pytest.mark.parametrize(("layer", "machine", "dtype"), [*cases({"olmo-hybrid": ["ab_star"]})])
def test_a_cache_from_a_state_goes_on_as_the_cache_does(exported, layer, machine, dtype):
    model = load(exported(machine, layer, dtype)[0])
    code = model.code
    _, cache = code.read(model.model, torch.tensor([0, 1, 0]), None)
    again = code.cache(model.model, code.state(model.model, cache))
    for a in (1, 0, 0, 1):
        wanted, cache = code.read(model.model, torch.tensor([a]), cache)
        given, again = code.read(model.model, torch.tensor([a]), again)
        assert given.tolist() == wanted.tolist()
        states = zip(code.state(model.model, again), code.state(model.model, cache), strict=True)
        assert all(torch.equal(x, y) for x, y in states)


@pytest.mark.parametrize(("layer", "message"), [
    *((layer, "β = 2 is asked for, and this layer reaches 1") for layer in ("kimi-linear", *SIBLINGS[:3])),
    *((layer, "keep all that they hold or forget it") for layer in ("mamba", "mamba-2", "rwkv-7", *SIBLINGS[3:])),
])  # fmt: skip
def test_layers_without_reflections_refuse_a_plan_of_them(layer, message):
    plan = construct(zoo.group("S3", "transpositions"), has_reflections=True)
    with pytest.raises(NotExpressible, match=message):
        target(layer).build(plan, torch.float32)
