"""Gates of models of transformers are what their modules compute."""

import numpy as np
import pytest
import torch

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.observed.observer import replaced
from fsa2lrnn.extra.huggingface.observed.read import encode, observe
from fsa2lrnn.extra.huggingface.packages import modeling
from fsa2lrnn.extra.huggingface.tokens import tokenizer

pytest.importorskip("transformers")


OBSERVERS = {kind: layer_file(name).OBSERVER for kind, name in
             [("olmo_hybrid", "olmo-hybrid"), ("qwen3_next", "qwen3-next"), ("mamba2", "mamba-2")]}  # fmt: skip


def test_heads_of_layers_and_eigenvalues_without_the_factor(random_model):
    assert OBSERVERS["olmo_hybrid"].heads(random_model("olmo_hybrid")) == {0: 3, 1: 3, 2: 3}
    assert OBSERVERS["qwen3_next"].heads(random_model("qwen3_next")) == {0: 4, 1: 4, 2: 4}
    assert OBSERVERS["mamba2"].heads(random_model("mamba2")) == {0: 4, 1: 4}
    found = observe(random_model("olmo_hybrid", linear_allow_neg_eigval=False), WORD[0])
    assert found.reach == (0.0, 1.0)
    assert found.negative == 0
    assert found.explain().startswith("no eigenvalue can be negative")


WORD = np.random.default_rng(0).integers(60, size=(1, 70)).tolist()
LAYERS = [("olmo-hybrid", "olmo_hybrid", 2), ("qwen3-next", "qwen3_next", 1), ("qwen3.5", "qwen3_5", 1)]


def given_to(file, model, word):
    """What their recurrence is given, layer by layer: key, g and β."""
    seen, recurrence = [], file.torch_chunk_gated_delta_rule

    def look(query, key, value, **more):
        seen.append((key, more["g"], more["beta"]))
        return recurrence(query, key, value, **more)

    with torch.no_grad(), replaced(file, torch_chunk_gated_delta_rule=look):
        model(input_ids=torch.tensor(word), use_cache=False)
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("name", "kind", "largest"), LAYERS)
def test_gates_are_those_of_the_module_bit_for_bit(random_model, values, name, kind, largest, dtype):
    model, file = random_model(kind, dtype), modeling(kind)
    found = values(layer_file(name).OBSERVER, model, WORD)
    assert list(found) == [0, 1, 2]
    for (key, g, beta), parts in zip(given_to(file, model, WORD), found.values(), strict=True):
        assert np.array_equal(parts["alpha"], g[0].float().exp().numpy())
        assert np.array_equal(parts["beta"], beta[0].float().numpy())
        assert 0 < parts["beta"].min() < parts["beta"].max() < largest
        if g.shape[2] != key.shape[2]:
            key = key.repeat_interleave(g.shape[2] // key.shape[2], dim=2)
        unit = file.l2norm(
            key.transpose(1, 2).to(torch.float32, memory_format=torch.contiguous_format), dim=-1, eps=1e-6
        )[0]
        assert np.array_equal(parts["key"], unit.double().square().sum(dim=-1).sqrt().T.numpy())


@pytest.mark.parametrize(("name", "kind", "largest"), LAYERS)
def test_eigenvalues_are_those_of_what_one_step_does_to_a_state(random_model, values, name, kind, largest):
    """Their one-token recurrence from S = I with a value of 0 gives the transition itself."""
    model, file = random_model(kind), modeling(kind)
    found = values(layer_file(name).OBSERVER, model, WORD)
    for (key, g, beta), parts in zip(given_to(file, model, WORD), found.values(), strict=True):
        T, heads, d = g.shape[1], g.shape[2], key.shape[3]
        for t in (0, 1, 37, T - 1):
            zero = torch.zeros(1, 1, heads, d)
            _, S = file.torch_recurrent_gated_delta_rule(
                key[:, t : t + 1], key[:, t : t + 1], zero, g=g[:, t : t + 1], beta=beta[:, t : t + 1],
                initial_state=torch.eye(d).expand(1, heads, d, d).clone(), output_final_state=True,
                use_qk_l2norm_in_kernel=True,
            )  # fmt: skip
            least = torch.linalg.eigvalsh(S[0].double()).min(dim=-1).values.numpy()
            assert np.abs(least - parts["eigenvalue"][t]).max() < 1e-6
    if largest == 2:
        assert min(parts["eigenvalue"].min() for parts in found.values()) < -0.05


def test_code_that_computes_otherwise_is_refused(random_model):
    file = modeling("olmo_hybrid")

    def other(*given, **_):
        return torch.zeros_like(given[2]), None

    with replaced(file, torch_chunk_gated_delta_rule=other), pytest.raises(UnsupportedFormat, match="install transf"):
        observe(random_model("olmo_hybrid"), WORD[0])


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_factor_is_what_their_step_makes_of_a_state_of_ones(random_model, values, dtype):
    file, model, given = modeling("mamba2"), random_model("mamba2", dtype), []
    scan = file.mamba2_chunk_scan

    def look(x, dt, A, *more, **named):
        given.append((dt, A, named["dt_bias"]))
        return scan(x, dt, A, *more, **named)

    with replaced(file, mamba2_chunk_scan=look):
        found = values(layer_file("mamba-2").OBSERVER, model, WORD)
    for (dt, A, bias), parts in zip(given, found.values(), strict=True):
        heads = len(A)
        assert np.array_equal(parts["delta"], torch.nn.functional.softplus(dt + bias)[0].float().numpy())
        for t in (0, 33, 69):
            state, zeros = torch.ones(1, heads, 1, 1), torch.zeros(1, heads, 1)
            file.mamba2_selective_state_update(
                state, zeros, dt[:, t, :, None], A[:, None, None], torch.zeros(1, 1, 1), torch.zeros(1, 1, 1),
                zeros[0], z=None, dt_bias=bias[:, None], dt_softplus=True,
            )  # fmt: skip
            assert np.array_equal(state.flatten().numpy(), parts["eigenvalue"][t])


def test_limits_and_single_letters(random_model, exported):
    found = observe(random_model("mamba2", time_step_limit=(0.002, 0.004)), WORD[0])
    low, high = float(np.float32(0.002)), float(np.float32(0.004))
    assert min(head.spreads["delta"].least for head in found.heads) == low
    assert max(head.spreads["delta"].most for head in found.heads) == high
    model = random_model("mamba2")
    alone, texts = observe(model, WORD[0][:8], window=1), [observe(model, [token]) for token in WORD[0][:8]]
    for j, head in enumerate(alone.heads):
        assert head.spreads["delta"].least == min(text.heads[j].spreads["delta"].least for text in texts)
    found = observe(exported("flip_flop", "mamba-2")[0])
    first = found.by_layer()[0][0].spreads
    assert set(first["delta"].exactly.values()) == {1}  # of three letters, one keeps
    assert (first["eigenvalue"].exactly, first["delta"].most > 500) == ({0.0: 2, 1.0: 1}, True)


def test_text_by_letters_or_by_a_tokenizer(exported, tmp_path):
    folder, _ = exported("group(S3, transpositions)", "olmo-hybrid")
    assert encode(folder, "(1,2) (2,3)\n(1,2)\n").tolist() == [0, 1, 0]
    with pytest.raises(InvalidWord, match="alphabet"):
        encode(folder, "(1,4)")
    tokenizer("abc", [True]).save_pretrained(tmp_path)
    assert encode(tmp_path, "cab").tolist() == [2, 0, 1]
    with pytest.raises(InvalidWord, match="the text is empty"):
        encode(tmp_path, "")
