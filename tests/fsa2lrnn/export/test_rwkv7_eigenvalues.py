"""Gates, eigenvalues and norms of RWKV-7 in its package, against its own steps bit for bit."""

import numpy as np
import pytest
import torch

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, MissingPackage
from fsa2lrnn.export.eigenvalues import ARCHITECTURES, eigenvalues
from fsa2lrnn.export.rwkv7 import load_model, quietly, step_gates, zeros
from fsa2lrnn.optional import is_installed

has_rwkv = pytest.mark.skipif(not is_installed("rwkv"), reason="rwkv is not installed")
WORD = np.random.default_rng(0).integers(60, size=70)


VOCABULARY, H, HEADS, LAYERS = 11, 32, 4, 3


def weights(dtype=torch.float32):
    """Weights of RWKV-7 in the shapes of released models, so large that gates move."""
    rng = torch.Generator().manual_seed(0)

    def draw(*shape):
        return (torch.randn(*shape, generator=rng) * 0.4).to(dtype)

    z = {"emb.weight": draw(VOCABULARY, H), "head.weight": draw(VOCABULARY, H)}
    z |= {f"{name}.weight": torch.ones(H, dtype=dtype) for name in ("ln_out", "blocks.0.ln0")}
    z |= {f"{name}.bias": draw(H) for name in ("ln_out", "blocks.0.ln0")}
    for i in range(LAYERS):
        block = {f"att.x_{branch}": draw(1, 1, H) for branch in "rwkvag"}
        block |= {f"att.{name}": draw(1, 1, H) * 5 for name in ("w0", "a0", "v0", "k_k", "k_a")}
        for gate in "wavg":
            block |= {f"att.{gate}1": draw(H, 6) * 3, f"att.{gate}2": draw(6, H) * 3}
        block |= {f"att.{name}.weight": draw(H, H) for name in ("receptance", "key", "value", "output")}
        block |= {"att.r_k": draw(HEADS, H // HEADS), "att.ln_x.weight": draw(H), "att.ln_x.bias": draw(H)}
        block |= {"ffn.x_k": draw(1, 1, H), "ffn.key.weight": draw(48, H), "ffn.value.weight": draw(H, 48)}
        block |= {f"{ln}.{part}": draw(H) for ln in ("ln1", "ln2") for part in ("weight", "bias")}
        z |= {f"blocks.{i}.{name}": part for name, part in block.items()}
    return z


def rwkv_folder(path, z=None):
    torch.save(weights() if z is None else z, path / "any-name.pth")
    return path


@has_rwkv
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_state_of_rwkv7_follows_from_the_gates_bit_for_bit(tmp_path, dtype):
    rwkv_folder(tmp_path, weights(dtype))
    model = load_model(tmp_path / "any-name.pth")
    z, N = model.z, H // HEADS
    assert z["emb.weight"].dtype == dtype
    state = zeros(model)
    with quietly(), torch.no_grad():
        for token in WORD[:12] % VOCABULARY:
            before = list(state)
            _, state = model.forward([token], state)
            for i in range(LAYERS):
                x, x_prev = state[3 * i], before[3 * i]
                w, a, key = step_gates(z, i, x, x_prev, HEADS)
                part = {name.rpartition("att.")[2]: p for name, p in z.items() if name.startswith(f"blocks.{i}.att.")}
                xx = x_prev - x
                k = (x + xx * part["x_k"]) @ part["key.weight"]
                k = k * (1 + (a.view(-1) - 1) * part["k_a"])
                xv = x + xx * part["x_v"]
                v = xv @ part["value.weight"]
                if i == 0:
                    v_first = v
                else:
                    v = v + (v_first - v) * torch.sigmoid(part["v0"] + (xv @ part["v1"]) @ part["v2"])
                vk = v.view(HEADS, N, 1) @ k.view(HEADS, 1, N)
                ab = (-key).view(HEADS, N, 1) @ (key * a).view(HEADS, 1, N)
                S = before[3 * i + 1]
                wanted = S * w.view(HEADS, 1, N) + S @ ab.float() + vk.float()
                assert torch.equal(state[3 * i + 1], wanted)


@has_rwkv
def test_a_report_of_rwkv7(tmp_path, exported):
    found = eigenvalues(rwkv_folder(tmp_path), WORD % VOCABULARY)
    assert (found.layer, found.n_tokens, len(found.heads)) == ("rwkv-7", 70, LAYERS * HEADS)
    for head in found.heads:
        for name, (least, most) in head.possible.items():
            assert least - 1e-6 <= head.observed[name][0] <= head.observed[name][1] <= most + 1e-6
    assert ARCHITECTURES["rwkv-7"].eigenvalues[0] < min(head.observed["eigenvalue"][0] for head in found.heads) < 0
    assert eigenvalues(load_model(tmp_path / "any-name.pth"), WORD % VOCABULARY).heads == found.heads
    head = eigenvalues(exported("flip_flop", "rwkv-7")[0], [0, 1, 2]).heads[0]
    assert (head.observed["decay"], head.negative) == ((1, 1), 0)
    assert head.observed["eigenvalue"] == pytest.approx((0, 1))


@pytest.mark.parametrize(("name", "part", "message"), [
    ("emb.weight", None, "emb.weight is missing"),
    ("blocks.1.att.k_k", torch.zeros(3), r"blocks.1.att.k_k has shape \(3,\)"),
    ("blocks.1.att.x_w", torch.zeros(H, 1, 2), r"blocks.1.att.x_w has shape \(32, 2\)"),
    ("blocks.2.att.a2", torch.zeros(7, H), r"blocks.2.att.a2 has shape \(7, 32\)"),
    ("blocks.0.att.r_k", torch.zeros(H), "has no blocks.0.att.r_k of heads"),
    ("blocks.7.ln1.weight", torch.zeros(H), "blocks 0, 1, 2, 7 are not numbered"),
    ("blocks.1.ffn.value.weight", torch.zeros(1).expand(H, 10**9), "its tensors are 128,"),
    ("blocks.0.att.w1", 3, "is not a table of tensors"),
])  # fmt: skip
def test_weights_of_rwkv7_that_are_refused(tmp_path, name, part, message):
    z = weights()
    if part is None:
        del z[name]
    else:
        z[name] = part
    with pytest.raises(CheckpointError, match=message):
        eigenvalues(rwkv_folder(tmp_path, z), [0])


def test_files_of_rwkv7_that_are_refused(tmp_path):
    path = rwkv_folder(tmp_path) / "any-name.pth"
    whole = path.read_bytes()
    for content in (b"", b"abc", whole[:900], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is damaged or holds no model"):
            eigenvalues(tmp_path, [0])
    torch.save(weights(torch.float16), path)
    with pytest.raises(CheckpointError, match=r"weights in torch\.float16; convert"):
        eigenvalues(tmp_path, [0])


@pytest.mark.skipif(is_installed("rwkv"), reason="rwkv is installed")
def test_the_package_is_named(tmp_path):
    with pytest.raises(MissingPackage, match=r"pip install rwkv==0\.8\.32"):
        eigenvalues(rwkv_folder(tmp_path), [0])


@has_rwkv
def test_any_tensor_of_rwkv7_may_be_wrong(tmp_path):
    rng = np.random.default_rng(0)
    for name in list(weights())[::9]:
        z = weights()
        z[name] = z[name].flatten()[: int(rng.integers(z[name].numel()))]
        with pytest.raises(Fsa2LrnnError):
            eigenvalues(rwkv_folder(tmp_path, z), [0, 1])
