"""Mamba-2: Δ and the factor of a state, as its own step multiplies."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.observed.observer import replaced
from fsa2lrnn.extra.huggingface.observed.read import observe
from fsa2lrnn.extra.huggingface.packages import modeling

WORD = np.random.default_rng(0).integers(60, size=(1, 70)).tolist()


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


def test_limits_are_kept(random_model):
    found = observe(random_model("mamba2", time_step_limit=(0.002, 0.004)), WORD[0])
    low, high = float(np.float32(0.002)), float(np.float32(0.004))
    assert min(head.spreads["delta"].least for head in found.heads) == low
    assert max(head.spreads["delta"].most for head in found.heads) == high


def test_letters_together_do_not_change_what_is_seen(random_model):
    """A chunk of one for single tokens, theirs for texts."""
    model = random_model("mamba2")
    alone, texts = observe(model, WORD[0][:8], window=1), [observe(model, [token]) for token in WORD[0][:8]]
    for j, head in enumerate(alone.heads):
        assert head.spreads["delta"].least == min(text.heads[j].spreads["delta"].least for text in texts)


def test_an_exported_model_keeps_or_forgets_whole(exported):
    found = observe(exported("flip_flop", "mamba-2")[0])
    first = found.by_layer()[0][0].spreads
    assert set(first["delta"].exactly.values()) == {1}  # of three letters, one keeps
    assert (first["eigenvalue"].exactly, first["delta"].most > 500) == ({0.0: 2, 1.0: 1}, True)
