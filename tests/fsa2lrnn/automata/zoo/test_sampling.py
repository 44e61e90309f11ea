"""Random machines: the same for a seed, of the size asked, and drawn as the module says."""

from collections import Counter
from hashlib import sha256

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import trim
from fsa2lrnn.automata.zoo.sampling import _reachable_share
from fsa2lrnn.errors import InvalidMachine


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 3), (2, 1), (2, 2), (7, 1), (12, 2), (30, 5), (40, 30), (300, 2)])
def test_every_state_is_reachable_and_numbered_breadth_first(n, k):
    for seed in range(5):
        m = zoo.random_dfa(n, k, seed)
        assert (m.n_states, len(m.alphabet)) == (n, k)
        assert trim(m) == m
        assert m.is_acceptor


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 1), (2, 2), (9, 1), (15, 2), (20, 3)])
def test_minimal_machines_are_minimal(n, k):
    for seed in range(10):
        assert zoo.random_dfa(n, k, seed, minimal=True).minimise().n_states == n


def test_a_seed_decides_and_another_differs():
    drawn = [zoo.random_moore(10, 3, outputs=4, seed=seed) for seed in range(20)]
    assert drawn == [zoo.random_moore(10, 3, outputs=4, seed=seed) for seed in range(20)]
    assert len(set(drawn)) == 20


def test_a_seed_means_the_same_machine_for_ever():
    """Published results name machines by seed; this fails if numpy's stream or our way of drawing changes."""
    m = zoo.random_dfa(12, 2, seed=2024, minimal=True)
    text = f"{m.delta.tolist()} {m.outputs}"
    assert sha256(text.encode()).hexdigest()[:16] == "094eb40be6597d72"


@pytest.mark.parametrize(("n", "k", "structures"), [(2, 2, 12), (3, 1, 3), (2, 1, 2)])
def test_transition_structures_are_uniform(n, k, structures):
    """Accessible structures of 2 states over 2 letters, numbered breadth first: 12 (Bassino & Nicaud 2007)."""
    draws = 300 * structures
    seen = Counter(zoo.random_dfa(n, k, seed).delta.tobytes() for seed in range(draws))
    assert len(seen) == structures
    assert min(seen.values()) > 200
    assert max(seen.values()) < 400


def test_outputs_and_letters():
    assert set(zoo.random_moore(200, 2, outputs=3, seed=0).outputs) == {0, 1, 2}
    assert set(zoo.random_moore(200, 2, outputs=("x", None), seed=0).outputs) == {"x", None}
    assert zoo.random_moore(5, 2, outputs=1, seed=0).outputs == (0,) * 5
    assert zoo.random_dfa(3, 2, 0).alphabet == ("a", "b")
    assert zoo.random_dfa(3, 27, 0).alphabet[:2] == ("a1", "a2")


def test_the_reachable_share_is_that_of_carayol_and_nicaud():
    assert _reachable_share(2) == pytest.approx(0.7968, abs=1e-4)


def test_bad_parameters_are_named():
    with pytest.raises(InvalidMachine, match=r"random_dfa\(n=0\): n must be a whole number of at least 1"):
        zoo.random_dfa(0, 2, 0)
    with pytest.raises(InvalidMachine, match=r"random_dfa\(seed=-1\): seed must be a whole number of at least 0"):
        zoo.random_dfa(2, 2, -1)
    with pytest.raises(InvalidMachine, match=r"random_moore\(outputs=0\): outputs must be"):
        zoo.random_moore(3, 2, outputs=0, seed=0)
    with pytest.raises(InvalidMachine, match="with a single output every machine has one state: give two"):
        zoo.random_moore(3, 2, outputs=1, seed=0, minimal=True)
