from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, compile_machine, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.errors import InvalidMachine, NotExpressible, UnsupportedFormat
from fsa2lrnn.repairing import repair
from fsa2lrnn.testing import strategies
from fsa2lrnn.verification import (
    Accepted,
    Budget,
    CertificateRefused,
    Proved,
    Scope,
    Undecided,
    certify,
    check,
    falsify,
    prove_equivalent,
)
from fsa2lrnn.verification.specification import Specification, specification_of


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


def test_outputs_that_the_model_lacks_do_not_count():
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


def test_unless_told_otherwise_an_output_that_the_model_lacks_is_wrong():
    machine = MooreMachine([[1, 1]], ["yes", "?"], 0, "a")
    goal = specification_of(Symbols("a", ("yes", "no")), machine)
    assert (goal.outputs, goal.known, goal.ignored) == (("yes", "no", "?"), 2, ())
    assert goal.answerable.tolist() == [True, False]
    for number in (-1, 0, 1):
        assert goal.is_wrong(np.array([number]), np.array([1])).all()
    word = goal.failing_word(np.array([0]), np.array([-1]))
    assert (word.word, word.wanted, word.given, word.counts) == (("a",), ("?",), ("NaN",), None)


def test_a_failing_word_says_where_it_counts_and_keeps_nan_apart():
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


def test_nothing_in_common_is_an_error():
    parity = MooreMachine([[0, 1], [1, 0]], [False, True])
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
        nothing = certify(judged, other, 1, work=1e6)
        assert (nothing.horizon, nothing.scope, check(nothing, judged).scope) == (0, strict, strict)
        certificate = certify(judged, other, 1, work=1e6, ignore="lacked")
        assert certificate.horizon is None or certificate.horizon > 1_000
        assert (certificate.ignore, certificate.scope) == (("?",), some)
        with pytest.raises(CertificateRefused, match="claims less than was asked: outputs of 1 of 3 states"):
            check(certificate, judged)
        for allowed in ("lacked", ("?",), (0, "?")):
            assert check(certificate, judged, allowed) == Accepted(certificate.horizon, some)
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
