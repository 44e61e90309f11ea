"""Whole models, as the code of each layer runs them on a CPU."""

import numpy as np
import pytest
import torch

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.extra.huggingface.refuse import refuse
from fsa2lrnn.optional import is_installed
from fsa2lrnn.verification import Proved

from .conftest import MACHINES

pytest.importorskip("transformers")
NEEDS = {"rwkv-7": ["rwkv"], "slstm": ["xlstm"], "pd-ssm": ["pdssm", "einops"]}
CLASSES = {
    "kimi-linear": "KimiLinearForCausalLM", "mamba": "MambaForCausalLM", "mamba-2": "Mamba2ForCausalLM",
    "rwkv-7": "RWKV_x070 of rwkv", "olmo-hybrid": "OlmoHybridForCausalLM",
}  # fmt: skip
TASKS = {
    **dict.fromkeys(["kimi-linear", "mamba", "mamba-2", "rwkv-7"], tuple(MACHINES)),
    **dict.fromkeys(["qwen3-next", "qwen3.5"], ("flip_flop", "ab_star", "register")),
    "olmo-hybrid": ["parity", "flip_flop", "group(S3, transpositions)", "ab_star", "group(S4)"],
    "slstm": ["parity", "flip_flop", "ab_star", "sum_mod(5)", "group(S3)", "mod_arith(2)"],
    "pd-ssm": ["parity", "flip_flop", "ab_star", "sum_mod(5)", "mod_arith(2)"],
}
LONG = {
    **TASKS, "qwen3.5": [],
    "olmo-hybrid": ["group(S3, transpositions)", "group(S4, transpositions)", "group(S5, transpositions)"],
    "slstm": [*TASKS["slstm"], "mod_arith(5)", "group(S5, transpositions)"],
    "pd-ssm": [*TASKS["pd-ssm"], "mod_arith(5)", "group(S5, transpositions)"],
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
    found = [*cases(table, lambda layer: ["float32"] if layer in ("slstm", "pd-ssm") else ["float32", "bfloat16"])]
    for case in found:
        layer, _, dtype = case.values
        i = sum(other.values[0] == layer and other.values[2] == dtype for other in found[: found.index(case)])
        is_due = dtype == ("float32", "bfloat16")[i % 2] or layer in ("slstm", "pd-ssm")
        yield case if is_due else pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)


@pytest.mark.parametrize(("layer", "machine", "dtype"), [*in_turn(TASKS)])
def test_whole_words_pieces_and_single_letters_agree_with_the_machine(exported, agrees, layer, machine, dtype):
    folder, written = exported(machine, layer, dtype)
    assert CLASSES.get(layer, layer_file(layer).CODE.kind) in str(written.verdict.covers)
    model = load(folder)
    assert model.dtype == dtype
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=130).tolist()
    for chunk, letters in ((130, 130), (50, 130), (7, 50), (1, 30)):
        assert agrees(model, word[:letters], chunk)


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "machine", "dtype"), [*cases(LONG)])
def test_a_hundred_thousand_letters(exported, agrees, layer, machine, dtype):
    model = load(exported(machine, layer, dtype)[0])
    word = np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist()
    assert agrees(model, word, len(word) if layer == "mamba" else 2_048)
    assert agrees(model, word[:3_000], 1)
    if machine == zoo.ab_star():
        assert agrees(model, [0, 1] * 50_000, 100_000)


WEIGHTS = {
    ("kimi-linear", "register"): "model.layers.0.self_attn: q_proj k_proj v_proj forget_gate.f_b_proj o_proj",
    ("mamba", "ab_star"): "backbone.layers.2.mixer: in_proj x_proj dt_proj out_proj",
    ("mamba-2", "ab_star"): "backbone.layers.1.mixer: in_proj out_proj",
    ("olmo-hybrid", "group(S3, transpositions)"): "model.layers.0.linear_attn: k_proj v_proj b_proj o_proj",
    ("slstm", "sum_mod(5)"): "xlstm_block_stack.blocks.0.xlstm: zgate slstm_cell._recurrent_kernel_ slstm_cell._bias_",
    ("rwkv-7", "ab_star"): "blocks.1: att.a1 att.value ffn.key",
}


@pytest.mark.parametrize(("layer", "machine", "dtype"), [*cases({layer: [task] for layer, task in WEIGHTS})])
def test_a_changed_weight_is_noticed(exported, layer, machine, dtype):
    ((place, _, names),) = (text.partition(": ") for (known, _), text in WEIGHTS.items() if known == layer)
    for name in names.split():
        model = load(exported(machine, layer, dtype)[0])
        weights = getattr(model.model, "z", None) or dict(model.model.named_parameters())
        with torch.no_grad():
            (weights.get(f"{place}.{name}.weight", weights.get(f"{place}.{name}"))).neg_()
        assert not isinstance(prove(model, budget=200), Proved)


@pytest.mark.parametrize(("layer", "machine", "dtype"), [*cases({"olmo-hybrid": ["ab_star"], "slstm": ["ab_star"]})])
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


@pytest.mark.parametrize("layer", ["kimi-linear", "mamba", "qwen3-next", "rwkv-7"])
@pytest.mark.parametrize("task", ["parity", "sum_mod(5)", "group(S3)", "group(S3, transpositions)", "tomita(3)"])
def test_groups_are_refused(layer, task):
    refusal = refuse(zoo.from_task(task), layer)
    assert refusal.check().startswith(f"impossible: one layer or a stack of them without attention of {layer}")
    assert layer != "rwkv-7" or len(refusal.repeated) == 1


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("kimi-linear", "β = 2 is asked for, and this layer reaches 1"),
        *((layer, "keep all that they hold or forget it") for layer in ("mamba", "mamba-2", "rwkv-7")),
    ],
)
def test_layers_without_reflections_refuse_a_plan_of_them(layer, message):
    plan = construct(zoo.group("S3", "transpositions"), has_reflections=True)
    with pytest.raises(NotExpressible, match=message):
        layer_file(layer).build(plan, torch.float32)
