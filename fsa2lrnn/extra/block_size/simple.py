"""Prove that the functions of a machine form a simple module, so that blocks of size n − 1 are necessary (T30, T32)."""

from __future__ import annotations

import random
from typing import NamedTuple

from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.extra.block_size.constituents import draw
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import Element, Module, spin

_DRAWN = 60  # the most elements that are drawn


class SimplicityWitness(NamedTuple):
    """A proof that a module is simple: an element that annihilates one row and one column, which generate all (T32)."""

    element: Element
    function: fmpq_mat
    covector: fmpq_mat


def simple(module: Module, seed: int = 0) -> SimplicityWitness | None:
    """Return a proof that a module is simple over Q, R and C, or None if it is not or no suitable element is drawn.

    >>> from fsa2lrnn.automata import zoo
    >>> from fsa2lrnn.families.modules import functions_module
    >>> simple(functions_module(zoo.cerny(4).delta)) is None, simple(functions_module(zoo.sum_mod(4).delta)) is None
    (False, True)
    """
    rng, d = random.Random(seed), module.dimension
    for _ in range(_DRAWN):
        element = draw(len(module.letters), rng)
        if module.nullity(element) != 1:
            continue
        matrix = module.element(element)
        function, covector = linear.left_kernel(matrix), linear.left_kernel(matrix.transpose())
        if function.nrows() != 1:
            continue
        if len(spin(module, function).path) < d or len(spin(module.dual, covector).path) < d:
            return None
        return SimplicityWitness(element, function, covector)
    return None
