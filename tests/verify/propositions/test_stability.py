"""Where the registry looks for growth it finds the right numbers, and none where there is none."""

import pytest

from verify.propositions import FAST, Proved, Refuted, Undecided
from verify.propositions.stability import ONE_NORM, closed_under_products, no_state_grows, no_state_grows_when_centred


@pytest.mark.parametrize(("p", "growth"), [(1.2, 1.4142), (2.0, 2.8284)])
def test_growth_and_lengths_are_data(p, growth):
    answer = no_state_grows(FAST, p)
    assert isinstance(answer, Refuted)
    assert round(answer.data["growth"], 4) == growth
    assert set(answer.data["overflow"]) == set(answer.data["measured"]) == {"float16", "bfloat16", "float32", "float64"}


def test_for_p_1_nothing_is_found():
    assert isinstance(no_state_grows(FAST, 1.0), Undecided)
    assert isinstance(no_state_grows_when_centred(FAST, 1.0), Undecided)


def test_the_extreme_points_of_the_1_norm():
    assert sorted(ONE_NORM.extreme_points(2)) == [(-1, 0), (0, -1), (0, 1), (1, 0)]
    answer = closed_under_products(FAST)
    assert isinstance(answer, Proved)
    assert answer.cases >= 2**2 + 16**2 + 216**2
