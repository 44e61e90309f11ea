"""Words that every network of a kind confuses (T55, T56, T69), compared with networks that run and with the monoid."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.export import confused_words
from fsa2lrnn.export.confused_words import confused
from fsa2lrnn.families import RejectedCertificate, recheck, represent
from fsa2lrnn.testing.strategies import machines


def words_up_to(n_letters, length):
    return itertools.chain.from_iterable(itertools.product(range(n_letters), repeat=k) for k in range(1, length + 1))


def state_after(machine, word, q=None):
    q = machine.start if q is None else q
    for a in word:
        q = int(machine.delta[a, q])
    return q


def is_function(pairs):
    """Return whether no first entry occurs with two second entries."""
    known = {}
    return all(known.setdefault(key, value) == value for key, value in pairs)


def is_locally_trivial_at_all_lengths(machine):
    """Decide T55 by the transition semigroup: e t e = e in the stable image of the words of one length."""
    letters = {tuple(row) for row in machine.delta.tolist()}
    images = [letters]
    while True:
        images.append({tuple(b[q] for q in a) for a in images[-1] for b in letters})
        k = len(images)
        doubled = {tuple(b[q] for q in a) for a in images[-1] for b in images[-1]}
        if doubled == images[-1]:
            stable = images[k - 1]
            idempotents = [e for e in stable if tuple(e[q] for q in e) == e]
            return all(tuple(e[t[q]] for q in e) == e for e in idempotents for t in stable)


def run_two_layers(word, n_letters, h, m):
    """Run input-independent layers exactly: a delay line and a counter, and above them a sum that stops to grow."""
    size = (h + 1) * n_letters
    A = np.zeros((size + m, size + m), int)
    A[n_letters:size, : size - n_letters] = np.eye(size - n_letters, dtype=int)  # nilpotent
    A[size:, size:] = np.roll(np.eye(m, dtype=int), 1, axis=0)
    x, y = np.zeros(size + m, int), np.zeros(size, int)
    x[size] = 1
    for a in word:
        x = A @ x
        x[a] += 1
        filled = int(x[:size].sum())
        if filled <= h:  # a function of the layer below
            y[(filled - 1) * n_letters + a] += 1
    return (*x[: h * n_letters], *x[size:], *y)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(machines(max_states=4, max_letters=2))
def test_stacks_of_input_independent_layers_are_decided_as_the_monoid_and_running_layers_decide(machine):
    minimal = machine.minimise()
    words = confused(machine, "lti-stack")
    assert (words is None) == is_locally_trivial_at_all_lengths(minimal)
    n_letters = len(minimal.alphabet)
    runs = [(run_two_layers(word, n_letters, 4, 12), state_after(minimal, word)) for word in words_up_to(n_letters, 9)]
    if words is None:
        assert is_function(runs)
        return
    assert words.check()
    u, loop, detour = words.words
    rounds = 12 * 4
    first = (*u, *loop * rounds, *detour, *loop * rounds)
    other = (*u, *loop * rounds, *loop * (len(detour) // len(loop)), *loop * rounds)
    assert run_two_layers(first, n_letters, 4, 12) == run_two_layers(other, n_letters, 4, 12)
    assert state_after(minimal, first) != state_after(minimal, other)


@settings(max_examples=60, deadline=None)
@given(machines(max_states=4, max_letters=3))
def test_stacks_of_diagonal_input_independent_layers_know_the_last_letter_and_the_length(machine):
    minimal = machine.minimise()
    words = confused(machine, "lti-diagonalisable-stack")
    period = math.lcm(*range(1, minimal.n_states + 1))
    pairs = ((word[-1], len(word) % period, state_after(minimal, word)) for word in words_up_to(len(minimal.delta), 8))
    known = is_function(((a, k), q) for a, k, q in pairs)
    if words is None:
        assert known
        assert confused(machine, "lti-stack") is None
    else:
        assert words.check()
    if represent(machine, "lti-diagonalisable", short_words=False).answer == "yes":
        assert words is None
    if represent(machine, "lti", short_words=False).answer == "yes":
        assert confused(machine, "lti-stack") is None


def attended(word, scores, is_rightmost):
    """Return the letter that one head of hard attention, strictly masked, reads at the last position."""
    *earlier, letter = word
    best = max((scores[letter, b] for b in earlier), default=None)
    chosen = [b for b in earlier if scores[letter, b] == best]
    return chosen[-1 if is_rightmost else 0] if chosen else None


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(machines(max_states=5, max_letters=3))
def test_one_layer_of_attention_is_decided_as_running_heads_decide(machine):
    minimal = machine.minimise()
    n_letters = len(minimal.alphabet)
    words = confused(machine, "hard-attention")
    if words is None:
        subsets = [set(s) for k in range(1, n_letters + 1) for s in itertools.combinations(range(n_letters), k)]
        heads = [np.array([[b in s for b in range(n_letters)]] * n_letters, int) for s in subsets]
        assert is_function(
            ((word[-1], *(attended(word, head, side) for head in heads for side in (0, 1))), state_after(minimal, word))
            for word in words_up_to(n_letters, 7)
        )
        return
    assert words.check()
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.integers(4, size=(n_letters, n_letters))
        for side in (0, 1):
            u, w = words.words
            assert (u[-1], attended(u, scores, side)) == (w[-1], attended(w, scores, side))


def run_layer(word, n_letters, window, draw):
    """Run one layer exactly, whose heads forget at some letters: random inputs that leave finitely many values."""
    kept = [set(s) for k in range(n_letters + 1) for s in itertools.combinations(range(n_letters), k)]
    before, x = (), [0] * len(kept)
    for a in word:
        last = (*before, a)[-window:]
        for i, inside in enumerate(kept):
            # Where all letters of a window are kept, inputs are differences, so that values stay bounded.
            is_kept = len(last) == window and inside >= {*last}
            v = draw(i, last[1:]) - draw(i, last[:-1]) if is_kept else draw(i, last)
            x[i] = (x[i] if a in inside else 0) + v
        before = last[len(last) - window + 1 :] if len(last) == window else last
    return (*x, *before)


@settings(max_examples=60, deadline=None)
@given(machines(max_states=5, max_letters=3), st.integers(1, 4), st.randoms(use_true_random=False))
def test_layers_whose_decays_read_the_letter_confuse_words(machine, window, rng):
    words = confused(machine, f"diagonal-layer-{window}")
    if words is not None:
        assert words.check()
        x, u, w, s = words.words
        draw = functools.cache(lambda *_: rng.randrange(9))
        one, other = (run_layer(x + word + s, len(machine.delta), window, draw) for word in (u, w))
        assert one == other
        assert state_after(words.machine, x + u + s) != state_after(words.machine, x + w + s)


@pytest.mark.parametrize(("kind", "words", "fault"), [
    ("diagonal-layer-2", ([], [1], [], [0, 1]), "too short"),
    ("diagonal-layer-2", ([0], [1], [], [1, 0]), "does not come late"),
    ("diagonal-layer-2", ([0], [1], [], [0, 0]), "does not come late"),
    ("diagonal-layer-2", ([1], [1, 1], [], [0, 0, 1]), "does not tell"),
    ("lti-stack", ([], [], [1]), "the loop is empty"), ("ends-stack", ([], [], [1]), "the loop is empty"),
    ("ends-stack", ([], [1], [1]), "moves a state"), ("ends-stack", ([], [0], [0]), "does not tell"),
    ("last-letter-stack", ([0], [1]), "the last letters differ"), ("last-letter-stack", ([0], [0]), "does not tell"),
    ("lti-stack", ([], [0, 0], [1]), "not a multiple"),
    ("lti-stack", ([], [1], [1]), "moves a state"),
    ("lti-stack", ([], [0], [0]), "does not tell"),
    ("lti-diagonalisable-stack", ([0, 1], [1], []), "not congruent"),
    ("lti-diagonalisable-stack", ([0], [0, 1, 0], [0, 0, 0]), "not congruent"),
    ("lti-diagonalisable-stack", ([0, 1], [0, 0], []), "last letters differ"),
    ("lti-diagonalisable-stack", ([0], [1, 0], [1]), "last letters differ"),
    ("lti-diagonalisable-stack", ([], [], []), "empty"),
    ("lti-diagonalisable-stack", ([0], [1, 1, 0], [1, 0]), "moves a state"),
    ("hard-attention", ([1, 1], [1]), "different profiles"),
    ("hard-attention", ([0, 1, 1], [1, 0, 1]), "different profiles"),
    ("hard-attention", ([1, 1, 1], [1, 1, 1, 1, 1]), "does not tell"),
])  # fmt: skip
def test_certificates_of_confused_words_are_checked(kind, words, fault):
    """The right ones are of parity, whose letter 1 exchanges the two states."""
    certificate = confused(zoo.parity(), kind).to_json()
    assert recheck(certificate).startswith("impossible")
    with pytest.raises(RejectedCertificate, match=fault):
        recheck({**certificate, "words": [[[a, 1] for a in word] for word in words]})
    with pytest.raises(RejectedCertificate, match="not known"):
        recheck({**certificate, "verdict": "representable"})


def test_limits_are_errors(monkeypatch):
    monkeypatch.setattr(confused_words, "MAX_PROFILES", 3)
    with pytest.raises(BudgetExceeded, match="more than 3 profiles"):
        confused(zoo.flip_flop(), "hard-attention")
    with pytest.raises(UnsupportedFormat, match="choose one of"):
        confused(zoo.flip_flop(), "attention")


@pytest.mark.parametrize("fixed", [0, 1])
def test_a_loop_leaves_both_states_where_they_are(fixed):
    """The letter 1 leads from state 0 to state 1; the loop 0 moves one of the two."""
    loop = [0, 2, 1] if fixed == 0 else [2, 1, 0]
    machine = {"alphabet": ["0", "1"], "delta": [loop, [1, 1, 1]], "outputs": [0, 1, 2], "start": 0}
    certificate = confused(zoo.parity(), "lti-stack").to_json() | {"machine": machine, "separator": []}
    with pytest.raises(RejectedCertificate, match="the loop moves a state"):
        recheck({**certificate, "words": [[], [[0, 1]], [[1, 1]]]})
