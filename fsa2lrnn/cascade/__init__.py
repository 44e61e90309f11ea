"""Decompose machines into cascades of small machines, which run in blocks of small sizes (Krohn & Rhodes 1965)."""

from fsa2lrnn.cascade import cascade as _cascade
from fsa2lrnn.cascade import description as drawing

_cascade.drawing = drawing  # `cascade` cannot import `description`, which imports it
