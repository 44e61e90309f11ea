"""Certificates as hypothesis draws them."""

import copy

from hypothesis import strategies as st

from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.testing.strategies import machines
from tests.fsa2lrnn.families.conftest import CASES


@st.composite
def certificates(draw, verdict=None):
    """A certificate of the verdict, as JSON: one of `CASES`, or one for a random machine if it has that verdict."""
    family = draw(st.sampled_from(list(FORCED)))
    found = represent(draw(machines(4, 2)), family, short_words=False).to_json()
    if verdict not in (None, found["verdict"]) or len(found["machine"]["outputs"]) == 1:
        names = [name for name in CASES if verdict in (None, CASES[name]["verdict"])]
        found = CASES[draw(st.sampled_from(names))]
    return copy.deepcopy(found)
