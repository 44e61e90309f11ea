"""The audit of probes: what rounds is refused, sums stay within an accumulator, the oracle is rational."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest
import torch

from fsa2lrnn.probes import OPERATORS, Audit, InexactProbe
from fsa2lrnn.probes.audit import significant_bits, unit
from fsa2lrnn.probes.cases import GRADIENT_SIZES, SIZES, expected, long_word, proved, with_gradients, word


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("op", ["gated_delta_rule", "rwkv7"])
def test_every_operation_is_proved_exact(op, dtype):
    assert proved(op, dtype, (16,), gradients=True) > 500


def test_the_audit_refuses_what_rounds():
    operator = OPERATORS["gated_delta_rule"]
    case = word(operator, 1, replace(SIZES[torch.bfloat16], value=200), 40, batch=1, heads=1, state=True)
    with pytest.raises(InexactProbe, match="significant bits"), Audit(torch.bfloat16):
        expected(operator, case)
    x = torch.tensor([1.0, 2.0**24, 1.0], dtype=torch.float64)
    with pytest.raises(InexactProbe, match="accumulators have 24"), Audit(torch.float32):
        x.sum()
    with pytest.raises(InexactProbe, match=r"exp of -0\.5"), Audit(torch.float32):
        torch.tensor([-0.5], dtype=torch.float64).exp()
    assert GRADIENT_SIZES[torch.bfloat16].value == 1


double = partial(torch.tensor, dtype=torch.float64)
ONE, HALF = double([1.0]), double([2.0**23 + 1])
rest = lambda more: double([more - 2.0**23 - 1])  # noqa: E731 - with HALF 2²⁴ units, and one fewer
SUMS = {
    "sum": lambda more: double([2.0**23, 1 - 2.0**23, 1, 1])[: 5 - more].sum(),
    "cumsum": lambda more: double([2.0**23, 1 - 2.0**23, 1, 1])[: 5 - more].cumsum(0),
    "add": lambda more: HALF + rest(more),
    "sub": lambda more: HALF - -rest(more),
    "dot": lambda more: torch.dot(torch.cat([HALF, rest(more)]), double([1.0, 1.0])),
    "mm": lambda more: torch.cat([HALF, rest(more)])[None] @ double([[1.0], [1.0]]),
    "scatter_add": lambda more: HALF.scatter_add(0, torch.tensor([0]), rest(more)),
}


@pytest.mark.parametrize("name", SUMS)
def test_accumulators_hold_sums_of_2_to_the_24_units_and_no_more(name):
    with Audit(torch.float32):
        SUMS[name](2)
    with pytest.raises(InexactProbe, match=rf"a sum in {name} may need 25 bits"), Audit(torch.float32):
        SUMS[name](1)


def test_the_audit_tells_what_it_saw_and_what_a_format_lacks():
    with Audit(torch.float32) as audit:
        pass
    assert (audit.operations, audit.bits, audit.sum_bits) == (0, 0, 0)
    with audit:
        double([4.0, 5.0]) + double([4.0, 1.0])  # at most 8 units of 1
        double([0.5]) * double([1.5])
    assert (audit.operations, audit.bits, audit.sum_bits) == (2, 2, 3)
    assert unit(double([0.0])) == unit(double([])) == 1
    assert [unit(double([0.0, x])) for x in (1.5, -6.0, 2.0**-30, 3.0 * 2.0**70)] == [0.5, 2, 2.0**-30, 2.0**70]
    with Audit(torch.float32):
        assert double([-1e4, 0.0]).exp().tolist() == [0, 1]
    for inexact in (-128.0, 1.0):
        with pytest.raises(InexactProbe, match="exp2"), Audit(torch.float32):
            double([inexact]).exp2()
    info = torch.finfo(torch.float16)
    for factor, is_exact in ((info.max, True), (info.smallest_normal, True), (2.0**16, False), (2.0**-15, False)):
        try:
            with Audit(torch.float16):
                ONE * factor
            found = True
        except InexactProbe:
            found = False
        assert found == is_exact
    assert significant_bits(double([2.0**11 - 1, 2.0**11 + 1])).tolist() == [11, 12]
    for wrong in (lambda: ONE * torch.inf, lambda: ONE.float() * 1, lambda: ONE.sqrt(), lambda: ONE / 3):
        with pytest.raises(InexactProbe), Audit(torch.float32):
            wrong()


def test_the_oracle_is_rational_and_gradients_are_finite_differences():
    case = word(OPERATORS["gated_delta_rule"], 3, SIZES[torch.float32], 60, batch=1, heads=1, state=True)
    x = {
        name: [[Fraction(e) for e in row] for row in t[0, :, 0].reshape(60, -1).tolist()]
        for name, t in case.inputs.items()
    }
    S = [[Fraction(e) for e in row] for row in case.state[0, 0].tolist()]
    outputs = []
    for q, k, v, g, beta in zip(*(x[name] for name in ("q", "k", "v", "g", "beta")), strict=True):
        S = [[e * (g[0] == 0) for e in row] for row in S]
        read = [sum(a * row[c] for a, row in zip(k, S, strict=True)) for c in range(16)]
        S = [[e + a * beta[0] * (v[c] - read[c]) for c, e in enumerate(row)] for a, row in zip(k, S, strict=True)]
        outputs.append([sum(a * row[c] for a, row in zip(q, S, strict=True)) * Fraction(case.scale) for c in range(16)])
    correct = expected(OPERATORS["gated_delta_rule"], case)
    assert [[Fraction(e) for e in row] for row in correct["o"][0, :, 0].tolist()] == outputs
    assert [[Fraction(e) for e in row] for row in correct["state"][0, 0].tolist()] == S
    operator = OPERATORS["kda"]
    short = word(operator, 5, SIZES[torch.float32], 50, batch=1, heads=1, state=False)
    case = replace(short, inputs={n: t.repeat(1, 5, *[1] * (t.dim() - 2))[:, :237] for n, t in short.inputs.items()})
    one, other = expected(operator, case), expected(operator, replace(case, period=50))
    assert torch.equal(one["o"], other["o"])
    assert torch.equal(one["state"], other["state"])
    assert operator.length(long_word(operator, 0, SIZES[torch.float32], 9000).inputs) == 9000
    operator = OPERATORS["delta_rule"]
    case = with_gradients(operator, 2, torch.float32, 12)
    inputs = {n: t.clone() for n, t in case.inputs.items()}

    def loss(v):
        correct = expected(operator, replace(case, inputs={**inputs, "v": v}, upstream=None))
        return sum((a * b).sum() for a, b in zip(correct.values(), case.upstream, strict=True))

    step = torch.zeros_like(inputs["v"])
    step[0, 3, 1, 2] = 1.0
    assert expected(operator, case)["dv"][0, 3, 1, 2] == loss(inputs["v"] + step) - loss(inputs["v"])
