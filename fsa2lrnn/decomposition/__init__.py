"""Decomposition of machines into cascades of small machines."""

from fsa2lrnn.decomposition import cascade as _cascade
from fsa2lrnn.decomposition import description as drawing

_cascade.drawing = drawing
