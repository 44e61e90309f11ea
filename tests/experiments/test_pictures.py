"""Figures and pictures of the documentation."""

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from experiments import figures, pictures, results_io
from fsa2lrnn import zoo

DRAWN = pictures.pictures()
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_regenerated_as_it_stands(name):
    assert (pictures.FOLDER / name).read_text(encoding="utf-8") == DRAWN[name]


@pytest.mark.parametrize("name", DRAWN)
def test_all_of_a_picture_is_in_sight(name):
    drawn = ElementTree.fromstring(DRAWN[name])
    width, height = float(drawn.get("width")), float(drawn.get("height"))
    for text in drawn.iter(f"{SVG}text"):
        half = 4 * len(text.text)
        assert half <= float(text.get("x")) <= width - (2 * half if text.get("text-anchor") == "start" else half)
        assert 10 <= float(text.get("y")) <= height


def test_matrices_and_parity():
    machine = zoo.sum_mod(2)
    drawn = ElementTree.fromstring(pictures.two_letters(machine))
    texts = [(text.get("fill"), text.text) for text in drawn.iter(f"{SVG}text")]
    assert texts.count(("white", "1")) == len(machine.alphabet) * machine.n_states
    assert texts.count(("#aaa", "0")) == len(machine.alphabet) * machine.n_states
    said = {layer: DRAWN[f"reach_{layer}.svg"].count(": reached") for layer in pictures.REACHED}
    assert said == {"olmo-hybrid": 2, "qwen3-next": 1, "mamba-2": 1, "rwkv-7": 1, "pd-ssm": 4}


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


@pytest.mark.parametrize("source", CHAINS)
def test_every_copy_and_every_class_has_its_box(source):
    levels = CHAINS[source]["levels"]
    drawn = ElementTree.fromstring(figures.chain(CHAINS[source]))
    boxes = [one for one in drawn.iter("{http://www.w3.org/2000/svg}rect") if one.get("rx")]
    assert len(boxes) == sum(len(level["enters"]) + max(level["classes"]) + 1 for level in levels)
    assert max(float(box.get("x")) + float(box.get("width")) for box in boxes) <= float(drawn.get("width"))
    texts = list(drawn.iter("{http://www.w3.org/2000/svg}text"))
    heads = [(float(text.get("x")), text.text) for text in texts if text.get("y") == "20"]
    assert all(x + 8 * len(head) < after for (x, head), (after, _) in pairwise(heads))
    assert max(float(text.get("x")) + 8 * len(text.text) for text in texts) <= float(drawn.get("width"))
    assert max(float(box.get("y")) + 30 for box in boxes) <= float(drawn.get("height"))
