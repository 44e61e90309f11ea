"""Decompose machines into cascades of small machines, which run in blocks of small sizes (Krohn & Rhodes 1965)."""
