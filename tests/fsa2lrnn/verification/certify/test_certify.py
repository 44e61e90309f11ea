"""`certify`, its search and its bounds on work."""

import math
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import event, given, settings

from fsa2lrnn import LRNN, MooreMachine, Readout, certify, check, prove_equivalent, zoo
from fsa2lrnn.checker.claims import nodes
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.compile.lower import compile_machine, lower
from fsa2lrnn.deadline import SearchCutShort, WorkBudget
from fsa2lrnn.errors import InvalidMachine, OutOfTime, UnsupportedFormat
from fsa2lrnn.nn import SwitchedAffine
from fsa2lrnn.nn.gate import look_up
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verification.certificate import Tube, plain
from fsa2lrnn.verification.certify.frames import Frames, gradients
from fsa2lrnn.verification.certify.tubes import TubeSearch, rounded
from fsa2lrnn.verification.specification import specification_of

from .conftest import assert_uncontradicted, model_of, perturbed, perturbed_machines


@pytest.mark.parametrize("layer_norm", [True, False])
def test_a_margin_grows_along_its_direction(layer_norm):
    """With the identity for a basis it is the gradient that torch finds."""
    machine = zoo.parity()
    tables = perturbed(machine, noise=0, layer_norm=layer_norm, dtype=torch.float64)
    goal = specification_of(tables, machine).target
    found = nodes(goal, 1, 1)
    F, (H, b) = len(found.state), tables.x0.shape
    basis, slow = np.broadcast_to(np.eye(b), (F, H, b, b)), np.ones((F, H, b), bool)
    tube = Tube(1, 1, 4, basis, slow, np.arange(2), np.zeros((2, 0, H, b)))
    rows = gradients(plain(tables), goal, found, tube)
    assert rows.shape == (2, 1, H, b)
    for q in (0, 1):  # the tables are exact, so that the letter q leads to all that state q is
        x = tables.run(torch.tensor([[q]]))[0, -1].clone().requires_grad_()
        flat = x.flatten()
        sigma = (flat.var(unbiased=False) + 1e-5).sqrt() if layer_norm else 1
        z = tables.logits(x) * sigma
        wanted = goal.expected[q]
        (z[wanted] - z[1 - wanted]).backward()
        assert np.allclose(rows[q, 0], x.grad.numpy(), rtol=1e-3, atol=1e-3)


@settings(max_examples=15)
@given(perturbed_machines())
def test_bases_are_bases_whatever_the_tables(drawn):
    machine, tables = drawn
    goal = specification_of(tables, machine).target
    found = nodes(goal, 2, 1)
    for threshold in (0.5, 0.93):
        basis, slow = Frames(plain(tables).weights["A"], goal).of(found, threshold)
        assert basis.shape == (*slow.shape, slow.shape[-1])
        assert (np.linalg.cond(basis) < 1e7).all()
        assert np.array_equal(basis, np.float64(np.float32(basis)))


@pytest.mark.long
def test_contraction_and_small_drift_carry_far(forgetful):
    machine, tables = forgetful
    certificate = certify(tables, machine)
    assert certificate.horizon is None
    assert certificate.covers(10**9)
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)
    machine = zoo.parity()
    tables = perturbed(machine, noise=0, layer_norm=False, dtype=torch.float64)
    certificate = certify(tables, machine, 1)
    assert certificate.horizon > 10**6
    assert certificate.tube.tail
    check(certificate, tables)


@pytest.mark.long
def test_single_letters_and_rounded_sets(drifting):
    tables = SwitchedAffine.of(
        torch.full((1, 1, 1, 1), -1.0), torch.zeros(1, 1, 1), torch.ones(1, 1),
        Readout.linear(torch.tensor([[1.0], [-1.0]]), torch.zeros(2)),
    )  # fmt: skip
    machine = MooreMachine([[1, 0]], [0, 1])
    certificate = certify(tables, machine)
    assert certificate.horizon > 10**4
    check(certificate, tables)
    machine, tables = drifting
    for sets in certify(tables, machine, 1).tube.stored:
        wider = rounded(sets)
        assert (np.abs(wider.centre - sets.centre) + sets.radius <= wider.radius)[sets.radius > 0].all()
        assert (np.linalg.norm(wider.centre - sets.centre, axis=2) + sets.ball <= wider.ball).all()
        assert (wider.lower < sets.lower).all()
        assert (wider.upper > sets.upper).all()
        for name in ("centre", "radius", "ball", "lower", "upper"):
            number = getattr(wider, name)
            assert np.array_equal(number, np.float64(np.float32(number)))


@pytest.mark.long
@settings(max_examples=6)
@given(perturbed_machines())
def test_no_word_contradicts_a_certificate(drawn):
    machine, tables = drawn
    certificate = certify(tables, machine, memory=1)
    event(f"horizon {'for ever' if certificate.horizon is None else min(certificate.horizon, 20) // 5 * 5}")
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)


@pytest.mark.long_cases("3")
@pytest.mark.parametrize("memory", [1, 2, 3])
def test_drifting_tables(drifting, memory):
    machine, tables = drifting
    certificate = certify(tables, machine, memory)
    assert certificate.memory == memory
    assert 5 < certificate.horizon < 100
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)


@pytest.mark.long
def test_known_failures_and_outputs_that_the_model_lacks(drifting):
    machine, tables = drifting
    model, goal = model_of(tables), specification_of(tables, machine)
    words = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (200, 400)))
    words = torch.cat([words, torch.arange(3)[:, None].expand(3, 400)])
    wrong = model(words).argmax(-1).numpy() != goal.wanted[goal.path(words.numpy())]
    shortest = int(wrong.any(0).argmax()) + 1
    assert wrong.any()
    assert certify(tables, machine, 2).horizon < shortest
    machine = MooreMachine([[1, 1, 2], [2, 2, 2]], [0, 1, "dead"], 0, "ab")
    whole = perturbed(MooreMachine(machine.delta, [0, 1, 0], 0, "ab"), layer_norm=False)
    tables = SwitchedAffine(whole.A, whole.v, whole.x0, whole.readout, whole.alphabet, (0, 1))
    certificate = certify(tables, machine, 1, ignore="lacked")
    assert certificate.horizon is None or certificate.horizon > 5
    assert certificate.ignore == ("dead",)
    check(certificate, tables, "lacked")
    machine, tables = drifting
    shifted = MooreMachine(machine.delta, [1, 2, 0], machine.start, machine.alphabet)
    certificate = certify(tables, shifted, 1)
    assert certificate.horizon == 0
    check(certificate, tables)


@pytest.mark.long
def test_bad_requests_are_refused_and_budgets_spent(drifting):
    machine, tables = drifting
    with pytest.raises(UnsupportedFormat, match=r"bfloat16"):
        certify(tables.to(torch.bfloat16), machine)
    with pytest.raises(InvalidMachine):
        certify(tables, zoo.parity())
    for slack in (-1.0, np.nan, np.inf):
        with pytest.raises(UnsupportedFormat, match="slack = "):
            certify(tables, machine, slack=slack)
    for number in (np.nan, np.inf, 2.0**41):
        with pytest.raises(UnsupportedFormat, match=r"A: sums of over 2\^40, or no numbers"):
            certify(replace(tables, A=torch.full_like(tables.A, number)), machine)
    with pytest.warns(
        SearchCutShort, match=r"cut short after 1e-06 s of processor time, with N = \d+: without a time limit"
    ):
        short = certify(tables, machine, seconds=1e-6)
    assert 1 <= short.horizon <= certify(tables, machine).horizon
    assert check(short, tables).horizon == short.horizon
    work = WorkBudget(100.0)
    assert work.allows(100.0)
    work.spend(60.0)
    assert work.allows(40.0)
    assert not work.allows(40.5)
    assert not work.is_cut_short


def test_models_of_several_layers_are_enumerated(stack):
    recurrence, machine = stack
    model = lower(recurrence)
    certificate = certify(model, machine)
    assert certificate.method == "enumeration"
    assert certificate.horizon is None
    check(certificate, model)
    verdict = prove_equivalent(model, machine, empty_word=False, ignore="lacked")
    assert verdict.pairs == verdict.transitions / len(model.alphabet)


def test_more_work_enumerates_longer_words(stack, monkeypatch):
    recurrence, machine = stack
    model = lower(recurrence)
    monkeypatch.setattr("fsa2lrnn.verification.certify._STEPS", 2)
    little, much = (certify(model, machine, work=work) for work in (1.0, 1e9))
    assert little.horizon is not None
    assert much.horizon is None
    assert certify(model, machine, work=1.0).horizon == little.horizon
    for certificate in (little, much):
        check(certificate, model)


def test_a_stream_that_the_readout_reads_beside_the_state_is_not_left_out():
    """By its state alone the model is parity; the embedding that is added makes ties of half of its outputs."""
    machine = zoo.parity()
    compiled = compile_machine(machine, normalisation="none")
    config = replace(compiled.config, embedding_dim=2, connection="full-residual")
    config = replace(config, layers=(replace(config.layers[0], transition_hidden=2, value_hidden=2),))
    model = LRNN(config)
    A, v = compiled.layers[0].tables(compiled.first_inputs())
    gates = {"transition": look_up(A), "value": look_up(v)}
    readout = {name: value.detach() for name, value in compiled.readout.weights._asdict().items()}
    model.write(torch.eye(2), [(compiled.layers[0].x0.detach(), gates)], readout)
    with torch.no_grad():
        right = model(torch.tensor([[1, 0]])).argmax(-1).tolist() == [[1, 1]]
    assert not right
    certificate = certify(model, machine)
    assert certificate.horizon < 2
    check(certificate, model)


@pytest.mark.long
def test_memory_is_chosen_and_checked(drifting):
    machine, tables = drifting
    best = certify(tables, machine)
    assert best.horizon >= max(certify(tables, machine, memory).horizon for memory in (1, 2))
    for memory in (0, "all", 14, 65):
        with pytest.raises(UnsupportedFormat, match="memory = "):
            certify(tables, machine, memory)


@pytest.mark.long
def test_sets_are_stored_and_the_same_work_gives_the_same_certificate(drifting):
    machine, tables = drifting
    certificate = certify(tables, machine, 1)
    lengths = [sets.length for sets in certificate.tube.stored]
    assert lengths == sorted(set(lengths))
    assert certificate.tube.start < lengths[0] <= lengths[-1] == certificate.horizon
    search = TubeSearch(plain(tables), specification_of(tables, machine).target, Slack(), WorkBudget(1.0))
    assert search.best("auto").horizon > 5
    first, second = (certify(tables, machine, work=3e7) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert certify(tables, machine, work=1e6).horizon < first.horizon <= certify(tables, machine).horizon


def test_only_a_cap_cuts_short(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("time.process_time", lambda: clock[0])
    free, capped = WorkBudget(1.0), WorkBudget(1.0, seconds=2.0)
    clock[0] = 3.0
    assert free.allows(1.0)
    assert not capped.allows(1.0)
    with pytest.warns(SearchCutShort):
        capped.warn_if_cut_short(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free.warn_if_cut_short(4)


@pytest.mark.parametrize("values", [(0.0, None), (math.inf, None), (math.nan, None), (1.0, 0.0), (1.0, -3.0)])
def test_a_budget_is_a_positive_number(values):
    with pytest.raises(UnsupportedFormat, match="positive number"):
        WorkBudget(*values)


@pytest.mark.long
def test_time_limits_hold_for_large_frames():
    """The singular values of a frame of 60 states and 60 entries took 40 s and 2 GB."""
    machine = zoo.group("A5")
    tables = switched(compile_machine(machine))
    begun = time.process_time()
    with pytest.raises(OutOfTime):
        certify(tables, machine, seconds=0.5)
    assert time.process_time() - begun < 1.5
