"""Random labelled tables."""

import numpy as np
import pytest
from hypothesis import strategies as st


@st.composite
def _labelled_tables(draw, max_coordinates=4, max_values=4, max_labels=3):
    """(keys, labels): some distinct rows of values, each with a label. Shrinks towards one key and label 0."""
    n_values = draw(st.lists(st.integers(1, max_values), min_size=1, max_size=max_coordinates))
    row = st.tuples(*(st.integers(0, m - 1) for m in n_values))
    keys = draw(st.lists(row, min_size=1, max_size=60, unique=True))
    labels = draw(st.lists(st.integers(0, max_labels - 1), min_size=len(keys), max_size=len(keys)))
    return np.array(keys), np.array(labels)


@pytest.fixture(scope="session")
def labelled_tables():
    """The strategy, to draw from."""
    return _labelled_tables()
