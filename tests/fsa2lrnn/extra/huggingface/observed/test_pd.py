"""PD-SSM: maps, factors and eigenvalues of what its file multiplies by; weights that are none."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.extra.huggingface.observed.observer import replaced
from fsa2lrnn.extra.huggingface.observed.pd import PdSsmObserver, longest_and_least
from fsa2lrnn.extra.huggingface.observed.read import observe
from fsa2lrnn.optional import is_installed

has_it = pytest.mark.skipif(
    not (is_installed("pdssm") and is_installed("einops")), reason="pdssm.py is not on the path"
)


def test_eigenvalues_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    for n in range(1, 9):
        for _ in range(30):
            sources = rng.permutation(n) if rng.random() < 0.4 else rng.integers(n, size=n)
            factors = rng.uniform(0, 1, n) * np.exp(2j * np.pi * rng.choice([0, 0.5, 0.3], n))
            matrix = np.zeros((n, n), complex)
            matrix[np.arange(n), sources] = factors
            longest, least = longest_and_least(sources, factors)
            assert abs(np.linalg.eigvals(matrix).real.min() - least) < 1e-3  # nilpotent parts lose half the digits
            power, seen = np.arange(n), set()
            for _ in range(n):
                power = sources[power]
            for q in set(power.tolist()):
                length, p = 1, sources[q]
                while p != q:
                    length, p = length + 1, sources[p]
                seen.add(length)
            assert longest == max(seen)


def test_an_exchange_has_minus_one():
    assert longest_and_least(np.array([1, 0, 2]), np.ones(3)) == (2, -1)
    assert longest_and_least(np.array([0, 0, 0]), np.ones(3)) == (1, 0)


def made(state_size=9, layers=2):
    from fsa2lrnn.extra.huggingface.packages import pdssm

    torch.manual_seed(0)
    sizes = {"output_size": 3, "input_size": 5, "state_size": state_size, "embed_size": state_size}
    return pdssm().PD(**sizes, dictionary_size=4, num_layers=layers, return_all_outputs=True).eval()


@has_it
def test_what_is_seen_is_what_multiplies_the_state(values):
    """Their states without input, h ← D P h from e₁ on, are those of the maps and factors that are reported."""
    from fsa2lrnn.extra.huggingface.packages import pdssm

    file, model = pdssm(), made(layers=1)
    (block,) = model.blocks
    with torch.no_grad():
        block.B_re.zero_()
        block.B_im.zero_()
    word, seen = [[0, 3, 1, 1, 4, 2, 0]], []
    block.drop.register_forward_pre_hook(lambda _, given: seen.append(given[0][0]))
    maps, product = [], file.einsum

    def look(*given):
        maps.append(product(*given))
        return maps[-1]

    with replaced(file, einsum=look):
        found = values(PdSsmObserver(), model, word)[0]
    h = np.zeros(9, complex)
    h[0] = 1
    for t in range(7):
        sources = maps[0][0, t].softmax(dim=-1).argmax(dim=-1).numpy()
        size, turn = found["magnitude"].reshape(7, 9)[t], found["phase"].reshape(7, 9)[t]
        h = size * np.exp(2j * np.pi * turn) * h[sources]
        theirs = seen[0][t].double().numpy()
        assert np.abs(theirs[:9] + 1j * theirs[9:] - h).max() < 1e-6
        assert found["cycle"][t, 0] == longest_and_least(sources, np.ones(9))[0]


@has_it
def test_a_report_of_a_folder(tmp_path):
    model = made()
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    found = observe(tmp_path, [0, 1, 2, 3, 4, 0])
    assert found.to_json() == observe(model, [0, 1, 2, 3, 4, 0]).to_json()
    assert [(head.layer, head.head) for head in found.heads] == [(0, 0), (1, 0)]
    assert 0 < found.heads[0].spreads["magnitude"].least < found.heads[0].spreads["magnitude"].most < 1
    assert model.training is False


@has_it
@pytest.mark.parametrize(("task", "least"), [("parity", -1.0), ("flip_flop", 0.0), ("sum_mod(5)", -0.8090169943749475)])
def test_exported_models_have_the_eigenvalues_of_their_machine(exported, task, least):
    found = observe(exported(task, "pd-ssm")[0])
    (head,) = found.heads
    assert abs(head.spreads["eigenvalue"].least - least) < 1e-12
    assert head.spreads["magnitude"].exactly[1.0] == head.spreads["phase"].exactly[0.0] == head.spreads["phase"].n


@has_it
def test_weights_that_are_none(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(made().state_dict(), path)
    weights = load_file(path)
    for changed, message in [
        ({**weights, "blocks.0.S.weight": torch.zeros(7, 9)}, r"blocks\.0\.S\.weight are not as a PD"),
        ({**weights, "blocks.10000.norm.bias": torch.zeros(9)}, "10,001 blocks of"),
        ({**weights, "blocks.x.norm.bias": torch.zeros(9)}, "holds no model of pd-ssm"),
        ({**weights, "blocks.0.A_dict": torch.zeros(9, 9)}, "holds no model of pd-ssm"),
        ({**weights, "more": torch.zeros(9)}, "more are not as a PD"),
        ({"readout.weight": torch.zeros(2, 2)}, "holds no model of pd-ssm"),
    ]:
        save_file(changed, path)
        with pytest.raises(CheckpointError, match=message):
            observe(tmp_path, [0])
    path.write_bytes(b"none")
    with pytest.raises(CheckpointError, match="holds no model of pd-ssm"):
        observe(tmp_path, [0])
