"""State the block sizes and factors that a machine needs, as sentences and as JSON, for the command `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpz  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import HAS_PASSED, NEVER, Deadline, limited
from fsa2lrnn.errors import OutOfTime
from fsa2lrnn.extra.block_size import FIELDS, minimal_block, too_large
from fsa2lrnn.extra.block_size.answer import Field, MinimalBlock, SizeBounds
from fsa2lrnn.extra.block_size.depth import AnyDepth, any_depth
from fsa2lrnn.extra.block_size.householder import FactorBounds, factor_bounds
from fsa2lrnn.families.groups import group_of, subgroups
from fsa2lrnn.families.recheck import recheck

MAX_ORDER = 200
MAX_SUBGROUPS = 3_000


class SignedBlocks(SizeBounds):
    """Bounds on the size of blocks whose columns have 1-norm at most 1, the paper's stable rule (T39)."""


def signed_blocks(machine: MooreMachine) -> SignedBlocks | None:
    """Return bounds on the least block size with columns of 1-norm at most 1, or None if a letter is not a permutation.

    By T39, blocks of size b suffice if and only if functions f that some subgroup H of index at most b changes in sign
    only, f∘h = χ(h) f, separate all states. All subgroups are enumerated if the group is small enough.

    >>> from fsa2lrnn.automata import zoo
    >>> [signed_blocks(zoo.sum_mod(n)).value for n in (2, 3, 4, 5, 6, 8, 10)]
    [1, 3, 2, 5, 3, 4, 5]
    """
    minimal = minimise(machine)
    n = minimal.n_states
    if any(len(np.unique(row)) < n for row in minimal.delta):
        return None
    if n == 1:
        return SignedBlocks(0, 0, "")
    listed = group_of(minimal.delta, MAX_ORDER)
    if listed is None:
        return SignedBlocks(1, n, f"the group has more than {MAX_ORDER} elements")
    group, permutations = listed
    found = subgroups(group, MAX_SUBGROUPS)
    if found is None:
        return SignedBlocks(_largest_odd_prime(group.order), n, f"the group has more than {MAX_SUBGROUPS:,} subgroups")
    codes: list[tuple[object, ...]] = [()] * n
    for index, mask in sorted(((group.order // int(mask.sum()), mask) for mask in found), key=lambda pair: pair[0]):
        for kernel in _kernels(mask, found):
            codes = [(*code, value) for code, value in zip(codes, _values(permutations, mask, kernel), strict=True)]
            number = {code: i for i, code in enumerate(dict.fromkeys(codes))}
            codes = [(number[code],) for code in codes]
            if len(number) == n:
                return SignedBlocks(index, index, "")
    raise AssertionError("the trivial subgroup tells all states apart")


def _kernels(mask: np.ndarray, masks: list[np.ndarray]) -> list[np.ndarray]:
    """Return the kernels of the homomorphisms of a subgroup to {1, −1}: itself, and its subgroups of index 2."""
    return [mask, *(other for other in masks if 2 * other.sum() == mask.sum() and not (other & ~mask).any())]


def _values(permutations: np.ndarray, mask: np.ndarray, kernel: np.ndarray) -> list[tuple[int, int]]:
    n = permutations.shape[1]
    values = [(-1, 0)] * n
    members = [(int(h), 1 if kernel[h] else -1) for h in np.flatnonzero(mask)]
    for q in range(n):
        if values[q] != (-1, 0):
            continue
        orbit: dict[int, set[int]] = {}
        for h, sign in members:
            orbit.setdefault(int(permutations[h, q]), set()).add(sign)
        is_zero = any(len(signs) > 1 for signs in orbit.values())
        for p, signs in orbit.items():
            values[p] = (0, 0) if is_zero else (q + 1, next(iter(signs)))
    return values


def _largest_odd_prime(order: int) -> int:
    return max((int(p) for p, _ in fmpz(order).factor() if p > 2), default=1)


BUDGET = 20.0  # seconds for each question


@dataclass(frozen=True)
class BlockNeeds:
    """The block sizes and the factors that a machine needs, as bounds.

    Args:
        machine: the minimal machine.
        blocks: the block size in one layer, by field.
        columns: the block size with columns of 1-norm at most 1; None if a letter does not permute the states.
        depth: the block size for any number of layers, over the reals.
        factors: the number of Householder factors per letter in one layer.
    """

    machine: MooreMachine
    blocks: dict[Field, MinimalBlock]
    columns: SignedBlocks | None
    depth: AnyDepth
    factors: FactorBounds

    def sentences(self) -> list[tuple[str, str]]:
        """Return pairs of a question and its answer, as texts.

        >>> from fsa2lrnn.automata import zoo
        >>> for question, answer in needs(zoo.sum_mod(5)).sentences():
        ...     print(f"{question}: {answer}")
        one-hot block: 5
        real blocks: 2 (proved), since smaller ones give states 0 and 1 one vector
        rational blocks, exact in floats: 4 (proved)
        complex blocks: 1 (proved)
        columns of 1-norm at most 1: 5 (by all subgroups)
        any number of layers: 2 over the reals, for Z5
        Householder factors per letter: 2 (proved)
        """
        lines = [
            ("one-hot block", str(self.machine.n_states)),
            ("real blocks", f"{_size(self.blocks['R'])}{_because(self.blocks['R'])}"),
            ("rational blocks, exact in floats", _size(self.blocks["Q"])),
            ("complex blocks", _size(self.blocks["C"])),
        ]
        if (signed := self.columns) is not None:
            exact = signed.value is not None
            size = f"{signed.value} (by all subgroups)" if exact else f"{signed.lower} to {signed.upper}"
            lines.append(("columns of 1-norm at most 1", f"{size}{_note(signed.note)}"))
        depth = self.depth
        size = str(depth.value) if depth.value is not None else f"{depth.lower} to {depth.upper}"
        groups = f", for {', '.join(depth.factors)}" if depth.factors else ", as no word permutes states"
        lines.append(("any number of layers", f"{size} over the reals{groups}{_note(depth.note)}"))
        lines.append(("Householder factors per letter", _factors(self.factors)))
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: the one-hot size, and "lower", "upper" and "note" for each other question.

        An unknown upper bound is null, and both bounds are null if no number suffices. "columns" is null if a letter
        does not permute the states.
        """
        value: dict[str, Any] = {"one_hot": self.machine.n_states}
        for field, answer in self.blocks.items():
            value[FIELDS[field]] = _bounds(answer.lower, answer.upper, answer.note)
        signed, depth, factors = self.columns, self.depth, self.factors
        value["columns"] = signed and _bounds(signed.lower, signed.upper, signed.note)
        value["any_depth"] = {**_bounds(depth.lower, depth.upper, depth.note), "groups": list(depth.factors)}
        value["householder"] = _bounds(factors.lower, factors.upper, factors.note)
        return value


def checked_needs(machine: MooreMachine, deadline: Deadline = NEVER) -> BlockNeeds | str:
    """Return the needs of a machine after checking all certificates, or the reason why there was no search.

    Each search has at most `BUDGET` seconds and a tenth of the seconds that remain until the deadline, all together
    half of them. Raises `recheck.RejectedCertificate` for a certificate that is not valid.
    """
    if reason := too_large(minimise(machine)):
        return reason
    if deadline.left() <= 0:
        return f"the time limit {HAS_PASSED}"
    try:
        with limited(deadline.share(0.5)):
            answers = needs(machine, min(BUDGET, deadline.share(0.1).seconds))
            for answer in answers.blocks.values():
                answer.check()
            if answers.factors.impossible is not None:
                recheck(answers.factors.impossible)
            return answers
    except OutOfTime:
        return "unknown: time limit"


def needs(machine: MooreMachine, budget: float = BUDGET) -> BlockNeeds:
    """Return the needs of a machine, with `budget` seconds for each field and for the Householder factors."""
    minimal = minimise(machine)
    blocks: dict[Field, MinimalBlock] = {field: minimal_block(minimal, field, budget) for field in FIELDS}
    return BlockNeeds(minimal, blocks, signed_blocks(minimal), any_depth(minimal), factor_bounds(minimal, budget))


def _bounds(lower: int | None, upper: int | None, note: str) -> dict[str, Any]:
    return {"lower": lower, "upper": upper, "note": note}


def _size(answer: MinimalBlock) -> str:
    if answer.value is not None:
        return f"{answer.value} (proved)"
    return f"{answer.lower} to {answer.upper} (both proved){_note(answer.note)}"


def _because(answer: MinimalBlock) -> str:
    n = answer.machine.n_states
    if answer.value is None or answer.impossible is None:
        return ""
    if answer.value == n - 1 and "states" not in answer.impossible:
        return ", since no fewer functions of the state than all of them are closed under the letters"
    p, q = answer.impossible["states"]
    return f", since smaller ones give states {p} and {q} one vector"


def _factors(bounds: FactorBounds) -> str:
    if bounds.lower is None:
        return "no number of them does (proved)"
    if bounds.upper is None:
        return f"at least {bounds.lower} (proved){_note(bounds.note)}"
    if bounds.lower == bounds.upper:
        return f"{bounds.lower} (proved)"
    return f"{bounds.lower} to {bounds.upper} (both proved)"


def _note(note: str) -> str:
    return f"; {note}" if note else ""
