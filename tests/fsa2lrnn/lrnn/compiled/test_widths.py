"""Which width of vectors numbers are divided into, and that each is made once."""

import pytest

from fsa2lrnn.lrnn.compiled.vectors import WIDEST
from fsa2lrnn.lrnn.compiled.widths import by_width


@pytest.mark.parametrize("n", range(1, 3 * WIDEST))
def test_the_width_is_the_widest_that_divides(n):
    assert by_width(lambda width: width)(n) == max(k for k in range(1, WIDEST + 1) if n % k == WIDEST % k == 0)


def test_each_width_is_made_once():
    made = []
    kernels = by_width(made.append)
    for n in (1, 2, 3, 2 * WIDEST, WIDEST, 6):
        kernels(n)
    assert made == [1, 2, WIDEST]
