"""The number of Householder-like factors per letter in one layer of heads (T36 of docs/theory.md).

A head with m factors I − β k kᵀ per letter represents functions on which every letter differs from the identity by rank
at most m, and which have an inner product that no letter expands. Their constituents have both properties too. The
functions that can be built from constituents that qualify form a submodule; if it does not separate all states, m
factors do not suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
from flint import nmod_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.extra.block_size.certificates import factor_certificate
from fsa2lrnn.extra.block_size.chain import KindCopy, SubmoduleChain
from fsa2lrnn.extra.block_size.kinds import ModuleKind, homs, image
from fsa2lrnn.families import linear
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.families.identities import cycle_lengths
from fsa2lrnn.families.modules import Module, Word, quotient

_WORDS = 150  # the most words with which an inner product must agree
_LARGEST = 16  # the largest dimension of a kind for which inner products are searched


@dataclass(frozen=True)
class Factors(Brief):
    """The Householder factors that heads need for the kinds of a machine (T36).

    Args:
        kinds: the kinds of the machine.
        counts: for each kind F, the largest rank of T_a − 1 over all letters a, on a real constituent of F.
        forbidden: for each kind, words that exclude every inner product (`without_inner_product`), () if none do.
    """

    kinds: Sequence[ModuleKind]
    counts: tuple[int, ...]
    forbidden: tuple[tuple[Word, ...], ...]

    def allowed(self, m: int | None) -> list[int]:
        """Return the numbers of the kinds that m factors (None: any number) do not exclude."""
        return [i for i, count in enumerate(self.counts) if not self.forbidden[i] and (m is None or count <= m)]


def factors(delta: np.ndarray, kinds: Sequence[ModuleKind], check: Callable[[], None]) -> Factors:
    """Return, for each kind, the number of factors needed per letter, and words that exclude every inner product.

    `check` is called before each kind, and may raise.
    """
    # Permutations and constants have an invariant inner product: the mean over the group.
    is_free = all(len(np.unique(row)) in (1, delta.shape[1]) for row in delta)
    forbidden = []
    for kind in kinds:
        check()
        forbidden.append(() if is_free else without_inner_product(kind, delta))
    return Factors(kinds, tuple(_count(kind) for kind in kinds), tuple(forbidden))


def _count(kind: ModuleKind) -> int:
    one = linear.identity(kind.dimension)
    largest = max(linear.rank(letter - one) for letter in kind.standard.module.letters)
    return largest * kind.weight("R") // kind.dimension


def largest_rank(module: Module) -> int:
    """Return the largest rank of T_a − 1 over all letters a, on all functions of the state."""
    one = linear.identity(module.dimension)
    return max(linear.rank(letter - one) for letter in module.letters)


def without_inner_product(kind: ModuleKind, delta: np.ndarray) -> tuple[Word, ...]:
    """Return words that exclude every inner product on a kind by T36 (b), () if such words are not found.

    Only G = 0 satisfies P G = G Pᵀ and M G Mᵀ = P G Pᵀ for all these words w, with P = w^ω and M = w P.

    >>> from fsa2lrnn.automata import zoo
    >>> from fsa2lrnn.extra.block_size.constituents import constituents
    >>> from fsa2lrnn.families.modules import functions_module
    >>> machine = zoo.cerny(3)
    >>> kind = constituents(functions_module(machine.delta), lambda: None)[0]
    >>> bool(without_inner_product(kind, machine.delta))
    True
    """
    d = kind.dimension
    if d > _LARGEST:
        return ()
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    symmetric = np.zeros((d * d, len(pairs)), np.int64)
    for k, (i, j) in enumerate(pairs):
        symmetric[[i * d + j, j * d + i], k] = 1
    echelon, used, one = Echelon(len(pairs), linear.PRIME), list[Word](), np.eye(d, dtype=np.int64)
    for word, step in _words(delta):
        period = lcm(*cycle_lengths(step))
        w = kind.standard.module.residue(((1, word),))
        idempotent = w ** (period * -(-delta.shape[1] // period))
        power, both = (_array(matrix) for matrix in (idempotent, w * idempotent))
        equations = np.concatenate(
            [
                np.kron(power, one) - np.kron(one, power),
                (np.kron(both, both) - np.kron(power, power)) % linear.PRIME,
            ]
        )
        if echelon.independent(equations @ symmetric % linear.PRIME):
            used.append(word)
        if echelon.rank == len(pairs):
            return tuple(used)
    return ()


def _words(delta: np.ndarray) -> list[tuple[Word, np.ndarray]]:
    n = delta.shape[1]
    found: dict[bytes, tuple[Word, np.ndarray]] = {np.arange(n).tobytes(): ((), np.arange(n))}
    queue = list(found.values())
    for word, step in queue:
        for a, row in enumerate(delta):
            after = step[row]  # f ∘ step ∘ δ_a
            if after.tobytes() not in found and len(np.unique(after)) > 1 and len(found) < _WORDS:
                found[after.tobytes()] = (*word, a), after
                queue.append(found[after.tobytes()])
    return queue[1:]


def _array(matrix: nmod_mat) -> np.ndarray:
    return np.array([int(entry) for entry in matrix.entries()]).reshape(matrix.nrows(), -1)


def reach(module: Module, found: Factors, m: int | None, check: Callable[[], None]) -> SubmoduleChain:
    """Return V as copies of kinds: at level 0 the largest submodule of kinds that m factors allow, the rest at 1."""
    d = module.dimension
    copies: list[KindCopy] = []
    for level, allowed in enumerate((found.allowed(m), range(len(found.kinds)))):
        is_growing = True
        while is_growing:
            rows = linear.stack((copy.rows for copy in copies), d)
            below, base, is_growing = quotient(module, linear.row_space(rows)), rows.nrows(), False
            echelon = Echelon(below.module.dimension, linear.PRIME)
            for i in allowed:
                check()
                standard = found.kinds[i].standard
                for row in linear.each_row(homs(standard, below.module)):
                    if echelon.is_new(linear.residues(row)):
                        small = image(standard, below.module, row)
                        echelon.independent(linear.residues(small))
                        lifted = linear.together_primitive(small * below.lift)
                        copies.append(KindCopy(i, base, level, lifted))
                        is_growing = True
    sizes = [sum(copy.rows.nrows() for copy in copies if copy.level <= level) for level in (0, 1)]
    return SubmoduleChain(tuple(copies), tuple(sizes))


def least_factors(module: Module, found: Factors, check: Callable[[], None]) -> int | None:
    """Return the least number m of factors that T36 (a) does not exclude, or None if it excludes every number."""
    counts = sorted({found.counts[i] for i in found.allowed(None)})
    if reach(module, found, None, check).merged(0) is not None:
        return None
    return next(m for m in (0, *counts) if reach(module, found, m, check).merged(0) is None)


def excluded(
    machine: MooreMachine, module: Module, found: Factors, m: int | None, check: Callable[[], None]
) -> dict[str, Any] | None:
    """Return the certificate that m factors (None: any number) do not suffice, or None if that is not proved."""
    return factor_certificate(machine, m, found.kinds, found.forbidden, reach(module, found, m, check))
