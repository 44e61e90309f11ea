"""Faults at borders of chunks that only a state from the chunk before can show."""

import pytest
import torch

from fsa2lrnn.probes import InexactKernel, assert_exact
from fsa2lrnn.probes.cases import GATES, SIZES, border
from fsa2lrnn.probes.diagnose import is_exact
from fsa2lrnn.probes.operators import OPERATORS


def chunked(C, forgotten):
    """Gated linear attention by chunks of C, without the gate of one token of each chunk in the decay of the state."""

    def kernel(q, k, v, g, scale=None, initial_state=None, output_final_state=False):
        q, k, v, g = (t.float() for t in (q, k, v, g))
        B, T, H, K = q.shape
        S = torch.zeros(B, H, K, v.shape[-1]) if initial_state is None else initial_state.float()
        outputs, scale = [], K**-0.5 if scale is None else scale
        for start in range(0, T, C):
            qs, ks, vs, gs = (t[:, start : start + C] for t in (q, k, v, g))
            n, G = qs.shape[1], gs.cumsum(1)
            is_past = torch.ones(n, n).tril().bool()[..., None]
            D = (G[:, :, None] - G[:, None]).masked_fill(~is_past, -1e9).exp()
            scores = torch.einsum("bihk,bjhk->bijh", qs, ks) * D
            read = torch.einsum("bihk,bhkv->bihv", qs * G.exp()[..., None], S)
            outputs.append((torch.einsum("bijh,bjhv->bihv", scores, vs) + read) * scale)
            decay = G[:, -1] - (gs[:, forgotten] if forgotten is not None and n == C else 0)
            written = torch.einsum("bjhk,bjhv->bhkv", ks * (G[:, -1:] - G).exp()[..., None], vs)
            S = S * decay.exp()[..., None, None] + written
        return torch.cat(outputs, 1), S if output_final_state else None

    return kernel


def probed(kernel):
    return assert_exact(
        kernel, op="simple_gla", lengths=(1, 127, 128, 129), chunk_sizes=(128,), dtypes=(torch.float32,),
        gradients=False,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("forgotten", [0, -1])
def test_the_gate_of_a_border_that_the_state_does_not_meet_is_found(forgotten):
    with pytest.raises(InexactKernel, match=r"a reset at token \d+ alone: .* is wrong"):
        probed(chunked(128, forgotten))


def test_the_kernel_with_all_gates_passes():
    assert "128" in str(probed(chunked(128, None)))


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if {*GATES} & {*op.tensors}])
def test_words_with_one_reset_are_exact(name):
    for dtype in SIZES:
        for token in (16, 31):
            assert is_exact(OPERATORS[name], border(OPERATORS[name], token, 16, token), dtype)
