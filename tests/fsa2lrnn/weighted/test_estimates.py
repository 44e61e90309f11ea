"""Learning from words, smaller automata with a certified error, and both on the command line."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from flint import fmpq, fmpq_mat

from fsa2lrnn import WeightedAutomaton, load
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, NotExact, UnsupportedFormat
from fsa2lrnn.families.recheck import RejectedCertificate
from fsa2lrnn.weighted.approximate import approximate, error_bound, is_positive
from fsa2lrnn.weighted.baum_welch import ProbabilisticAutomaton, Sample, baum_welch
from fsa2lrnn.weighted.distribution import learn_distribution
from fsa2lrnn.weighted.spaces import Minimal
from fsa2lrnn.weighted.spectral import estimate
from tests.fsa2lrnn.weighted.test_automaton import MODEL


def drawn_automaton(n, letters, seed):
    """A probabilistic automaton with probabilities that are multiples of 1/1000."""
    rng = np.random.default_rng(seed)

    def distribution(size):
        parts = rng.multinomial(1000, rng.dirichlet(np.full(size, 0.4)))
        return [Fraction(int(part), 1000) for part in parts]

    rows = [[x * Fraction(3, 4) for x in distribution(n * letters)] for _ in range(n)]
    maps = [[[row[a * n + q] for q in range(n)] for row in rows] for a in range(letters)]
    return WeightedAutomaton.from_probabilities("abc"[:letters], distribution(n), maps, [Fraction(1, 4)] * n)


def drawn_words(w, count, seed):
    """Words drawn from the distribution, as letter numbers."""
    rng, A, stop = np.random.default_rng(seed), np.array(w.transitions, float), np.array(w.final, float)
    words = []
    for _ in range(count):
        q, word = rng.choice(w.n_states, p=np.array(w.initial, float)), []
        while rng.random() >= stop[q]:
            flat = A[:, :, q].ravel()
            a, q = divmod(int(rng.choice(len(flat), p=flat / flat.sum())), w.n_states)
            word.append(a)
        words.append(tuple(word))
    return words


def test_a_distribution_is_learned():
    w = drawn_automaton(2, 2, 1)
    errors = []
    for count in (300, 3_000):
        found = estimate(drawn_words(w, count, 0), w.alphabet, rank=2)
        errors.append(float(sum((found.automaton(v) - w(v)) ** 2 for k in range(5) for v in product("ab", repeat=k))))
    assert found.automaton.n_states == 2
    assert errors[1] < errors[0] < 0.01
    assert found.singular_values[1] > found.singular_values[2]


def test_rank_and_factors_are_those_of_the_likeliest_held_out_words():
    w = drawn_automaton(3, 2, 0)
    words = drawn_words(w, 1_000, 1)
    found = estimate(words, w.alphabet)
    bits = [-np.log2(float(w(["ab"[a] for a in word]))) for word in words]
    assert found.automaton.n_states == min(found.bits, key=found.bits.get)
    assert min(found.bits.values()) == pytest.approx(np.mean(bits), rel=0.1)
    pairs = estimate([(0, 1) * (i % 4) for i in range(400)], "ab")
    assert pairs.bits[1] > min(pairs.bits.values()) + 1
    few = estimate(words, w.alphabet, rank=2, basis=3)
    assert (few.basis, few.automaton.n_states, len(few.singular_values), list(few.bits)) == (3, 2, 3, [2])


@pytest.mark.parametrize("seed", range(3))
def test_no_iteration_lowers_the_likelihood(seed):
    words = drawn_words(drawn_automaton(4, 2, seed), 300, seed)
    sample, found = Sample.of(words), ProbabilisticAutomaton.random(3, 2, seed)
    bits = [found.bits(sample)]
    for _ in range(8):
        found.improve(sample)
        bits.append(found.bits(sample))
        assert bits[-1] <= bits[-2] + 1e-9
        assert found.moves.sum((0, 2)) + found.stop == pytest.approx(np.ones(3))
    exact = found.weighted("ab")
    of_words = [-np.log2(float(exact(["ab"[a] for a in word]))) for word in words]
    assert bits[-1] == pytest.approx(np.mean(of_words))
    assert bits[-1] < bits[0] - 0.1


def test_one_iteration_by_enumeration_of_the_paths():
    words, found = [(0, 1), (1,), (), (0, 1)], ProbabilisticAutomaton.random(2, 2, 5)
    initial, A, stop = found.initial.copy(), found.moves.copy(), found.stop.copy()
    starts, moves, stops = np.zeros(2), np.zeros((2, 2, 2)), np.zeros(2)
    for word in words:
        paths = list(product(range(2), repeat=len(word) + 1))
        shares = [
            initial[p[0]] * np.prod([A[a, p[t], p[t + 1]] for t, a in enumerate(word)]) * stop[p[-1]] for p in paths
        ]
        for path, share in zip(paths, np.array(shares) / sum(shares), strict=True):
            starts[path[0]] += share
            stops[path[-1]] += share
            for t, a in enumerate(word):
                moves[a, path[t], path[t + 1]] += share
    total = moves.sum((0, 2)) + stops
    found.improve(Sample.of(words))
    assert found.initial == pytest.approx(starts / starts.sum())
    assert found.moves == pytest.approx(moves / total[None, :, None])
    assert found.stop == pytest.approx(stops / total)


def test_words_of_every_letter_get_a_probability():
    words = [(0,) * (i % 4) for i in range(200)] + [(1, 1)]  # a letter that is not among the first words
    rng = np.random.default_rng(0)
    learned = learn_distribution([words[i] for i in rng.permutation(201)], "ab")
    assert all(bits < 20 for bits in learned.tried.values())
    found = ProbabilisticAutomaton.random(2, 2, 0)
    found.improve(Sample.of(words[:100]))
    assert not found.moves[1].any()
    found.soften()
    assert found.moves.sum((0, 2)) + found.stop == pytest.approx(np.ones(2))
    found.improve(Sample.of(words))
    assert np.isfinite(found.bits(Sample.of(words)))
    assert float(found.weighted("ab")("bb")) > 0


@pytest.mark.long
def test_a_distribution_is_learned_by_the_better_method():
    w = drawn_automaton(4, 2, 2)
    found = learn_distribution(drawn_words(w, 2_000, 1), w.alphabet, Deadline.of(3.0))
    fresh = drawn_words(w, 200, 2)
    bits = [
        -np.mean([np.log2(max(float(f(["ab"[a] for a in word])), 1e-12)) for word in fresh])
        for f in (w, found.automaton)
    ]
    assert abs(bits[1] - bits[0]) < 0.2
    assert found.bits == min(found.tried.values())


def test_the_estimate_from_all_short_words_is_exact():
    # Words with the frequencies of f(aⁿ) = 2⁻ⁿ⁻¹, but for those of 12 letters and more.
    words = [(0,) * n for n in range(12) for _ in range(2 ** (11 - n))]
    found = estimate(words, "a", rank=1, basis=1)
    assert [float(found.automaton("a" * n)) for n in range(4)] == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 16], rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], "a"), "no words"),
        (([(0,)], "a", 0), "(rank|n_states) = 0: give a whole number from 1"),
        (([(0,)], "a", 9, 0), "(basis|iterations) = 0"),
        (([(0,)], "a", 1.5), "(rank|n_states) = 1.5"),
        (([(0, 1)], "a"), "letter number 1"),
        (([(-1,)], "a"), "letter number -1"),
    ],
)
@pytest.mark.parametrize("learn", [estimate, baum_welch])
def test_bad_input_of_the_estimates(learn, arguments, message):
    with pytest.raises(UnsupportedFormat, match=message):
        learn(*arguments if len(arguments) > 2 else (*arguments, 2))


@pytest.mark.parametrize("words", [[()], [(0,)], [(), ()], [(0, 1)] * 3])
def test_tiny_samples(words):
    found = estimate(words, "ab")
    assert float(found.automaton(["ab"[a] for a in words[0]])) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_a_smaller_automaton_has_a_certified_error(seed):
    w = drawn_automaton(6, 2, seed)
    before = float("inf")
    for n in (1, 3, 6):
        found = approximate(w, n)
        short = sum((w(v) - found.automaton(v)) ** 2 for k in range(8) for v in product("ab", repeat=k))
        assert found.automaton.n_states == n
        # Words of up to seven letters are nearly all of the sum.
        assert float(short) <= found.error**2 <= 2 * float(short) + 1e-12
        assert found.error < before
        before = found.error
    assert before < 1e-6


def test_errors_of_several_outputs_add_up():
    half = WeightedAutomaton("a", [1], [[["1/2"]]], [[1], [2]], "xy")
    # Σ (1/4)^k (1 + 4) = 20/3
    assert error_bound(half) == pytest.approx((20 / 3) ** 0.5, rel=1e-6)
    assert error_bound(half) ** 2 >= Fraction(20, 3)


def test_what_does_not_contract_is_refused():
    one = WeightedAutomaton("a", [1], [[[1]]], [1])
    with pytest.raises(NotExact, match="not found to have a finite sum"):
        approximate(one, 1)
    for n in (0, 2):
        with pytest.raises(UnsupportedFormat, match="give a whole number from 1 to 1"):
            approximate(one, n)
    with pytest.raises(BudgetExceeded, match="201 states"):
        approximate(WeightedAutomaton("a", [0] * 201, [[[0] * 201] * 201], [0] * 201), 3)


def exactly(matrix):
    return fmpq_mat([[fmpq(*x.as_integer_ratio()) for x in row] for row in matrix.tolist()])


def test_positive_matrices_are_proved():
    assert is_positive(exactly(np.array([[2.0, 1], [1, 2]])))
    assert not is_positive(exactly(np.array([[1.0, 1], [1, 1]])))
    assert not is_positive(exactly(np.array([[1.0, 2], [2, 1]])))
    assert not is_positive(exactly(np.diag([1.0, -1e-9])))


def test_the_command_line(call, tmp_path):
    model, words = tmp_path / "1.pautomac_model.txt", tmp_path / "1.pautomac.train"
    model.write_text(MODEL, encoding="utf-8")
    code, out, _ = call("explain", str(model), "--certificates", str(tmp_path / "proofs"))
    assert code == 0
    assert "2, proved and re-checked independently" in out
    assert json.loads((tmp_path / "proofs" / "minimal.json").read_text())["claim"] == "minimal"
    words.write_text("4 2\n0\n1 1\n2 0 1\n1 1\n", encoding="utf-8")
    code, out, _ = call("learn", str(words), "-o", str(tmp_path / "out"), "--weighted")
    assert code == 0
    assert "on a fifth of the words, which the methods did not see (spectral with" in " ".join(out.split())
    code, out, _ = call("explain", str(tmp_path / "out" / "weighted.json"), "--json")
    assert code == 0
    again = json.loads(call("learn", str(words), "-o", str(tmp_path / "out"), "--weighted", "--json")[1])
    assert json.loads(out)["states"] == again["states"] == min(again["tried"], key=lambda each: each["bits"])["states"]
    code, _, err = call("learn", str(words), "-o", str(tmp_path / "out"), "--weighted", "--steps", "3")
    assert (code != 0, "--weighted takes no other option" in err) == (True, True)
    code, _, err = call("explain", str(model), "--family", "lti")
    assert (code != 0, "automata without weights" in err) == (True, True)
    model.write_text(MODEL.replace("(1,0) 1.0", "(1,0) 0.9"), encoding="utf-8")
    code, _, err = call("explain", str(model))
    assert (code != 0, "state 1 sum to 0.925, not to 1" in err) == (True, True)
    slow = WeightedAutomaton("ab", [1, 1], [[["1/3", 1], [2, 0]], [[1, 1], [0, 1]]], [1, 1])
    (tmp_path / "w.json").write_text(slow.to_json(), encoding="utf-8")
    file, network = str(tmp_path / "w.json"), str(tmp_path / "m.safetensors")
    assert "2, proved" in call("explain", file)[1]
    code, out, _ = call("compile", file, "-o", network, "--json")
    assert (code, json.loads(out)["over_the_reals"][:12]) == (0, "separated: o")
    assert load(network).dtype == torch.float64
    assert WeightedAutomaton.from_model(load(network)).n_states == 2
    assert "give a length" in call("compile", file)[1]
    for arguments, fault in [
        (["compile", file, "--form", "cascade"], "give --dtype, --output and --json alone"),
        (["compile", file, "--dtype", "float16"], "float16 is not offered"),
        (["run", file, "ab"], "is a weighted automaton, where one without weights"),
        (["learn", "missing", "-o", str(tmp_path), "--weighted"], "no such file: missing"),
        (["learn", str(tmp_path), "-o", str(tmp_path), "--weighted"], "no such file"),
        (["explain", "missing_model.txt"], "no such file: missing_model.txt"),
    ]:
        code, _, err = call(*arguments)
        assert (code, fault in err) == (2, True), err


def test_a_certificate_that_the_check_refuses_is_no_proof(call, tmp_path, monkeypatch):
    def refused(_):
        raise RejectedCertificate("the vectors are dependent")

    monkeypatch.setattr(Minimal, "check", refused)
    model = tmp_path / "1.pautomac_model.txt"
    model.write_text(MODEL, encoding="utf-8")
    out = call("explain", str(model), "--json")[1]
    told = "2 by the search; the independent check refuses its certificate: the vectors are dependent"
    assert json.loads(out)["evidence"] == told
