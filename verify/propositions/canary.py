"""Canaries: which faults of an inference stack show within how many tokens, after every history."""

from __future__ import annotations

from collections.abc import Callable

from fsa2lrnn.canary.faults import SINGLE, detection
from fsa2lrnn.canary.machines import Canary, exchange, recency
from verify.propositions.registry import Answer, Effort, Proposition, Proved, refuted

_FORGOTTEN = [name for name in SINGLE if "zero" in name or name.startswith("windows")]
_LETTERS = 6  # of the histories


def exchanges_show_at_once(effort: Effort, make: Callable[[], Canary] = exchange) -> Answer:
    """Follow pairs of right and altered states for each fault, after all histories of six letters."""
    canary = make()
    for name in effort.track(SINGLE):
        found = detection(canary, name, last=1, length=_LETTERS)
        if found.within != 1:
            return refuted(f"{name}: {float(found.unseen):.3%} of continuations show nothing", fault=name)
    return Proved(f"{len(SINGLE)} faults by the product automaton", len(SINGLE))


def registers_show_a_reset_at_once(effort: Effort, make: Callable[[], Canary] = recency) -> Answer:
    """The same for the registers of the order of letters, once all letters were read."""
    canary = make()
    for name in effort.track(_FORGOTTEN):
        found = detection(canary, name, last=0, length=_LETTERS)
        if found.within != 1:
            return refuted(f"{name}: {float(found.unseen):.3%} of continuations show nothing", fault=name)
    return Proved(f"{len(_FORGOTTEN)} faults by the product automaton", len(_FORGOTTEN))


PROPOSITIONS = (
    Proposition(
        "canary-exchange",
        "In the canary of exchanges letters lost, repeated or read early, resets and windows show at the next token.",
        "faults of recurrent states and windows together; histories of six letters, every continuation",
        "T61 of docs/theory.md",
        exchanges_show_at_once,
        Proved,
    ),
    Proposition(
        "canary-reset",
        "In the canary of registers a state that is reset and a window that lacks letters show at the next token.",
        "histories of six letters, every continuation",
        "T61 of docs/theory.md",
        registers_show_a_reset_at_once,
        Proved,
    ),
)
