"""What may be spent is checked; a verdict is no truth value."""

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge.falsify import Budget, Searched, Unfalsified


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("seconds", 0, "more than 0 are"),
        ("seconds", float("nan"), "more than 0 are"),
        ("length", 0, "at least 1 is"),
        ("width", -1, "at least 0 is"),
        ("random_words", -3, "at least 0 is"),
    ],
)
def test_a_budget_says_what_is_wrong_with_it(name, value, least):
    with pytest.raises(UnsupportedFormat, match=f"budget: {name} = {value}, but {least} needed"):
        Budget(**{name: value})


def test_a_verdict_is_no_truth_value_and_says_whether_time_ran_out():
    search = Searched("beam", "beam of 2", 10, 2, 20, 0.1, None, False)
    verdict = Unfalsified((search,), 3)
    with pytest.raises(TypeError, match="Unfalsified is no truth value"):
        bool(verdict)
    assert verdict.ran_out_of_time
    assert not Unfalsified((), 3).ran_out_of_time
