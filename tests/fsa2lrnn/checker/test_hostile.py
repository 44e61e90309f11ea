"""Models and certificates made to deceive: nothing false is accepted, and whatever is refused is refused by name."""

import base64
import copy
import json
import tracemalloc
import zlib
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, certify, compile_machine, zoo
from fsa2lrnn.checker.claims import nodes
from fsa2lrnn.checker.proof import MOST_WORK, WORK, allowed_work, demands
from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.errors import Fsa2LrnnError
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import Readout, SwitchedAffine
from fsa2lrnn.verification import specification_of
from fsa2lrnn.verification import walk as joint_walk
from fsa2lrnn.verification.certificate import Certificate, Sets, Tail, Tube, plain
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.specification import Specification

from ..verification.certify.conftest import assert_uncontradicted, model_of, perturbed
from .conftest import walks


def one_number(A, v, x0, W, b, alphabet, outputs):
    """Tables of a single head of size 1 and a linear read-out, in float32."""
    tensor = lambda x, *shape: torch.tensor(x, dtype=torch.float32).reshape(shape)  # noqa: E731
    readout = Readout.linear(tensor(W, len(W), 1), tensor(b, len(b)))
    k = len(A)
    return SwitchedAffine(tensor(A, k, 1, 1, 1), tensor(v, k, 1, 1), tensor(x0, 1, 1), readout, alphabet, outputs)


def by_hand(tables, machine, lengths, scale=1.0, tail=None):
    """A certificate in one slow coordinate x / scale; `tail` gives the radius, in x, of sets for all longer words."""
    goal = specification_of(tables, machine, "lacked")
    F = len(nodes(goal.target, 1, 1).state)
    sets = Sets(
        lengths, np.ones((F, 1), bool), np.zeros((F, 1, 1, 1)), np.full((F, 1, 1, 1), (tail or 0) / scale),
        np.full((F, 1, 1), 1e-140), np.zeros((F, 0, 1)), np.zeros((F, 0, 1)),
    )  # fmt: skip
    tube = Tube(
        1, 1, lengths, np.full((F, 1, 1, 1), scale), np.ones((F, 1, 1), bool), np.zeros(goal.delta.shape[1], np.int64),
        np.zeros((1, 0, 1, 1)), (), () if tail is None else (Tail(sets, 0 * sets.radius, 0 * sets.ball, None),),
    )  # fmt: skip
    horizon, margins = (lengths, lengths) if tail is None else (None, lengths + 1)
    return Certificate(
        horizon, np.full(margins, 1e-30), "sets", "float32", ("sequential",), 0.0, tables.sha256, machine, tube,
        "lacked",
    )  # fmt: skip


def test_states_that_overflow_where_nothing_counts_come_back_as_nan():
    """After "aaaa" the state is infinite, which nobody asks about; after "aaaab" it is 0 · ∞."""
    tables = one_number([2.0**39, 0.0], [0.0, 1.0], 1.0, [1.0, -1.0], [0.0, 0.0], "ab", ("yes", "no"))
    machine = MooreMachine([[1, 1], [0, 0]], ["yes", "?"], 0, "ab")
    with torch.no_grad():
        assert model_of(tables)(torch.tensor([[0, 0, 0, 0, 1]]), "sequential")[0, -1].isnan().all()
    check(by_hand(tables, machine, 1), tables, "lacked")
    for length in (2, 5, 9):
        with pytest.raises(CertificateRefused, match="at length 2 the output may be wrong"):
            check(by_hand(tables, machine, length), tables, "lacked")
    certificate = certify(tables, machine, ignore="lacked")
    assert certificate.horizon == 1
    check(certificate, tables, "lacked")


def test_sets_that_overflow_where_nothing_counts_are_refused_too():
    tables = one_number([0.5, 0.0], [0.0, 1.0], 1.0, [1.0, -1.0], [0.0, 0.0], "ab", ("yes", "no"))
    machine = MooreMachine([[1, 1], [0, 0]], ["yes", "?"], 0, "ab")
    goal = specification_of(tables, machine, "lacked")
    replay = TubeReplay(plain(tables), goal.target, by_hand(tables, machine, 1).tube, Slack())
    ((_, sets),) = islice(replay.lengths(), 1)
    idle = ~goal.counts[replay.nodes.state]
    for radius, shown in ((2.0**39, True), (2.0**41, False), (1e300, False), (np.nan, False)):
        wide = replace(sets, radius=np.where(idle[:, None, None, None], radius, sets.radius))
        assert (replay.margin(wide) > 0) == shown


def test_bounds_that_are_no_numbers_bound_nothing():
    """In coordinates of 10^298 the read-out overflows and every margin is NaN: that proves no sixth output."""
    tables = one_number([0.5], [0.5], 1.0, [2.0**39, -(2.0**39)], [0.0, 0.0], "a", (0, 1))
    machine = MooreMachine([[1, 2, 3, 4, 5, 6, 6]], [0, 0, 0, 0, 0, 0, 1], 0, "a")
    assert model_of(tables).transduce("aaaaaa")[-1] == 0
    with pytest.raises(CertificateRefused, match=r"in the tail the output may be wrong: .* nan"):
        check(by_hand(tables, machine, 5, scale=1e298, tail=1e8), tables)


def test_processors_that_take_small_numbers_for_zero_are_allowed_for():
    """x₀ is subnormal and soon large, or zero for ever."""
    tables = one_number([2.0**39], [0.0], 1e-40, [1.0, 0.0], [0.0, 1e-30], "a", ("large", "small"))
    machine = MooreMachine([[0]], ["large"], 0, "a")
    found = set()
    for flush in (False, True):
        torch.set_flush_denormal(flush)
        try:
            found |= set(model_of(tables).transduce("aa"))
        finally:
            torch.set_flush_denormal(False)
    if found == {"large", "small"}:  # some processors can't
        with pytest.raises(CertificateRefused, match="at length 1 the output may be wrong"):
            check(by_hand(tables, machine, 1), tables)
    larger = one_number([2.0**39], [0.0], 1e-30, [1.0, 0.0], [0.0, 1e-30], "a", ("large", "small"))
    check(by_hand(larger, machine, 1), larger)


def test_enumerations_that_do_not_end_are_refused(monkeypatch):
    monkeypatch.setattr("fsa2lrnn.verification.check.MOST_READ", 12)
    machine = zoo.sum_mod(5)
    model = compile_machine(machine, layout="index")
    certificate = certify(model, machine)
    with pytest.raises(CertificateRefused, match="the states do not close: 5 are reached by words of up to 1 letters"):
        check(certificate, model)


def test_enumerations_are_bounded_in_letters_read_alone_and_in_memory(monkeypatch):
    model = LRNN(compile_machine(zoo.sum_mod(3)).config)  # of random weights, so that it rounds
    goal = specification_of(model, MooreMachine([[0]] * 3, [0], 0, "012"), empty_word=False)
    monkeypatch.setattr(Specification, "is_wrong", lambda _, outputs, __: np.zeros(len(outputs), bool))
    monkeypatch.setattr(joint_walk, "MOST_ALONE", 12)
    walk = joint_walk.explore(model, goal, lambda _: True)
    assert (walk.length, walk.steps, walk.is_closed) == (2, 12, False)
    monkeypatch.setattr(joint_walk, "MOST_BYTES", 1_000)
    assert joint_walk.explore(model, goal, lambda _: True).length == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_enumerated(dtype):
    machine = zoo.sum_mod(3)
    model = compile_machine(machine, layout="index", dtype=dtype)
    check(certify(model, machine), model)


HOSTILE = [
    None, True, -1, 0, 1, 2, 10**30, 10**400, 1.5, 1e308, float("nan"), float("inf"), "", "sequential", [], [[1]], {},
    {"a": 1},
]  # fmt: skip
FACTORS = [0.0, -1.0, 0.5, 0.999, 1.001, 2.0, 1e-300, 1e150, 1e300, np.inf, np.nan]


def is_array(value):
    return isinstance(value, dict) and "data" in value


def paths(value, before=(), are_arrays_whole=True):
    """Where there is something to change: fields, entries of lists, and arrays as a whole."""
    if is_array(value) and are_arrays_whole:
        return []
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, part in inside for path in [(*before, key), *paths(part, (*before, key), are_arrays_whole)]]


@st.composite
def tampered(draw, certificates):
    """A certificate as JSON with one thing changed, and the model that it was of."""
    value, model = draw(st.sampled_from(certificates))
    value = copy.deepcopy(value)
    *way, last = draw(st.sampled_from([path for path in paths(value) if path[0] != "machine"]))
    holder = value
    for key in way:
        holder = holder[key]
    old = holder[last]
    if is_array(old) and draw(st.integers(0, 9)) == 0:
        holder, last = old, draw(st.sampled_from(list(old)))
        old = holder[last]
    if is_array(old) and old["dtype"].startswith("float"):
        flat = np.frombuffer(zlib.decompress(base64.b64decode(old["data"])), old["dtype"]).astype(np.float64)
        with np.errstate(all="ignore"):
            changed = flat * draw(st.sampled_from(FACTORS)) if draw(st.booleans()) else np.roll(flat, 1)
        data = base64.b64encode(zlib.compress(changed.tobytes())).decode()
        holder[last] = {"dtype": "float64", "shape": old["shape"], "data": data}
    elif type(old) is int and draw(st.booleans()):
        holder[last] = old + draw(st.integers(-2, 2))
    elif isinstance(holder, dict) and draw(st.integers(0, 9)) == 0:
        del holder[last]
    else:
        holder[last] = draw(st.sampled_from(HOSTILE))
    return value, model


@pytest.fixture(scope="module")
def certificates():
    parity, last = zoo.parity(), MooreMachine([[0, 0], [1, 1]], [0, 1], 0, "ab")
    drifts, slow = perturbed(parity, noise=0.03, seed=3), perturbed(parity, noise=0, layer_norm=False)
    settles = one_number([0.5, 0.5], [-1.0, 1.0], 0.0, [-1.0, 1.0], [0.0, 0.0], "ab", (0, 1))
    index = compile_machine(parity, layout="index")
    pairs = [(drifts, parity), (slow, parity), (settles, last), (index, parity)]
    return [(certify(model, machine, 1).to_json(), model) for model, machine in pairs]


@pytest.mark.long
@settings(max_examples=100)
@given(st.data())
def test_whatever_is_changed_in_a_certificate_it_is_refused_by_name_or_still_true(certificates, data):
    value, model = data.draw(tampered(certificates))
    try:
        certificate = Certificate.from_json(value)
        check(certificate, model)
    except Fsa2LrnnError as error:
        event(f"refused: {type(error).__name__}")
        return
    event(f"accepted: {certificate.method}")
    if certificate.method == "sets":
        assert_uncontradicted(certificate, model, certificate.machine)


def test_no_output_counts_after_the_words_that_a_set_remembers():
    """The sets of no node at all have no shape: this was a `ValueError` of numpy."""
    tables = one_number([0.5, 0.0], [0.0, 1.0], 1.0, [1.0, -1.0], [0.0, 0.0], "ab", ("yes", "no"))
    machine = MooreMachine([[1, 1], [1, 1]], ["yes", "?"], 0, "ab")
    with pytest.raises(CertificateRefused, match="after 1 letters no output counts that the model has"):
        check(by_hand(tables, machine, 1), tables, "lacked")


def wide_tables(heads, b=1):
    """Tables of a model with many heads that is always right, and its machine."""
    readout = Readout.linear(torch.zeros(2, heads * b), torch.tensor([1.0, 0.0]))
    A = torch.full((2, heads, b, b), 0.5)
    return SwitchedAffine.of(A, torch.zeros(2, heads, b), torch.zeros(heads, b), readout), MooreMachine([[0], [0]], [0])


def small_certificate(tables, machine, start, lengths=None, directions=0, memory=1):
    """A certificate whose arrays compress to nearly nothing."""
    H, b = tables.x0.shape
    F = 2**memory
    tube = Tube(
        memory, memory, start, np.tile(np.eye(b), (F, H, 1, 1)), np.ones((F, H, b), bool), np.zeros(1, np.int64),
        np.zeros((1, directions, H, b)),
    )  # fmt: skip
    margins = np.full(lengths or start, 1e-9)
    return Certificate(
        len(margins), margins, "sets", "float32", ("sequential",), 0.0, tables.sha256, machine, tube
    )  # fmt: skip


def test_a_small_file_that_asks_for_much_memory_is_refused():
    tables, machine = wide_tables(512)
    certificate = small_certificate(tables, machine, 14)
    text = json.dumps(certificate.to_json())
    assert len(text) < 1_000
    with pytest.raises(CertificateRefused, match=r"holds 1\d\d,\d+,\d+ numbers at a time, its bound is 83,886,080: "):
        check(Certificate.from_json(json.loads(text)), tables)


def test_a_small_file_that_asks_for_much_work_is_refused_unless_more_is_allowed():
    tables, machine = wide_tables(64)
    certificate = small_certificate(tables, machine, 4, 16_000)
    with pytest.raises(CertificateRefused, match=r"takes \d+,\d+,\d+,\d+ operations, .* is 2,\d+,\d+,\d+: .*`work`"):
        check(certificate, tables)
    short = replace(certificate, horizon=40, margins=certificate.margins[:40])
    assert check(short, tables).horizon == 40
    with pytest.raises(CertificateRefused, match="its bound for a certificate of this size is 1,000:"):
        check(short, tables, work=1_000)


def test_a_certificate_may_ask_for_more_the_more_it_holds():
    tables, machine = wide_tables(64)
    certificate = small_certificate(tables, machine, 4)
    random = replace(certificate.tube, basis=np.random.default_rng(0).normal(size=certificate.tube.basis.shape))
    few, more = allowed_work(certificate.tube, certificate.margins), allowed_work(random, certificate.margins)
    assert WORK < few < 1.1 * WORK
    assert few + 2**19 * random.basis.nbytes / 2 < more < MOST_WORK
    large = replace(random, basis=np.random.default_rng(0).normal(size=(2, 64, 64, 64)))
    assert allowed_work(large, certificate.margins) == MOST_WORK


@pytest.mark.long
def test_what_certify_finds_is_within_the_bounds(drifting, forgetful):
    """Fixtures of one small model that drifts for thousands of letters, and of one that forgets."""
    for machine, tables in (drifting, forgetful):
        check(certify(tables, machine), tables)


@settings(max_examples=20)
@given(walks())
def test_the_work_of_a_step_is_counted_at_every_length_and_thrice_for_a_part_of_the_tail(walk):
    _, tables, _, tube = walk
    numbers, steps = plain(tables), tube.start + 3
    (m, n), (letters, _, b, _), D = numbers.numbers["W1"].shape, tables.A.shape, tube.directions.shape[1]
    work = lambda tube, steps: demands(tube, numbers, steps)[1]  # noqa: E731
    step = work(tube, steps + 1) - work(tube, steps)
    sets = len(tube.slow) * letters ** (tube.memory - tube.frame_memory)
    assert step > sets * (letters * n * (b + D) + len(tables.outputs) * m * n)  # multiplications
    assert work(replace(tube, tail=(None, None)), steps) - work(tube, steps) == 6 * step
    assert work(tube, steps) - work(tube, 0) == 3 * step


@pytest.mark.long
@settings(max_examples=20)
@given(walks())
def test_no_more_is_allocated_than_is_estimated(walk):
    _, tables, goal, tube = walk
    numbers, _ = demands(tube, plain(tables), tube.start + 3)
    tracemalloc.start()
    try:
        with np.errstate(all="ignore"):
            for _ in islice(TubeReplay(plain(tables), goal.target, tube, Slack()).lengths(), tube.start + 3):
                pass
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most <= 2 * 8 * numbers + 500_000  # and what Python's own objects take
