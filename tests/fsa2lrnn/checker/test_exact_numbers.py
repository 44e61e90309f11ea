"""The checker's bounds against rational arithmetic, without tolerance: in a format that rounds nothing, only the
checker's own rounding is left, and sets are tight enough for it to count; and the bounds on a format's rounding."""

import itertools

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.checker.claims import Sets, nodes
from fsa2lrnn.checker.margins import Margins, ScaledReadout
from fsa2lrnn.checker.replay import all_words, enclose
from fsa2lrnn.checker.rounding import NORM_EPS, FloatFormat, ReadoutError, Slack, StepError
from fsa2lrnn.checker.steps import Steps

from .conftest import walks

REAL = FloatFormat(0.0, 0.0, float("inf"))
rational = np.vectorize(lambda x: flint.fmpq(*map(int, float(x).as_integer_ratio())), otypes=[object])


def outward(exact, side):
    """The float next to a rational number on that side of it."""
    return np.nextafter(float(int(exact.p)) / float(int(exact.q)), side * np.inf) if exact else 0.0


def samples(centre, radius, ball, slow, aligned, rng):
    """Exact members (N, H, b) of a box with a ball, farthest towards these vectors, and one other corner."""
    signs = np.concatenate([np.sign(aligned), rng.choice([-1, 1], (1, *slow.shape))])
    share = np.concatenate([aligned, rng.normal(size=(1, *slow.shape))]) * ~slow
    share = share / np.maximum(np.linalg.norm(share, axis=-1, keepdims=True), 1e-300) * (1 - 1e-15)
    box = rational(centre) + rational(signs * slow) * rational(radius)
    return box + rational(share) * rational(ball)[:, None]


def assert_holds(sets, f, j, w, slow, directions):
    """Fail unless the set of (f, j) holds the exact coordinates w (H, b)."""
    off = w - rational(sets.centre[f, :, :, j])
    assert (abs(off) <= rational(sets.radius[f, :, :, j]))[slow].all()
    assert ((off * off * ~slow).sum(-1) <= rational(sets.ball[f, :, j]) ** 2).all()
    along = (directions * w).sum((1, 2))
    assert (rational(sets.lower[f, :, j]) <= along).all()
    assert (along <= rational(sets.upper[f, :, j])).all()


def inverses(T):
    """Exact inverses of matrices (…, b, b)."""
    b, found = T.shape[-1], np.empty(T.shape, object)
    for at in np.ndindex(T.shape[:-2]):
        found[at] = np.array(flint.fmpq_mat(b, b, rational(T[at]).ravel().tolist()).inv().tolist())
    return found


@settings(max_examples=12)
@given(walks(), st.integers(0, 999), st.sampled_from([0.0, 1e-14, 1.0]))
def test_steps_hold_every_exact_image(walk, seed, extent):
    """Corners that lie farthest along a row of a letter's matrix: a radius that is too small by 10⁻⁹ is seen."""
    _, tables, goal, tube = walk
    rng, found, k = np.random.default_rng(seed), nodes(goal.target, tube.memory, tube.frame_memory), len(tables.A)
    F, H, b = tube.slow.shape
    A = rng.normal(size=(k, H, b, b)) * rng.choice([1e-3, 1, 1e3], (k, H, b, 1))
    v = rng.normal(size=(k, H, b)) * rng.choice([0, 1, 1e6], (k, H, b))
    centre = rng.normal(size=(F, H, b, found.older)) * rng.choice([1, 1e6], (F, H, 1, found.older))
    if rng.random() < 0.5:  # one node's images are near zero: what the terms lose is much of them
        v = -(A @ (tube.basis[0] @ centre[0, :, :, :1]))[..., 0]
    steps = Steps(found, tube, A, v, StepError(A, v, Slack(), REAL))
    J, D = found.older, tube.directions.shape[1]
    radius = extent * rng.random((F, H, b, J)) * tube.slow[..., None] * rng.choice([0, 1], (F, 1, 1, J))
    ball = extent * rng.random((F, H, J)) * rng.choice([0, 1], (F, 1, J))
    sets = Sets(3, rng.random((F, J)) < 0.9, centre, radius, ball, np.zeros((F, D, J)), np.zeros((F, D, J)))
    there, T, exact_A, exact_v = inverses(tube.basis), rational(tube.basis), rational(A), rational(v)
    members = {}
    directions = rational(steps.directions)
    for f, j in [*np.argwhere(sets.alive)[:1], *rng.permutation(np.argwhere(sets.alive))[:4]]:
        a = rng.choice(np.flatnonzero(found.delta[:, f] >= 0)) if (found.delta[:, f] >= 0).any() else 0
        M = np.linalg.inv(tube.basis[found.delta[a, f]]) @ A[a] @ tube.basis[f]
        wanted = M[None, :, rng.integers(0, b)], -M[None, :, rng.integers(0, b)]
        at = centre[f, :, :, j], radius[f, :, :, j], ball[f, :, j]
        members[f, j] = w = samples(*at, tube.slow[f], np.concatenate(wanted), rng)
        along = (directions[f] * w[:, None]).sum((2, 3))  # (N, D)
        for side, bound in ((-1, sets.lower), (1, sets.upper)):
            bound[f, :, j] = [outward((min if side < 0 else max)(x), side) for x in along.T]
    size = steps.sizes(sets)
    for after in (steps.after(sets), steps.after(sets, centre)):
        for (f, j), w in members.items():
            x = (T[f] @ w[..., None])[..., 0]
            assert (abs(x) <= rational(size[f, :, :, j])).all()
            for a, to in enumerate(found.delta[:, f]):
                if to >= 0:
                    here = j * k % J + found.oldest[f] if J > 1 else 0
                    images = (there[to] @ ((exact_A[a] @ x[..., None])[..., 0] + exact_v[a])[..., None])[..., 0]
                    assert after.alive[to, here]
                    for image in images:
                        assert_holds(after, to, here, image, tube.slow[to], directions[to])


@settings(max_examples=25)
@given(walks(), st.integers(0, 999))
def test_balls_of_short_words_and_their_sets_hold_exact_states(walk, seed):
    _, tables, goal, tube = walk
    rng, found, k = np.random.default_rng(seed), nodes(goal.target, tube.memory, tube.frame_memory), len(tables.A)
    A, v, x0 = (rng.normal(size=x.shape) * rng.choice([1e-6, 1, 1e3]) for x in (tables.A, tables.v, tables.x0))
    error = StepError(A, v, Slack(), REAL)
    directions = tube.directions[tube.part[found.state]] * tube.slow[:, None]
    exact_A, exact_v, there, exact_d = rational(A), rational(v), inverses(tube.basis), rational(directions)
    states = {(): rational(x0)}
    for length, words in enumerate(itertools.islice(all_words(A, v, x0, goal.target, error, tube.memory), 4)):
        kept = [word for word in states if goal.coaccessible[ended(goal, word)]]
        assert len(kept) == len(words.state)
        assert words.state.tolist() == [ended(goal, word) for word in kept]
        for i, word in enumerate(kept):
            assert (abs(states[word] - rational(words.x.mid[i])) <= rational(words.x.rad[i])).all()
        if length >= tube.memory:
            sets = enclose(words, length, found, tube, directions)
            for word, f, j in zip(kept, *found.numbers(words.state, words.letters), strict=True):
                w = (there[f] @ states[word][..., None])[..., 0]
                assert sets.alive[f, j]
                assert_holds(sets, f, j, w, tube.slow[f], exact_d[f])
        states = {
            (*word, a): (exact_A[a] @ states[word][..., None])[..., 0] + exact_v[a] for word in kept for a in range(k)
        }


def ended(goal, word):
    """The state of the target after a word."""
    q = goal.start
    for a in word:
        q = int(goal.delta[a, q])
    return q


def exact_margin(weights, x, wanted, has_norm):
    """The least lead of a logit over the others at a rational state, and σ, in arb where LayerNorm takes a root."""
    flint.ctx.prec = 200
    y, root = [flint.arb(value) for value in x] if has_norm else list(x), flint.arb(1)
    if has_norm:
        mean = sum(y, flint.arb(0)) / len(y)
        root = (sum(((value - mean) ** 2 for value in y), flint.arb(0)) / len(y) + flint.arb(NORM_EPS)).sqrt()
        scale, shift = rational(weights["norm_weight"]), rational(weights["norm_bias"])
        y = [(value - mean) / root * w + c for value, w, c in zip(y, scale, shift, strict=True)]
    hidden = [sum((w * value for w, value in zip(row, y, strict=True)), b) for row, b in rows(weights, "1")]
    hidden = [max(unit, flint.fmpq(0)) if not has_norm else unit if unit > 0 else flint.arb(0) for unit in hidden]
    logits = [sum((w * value for w, value in zip(row, hidden, strict=True)), b) for row, b in rows(weights, "2")]
    return min(logits[wanted] - logit for i, logit in enumerate(logits) if i != wanted), root


def rows(weights, layer):
    return zip(rational(weights[f"W{layer}"]), rational(weights[f"b{layer}"]), strict=True)


@settings(max_examples=60)
@given(st.integers(0, 9_999), st.booleans(), st.sampled_from([0.0, 1e-13, 1e-3, 1.0]), st.integers(1, 3))
def test_margins_are_below_every_exact_one(seed, has_norm, extent, m):
    """Small read-outs whose units bend within the sets, at every corner; and points, whose terms cancel."""
    rng = np.random.default_rng(seed)
    H, b, C, J, D = rng.integers(1, 3), rng.integers(1, 3), 3, 6, 2
    n = H * b
    size = lambda *shape: rng.normal(size=shape) * rng.choice([1, 1e5])  # noqa: E731
    weights = {"W1": size(m, n), "b1": size(m), "W2": size(C, m), "b2": rng.normal(size=C)}
    if has_norm:
        weights |= {"norm_weight": rng.normal(size=n), "norm_bias": rng.normal(size=n)}
    T = np.eye(b) + 0.3 * rng.normal(size=(1, H, b, b))
    slow = rng.random((1, H, b)) < 0.7
    directions = rng.normal(size=(1, D, H, b)) * slow[:, None]
    directions[0, 0, 1:] = 0
    centre = rng.normal(size=(1, H, b, J)) * rng.choice([1, 1e3], J)
    radius, ball = extent * rng.random((1, H, b, J)) * slow[..., None], extent * rng.random((1, H, J))
    sets = Sets(1, np.ones((1, J), bool), centre, radius, ball, np.zeros((1, D, J)), np.zeros((1, D, J)))
    corners = np.array(list(itertools.product((-1, 1), repeat=n))).reshape(-1, H, b)
    members = []
    for j in range(J):
        at = centre[0, :, :, j], radius[0, :, :, j], ball[0, :, j]
        members.append(w := samples(*at, slow[0], corners, rng))
        along = (rational(directions[0]) * w[:, None]).sum((2, 3))
        for side, bound in ((-1, sets.lower), (1, sets.upper)):
            bound[0, :, j] = [outward((min if side < 0 else max)(x), side) for x in along.T]
    members = [[(rational(T[0]) @ w[..., None]).ravel() for w in of_set] for of_set in members]
    for wanted in range(C):
        margins = Margins(ScaledReadout(weights, REAL), T, slow, directions, np.array([wanted]))
        for j, bound in enumerate(margins.least(sets)[0]):
            for x in members[j]:
                lead, sigma = exact_margin(weights, x, wanted, has_norm)
                # A bound that shows nothing is one of the lead times σ.
                assert not rational(bound)[()] > (lead if bound > 0 or not has_norm else lead * sigma)


def drawn(shape, exponents, rng):
    """Float32 numbers of these binary exponents, of both signs."""
    size = rng.uniform(1, 2, shape) * 2.0 ** rng.integers(*exponents, shape)
    return (size * rng.choice([-1, 1], shape)).astype(np.float32)


@pytest.mark.parametrize("fused", [False, True])
def test_half_of_the_bound_on_a_step_is_used(fused):
    rng, kind = np.random.default_rng(0), FloatFormat.of("float32")
    A, v, x = (drawn(400_000, (-1, 2), rng) for _ in range(3))
    exact = A.astype(np.float64) * x  # 48 bits
    rounded = (exact + v).astype(np.float32) if fused else A * x + v
    error = StepError(A[:, None, None, None].astype(np.float64), v[:, None, None].astype(np.float64), Slack(), kind)
    bound = error.matrix[:, 0, 0, 0] * np.abs(x) + error.constant[:, 0, 0]
    share = np.abs(rounded - (exact + v)) / bound
    assert (0.25 if fused else 0.5) < share.max() <= 1


KEPT = np.finfo(np.float32).tiny


def flushed(x):
    return np.where(np.abs(x) < KEPT, np.float32(0), x)


def summed(terms):
    """A sum over the last axis in float32, term by term, where small numbers become zero."""
    total = np.zeros(terms.shape[:-1], np.float32)
    for i in range(terms.shape[-1]):
        total = flushed(total + terms[..., i])
    return total


@pytest.mark.parametrize("has_norm", [False, True])
@pytest.mark.parametrize(("exponents", "used"), [((-1, 2), 0.02), ((-70, -56), 0.0), ((-20, 20), 0.0)])
def test_logits_stay_within_their_bounds(has_norm, exponents, used):
    """Of ordinary numbers, of some so small that products vanish, of many sizes; float64 has twice the bits."""
    rng, kind, most = np.random.default_rng(1), FloatFormat.of("float32"), 0.0
    for _ in range(150):
        m, n, count = rng.integers(1, 4), rng.integers(1, 4), 64
        shapes = {"W1": (m, n), "b1": (m,), "W2": (2, m), "b2": (2,)}
        shapes |= {"norm_weight": (n,), "norm_bias": (n,)} if has_norm else {}
        scale = {name: 2.0 ** rng.choice([0, 0, 60]) for name in shapes} if exponents[0] < -50 else {}
        weights = {
            name: drawn(shape, exponents, rng) * np.float32(scale.get(name, 1)) for name, shape in shapes.items()
        }
        x = drawn((count, n), exponents if not has_norm else (-1, 2), rng)
        wide, (y, z) = {name: w.astype(np.float64) for name, w in weights.items()}, (x, x.astype(np.float64))
        error, size, sigma = ReadoutError(wide, kind), np.abs(z).max(-1), np.ones(count)
        if has_norm:
            mean = summed(x) / np.float32(n)
            square = np.maximum(summed(x * x) / np.float32(n) - mean * mean, 0)  # in one pass
            root = np.float32(1) / np.sqrt(square + np.float32(NORM_EPS))
            y = flushed(flushed((x - mean[:, None]) * root[:, None]) * weights["norm_weight"]) + weights["norm_bias"]
            sigma, exact = 1 / root.astype(np.float64), np.sqrt(z.var(-1) + NORM_EPS)
            assert (np.abs(exact / sigma - 1) <= error.scale(size, exact)).all()
            z = (z - z.mean(-1, keepdims=True)) / sigma[:, None] * wide["norm_weight"] + wide["norm_bias"]
        hidden = np.maximum(summed(flushed(y[:, None] * weights["W1"])) + weights["b1"], 0)
        found = summed(flushed(flushed(hidden)[:, None] * weights["W2"])) + weights["b2"]
        exact = np.maximum(z @ wide["W1"].T + wide["b1"], 0) @ wide["W2"].T + wide["b2"]
        bound = error.of_size * size[:, None] / sigma[:, None] + error.of_sigma
        share = np.abs(flushed(found) - exact) / bound
        assert share.max() <= 1
        most = max(most, share.max())
    assert most >= used
