"""Which runs a verdict covers: what the judges name, and what the table of docs/coverage.md is made of.

There are three cases. Where states are one-hot and rounding changes no choice, every schedule computes them, and where
it changes no output either, the same outputs (T53 of docs/theory.md). Where steps multiply and add without rounding,
that is so for schedules that make x_k of x_{k-1}, with margins that exceed what the read-out may be off by (T26, T28).
Else what was computed holds for calls like those that computed it.
"""

from __future__ import annotations

import torch

from fsa2lrnn.judge.certificate import Certificate
from fsa2lrnn.lrnn.layer_checks import user_layers
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.scans import METHODS
from fsa2lrnn.recurrence import Recurrence
from fsa2lrnn.verdicts import EVERY, LETTERS, Coverage

STEPPING = ("sequential", "fused", "letters")  # scans that make x_k of x_{k-1}, by inner products in some order


def of_integers(_: Recurrence) -> Coverage:
    """Exact tables: integers do not round."""
    return Coverage("int", tuple(METHODS), EVERY, None)


def of_exact(model: LRNN) -> Coverage:
    """A model of which rounding changes nothing that was reached (`judge.exactness`)."""
    return Coverage(_name(model.dtype), model.methods, EVERY, None, user_layers(model))


def of_exact_steps(model: LRNN) -> Coverage:
    """A model whose steps do not round and whose margins bear what the read-out rounds (`judge.stepping`)."""
    return Coverage(_name(model.dtype), STEPPING, EVERY, None, user_layers(model))


def of_letters(model: LRNN) -> Coverage:
    """A model that was stepped a letter at a time, one word alone, with as many threads as now."""
    return Coverage(_name(model.dtype), ("sequential",), LETTERS, torch.get_num_threads(), user_layers(model))


def of_certificate(certificate: Certificate) -> Coverage:
    """What an accepted certificate covers: sets bear any order of sums; an enumeration is of a walk.

    An enumeration of a model that rounds is done again by whoever checks it, with as many threads as they have.
    """
    rounds = certificate.method == "enumeration" and certificate.scans == ("sequential",)
    shapes = LETTERS if rounds else EVERY
    return Coverage(certificate.dtype, certificate.scans, shapes, None, certificate.tested_layers)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
