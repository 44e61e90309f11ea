"""The witnesses attain the bound inside their class; lengths agree between integers, logarithms and running floats."""

import math
from fractions import Fraction

import pytest
import torch

from fsa2lrnn.lrnn.normalise import normalise
from verify.stability import FORMATS, growth_bound, measured_overflow, overflow_length, overflow_threshold, witness


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0, 5.0])
@pytest.mark.parametrize("b", [1, 2, 5, 8])
def test_the_witness_has_unit_columns_and_attains_the_bound(b, p):
    A, s = witness(b, p)
    torch.testing.assert_close(A.abs().pow(p).sum(0), torch.ones(b, dtype=torch.float64))
    torch.testing.assert_close(A @ s, growth_bound(b, p) * s)


@pytest.mark.parametrize("b", [2, 6, 8])
def test_the_centred_witness_is_left_alone_by_the_released_rule(b):
    A, s = witness(b, 1.2, centred=True)
    torch.testing.assert_close(normalise(A, "released", 1.2), A)
    torch.testing.assert_close(A @ s, growth_bound(b, 1.2) * s)


def test_an_odd_size_cannot_be_centred_so():
    with pytest.raises(ValueError, match="b = 5: the centred witness has as many \\+1 as −1, give an even size"):
        witness(5, 1.2, centred=True)


@pytest.mark.parametrize("name", FORMATS)
def test_the_threshold_is_where_a_format_rounds_to_infinity(name):
    dtype = FORMATS[name]
    if dtype is torch.float64:
        with pytest.raises(OverflowError):
            float(overflow_threshold(dtype))
        return
    at = torch.tensor(float(overflow_threshold(dtype)), dtype=torch.float64)
    assert at.to(dtype).isinf()
    assert (at * (1 - 2**-20)).to(dtype).isfinite()  # nearer, and torch rounds twice on the way to 16 bits


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("b", [2, 3, 5, 8, 64])
def test_the_length_is_the_first_power_beyond_the_threshold(b, p):
    for dtype in FORMATS.values():
        k = overflow_length(b, p, dtype)
        exponent = 1 - 1 / Fraction(str(p))
        steps = math.log2(overflow_threshold(dtype)) / (float(exponent) * math.log2(b))
        assert k is not None
        assert k - 1 - 1e-9 < steps <= k + 1e-9


def test_the_numbers_of_the_theory():
    """docs/theory.md, S2: 8^{1/6} ≈ 1.414 a step and 256 steps in float32, within the paper's test length of 500."""
    assert round(growth_bound(8, 1.2), 3) == 1.414
    assert overflow_length(8, 1.2, torch.float32) == 256


@pytest.mark.parametrize("rule", ["clip", "released"])
@pytest.mark.parametrize("b", [2, 8, 64])
def test_running_the_recurrence_overflows_when_the_integers_say(b, rule):
    for name in ("float16", "float32"):
        wanted, measured = overflow_length(b, 1.2, FORMATS[name]), measured_overflow(b, 1.2, FORMATS[name], rule)
        assert wanted is not None
        assert measured is not None
        assert abs(measured - wanted) <= 1 + wanted // 50


def test_with_p_1_nothing_grows():
    assert overflow_length(8, 1, torch.float16) is None
    assert overflow_length(1, 1.2, torch.float16) is None
    assert measured_overflow(8, 1.0, torch.float16, longest=600) is None


def test_both_scans_overflow_on_the_witness():
    lengths = {measured_overflow(8, 1.2, torch.float32, longest=300, method=m) for m in ("sequential", "pscan")}
    assert lengths <= {255, 256, 257}
