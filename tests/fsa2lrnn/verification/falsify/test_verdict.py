"""What may be spent is checked."""

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verification.falsify import Budget


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
