"""Discretised steps against matrices that are written out and inverted."""

import pytest
import torch

from fsa2lrnn.extra.baselines.kernels.transition import (
    Transition,
    diagonal,
    from_planes,
    growth,
    low_rank,
    planes,
    reading,
    twice_real,
)

H, N = 3, 4


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.complex128, generator=torch.Generator().manual_seed(seed))


def doubled(x):
    return torch.cat([x, x.conj()], -1)


@pytest.fixture
def system():
    poles = torch.complex(-drawn(H, N).real.abs(), drawn(H, N, seed=1).imag)
    dt = torch.tensor([[1e-3], [0.1], [2.0]], dtype=torch.float64)
    return poles, drawn(H, N, seed=2), drawn(H, N, seed=3), dt


def test_low_rank_is_the_trapezium_rule(system):
    poles, P, B, dt = system
    transition, inputs = low_rank(poles, P, B, dt)
    for h in range(H):
        A = torch.diag(doubled(poles[h])) - torch.outer(doubled(P[h]), doubled(P[h]).conj())
        half, eye = dt[h] / 2 * A, torch.eye(2 * N)
        x = drawn(N, seed=9)
        moved = torch.linalg.solve(eye - half, (eye + half) @ doubled(x))
        own = Transition(transition.a[h], transition.q[h], transition.r[h])
        torch.testing.assert_close(own.times(x), moved[:N])
        torch.testing.assert_close(inputs[h], dt[h] * torch.linalg.solve(eye - half, doubled(B[h]))[:N])


@pytest.mark.parametrize("rule", ["zoh", "bilinear"])
def test_diagonal_rules_follow_the_differential_equation(system, rule):
    poles, _, B, dt = system
    small = dt * 1e-3
    transition, inputs = diagonal(poles, B, small, rule)
    x = drawn(H, N, seed=9)
    slope = (transition.times(x) + inputs - x) / small
    torch.testing.assert_close(slope, poles * x + B, rtol=1e-2, atol=1e-2)
    if rule == "zoh":
        torch.testing.assert_close(transition.a, (poles * small).exp())


def test_zoh_is_finite_and_smooth_at_a_pole_of_zero():
    poles = torch.zeros(1, 1, dtype=torch.complex128, requires_grad=True)
    _, inputs = diagonal(poles, torch.ones(1, 1) + 0j, torch.full((1, 1), 0.5, dtype=torch.float64), "zoh")
    (slope,) = torch.autograd.grad(inputs.real.sum(), poles)
    assert inputs.item() == 0.5
    assert slope.item() == 0.5**2 / 2


def test_growth_loses_no_digit_near_zero():
    z = torch.logspace(-12, 0, 60, dtype=torch.float64) * torch.polar(torch.ones(60), torch.arange(60.0)).to(
        torch.complex128
    )
    wanted = sum(z**k / torch.exp(torch.lgamma(torch.tensor(k + 2.0, dtype=torch.float64))) for k in range(30))
    torch.testing.assert_close(growth(z), wanted, rtol=1e-13, atol=0)


@pytest.mark.parametrize("mixes", [False, True])
def test_matrices_planes_and_readings_say_the_same_as_complex_numbers(mixes):
    a, q, r, x = (drawn(H, N, seed=seed) for seed in range(4))
    transition = Transition(a, q, r) if mixes else Transition(a)
    moved = (planes(x).unsqueeze(-2) @ transition.matrix()).squeeze(-2)
    torch.testing.assert_close(from_planes(moved), transition.times(x))
    torch.testing.assert_close((reading(a) * planes(x)).sum(-1), twice_real(a * x))
    back = transition.transposed.times(r)  # Σ r ⊙ Āx = Σ Āᵀr ⊙ x over all states
    torch.testing.assert_close(twice_real(r * transition.times(x)), twice_real(back * x))
