"""Proofs of equivalence by enumeration."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, compile_recurrence, equivalent, zoo
from fsa2lrnn.compile.lower import DTYPES, compile_machine, lower
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig, Readout
from fsa2lrnn.nn.scans import METHODS
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verdicts import Counterexample, Coverage, Scope
from fsa2lrnn.verification import Proved, Refuted, Undecided, model_digest, prove_equivalent
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.specification import specification_of
from fsa2lrnn.verification.walk import explore
from verify import mutants

# A machine without symmetry: every flip, transposition and dropped letter of it computes something else.
ASYMMETRIC = MooreMachine([[1, 2, 3, 3], [0, 0, 1, 2]], ["p", "q", "r", "s"], alphabet="ab")


def shortest_difference(model, machine, longest):
    """The length of a shortest word on which the outputs differ, by trying all words; None if there is none."""
    if model.outputs[int(model.initial_logits().argmax())] != machine.outputs[machine.start]:
        return 0
    for length in range(1, longest + 1):
        tokens = torch.tensor(list(itertools.product(range(len(model.alphabet)), repeat=length)))
        numbers = model(tokens)[:, -1].argmax(-1)
        for word, number in zip(tokens.tolist(), numbers.tolist(), strict=True):
            letters = [model.alphabet[a] for a in word]
            if model.outputs[number] != machine.outputs[machine.run(letters)]:
                return length
    return None


def assert_refuted_by_a_shortest_word(broken, machine, longest=7):
    length = shortest_difference(broken, machine, longest)
    verdict = prove_equivalent(broken, machine)
    if length is None:
        assert isinstance(verdict, Proved) or len(verdict.word) > longest
        return False
    assert isinstance(verdict, Refuted)
    assert len(verdict.word) == length
    if length:
        assert list(verdict.failure.given) == broken.transduce(verdict.word)
        assert list(verdict.failure.wanted) == machine.transduce(verdict.word)
    assert verdict.failure.given[-1] != verdict.failure.wanted[-1]
    assert verdict.failure.given[:-1] == verdict.failure.wanted[:-1]
    return True


@given(machines(max_states=5, max_letters=2), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_compiled_models_are_proved(machine, dtype, layout):
    model = compile_machine(machine, dtype=dtype, layout=layout)
    verdict = prove_equivalent(model, machine)
    n = machine.minimise().n_states
    covers = Coverage(str(dtype)[6:], model.methods, "every", None)
    assert verdict == Proved(n, n * len(machine.alphabet), covers, Scope(n, empty_word=True), model_digest(model))


@given(machines(max_states=4, max_letters=2), machines(max_states=4, max_letters=2))
def test_the_verdict_on_another_machine_is_that_of_equivalent(a, b):
    b = MooreMachine(np.resize(b.delta, (len(a.alphabet), b.n_states)), b.outputs, b.start, a.alphabet)
    word, verdict = equivalent(a, b), prove_equivalent(compile_machine(a), b)
    if word is None:
        assert isinstance(verdict, Proved)
    else:
        assert isinstance(verdict, Refuted)
        assert len(verdict.word) == len(word)


@pytest.mark.long_cases("dense")
@pytest.mark.parametrize("layout", ["dense", "index"])
def test_every_mutant_of_a_machine_without_symmetry_is_caught(layout):
    model = compile_machine(ASYMMETRIC, layout=layout)
    for (a, letter), state, target in itertools.product(enumerate("ab"), range(4), range(4)):
        broken = mutants.flip_transition(model, letter, state, target)
        is_other = ASYMMETRIC.delta[a, state] != target
        assert assert_refuted_by_a_shortest_word(broken, ASYMMETRIC) == is_other
    broken = [mutants.swap_outputs(model, *pair) for pair in itertools.combinations(range(4), 2)]
    broken += [mutants.drop_letter(model, letter) for letter in "ab"]
    broken += [mutants.transpose_block(model, letter) for letter in "ab" if layout == "dense"]
    assert all(assert_refuted_by_a_shortest_word(mutant, ASYMMETRIC) for mutant in broken)


@pytest.mark.long
@given(st.data())
def test_mutants_of_any_machine_get_the_verdict_of_brute_force(data):
    machine = data.draw(machines(max_states=4, max_letters=2)).minimise()
    model = compile_machine(machine)
    letter = data.draw(st.sampled_from(machine.alphabet))
    state = st.integers(0, machine.n_states - 1)
    output = st.integers(0, len(model.outputs) - 1)
    broken = data.draw(
        st.one_of(
            st.builds(mutants.flip_transition, st.just(model), st.just(letter), state, state),
            st.builds(mutants.swap_outputs, st.just(model), output, output),
            st.just(mutants.transpose_block(model, letter)),
            st.just(mutants.drop_letter(model, letter)),
        )
    )
    assert_refuted_by_a_shortest_word(broken, machine)


@pytest.mark.long
@given(st.data())
def test_a_random_perturbation_of_the_weights_is_judged_as_brute_force_judges_it(data):
    """Not one-hot any more: still decided, or undecided with a length up to which all words were right."""
    machine = data.draw(machines(max_states=3, max_letters=2))
    model = compile_machine(machine, normalisation="none")
    noise = data.draw(st.sampled_from([0.05, 0.4, 1.0]))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
    verdict = prove_equivalent(model, machine, budget=200)
    length = shortest_difference(model, machine, 6)
    if isinstance(verdict, Refuted) and len(verdict.word) <= 6:
        assert len(verdict.word) == length
    elif isinstance(verdict, Undecided):
        assert length is None or length > verdict.checked_length
    else:
        assert length is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_are_proved_for_all_scans(stack, dtype):
    recurrence, machine = stack
    model = lower(recurrence, dtype)
    verdict = prove_equivalent(model, machine)
    assert isinstance(verdict, Proved)
    assert verdict.scope == Scope(machine.n_states, empty_word=True)
    assert verdict.scans == tuple(METHODS) == prove_equivalent(recurrence, machine).scans
    tokens = torch.randint(len(model.alphabet), (3, 130), generator=torch.Generator().manual_seed(0))
    for method in METHODS:
        assert torch.equal(model(tokens, method), model(tokens, "sequential"))


# The letter's weight in the low digit's transition: the clip takes a = 1 − 2·2 back to −1. Weights of the high digit's
# value: its channel leaves {0, 1}, and the read-out does not mind.
HARMLESS = {("transition", 0, 1), ("value", 1, 1), ("value", 1, 2)}


@pytest.mark.parametrize("gate", ["transition", "value"])
@pytest.mark.parametrize(("layer", "column"), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)])
def test_every_wrong_weight_of_the_counter_is_judged_as_brute_force_judges_it(stacks, gate, layer, column):
    recurrence, machine = stacks["counter"]
    broken = mutants.wrong_gate_weight(lower(recurrence), layer, 0, column, gate)
    if assert_refuted_by_a_shortest_word(broken, machine):
        assert (gate, layer, column) not in HARMLESS
    else:
        assert (gate, layer, column) in HARMLESS
        verdict = prove_equivalent(broken, machine)
        assert isinstance(verdict, Proved)
        assert verdict.scans == ("sequential",)


def test_heads_that_changed_places_are_caught(stacks):
    recurrence, machine = stacks["repeats"]
    assert assert_refuted_by_a_shortest_word(mutants.swap_heads(lower(recurrence), 0, 0, 1), machine, longest=4)


def test_a_proof_names_its_scans_and_drift_after_the_end_does_not_matter():
    model = compile_machine(zoo.parity(), normalisation="none")
    with torch.no_grad():
        model.layers[0].x0 *= 0.5
        model.readout[0].weight *= 2
    verdict = prove_equivalent(model, zoo.parity())
    assert isinstance(verdict, Proved)
    assert verdict.scans == ("sequential", "fused", "letters")
    machine = MooreMachine([[0, 1], [1, 1]], ["yes", "?"], 0, "ab")
    readout = Readout.linear(torch.tensor([[1.0], [-1.0]]), torch.tensor([1.0, 0.0]))
    A, v = torch.tensor([1.0, 1.0]).reshape(2, 1, 1, 1), torch.tensor([0.0, 1.0]).reshape(2, 1, 1)
    model = LRNN.from_tables(A, v, torch.zeros(1, 1), readout, ("a", "b"), ("yes", "no"))
    verdict = prove_equivalent(model, machine, budget=100, ignore="lacked")
    assert (type(verdict), verdict.pairs, verdict.transitions) == (Proved, 1, 1)
    strict = prove_equivalent(model, machine, budget=100)
    assert (type(strict), strict.word) == (Refuted, ("b",))


def test_what_is_ignored_is_left_out_and_reported():
    other = MooreMachine([[1, 1]], ["start", "later"])
    model = compile_machine(MooreMachine([[0]], ["later"]))
    verdict = prove_equivalent(model, other)
    assert verdict == Refuted(Counterexample((), ("start",), ("later",)), -1, Scope(2, empty_word=True))
    assert (verdict.is_shortest, verdict.position, verdict.failure.position) == (True, 0, 0)
    proved = prove_equivalent(model, other, empty_word=False)
    assert isinstance(proved, Proved)
    assert proved.scope == Scope(2)
    model = compile_machine(MooreMachine([[0]], ["x"]))
    machine = MooreMachine([[1, 2, 2]], ["x", "x", "y"])
    scope = Scope(3, empty_word=True)
    assert prove_equivalent(model, machine) == Refuted(Counterexample((0, 0), ("x", "y"), ("x", "x")), 1, scope)
    assert prove_equivalent(model, machine, ignore=("x",)) == Refuted(
        Counterexample((0, 0), ("x", "y"), ("x", "x"), (False, True)), 1, Scope(3, 2, ("x",), empty_word=True)
    )
    machine = zoo.sum_mod(3)
    fewer = MooreMachine(machine.delta, [0, 1, "?"], 0, machine.alphabet)
    model = compile_machine(machine)
    assert isinstance(prove_equivalent(model, fewer), Refuted)
    for ignore in ("lacked", ("?",), {"?"}):
        verdict = prove_equivalent(model, fewer, empty_word=False, ignore=ignore)
        assert (verdict.pairs, verdict.scope) == (3, Scope(3, 1, ("?",)))
    assert isinstance(prove_equivalent(model, fewer, ignore=(0,)), Refuted)


@pytest.mark.parametrize("large", [2.0**10, 2.0**26])
def test_what_the_empty_words_output_rounds_is_seen(large):
    """Its logit is a sum of numbers that cancel. Beyond the integers of float32 the order of the sum, and so the CPU,
    decides whether they cancel: the model is right or wrong there, but no verdict covers every shape of call."""
    machine = MooreMachine([[1, 2, 1]], ["start", "odd", "even"])
    n, A = 300, compile_machine(machine, normalisation="none").layers[0].tables(torch.ones(1, 1))[0]
    signs = torch.ones(n).cumsum(0) % 2 * 2 - 1
    W1 = torch.cat([torch.eye(3), torch.eye(3)[0].expand(n, 3)])
    W2 = torch.cat([torch.eye(3), torch.outer(torch.eye(3)[0], signs * (large + torch.arange(n) // 2))], 1)
    parts = A, torch.zeros(1, 1, 3), torch.eye(3)[:1], Readout(W1, torch.zeros(n + 3), W2, torch.zeros(3))
    model = LRNN.from_tables(*parts, machine.alphabet, machine.outputs)
    verdict, but_that = prove_equivalent(model, machine), prove_equivalent(model, machine, empty_word=False)
    assert isinstance(but_that, Proved)
    assert but_that.covers.shapes == "every"
    if isinstance(verdict, Refuted):
        assert (large, verdict.word) == (2.0**26, ())
    else:
        assert isinstance(verdict, Proved)
        assert verdict.covers.shapes == ("every" if large < 2**20 else "letters")


def test_budgets_and_logits_that_are_not_numbers():
    machine = zoo.length_mod(50)
    assert prove_equivalent(compile_machine(machine), machine, budget=10) == Undecided(
        10, Scope(50, empty_word=True), 10
    )
    model = compile_machine(zoo.parity(), normalisation="none")
    with torch.no_grad():
        model.layers[0].transition[2].weight *= 1e25
    verdict = prove_equivalent(model, zoo.parity())
    assert isinstance(verdict, Refuted)
    assert verdict.failure.given[-1] != verdict.failure.wanted[-1]
    wrong = MooreMachine([[1, 2, 3, 3], [0, 0, 1, 1]], ["p", "q", "r", "s"], alphabet="ab")
    exact, floating = (prove_equivalent(m, ASYMMETRIC) for m in (compile_recurrence(wrong), compile_machine(wrong)))
    failure = Counterexample(("a", "a", "a", "b"), ("q", "r", "s", "r"), ("q", "r", "s", "q"))
    assert exact == floating == Refuted(failure, 3, Scope(4, empty_word=True))


def test_letters_may_be_reordered_and_alphabets_must_agree():
    machine = zoo.subtraction(3)
    turned = MooreMachine(machine.delta[::-1], machine.outputs, machine.start, machine.alphabet[::-1])
    assert isinstance(prove_equivalent(compile_machine(machine), turned), Proved)
    with pytest.raises(InvalidMachine, match=r"only the first has \['2'\], only the second \[\]"):
        prove_equivalent(compile_machine(zoo.sum_mod(3)), zoo.sum_mod(2))


@pytest.mark.long
def test_channels_that_the_rule_clips_are_proved_for_all_lengths_on_an_open_set_of_weights():
    """T22 of docs/theory.md says that a free table almost surely has no eigenvalue of modulus 1; under "clip" one that
    is written beyond 1 has it, whatever the weights are exactly."""
    machine, proved = zoo.parity(), {1.5: 0, 0.9: 0}
    for size in proved:
        torch.manual_seed(0)
        for _ in range(8):
            model = compile_machine(machine, form="cascade", max_block=1, normalisation="clip")
            gate = model.layers[0].transition
            with torch.no_grad():
                gate[2].weight.fill_(2 * size)  # a = ±size before the rule
                gate[2].bias.fill_(-size)
                for weight in model.parameters():
                    weight *= 1 + 0.05 * torch.randn_like(weight)
            proved[size] += isinstance(prove_equivalent(model, machine, 200), Proved)
    assert proved == {1.5: 8, 0.9: 0}


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_that_has_passed_is_said(stacks):
    machine = zoo.sum_mod(5)
    for model in (compile_machine(machine), stacks["counter"][0]):
        against = machine if isinstance(model, LRNN) else stacks["counter"][1]
        verdict = prove_equivalent(model, against, seconds=3)
        assert verdict == Undecided(0, verdict.scope, seconds=3)
        assert ("time limit", "3 s, all spent") in verdict.in_words()


def test_enumerations_end_at_budgets_lengths_and_wrong_words():
    machine = zoo.sum_mod(3)
    config = LRNNConfig(machine.alphabet, (0, 1, 2), (BlockLayerConfig((2,), 4, 4),) * 2, embedding_dim=2)
    torch.manual_seed(0)
    model = LRNN(config)
    certificate = certify(model, machine)
    words = torch.tensor(list(itertools.product(range(3), repeat=certificate.horizon + 1)))
    goal = specification_of(model, machine)
    wrong = model(words, "sequential").argmax(-1).numpy() != goal.wanted[goal.path(words.numpy())]
    assert wrong[:, -1].any()
    assert not wrong[:, :-1].any()
    check(certificate, model)
    machine = zoo.sum_mod(5)
    model = compile_machine(machine)
    goal = specification_of(model, machine)
    assert explore(model, goal, lambda steps: steps <= 4).length == 0
    assert explore(model, goal, lambda _: True, longest=1).is_closed is False
    whole = explore(model, goal, lambda _: True)
    assert (whole.is_closed, whole.pairs, whole.steps) == (True, 5, 25)
    trap = MooreMachine([[1, 1], [1, 1]], [0, "?"], 0, "ab")
    small = compile_machine(MooreMachine([[1, 1], [1, 1]], [0, 1], 0, "ab"))
    left_out = explore(small, specification_of(small, trap, "lacked"), lambda _: True)
    assert (left_out.pairs, left_out.steps) == (1, 0)


def test_a_deadline_ends_it_after_a_whole_length(monkeypatch):
    machine = zoo.sum_mod(5)
    model, left = compile_machine(machine), iter([1.0])
    monkeypatch.setattr(Deadline, "left", lambda _: next(left, 0.0))
    found = explore(model, specification_of(model, machine), lambda _: True, deadline=Deadline(1.0))
    assert (found.length, found.is_closed, found.is_wrong) == (1, False, False)
