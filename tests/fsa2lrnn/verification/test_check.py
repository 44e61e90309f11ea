"""A certificate that says more than it proves is refused, and so is one for another model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, certify, compile_machine, zoo
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.specification import specification_of
from fsa2lrnn.verification.walk import explore

from .certify.conftest import drifting, forgetful, model_of, perturbed  # noqa: F401 - fixtures


@pytest.fixture(scope="module")
def drifted(drifting):  # noqa: F811
    machine, tables = drifting
    return certify(tables, machine, 2), tables


@pytest.fixture(scope="module")
def steady(forgetful):  # noqa: F811
    machine, tables = forgetful
    return certify(tables, machine, 1), tables


@pytest.fixture(scope="module")
def slow():
    machine = zoo.parity()
    tables = perturbed(machine, noise=0, layer_norm=False)
    certificate = certify(tables, machine, 1)
    assert certificate.horizon is not None
    assert certificate.tube.tail
    return certificate, tables


def with_tube(certificate, **changes):
    return replace(certificate, tube=replace(certificate.tube, **changes))


def with_stored(certificate, i, **changes):
    stored = list(certificate.tube.stored)
    stored[i] = replace(stored[i], **changes)
    return with_tube(certificate, stored=tuple(stored))


def with_ramp(certificate, i, **changes):
    ramps = list(certificate.tube.tail)
    ramps[i] = replace(ramps[i], **changes)
    return with_tube(certificate, tail=tuple(ramps))


def changed(array, by, at=None):
    """The array with its largest number, or that one, multiplied."""
    result = array.copy()
    at = np.unravel_index(np.abs(array).argmax(), array.shape) if at is None else at
    result[at] = result[at] * by
    return result


def assert_refused(certificate, tables, reason):
    with pytest.raises(CertificateRefused, match=reason):
        check(certificate, tables)


@pytest.mark.long
def test_what_was_certified_is_accepted_from_disk_too(drifted, steady, slow, tmp_path):
    for certificate, tables in (drifted, steady, slow):
        certificate.save(tmp_path / "c.json")
        check(Certificate.load(tmp_path / "c.json"), tables)
        check(certificate, model_of(tables))


@pytest.mark.long
def test_longer_horizons_and_smaller_sets_are_refused(drifted, slow, steady):
    certificate, tables = drifted
    assert_refused(replace(certificate, horizon=certificate.horizon + 1), tables, "margins for a horizon of")
    assert_refused(replace(certificate, horizon=None), tables, "margins for a horizon of None")
    longer = np.append(certificate.margins, 1e-9)
    assert_refused(replace(certificate, horizon=len(longer), margins=longer), tables, "may be wrong|do not hold")
    certificate, tables = slow
    assert_refused(replace(certificate, horizon=certificate.horizon + 1), tables, "tail ends at length")
    assert_refused(replace(certificate, horizon=None), tables, "tail ends at length")
    certificate, tables = steady
    assert_refused(with_ramp(certificate, 0, steps=0), tables, "0 steps")
    certificate, tables = drifted
    for i in (0, len(certificate.tube.stored) - 1):
        kept = certificate.tube.stored[i]
        for name in ("centre", "radius", "ball", "upper"):
            smaller = with_stored(certificate, i, **{name: changed(getattr(kept, name), 0.99)})
            assert_refused(smaller, tables, "do not hold all states")
        lower = changed(kept.lower, 0.5 if kept.lower.flat[np.abs(kept.lower).argmax()] < 0 else 1.5)
        assert_refused(with_stored(certificate, i, lower=lower), tables, "do not hold all states")
        alive = kept.alive.copy()
        alive[tuple(np.argwhere(alive)[0])] = False
        assert_refused(with_stored(certificate, i, alive=alive), tables, "lack a node")
        assert_refused(with_stored(certificate, i, radius=-kept.radius), tables, "negative entries")


@pytest.mark.parametrize("at", [0, 7, -1])
@pytest.mark.parametrize("by", [1.001, 2.0, np.nan, -1.0])
def test_margins_that_say_too_much_are_refused(drifted, at, by):
    certificate, tables = drifted
    assert_refused(
        replace(certificate, margins=changed(certificate.margins, by, at)), tables, "is claimed|may be wrong"
    )


def test_sets_that_nothing_uses_and_other_claims_are_refused(drifted, steady):
    certificate, tables = drifted
    stored = certificate.tube.stored
    for lengths in ((certificate.tube.start,), (0,), (certificate.horizon + 1,), (9, 9), (9, 8)):
        unread = tuple(replace(stored[0], length=length) for length in lengths)
        assert_refused(
            with_tube(certificate, stored=unread), tables, "sets are stored at the lengths .* they must rise"
        )
    certificate, tables = steady
    assert_refused(
        with_tube(certificate, tail=2 * certificate.tube.tail), tables, "sets follow the part .* for all longer"
    )
    certificate, tables = drifted
    assert_refused(replace(certificate, scans=("sequential", "pscan")), tables, "pscan: the bounds on rounding")
    assert_refused(replace(certificate, dtype="float64"), tables, "for float64, the model computes in")
    assert_refused(replace(certificate, slack=-1.0), tables, "slack = ")
    assert_refused(replace(certificate, slack=0.01), tables, "do not hold|is claimed|may be wrong")
    delta = certificate.machine.delta
    swapped = MooreMachine(delta, [0, 2, 1], 0, certificate.machine.alphabet)
    assert_refused(replace(certificate, machine=swapped), tables, "may be wrong")


def test_walks_are_bounded_and_larger_sets_lose_the_margin(drifted):
    certificate, tables = drifted
    margins = np.full(16_385, 1e-9)
    endless = replace(certificate, horizon=len(margins), margins=margins)
    assert_refused(endless, tables, "16,385 margins: at most 16,384 lengths are walked one by one")
    kept = certificate.tube.stored[0]
    assert_refused(with_stored(certificate, 0, radius=3 * kept.radius + 0.1), tables, "is claimed|may be wrong")


@pytest.mark.long
def test_tails_that_do_not_hold_are_refused(slow, steady):
    certificate, tables = slow
    ramp = certificate.tube.tail[0]
    for changes in (
        {"radius": 0.9 * ramp.radius},
        {"radius": 0 * ramp.radius},
        {"steps": None},
        {"steps": 2 * ramp.steps},
        {"sets": replace(ramp.sets, radius=0.5 * ramp.sets.radius)},
        {"sets": replace(ramp.sets, length=ramp.sets.length + 1)},
        {"radius": -ramp.radius},
        {"radius": ramp.radius[:, :0]},
        {"radius": np.inf * np.ones_like(ramp.radius)},
        {"steps": 0},
        {"steps": 1 << 63},
    ):
        assert_refused(with_ramp(certificate, 0, **changes), tables, "the tail")
    assert_refused(
        with_ramp(certificate, -1, steps=4 * certificate.tube.tail[-1].steps), tables, "in the tail|the tail"
    )
    assert_refused(with_tube(certificate, tail=()), tables, "margins for a horizon")

    certificate, tables = steady
    ramp = certificate.tube.tail[0]
    shrunk = replace(ramp.sets, ball=0.3 * ramp.sets.ball, radius=0.3 * ramp.sets.radius)
    assert_refused(with_ramp(certificate, 0, sets=shrunk), tables, "the tail")
    assert_refused(with_ramp(certificate, 0, radius=ramp.radius + 1e-9), tables, "may not grow")


def test_coordinates_that_are_none_are_refused(drifted):
    certificate, tables = drifted
    tube = certificate.tube
    assert_refused(with_tube(certificate, basis=0 * tube.basis), tables, "cannot be inverted")
    assert_refused(with_tube(certificate, basis=np.nan * tube.basis), tables, "basis has entries that are not finite")
    assert_refused(with_tube(certificate, basis=tube.basis[1:]), tables, "basis has shape")
    assert_refused(with_tube(certificate, part=tube.part + 1), tables, "directions are of 1 parts")
    for changes in ({"memory": 0}, {"frame_memory": 3}, {"start": 1}):
        assert_refused(with_tube(certificate, **changes), tables, "must be in order")
    assert_refused(with_tube(certificate, start=65), tables, "start = 65: at most 64 letters are read one by one")
    assert_refused(with_tube(certificate, start=12), tables, "ask for 27 sets and 531,441 words, over 131,072")
    assert_refused(with_tube(certificate, memory=10, start=10), tables, "ask for 177,147 sets")
    for factor in (1e-300, 1e200, 1e300):
        assert_refused(
            with_tube(certificate, basis=factor * tube.basis), tables, "do not hold|may be wrong|cannot be inverted"
        )
        mixed = np.where(np.arange(len(tube.basis))[:, None, None, None] % 2, factor, 1) * tube.basis
        assert_refused(with_tube(certificate, basis=mixed), tables, "do not hold|may be wrong|cannot be inverted")
    assert_refused(with_tube(certificate, slow=1.0 * tube.slow), tables, "slow has .* dtype float64, not .* bool")
    assert_refused(with_tube(certificate, part=tube.part > 0), tables, "part has .* dtype bool, not .* int64")
    assert_refused(with_tube(certificate, directions=tube.directions[0]), tables, "directions .*: not 3 and 4 axes")
    assert_refused(with_tube(certificate, basis=changed(tube.basis, 1.5)), tables, "do not hold|is claimed|may be")


@pytest.mark.parametrize("part", ["A", "v", "x0", "W1", "b1", "W2", "b2", "norm_weight", "norm_bias"])
def test_a_model_that_was_changed_is_refused(drifted, part):
    certificate, tables = drifted
    holder = tables if part in ("A", "v", "x0") else tables.readout
    number = getattr(holder, part).clone()
    number.view(-1)[0] = torch.nextafter(number.view(-1)[0], torch.tensor(9.0))
    if holder is tables:
        other = replace(tables, **{part: number})
    else:
        other = replace(tables, readout=replace(tables.readout, **{part: number}))
    assert_refused(certificate, other, "of a model with SHA-256")
    # Nor does the proof bear a change that rounding cannot explain, were the digest forged.
    if part in ("A", "x0"):
        number.view(-1)[0] += 0.5
        other = replace(tables, **{part: number})
        assert_refused(replace(certificate, sha256=other.sha256), other, "do not hold|is claimed|may be wrong")


def test_enumerations():
    machine = zoo.sum_mod(3)
    model = compile_machine(machine, layout="index")
    certificate = certify(model, machine)
    assert (certificate.method, certificate.horizon) == ("enumeration", None)
    check(certificate, model)
    check(replace(certificate, horizon=4), model)
    swapped = MooreMachine(machine.delta, [0, 2, 1], 0, machine.alphabet)
    assert_refused(replace(certificate, machine=swapped), model, "a word of length 1 is answered wrongly")
    assert_refused(replace(certificate, scans=("triton",)), model, "triton: the states were stepped")
    assert_refused(replace(certificate, sha256="0" * 64), model, "of a model with SHA-256")


def test_long_words_of_one_letter_cost_a_call_of_the_model_each():
    """A certificate of 355 bytes for cycles of the first eight primes took minutes."""
    machine = zoo.group("Z60")
    walk = explore(compile_machine(machine), specification_of(compile_machine(machine), machine), lambda n: n <= 5_000)
    assert not walk.is_closed
    assert walk.length < 30
    assert walk.scans == compile_machine(machine).methods
