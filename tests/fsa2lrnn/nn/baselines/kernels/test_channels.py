"""Kernels of channels against plain recurrences."""

import pytest
import torch
from torch.nn.functional import gelu

from fsa2lrnn.nn.layers import channel_scans, transitions
from fsa2lrnn.nn.layers.channel_layer import MIXINGS, Mixing
from fsa2lrnn.nn.layers.channel_scans import METHODS, System, outputs_alone
from fsa2lrnn.nn.layers.diagonal import pairs, scan_diagonal
from fsa2lrnn.nn.layers.transitions import Transition, from_planes, growth, low_rank, planes, reading, twice_real
from fsa2lrnn.nn.layers.transitions import diagonal as diagonal_of_transition

from .gradients import assert_all_close, with_gradients

H, N = 4, 3
LENGTHS = [0, 1, 2, 3, 39, 40, 41, 100]


def system(mixes):
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(H, N, dtype=torch.complex128, generator=generator) for _ in range(5)]
    parts[0] /= 1.02 * parts[0].abs()
    parts[1] *= 0.05
    parts[2] *= 0.05
    D = torch.randn(H, dtype=torch.float64, generator=generator).requires_grad_()
    a, q, r, B, C = (x.requires_grad_() for x in parts)
    return System(Transition(a, q, r) if mixes else Transition(a), B, C, D)


def inputs(batch, length, starts_at_zero, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    u = torch.randn(batch, length, H, dtype=torch.float64, generator=generator).to(dtype)
    if starts_at_zero:
        return u.requires_grad_(), torch.zeros(1, dtype=dtype).expand(batch, H, 2 * N)
    return u.requires_grad_(), torch.randn(batch, H, 2 * N, dtype=torch.float64, generator=generator).to(dtype)


def results(run, own, u, state):
    return with_gradients(run(own, u, state), (*own.transition, own.B, own.C, own.D, u))


@pytest.fixture
def short_pieces(monkeypatch):
    monkeypatch.setattr(channel_scans, "WHOLE", 40)
    monkeypatch.setattr(channel_scans, "PIECE", 16)


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("starts_at_zero", [True, False])
@pytest.mark.parametrize("mixes", [True, False])
@pytest.mark.parametrize("length", LENGTHS)
def test_every_method_agrees_with_the_loop(length, mixes, starts_at_zero):
    own, given = system(mixes), inputs(2, length, starts_at_zero)
    wanted = results(METHODS["sequential"], own, *given)
    for method in ("chunked", "fft"):
        assert_all_close(results(METHODS[method], own, *given), wanted, 1e-9, 1e-9)
    torch.testing.assert_close(outputs_alone(own, *given), wanted[0], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("batch", [0, 1])
def test_small_batches_and_single_precision(batch, method):
    own, (u, state) = system(True), inputs(batch, 50, False, torch.float32)
    y, last = METHODS[method](own, u, state)
    wanted, of_state = METHODS["sequential"](own, u.double(), state.double())
    assert y.dtype == last.dtype == torch.float32
    torch.testing.assert_close(y.double(), wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(last.double(), of_state, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_word_in_pieces_is_the_word(method):
    own, (u, state) = system(True), inputs(2, 33, False)
    whole, after = METHODS[method](own, u, state)
    first, between = METHODS[method](own, u[:, :10], state)
    second, last = METHODS[method](own, u[:, 10:], between)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(last, after)


def test_denormal_numbers_vanish():
    own = System(
        Transition(torch.full((1, 1), 0.1 + 0j)), *(torch.ones(1, 1) + 0j for _ in "BC"), torch.zeros(1).double()
    )
    K = own.respond(60, torch.float32).K
    assert (K[K != 0].abs() > 1e-31).all()
    assert (K == 0).any()


def test_outputs_alone_makes_no_last_state(monkeypatch):
    monkeypatch.setattr(channel_scans, "power", lambda *_: pytest.fail("made a state"))
    outputs_alone(system(True), *inputs(2, 40, True))


@pytest.mark.parametrize("method", ["sequential", "pscan", "fused", "letters"])
@pytest.mark.parametrize("length", [0, 1, 21])
def test_pairs_are_scanned_as_complex_numbers(length, method):
    generator = torch.Generator().manual_seed(0)
    rates, v, x = (
        torch.randn(*shape, 4, dtype=torch.complex128, generator=generator) for shape in ((), (2, length), (2,))
    )
    rates = rates / rates.abs()
    found = scan_diagonal(pairs(rates), pairs(v), pairs(x), method)
    assert found.shape == (2, length, 8)
    for k, one in enumerate(torch.view_as_complex(found.unflatten(-1, (-1, 2))).unbind(1)):
        x = rates * x + v[:, k]
        torch.testing.assert_close(one, x)


@pytest.mark.long
def test_threads_change_no_bit(same_by_any_threads):
    given = system_of_response(channels=12)
    same_by_any_threads(lambda: results_of_response(by_loops, given, 13, 0.0, False))


def test_little_work_is_not_worth_compiling(monkeypatch):
    monkeypatch.setattr(transitions, "compiled", lambda *_: pytest.fail("compiled"))
    transitions.respond(*system_of_response(), 13)


def test_growth_is_exact_and_small_numbers_vanish():
    z = torch.logspace(-12, 0, 60, dtype=torch.float64) * torch.polar(torch.ones(60), torch.arange(60.0)).to(
        torch.complex128
    )
    wanted = sum(z**k / torch.exp(torch.lgamma(torch.tensor(k + 2.0, dtype=torch.float64))) for k in range(30))
    torch.testing.assert_close(growth(z), wanted, rtol=1e-13, atol=0)
    given = system_of_response(mixes=False)
    _, states = transitions.doubled(*given, 13, 0.5, True)
    assert ((states == 0) | (states.abs() >= 0.5)).all()
    assert (states == 0).any()
    K = transitions.compiled(*given, 13, 0.5)
    assert ((K == 0) | (K.abs() >= 0.5)).all()
    assert (K == 0).any()


H_OF_TRANSITION, N_OF_TRANSITION = 3, 4


def drawn_of_transition(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.complex128, generator=torch.Generator().manual_seed(seed))


def doubled(x):
    return torch.cat([x, x.conj()], -1)


@pytest.fixture
def system_of_transition():
    poles = torch.complex(
        -drawn_of_transition(H_OF_TRANSITION, N_OF_TRANSITION).real.abs(),
        drawn_of_transition(H_OF_TRANSITION, N_OF_TRANSITION, seed=1).imag,
    )
    dt = torch.tensor([[1e-3], [0.1], [2.0]], dtype=torch.float64)
    return (
        poles,
        drawn_of_transition(H_OF_TRANSITION, N_OF_TRANSITION, seed=2),
        drawn_of_transition(H_OF_TRANSITION, N_OF_TRANSITION, seed=3),
        dt,
    )


def test_zoh_is_smooth_and_low_rank_is_the_trapezium_rule(system_of_transition):
    poles, P, B, dt = system_of_transition
    transition, inputs = low_rank(poles, P, B, dt)
    for h in range(H_OF_TRANSITION):
        A = torch.diag(doubled(poles[h])) - torch.outer(doubled(P[h]), doubled(P[h]).conj())
        half, eye = dt[h] / 2 * A, torch.eye(2 * N_OF_TRANSITION)
        x = drawn_of_transition(N_OF_TRANSITION, seed=9)
        moved = torch.linalg.solve(eye - half, (eye + half) @ doubled(x))
        own = Transition(transition.a[h], transition.q[h], transition.r[h])
        torch.testing.assert_close(own.times(x), moved[:N_OF_TRANSITION])
        torch.testing.assert_close(inputs[h], dt[h] * torch.linalg.solve(eye - half, doubled(B[h]))[:N_OF_TRANSITION])
    poles = torch.zeros(1, 1, dtype=torch.complex128, requires_grad=True)
    _, inputs = diagonal_of_transition(
        poles, torch.ones(1, 1) + 0j, torch.full((1, 1), 0.5, dtype=torch.float64), "zoh"
    )
    (slope,) = torch.autograd.grad(inputs.real.sum(), poles)
    assert inputs.item() == 0.5
    assert slope.item() == 0.5**2 / 2


@pytest.mark.parametrize("rule", ["zoh", "bilinear"])
def test_diagonal_rules_follow_the_differential_equation(system_of_transition, rule):
    poles, _, B, dt = system_of_transition
    small = dt * 1e-3
    transition, inputs = diagonal_of_transition(poles, B, small, rule)
    x = drawn_of_transition(H_OF_TRANSITION, N_OF_TRANSITION, seed=9)
    slope = (transition.times(x) + inputs - x) / small
    torch.testing.assert_close(slope, poles * x + B, rtol=1e-2, atol=1e-2)
    if rule == "zoh":
        torch.testing.assert_close(transition.a, (poles * small).exp())


@pytest.mark.parametrize("mixes", [False, True])
def test_matrices_planes_and_readings_say_the_same_as_complex_numbers(mixes):
    a, q, r, x = (drawn_of_transition(H_OF_TRANSITION, N_OF_TRANSITION, seed=seed) for seed in range(4))
    transition = Transition(a, q, r) if mixes else Transition(a)
    moved = (planes(x).unsqueeze(-2) @ transition.matrix()).squeeze(-2)
    torch.testing.assert_close(from_planes(moved), transition.times(x))
    torch.testing.assert_close((reading(a) * planes(x)).sum(-1), twice_real(a * x))
    back = transition.transposed.times(r)  # Σ r ⊙ Āx = Σ Āᵀr ⊙ x over all states
    torch.testing.assert_close(twice_real(r * transition.times(x)), twice_real(back * x))


def system_of_response(channels=4, n=3, mixes=True):
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(channels, n, dtype=torch.complex128, generator=generator) for _ in range(5)]
    parts[0] /= 1.1 * parts[0].abs()
    parts[1] *= 0.3
    a, q, r, B, C = (x.requires_grad_() for x in parts)
    return (Transition(a, q, r) if mixes else Transition(a)), B, C


def loop(transition, B, C, length, least, with_states):
    """States Ā^l B̄ and their readings as the definition has them."""
    x, found = B, [planes(B)[:, :0].reshape(len(B), 0, 2 * B.shape[1])]
    for _ in range(length):
        found.append(planes(x).unsqueeze(1))
        x = transition.times(x)
    states = torch.cat(found, 1)
    states = torch.where(states.abs() < least, 0, states)
    K = 2 * (from_planes(states) * C.unsqueeze(1)).real.sum(-1).T
    return K, states if with_states else states[:, :0]


def results_of_response(make, given, length, least, with_states):
    transition, B, C = given
    return with_gradients(make(transition, B, C, length, least, with_states), (*transition, B, C))


def by_loops(transition, B, C, length, least, _):
    K = transitions.compiled(transition, B, C, length, least)
    return K, planes(B).unsqueeze(1)[:, :0]


@pytest.mark.parametrize("mixes", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 13])
@pytest.mark.parametrize(
    ("make", "with_states"), [(by_loops, False), (transitions.doubled, False), (transitions.doubled, True)]
)
def test_the_fast_ones_agree_with_the_loop(make, length, mixes, with_states):
    given, length = system_of_response(mixes=mixes), max(length, make is by_loops)
    found, expected = (results_of_response(each, given, length, 0.0, with_states) for each in (make, loop))
    assert_all_close(found, expected, 1e-11, 1e-11)


W = 4


@pytest.mark.parametrize("kind", MIXINGS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_each_kind_is_what_it_says(kind, approximate):
    mixing, y = Mixing(W, kind, approximate), torch.randn(2, 3, W)
    g = gelu(y, approximate=approximate)
    z = mixing.linear(g) if "glu" in kind else None
    wanted = {
        "none": lambda: y, "gelu": lambda: g, "glu": lambda: z[..., :W] * torch.sigmoid(z[..., W:]),
        "half_glu1": lambda: g * torch.sigmoid(z), "half_glu2": lambda: y * torch.sigmoid(z),
    }[kind]()  # fmt: skip
    torch.testing.assert_close(mixing(y), wanted)
    torch.testing.assert_close(mixing(y[:, 0]), wanted[:, 0])
