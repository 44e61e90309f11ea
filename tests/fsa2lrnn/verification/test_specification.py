"""Specifications, steps of models and packed states."""

import base64
import itertools
import tracemalloc
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fsa2lrnn import LRNN, MooreMachine, compile_machine, repair, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.checker.errors import UnsupportedInput
from fsa2lrnn.checker.files import SPARE, Unpacking
from fsa2lrnn.checker.pairs import _lowest_bit as lowest_bit
from fsa2lrnn.checker.pairs import steps_exactly
from fsa2lrnn.errors import InvalidMachine, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn.affine import Readout, SwitchedAffine
from fsa2lrnn.nn.rounded_numbers import FloatFormat
from fsa2lrnn.testing import strategies
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verdicts import EVERY, LETTERS
from fsa2lrnn.verification import Accepted, Proved, Refuted, Scope, Undecided, prove_equivalent
from fsa2lrnn.verification.certificate import checked, pack, plain
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.coverage import of_certificate
from fsa2lrnn.verification.equivalence import PairsTable, is_right_in_every_order
from fsa2lrnn.verification.extraction import ModelSystem
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.specification import Specification, specification_of
from fsa2lrnn.verification.walk import JointWalk
from verify.soundness.models import Drawn, model


class Symbols:
    def __init__(self, alphabet, outputs):
        self.alphabet, self.outputs = tuple(alphabet), tuple(outputs)


@given(strategies.machines(max_states=5), st.randoms(use_true_random=False))
def test_a_goal_is_the_machine_in_the_models_numbers(machine, random):
    letters, outputs = list(machine.alphabet), list(dict.fromkeys(machine.outputs))
    random.shuffle(letters)
    random.shuffle(outputs)
    goal = specification_of(Symbols(letters, outputs), machine)
    tokens = np.array([[random.randrange(len(letters)) for _ in range(6)] for _ in range(3)])
    whole = goal.path(tokens)
    for row, states in zip(tokens, whole, strict=True):
        assert [outputs[goal.wanted[q]] for q in states] == machine.transduce([letters[a] for a in row])
    assert np.array_equal(goal.path(tokens[:, 2:], whole[:, 1]), whole[:, 2:])


def test_outputs_that_the_model_lacks_are_ignored_only_where_asked():
    machine = zoo.mod_arith(5)
    model, n = Symbols(machine.alphabet, range(5)), machine.minimise().n_states
    word = ["1", "+", "2", "*", "*"]
    goal = specification_of(model, machine, "lacked")
    states = goal.path(np.array([[machine.alphabet.index(a) for a in word]]))[0]
    assert goal.labels[states].tolist() == [1, UNCOUNTED, 3, UNCOUNTED, UNCOUNTED]
    assert set(goal.ignored) == set(machine.outputs) - set(range(5))
    assert (goal.scope.states, goal.scope.ignored_states) == (n, int((~goal.counts).sum()))
    assert 0 < goal.scope.ignored_states < n
    assert not goal.is_wrong(np.array([1, -1, 3, 0, 4]), states).any()
    assert specification_of(compile_machine(machine), machine, "lacked").ignored == ()
    named = specification_of(model, machine, set(machine.outputs) - set(range(5)))
    assert np.array_equal(named.counts, goal.counts)
    machine = MooreMachine([[1, 1]], ["yes", "?"], 0, "a")
    goal = specification_of(Symbols("a", ("yes", "no")), machine)
    assert (goal.outputs, goal.known, goal.ignored) == (("yes", "no", "?"), 2, ())
    assert goal.answerable.tolist() == [True, False]
    for number in (-1, 0, 1):
        assert goal.is_wrong(np.array([number]), np.array([1])).all()
    word = goal.failing_word(np.array([0]), np.array([-1]))
    assert (word.word, word.wanted, word.given, word.counts) == (("a",), ("?",), ("NaN",), None)
    machine = MooreMachine([[1, 2, 2]], ["yes", "?", "NaN"], 0, "a")
    goal = specification_of(Symbols("a", ("yes", "NaN")), machine, "lacked")
    word = goal.failing_word(np.array([0, 0]), np.array([0, -1]))
    assert (word.counts, word.given, word.position) == ((False, True), ("yes", "NaN (not a number)"), 2)


def test_what_can_not_be_ignored_is_refused():
    parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    model = Symbols((0, 1), (False, True))
    with pytest.raises(UnsupportedFormat, match=r'ignore .all.: give "lacked", or outputs of the machine as a tuple'):
        specification_of(model, parity, "all")
    with pytest.raises(UnsupportedFormat, match="ignore: 'x' is none of the machine's outputs False, True"):
        specification_of(model, parity, ("x",))
    with pytest.raises(UnsupportedFormat, match="all outputs of the machine are ignored"):
        specification_of(model, parity, (True, False))
    with pytest.raises(UnsupportedFormat, match=r"the model puts out \('no',\), none of the machine's"):
        specification_of(Symbols((0, 1), ("no",)), parity, "lacked")
    with pytest.raises(InvalidMachine, match="alphabets differ"):
        specification_of(Symbols((0, 2), (False, True)), parity)


@given(strategies.machines(max_states=5, outputs=(0, 1, 2)))
def test_coaccessible_states_lead_to_one_that_counts(machine):
    wanted = np.array(machine.outputs)
    goal = Specification(machine.delta, wanted < 2, machine.start, wanted, machine.alphabet, (0, 1, 2), 3, False)
    for q in range(machine.n_states):
        reach = {q}
        for _ in range(machine.n_states):
            reach |= {int(to) for p in reach for to in goal.delta[:, p]}
        assert goal.coaccessible[q] == any(goal.counts[p] for p in reach)


@pytest.mark.long
def test_every_judge_says_what_it_ignored_and_ignores_nothing_unless_told():
    """A model of Sum(3) beside a machine that has another output in one state."""
    machine, model = zoo.sum_mod(3), compile_machine(zoo.sum_mod(3))
    other = MooreMachine(machine.delta, [0, 1, "?"], 0, machine.alphabet)
    strict, some, budget = Scope(3), Scope(3, 1, ("?",)), Budget(seconds=5, length=20)

    refuted = prove_equivalent(model, other, empty_word=False)
    assert (refuted.word, refuted.scope) == (("2",), strict)
    proved = prove_equivalent(model, other, empty_word=False, ignore="lacked")
    assert (type(proved), proved.scope) == (Proved, some)

    refuted = falsify(model, other, budget)
    assert (refuted.word, refuted.failure.margin, refuted.scope) == (("2",), -np.inf, strict)
    undecided = falsify(model, other, budget, ignore="lacked")
    assert (type(undecided), undecided.checked_length, undecided.scope) == (Undecided, None, some)

    for judged in (model, compile_machine(zoo.sum_mod(3), layout="index")):  # by sets, and by enumeration
        nothing = certify(judged, other, 1, work=2e5)
        assert (nothing.horizon, nothing.scope, check(nothing, judged).scope) == (0, strict, strict)
        certificate = certify(judged, other, 1, work=2e5, ignore="lacked")
        assert certificate.horizon is None or certificate.horizon > 1_000
        assert (certificate.ignore, certificate.scope) == (("?",), some)
        with pytest.raises(CertificateRefused, match="claims less than was asked: outputs of 1 of 3 states"):
            check(certificate, judged)
        for allowed in ("lacked", ("?",), (0, "?")):
            accepted = Accepted(certificate.horizon, some, of_certificate(certificate))
            assert check(certificate, judged, allowed) == accepted
        old = replace(certificate, ignore="lacked")  # as read from a file that names no outputs
        assert (old.scope, check(old, judged, "lacked").scope) == (None, some)
        with pytest.raises(CertificateRefused, match="claims less than was asked"):
            check(old, judged)
        forged = replace(certificate, ignore=())
        with pytest.raises(CertificateRefused, match=r"may be wrong|answered wrongly"):
            check(forged, judged)

    with pytest.raises(NotExpressible, match="the model lacks outputs of the machine, '\\?', which no change"):
        repair(model, other)
    for mode in ("least", "dyadic"):
        repaired = repair(model, other, mode=mode, ignore="lacked")
        assert (repaired.scope, repaired.to_json()["scope"]["ignored"]) == (some, ["?"])


SINGLE, DOUBLE = FloatFormat.of(torch.float32), FloatFormat.of(torch.float64)
SUM3 = MooreMachine(zoo.sum_mod(3).delta, (0, 1, 2), 0, (0, 1, 2))


def dyadic(gap=1.0, scale=1.0, dtype=torch.float32):
    """Sums modulo 3 by a matrix of order 3 on three points, and the nearest of them is read: 2 p·x − |p|²."""
    turn = torch.tensor([[0.0, -1.0], [1.0, -1.0]])
    A = torch.stack([torch.linalg.matrix_power(turn, a) for a in range(3)])
    x0 = scale * torch.tensor([3.0, 1.0])
    points = A @ x0
    readout = Readout.linear((2 * gap * points).to(dtype), (-gap * (points**2).sum(1)).to(dtype))
    parts = A[:, None].to(dtype), torch.zeros(3, 1, 2, dtype=dtype), x0[None].to(dtype)
    return LRNN.from_affine(SwitchedAffine.of(*parts, readout, (0, 1, 2), (0, 1, 2)))


def test_exact_numbers_dead_letters_and_other_dtypes():
    x = np.array([0.0, 1.0, -3.0, 0.375, 2.0**-149, 2.0**100, 1 / 3])
    assert lowest_bit(x).tolist() == [1 << 20, 0, 0, -3, -149, 100, -54]
    one = np.ones((1, 1, 1, 1))
    for value in (np.nan, np.inf, 2.0**-127):
        assert not steps_exactly(one, np.zeros((1, 1, 1)), np.full((1, 1, 1), value), SINGLE)
    assert steps_exactly(one, np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), SINGLE)
    trap = MooreMachine([[0, 1], [1, 1]], [0, "?"], 0, "ab")
    model = compile_machine(MooreMachine([[0, 1], [1, 1]], [0, 1], 0, "ab"))
    for ignore, letters in (((), 4), ("lacked", 1)):
        walk = JointWalk(ModelSystem(model), specification_of(model, trap, ignore))
        assert np.array_equal(walk.live, [[True, not ignore]])
        closed(walk)
        assert walk.letters == letters
    with pytest.raises(UnsupportedFormat, match="computes in float16"):
        checked(tables(torch.float32, False).to(torch.float16))


@pytest.mark.parametrize("seed", range(20))
def test_exact_steps_round_in_no_order(seed):
    """Against sums of float32 in all orders of four terms, and what is one bit too long is found."""
    rng = np.random.default_rng(seed)
    bits = 11 if seed % 2 else 13
    A, x = (rng.integers(-(2**bits), 2**bits, shape) / 2.0**7 for shape in ((1, 1, 3, 3), (5, 1, 3)))
    v = rng.integers(-(2**bits), 2**bits, (1, 1, 3)) / 2.0**14
    exact = np.einsum("aij,nj->nai", A[:, 0], x[:, 0]) + v[:, 0]
    terms = np.concatenate([A[None, :, 0] * x[:, None, 0, None], np.broadcast_to(v, (5, 1, 3))[..., None]], -1)
    rounds = False
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]):
        total = np.zeros(terms.shape[:-1], np.float32)
        for j in order:
            total = total + terms[..., j].astype(np.float32)
        rounds |= not np.array_equal(total.astype(np.float64), exact)
    assert not (steps_exactly(A, v, x, SINGLE) and rounds)
    assert steps_exactly(A, v, x, SINGLE) == (bits == 11)
    assert steps_exactly(A, v, x, DOUBLE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_steps_and_wide_margins_are_proved_for_every_shape(dtype):
    model = dyadic(gap=0.3, dtype=dtype)
    verdict = prove_equivalent(model, SUM3)
    assert isinstance(verdict, Proved)
    assert verdict.covers.shapes == EVERY
    assert verdict.scans == ("sequential", "fused", "letters")
    words = torch.randint(3, (7, 200), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for method in verdict.scans:
            assert torch.equal(model(words, method).argmax(-1), words.cumsum(1) % 3)


def test_margins_and_gates_that_round_are_not_proved_for_every_shape():
    verdict = prove_equivalent(dyadic(scale=1 / 3), SUM3, budget=50)
    assert not isinstance(verdict, Proved) or verdict.covers.shapes == LETTERS
    sums = dyadic()
    goal, system = specification_of(sums, SUM3), ModelSystem(sums)
    rows = np.concatenate([system.start(), system.fan(system.start(), np.ones((1, 3), bool))[1]])
    states = np.array([0, 0, 1, 2])
    found = PairsTable(rows, states, np.zeros((4, 3), np.int64), True, 0)
    assert is_right_in_every_order(sums, goal, found)
    assert not is_right_in_every_order(sums, goal, replace(found, states=(states + 1) % 3))
    with torch.no_grad():
        sums.readout[2].bias[1] = sums.readout[2].bias[0] + 1e30  # all that the read-out computes drowns
    assert not is_right_in_every_order(sums, goal, found)
    made = model(Drawn("none", 1e3, True, 0.0, False, False, 0), zoo.parity())
    goal, system = specification_of(made, zoo.parity()), ModelSystem(made)
    start = PairsTable(system.start(), np.array([0]), np.zeros((1, 2), np.int64), True, 0)
    assert not is_right_in_every_order(made, goal, start)


def test_the_step_from_the_start_may_not_round_though_no_output_of_the_start_is_compared():
    """Each letter leads the sum of x₀, which is 1 in some orders of summation, to a unit vector times that sum."""
    x0 = np.array([0.37416095, 0.19258001, 0.43325898], np.float32)
    last = MooreMachine([[1, 1, 1], [2, 2, 2]], ["s", "a", "b"], 0, "ab")
    A, v = torch.zeros(2, 1, 3, 3), torch.zeros(2, 1, 3)
    for a in (0, 1):
        A[a, 0, a + 1], v[a, 0, a + 1] = 1024.0, -1023.0
    readout = Readout(torch.eye(3), torch.zeros(3), torch.eye(3), torch.zeros(3))
    tables = SwitchedAffine(A, v, torch.tensor(x0)[None], readout, ("a", "b"), ("s", "a", "b"))
    verdict = prove_equivalent(LRNN.from_affine(tables), last, empty_word=False)
    sums = {sum((np.float32(1024) * x for x in order), np.float32(0)) for order in itertools.permutations(x0)}
    assert len(sums) > 1
    assert isinstance(verdict, Refuted) or verdict.covers.shapes == LETTERS


def closed(walk):
    """All pairs, each with its word, and the words read in all."""
    words = {int(walk.tags[0]): ()}
    read = [()]
    while len(walk):
        ahead, states = walk.look()
        new = [tuple(walk.word(ahead, i).tolist()) for i in range(len(states))]
        read += new
        for word, state in zip(new, states.tolist(), strict=True):
            words.setdefault(state, word)
        walk.keep_new(ahead, states)
    return words, read


@given(machines(max_states=5, max_letters=2), st.booleans())
def test_every_pair_is_met_once_by_a_shortest_word(machine, all_count):
    """The model is the machine's own, so that there is one pair a state."""
    minimal = machine.minimise()
    ignore = () if all_count or len(set(minimal.outputs)) == 1 else (minimal.outputs[-1],)
    model = compile_machine(machine)
    goal = specification_of(model, machine, ignore)
    walk = JointWalk(ModelSystem(model), goal)
    words, read = closed(walk)
    assert walk.seen == len(words)
    assert walk.letters == len(read) - 1
    shortest = {}
    for length in range(minimal.n_states + 1):
        for word in itertools.product(range(len(machine.alphabet)), repeat=length):
            states = list(itertools.accumulate(word, lambda q, a: int(minimal.delta[a, q]), initial=minimal.start))
            if goal.coaccessible[states].all():
                shortest.setdefault(states[-1], word)
    assert {q: len(word) for q, word in words.items()} == {q: len(word) for q, word in shortest.items()}


def tables(dtype, layer_norm):
    torch.manual_seed(0)
    A, v, x0 = (torch.randn(*shape, dtype=dtype) for shape in ((2, 3, 2, 2), (2, 3, 2), (3, 2)))
    v[0, 0, 0] = -0.0
    parts = [torch.randn(*shape, dtype=dtype) for shape in ((4, 6), (4,), (2, 4), (2,), *([(6,)] * 2 * layer_norm))]
    return SwitchedAffine.of(A, v, x0, Readout(*parts))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_numbers_and_digest_are_those_of_the_tables(dtype, layer_norm):
    given = tables(dtype, layer_norm)
    found = plain(given)
    assert found.sha256 == given.sha256
    assert found.numbers["A"].dtype == given.A.numpy().dtype
    assert np.array_equal(found.weights["W2"], given.readout.W2.double().numpy())
    assert ("norm_weight" in found.numbers) == layer_norm


def packed(entries, shape, dtype="float64"):
    return {"dtype": dtype, "shape": shape, "data": base64.b64encode(zlib.compress(entries, 9)).decode()}


def refused(value, reason):
    with pytest.raises(UnsupportedInput, match=reason):
        Unpacking().unpack(value, "tube.basis")


@given(st.sampled_from([np.bool_, np.int64, np.float64]).flatmap(lambda kind: arrays(kind, array_shapes(min_side=0))))
def test_what_is_packed_comes_back(x):
    back = Unpacking().unpack(pack(x), "x")
    assert back.dtype == x.dtype
    assert np.array_equal(back, x, equal_nan=x.dtype == np.float64)


@pytest.mark.long
def test_packed_arrays_are_small_and_bombs_are_refused():
    x = np.random.default_rng(0).random(10_000)
    assert len(pack(np.float64(np.float32(x)))["data"]) < 0.6 * len(pack(x)["data"])
    zeros = np.zeros(3_000_000)
    value = pack(zeros)
    assert len(value["data"]) > zeros.nbytes / 16
    assert np.array_equal(Unpacking().unpack(value, "x"), zeros)
    bomb = zlib.compress(bytes(200 << 20), 9)  # 200 KB
    data = base64.b64encode(bomb).decode()
    tracemalloc.start()
    try:
        for shape in ([3], [25 << 20], [1 << 60], [0], [5, 5]):
            refused(
                {"dtype": "float64", "shape": shape, "data": data}, "tube.basis.* (unpack to|no shape|its data are)"
            )
        assert tracemalloc.get_traced_memory()[1] < 16 * len(data) + SPARE
    finally:
        tracemalloc.stop()
    small = packed(bytes(1 << 20), [1 << 20], "bool")
    unpacking = Unpacking()
    for _ in range(16):
        unpacking.unpack(small, "x")
    with pytest.raises(UnsupportedInput, match="x: 1,388 characters are to unpack to 1,048,576 bytes"):
        unpacking.unpack(small, "x")
    value = packed(bytes(16), [2])
    more = base64.b64encode(base64.b64decode(value["data"]) + b"more").decode()
    refused({**value, "data": more}, "is damaged: its data are not the 16 bytes")


@pytest.mark.parametrize(("value", "reason"), [
    (packed(bytes(16), [2], "object"), "tube.basis: an array of 'object': bool, int64, float32, float64 are read"),
    (packed(bytes(16), [3]), "its data are not the 24 bytes of its shape"),
    (packed(bytes(16), [1]), "its data are not the 8 bytes of its shape"),
    (packed(bytes(16), [2.0]), r"\[2.0\] is not a valid shape"),
    (packed(bytes(16), [True, 2]), r"\[True, 2\] is not a valid shape"),
    (packed(bytes(16), [-1, -2]), r"\[-1, -2\] is not a valid shape"),
    (packed(bytes(0), [0, 1 << 62]), "is not a valid shape"),
    (packed(bytes(16), [1] * 9 + [2]), "is not a valid shape"),
    ({**packed(bytes(16), [2]), "data": "é"}, "is damaged"),
    ({**packed(bytes(16), [2]), "data": "AAAA"}, "is damaged"),
    ({**packed(bytes(16), [2]), "data": packed(bytes(16), [2])["data"][:-4]}, "is damaged"),
    ({"dtype": "bool", "shape": [1]}, "is not an array: expected are dtype, shape and data"),
    ([], r"'\[\]' is not an array"),
])  # fmt: skip
def test_what_is_no_array_is_refused(value, reason):
    refused(value, reason)
