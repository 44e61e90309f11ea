"""The parallel scan against the paper's appendix: its schedule, its example, its one difference."""

import pytest
import torch

from fsa2lrnn.lrnn.scans import METHODS, scan
from fsa2lrnn.lrnn.scans.reference import schedule


def test_the_schedule_printed_in_the_papers_appendix():
    assert schedule(7) == [
        [["A1"], ["A3"], ["A5"], ["A7"]],
        [["A2", "A3A2"], ["A6", "A7A6"]],
        [["A4", "A5A4", "A6A5A4", "A7A6A5A4"]],
    ]


@pytest.mark.parametrize("k", range(1, 8))
def test_round_r_carries_a_state_over_the_places_whose_bit_r_is_set(k):
    """Place j, bit r set, takes in the state before its stretch, which starts where the r lower bits of j are 0."""
    for r, used in enumerate(schedule(2**k - 1)):
        products = [product for group in used for product in group]
        stretches = [range(j, (j >> r << r) - 1, -1) for j in range(2**k) if j >> r & 1]
        assert products == ["".join(f"A{i}" for i in stretch) for stretch in stretches]


@pytest.mark.parametrize("length", [-1, 0, 2, 6, 8])
def test_the_schedule_names_the_lengths_it_is_for(length):
    with pytest.raises(ValueError, match=rf"length {length} is not 2\^k - 1: take \d+ or \d+; pscan pads"):
        schedule(length)


def test_the_papers_example_to_its_four_printed_decimals():
    torch.manual_seed(1)
    A, u, x0 = torch.randn(1, 7, 2, 2), torch.randn(1, 7, 2), torch.randn(1, 2)
    printed = [
        [0.8310, -0.2477], [0.5167, -1.4218], [1.1399, 1.3024], [0.9628, 1.3150],
        [-1.5308, -1.6903], [-3.6631, 1.6082], [1.7805, 7.1659], [2.5068, -0.6256],
    ]  # fmt: skip
    for method in METHODS:
        x = scan(A.unsqueeze(2), u.unsqueeze(2), x0, method)[:, :, 0]
        found = torch.cat([x0, x[0]]).tolist()
        assert [[round(value, 4) for value in row] for row in found] == printed


def test_an_overflowing_product_is_nan_in_pscan_where_the_sequential_scan_stays_zero():
    A, zero = torch.full((1, 8, 1, 1, 1), 1e30), torch.zeros(1, 8, 1, 1)
    assert not scan(A, zero, torch.zeros(1, 1), "sequential").any()
    assert scan(A, zero, torch.zeros(1, 1), "pscan").isnan().any()
