import json

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning.recipe import Recipe, recipe_for


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 0, "rate": -1.0}, "heads = 0 must be a whole number from 1 to 1,000,000,000; rate = -1.0 must be a"),
        ({"block": 0}, "block = 0 must be a whole number of at least 1, or None"),
        ({"growth": 1.0}, "growth = 1.0 must be a number above 1"),
        ({"floor": 0.0}, "floor = 0.0 must be a share above 0"),
        ({"seconds": 0}, "seconds = 0 must be a number above 0, or None for no limit"),
        ({"rate": "abc"}, "rate = 'abc' must be a number above 0"),
        ({"growth": "2"}, "growth = '2' must be a number above 1"),
        ({"noise": "some"}, "noise = 'some' must be a share"),
        ({"floor": None}, "floor = None must be a share above 0"),
        ({"seconds": "60"}, "seconds = '60' must be a number above 0, or None for no limit"),
        ({"seed": -1}, "seed = -1 must be a whole number from 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(UnsupportedFormat, match=f"the recipe does not fit: .*{message}"):
        Recipe(**changes)


def test_it_is_json():
    assert Recipe(**json.loads(json.dumps(recipe_for(60).to_json()))) == recipe_for(60)


def test_a_block_that_is_given_stays():
    assert Recipe(block=7).block_for(100, 3) == 7
