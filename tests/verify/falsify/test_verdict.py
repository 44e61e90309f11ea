"""What may be spent is checked; a verdict is no truth value."""

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from verify.falsify import Budget, Searched, Unfalsified


@pytest.mark.parametrize("option", [{"seconds": 0}, {"length": 0}, {"width": -1}, {"random_words": -3}])
def test_a_budget_says_what_is_wrong_with_it(option):
    ((name, value),) = option.items()
    with pytest.raises(UnsupportedFormat, match=f"budget: {name} = {value}, but at least"):
        Budget(**option)


def test_a_verdict_is_no_truth_value_and_says_whether_time_ran_out():
    search = Searched("beam", "beam of 2", 10, 2, 20, 0.1, None, False)
    verdict = Unfalsified((search,), 3)
    with pytest.raises(TypeError, match="Unfalsified is no truth value"):
        bool(verdict)
    assert verdict.ran_out_of_time
    assert not Unfalsified((), 3).ran_out_of_time
