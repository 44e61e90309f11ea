"""Figures and pictures of the documentation."""

import numpy as np
import pytest

from experiments import figures, pictures, results_io

DRAWN = pictures.pictures()


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_regenerated_as_it_stands(name):
    assert (pictures.FOLDER / name).read_text(encoding="utf-8") == DRAWN[name]


def test_what_layers_reach_is_what_gates_at_their_ends_and_between_give():
    """Eigenvalues of drawn transitions stay within what is drawn, and come near to both of its ends."""
    rng = np.random.default_rng(0)

    def unit(n):
        key = np.abs(rng.normal(size=n)) * rng.choice([0, 1], n)
        return key / max(np.linalg.norm(key), 1e-9)

    def delta(largest):
        alpha, beta, k = rng.choice([0, 0.5, 1]), rng.choice([0, 0.5, 1]) * largest, unit(3)
        return alpha * (np.eye(3) - beta * np.outer(k, k))

    def rwkv():
        w, a, k = np.exp(-0.606531 * rng.choice([0, 0.5, 1], 3)), rng.choice([0, 0.5, 1], 3), unit(3)
        return np.diag(w) - np.outer(k, a * k)

    def mamba():
        return np.exp(-rng.choice([0, 0.5, 600]) * np.exp(rng.normal())) * np.eye(2)

    drawn = {"olmo-hybrid": lambda: delta(2), "qwen3-next": lambda: delta(1), "mamba-2": mamba, "rwkv-7": rwkv}
    for layer, draw in drawn.items():
        low, high = pictures.REACHED[layer]
        found = np.concatenate([np.linalg.eigvals(draw()) for _ in range(600)])
        assert np.abs(found.imag).max() < 1e-6
        assert low - 1e-6 < found.real.min() < low + 0.01
        assert high - 0.01 < found.real.max() < high + 1e-6
    assert set(pictures.REACHED) == set(drawn) | {"pd-ssm"}


CHAINS = results_io.read("block_sizes")["results"]["chains"]


@pytest.mark.parametrize("source", CHAINS)
def test_a_figure_is_regenerated_as_it_stands(source):
    assert figures.path_of(source).read_text(encoding="utf-8") == figures.chain(CHAINS[source])
