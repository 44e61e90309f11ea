"""Every term of the checker's bounds, made visible by coarse constants and compared with recorded values.

Most terms bound roundings of 10⁻¹⁶ beside radii of 10⁻⁷, so that no run of a model shows a wrong factor in them. Here
`EPS`, `NORM_EPS` and the floating-point formats are coarse: every factor moves a recorded number by far more than the
tolerance. A change of these numbers is a change of a proof. Review it, then record them anew:
`python -m tests.fsa2lrnn.checker.test_recorded_bounds`.
"""

import json
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from fsa2lrnn.checker import margins, pairs, proof, replay, rounding, steps
from fsa2lrnn.checker.claims import CountedAutomaton, Tables, Tail, Tube
from fsa2lrnn.checker.rounding import Ball, FloatFormat, ReadoutError, Slack, StepError

RECORD = Path(__file__).with_name("recorded_bounds.json")
COARSE, EPSILON = 2.0**-12, 2.0**-4
FORMATS = {  # of which each makes other terms large
    "no underflow": FloatFormat(2.0**-8, 0.0, 2.0**60),
    "little underflow": FloatFormat(2.0**-16, 2.0**-50, 2.0**60),
    "underflow": FloatFormat(2.0**-20, 2.0**-10, 2.0**60),
}
TARGET = CountedAutomaton(  # of 5 states: one output does not count, one state is left for good
    np.array([[1, 2, 3, 0, 4], [0, 0, 4, 1, 4]]), 0, np.array([0, 1, 2, 1, 0]), np.array([1, 1, 1, 1, 0], bool), 3
)


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Constants of which every multiple is seen."""
    set_coarse(monkeypatch.setattr)


def set_coarse(put):
    for module in (rounding, margins, steps, replay):
        put(module, "EPS", COARSE)
    for module in (margins, rounding):
        put(module, "NORM_EPS", EPSILON)
    put(margins, "_SLIP", 4 * COARSE)


def prints(x):
    """Two weighted sums of an array's entries, which are all visible in them; infinite ones count as 7."""
    flat = np.nan_to_num(np.asarray(x, np.float64).ravel(), nan=3, posinf=7, neginf=-7)
    weights = 1 + np.cos(1 + 0.7 * np.arange(len(flat))) / 2
    return [float(weights @ flat), float(weights[::-1] @ np.abs(flat))]


def read_out(rng, n, m, has_norm):
    weights = {"W1": rng.normal(size=(m, n)), "b1": rng.normal(size=m), "W2": rng.normal(size=(3, m))}
    weights["b2"] = rng.normal(size=3)
    return weights | ({"norm_weight": rng.normal(size=n), "norm_bias": rng.normal(size=n)} if has_norm else {})


def rounding_errors(rng):
    """The bounds on a step and on a read-out, in each format."""
    A, v = rng.normal(size=(2, 2, 3, 3)), rng.normal(size=(2, 2, 3))
    slack = Slack(np.abs(rng.normal(size=A.shape)) / 50, np.abs(rng.normal(size=v.shape)) / 50)
    plain, normed = (read_out(rng, 6, 5, has_norm) for has_norm in (False, True))
    size, least = rng.uniform(0.1, 2, (2, 4)), rng.uniform(0.5, 1, (2, 4))
    for name, kind in FORMATS.items():
        step = StepError(A, v, slack, kind)
        yield name, [step.matrix, step.constant, StepError(A, v, Slack(), kind).constant]
        for weights in (plain, normed):
            error = ReadoutError(weights, kind)
            yield name, [error.of_size, error.of_sigma, error.scale(size / 8, least), error.scale(size * 99, least)]


def balls(rng):
    """Arithmetic of balls, norms and inverses."""
    X, Y = (Ball(rng.normal(size=(2, 3, 3)), np.abs(rng.normal(size=(2, 3, 3))) / 9) for _ in range(2))
    for Z in (X + Y, X - Y, X * Y, X @ Y, X.mT, X[1:], rounding.inverse(np.eye(3) + X.mid / 9)):
        yield "ball", [Z.mid, Z.rad, Z.size, *Z.bounds()]
    wide, empty = Ball(X.mid[:, :, :2], X.rad[:, :, :2]), Ball.exact(np.zeros((2, 3, 0)))
    yield "norms", [rounding.norm(X.size), rounding.norm(X.size, 1), *map(rounding.spectral_norm, (X, wide, empty))]


def walk(rng, chosen):
    """A tube in drawn coordinates, and everything that a replay computes in it."""
    (has_norm, memory, frame_memory, several), H, b = chosen, 2, 3
    A, v, x0 = rng.normal(size=(2, H, b, b)) / 2, rng.normal(size=(2, H, b)) / 2, rng.normal(size=(H, b)) / 2
    weights = {"A": A, "v": v, "x0": x0, **read_out(rng, H * b, 5, has_norm)}
    kind = FloatFormat(2.0**-22 if has_norm else 2.0**-10, 2.0**-50, 2.0**60)
    found = replay.nodes(TARGET, memory, frame_memory)
    F, J = len(found.state), found.older
    fan = np.zeros((2, 4, H, b))
    fan[:, :2, 0, :2], fan[:, 2:, 0, :2] = np.eye(2), rng.normal(size=(2, 2, 2))
    across = rng.normal(size=(2, 3, H, b)) if several else np.zeros((2, 0, H, b))
    one_head = np.zeros((2, 2, H, b))
    one_head[:, :, 1] = rng.normal(size=(2, 2, b))
    axis = np.zeros((2, 1, H, b))
    axis[:, 0, 1, 2] = 1
    directions = np.concatenate([fan, across, one_head, axis], 1)
    slow = rng.random((F, H, b)) < 0.8
    basis = np.eye(b) + rng.normal(size=(F, H, b, b)) / 5
    tube = Tube(memory, frame_memory, memory + 1, basis, slow, np.array([0, 1, 0, 1, 0]), directions)
    error, readout = StepError(A, v, Slack(1e-3, 2e-3), kind), margins.ScaledReadout(weights, kind)
    for words in islice(replay.all_words(A, v, x0, TARGET, error, memory), memory + 3):
        yield "words", [words.state, words.letters, words.x.mid, words.x.rad]
        yield "margin of words", [replay.least_margin(words, readout, TARGET)]
    walked = steps.Steps(found, tube, A, v, error)
    sets = replay.enclose(words, memory + 2, found, tube, walked.directions)
    some = np.flatnonzero(TARGET.answerable[found.state])
    at = basis[some], slow[some], walked.directions[some], TARGET.expected[found.state[some]]
    margin = margins.Margins(readout, *at)
    for _ in range(3):
        yield "sets", [getattr(sets, name) for name in ("alive", "centre", "radius", "ball", "lower", "upper")]
        inner = sets.at(some)
        yield "sizes", [walked.sizes(sets), *margin._extent(inner), margin.least(inner)]
        yield "margin", [*of_margin(margin, inner)]
        sets = walked.after(sets)
    yield "about centres", [*vars(walked.after(sets, sets.centre / 2)).values()][1:]
    tail = Tail(sets, sets.radius / 7, sets.ball / 5, 3)
    for grown in (replay.grown(tail, 0), replay.grown(tail, 2), replay.grown(tail, 2, down=True)):
        yield "tail", [grown.length, grown.radius, grown.ball]
    yield "nodes", [found.state, found.delta, found.oldest, found.codes, J]
    given = Tables(weights, "float32", ("a", "b"), (0, 1, 2))
    for start in (memory, memory + 2):
        larger = Tube(memory, frame_memory, start, basis, slow, tube.part, directions, tail=(tail,) * (start - memory))
        yield "demands", [*proof.demands(larger, given, 9), proof.allowed_work(larger, np.ones(9)) >> 21]


def of_margin(margin, sets):
    """The parts of a bound on margins, before the least of them is taken."""
    F, J = sets.alive.shape
    parts = (sets.centre.reshape(F, -1, J), sets.radius.reshape(F, -1, J), sets.ball, sets.lower, sets.upper)
    box = margins._Box(*(np.ascontiguousarray(part.swapaxes(1, 2)) for part in parts))
    size, deviation, x, off = margin._extent(sets)
    sigma = margin._sigma(x, off, deviation, size, box)
    hidden = margin._hidden(sigma, box)
    yield from (*sigma, *hidden, margin._linear_bound(sigma, hidden, box))
    g = np.cos(np.arange(F * J * 2 * box.centre.shape[-1])).reshape(F, J, 2, -1)
    reach = margin._reach(np.abs(g), box)
    yield from (*reach, margin._greatest(g, box))
    yield from (margin._along_one(g, box, *reach, rows) for rows in margin._choices)


def constants(_rng):
    """The numbers that the modules name."""
    yield (
        "constants",
        [
            value
            for module in (margins, pairs, proof, replay, rounding, steps)
            for name, value in sorted(vars(module).items())
            if name.isupper() and isinstance(value, (int, float)) and name not in ("EPS", "NORM_EPS")
        ],
    )


WALKS = [(False, 1, 1, True), (True, 2, 1, True), (True, 2, 2, False), (False, 3, 2, False)]
SOURCES = {"rounding": rounding_errors, "balls": balls, "constants": constants}
SOURCES |= {f"walk {chosen}": partial(walk, chosen=chosen) for chosen in WALKS}


def bounds(source):
    """The values of a source, each an array's prints."""
    seed = list(SOURCES).index(source)
    return [[name, *map(prints, found)] for name, found in SOURCES[source](np.random.default_rng(seed))]


@pytest.mark.parametrize(("source", "values"), json.loads(RECORD.read_text()).items() if RECORD.exists() else ())
def test_bounds_are_those_that_were_reviewed(source, values):
    found = bounds(source)
    assert [entry[0] for entry in found] == [entry[0] for entry in values]
    for number, (mine, theirs) in enumerate(zip(found, values, strict=True)):
        assert mine[1:] == [pytest.approx(x, rel=1e-10, abs=1e-12) for x in theirs[1:]], (source, number, mine[0])


if __name__ == "__main__":
    set_coarse(setattr)
    RECORD.write_text(
        json.dumps({source: bounds(source) for source in SOURCES}, indent=None, separators=(",", ":")) + "\n"
    )
