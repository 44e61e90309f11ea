"""State the block sizes and factors that a machine needs, as sentences and as JSON, for the command `explain`.

The least block size for any number of layers follows from the composition factors of the monoid's groups (T37).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.elements import Images
from fsa2lrnn.automata.monoid.facts import Action
from fsa2lrnn.deadline import HAS_PASSED, NEVER, Deadline, limited
from fsa2lrnn.errors import OutOfTime
from fsa2lrnn.families.block_sizes import FIELDS, Field, MinimalBlock, minimal_block, too_large
from fsa2lrnn.families.block_sizes.factor_bounds import FactorBounds, factor_bounds
from fsa2lrnn.families.permutation_groups import composition_factors, group_of
from fsa2lrnn.families.recheck import recheck

MAX_SETS = 20_000  # the most images of words that are enumerated

# The least degree over C, R, Q of a finite group of matrices with this quotient (T37 cites the sources).
DEGREES: dict[str, dict[Field, int]] = {
    "A5": {"C": 2, "R": 3, "Q": 4},
    "PSL(2,7)": {"C": 3, "R": 6, "Q": 6},
    "A6": {"C": 3, "R": 5, "Q": 5},
}
_UNKNOWN: dict[Field, int] = {"C": 2, "R": 3, "Q": 4}  # lower bounds for all non-abelian simple groups


@dataclass(frozen=True)
class AnyDepth:
    """Bounds on the least b for which some stack of layers of blocks of size at most b runs the machine.

    Args:
        lower: no stack of smaller blocks runs the machine.
        upper: a stack of blocks of this size does.
        note: why the bounds do not meet; "" if they do.
        factors: the names of the composition factors found in the groups of the transition monoid.
    """

    lower: int
    upper: int
    note: str
    factors: tuple[str, ...]

    @property
    def value(self) -> int | None:
        """The least size b, if the bounds meet."""
        return self.lower if self.lower == self.upper else None


def any_depth(machine: MooreMachine, field: Field = "R") -> AnyDepth:
    """Return bounds on the least block size for any number of layers, by the groups of the transition monoid (T37).

    >>> from fsa2lrnn.automata import zoo
    >>> [any_depth(machine).value for machine in (zoo.dyck(2, 2), zoo.sum_mod(5), zoo.group("A5"))]
    [1, 2, 3]
    """
    minimal = minimise(machine)
    images = Images(Action.of(minimal), MAX_SETS)
    factors: Counter[str] = Counter()
    lower, upper, notes = 1, 1, list[str]()
    for root in images.roots():
        permutations, _ = images.generators(root)
        found = group_of(permutations)
        if found is None:
            # Permutations of k points act faithfully on k − 1 dimensions, and so do their subgroups, which bounds d_K
            # (T37).
            points = permutations.shape[1]
            upper = max(upper, points - 1)
            notes.append(f"the group of an image of {points} states is too large to be listed")
            continue
        factors += composition_factors(found[0])
    if not images.whole:
        # Each group in the monoid permutes at most n states faithfully, so n − 1 dimensions are enough for its factors.
        upper = max(upper, minimal.n_states - 1)
        notes.append(f"only {images.cap:,} images were looked at")
    for name in factors:
        least, enough = degree(name, field)
        lower = max(lower, least)
        upper = max(upper, enough if enough is not None else minimal.n_states - 1)
        if enough is None:
            notes.append(f"the degrees of the {name} are not in the table")
    return AnyDepth(lower, upper, "" if lower == upper else "; ".join(notes), tuple(sorted(factors)))


def degree(name: str, field: Field) -> tuple[int, int | None]:
    """Return bounds on d_K(G) of T37, K = `field` and G the simple group `name`; the upper one is None if unknown.

    d_K(G) is the least degree of a finite group of matrices over K that has G as a quotient.

    >>> degree("Z7", "R"), degree("Z7", "Q"), degree("simple of order 504", "R")
    ((2, 2), (6, 6), (3, None))
    """
    if cyclic := re.fullmatch(r"Z(\d+)", name):
        p = int(cyclic[1])
        # A root of unity over ℂ, a rotation of the plane over ℝ, the p − 1 primitive roots together over ℚ (T25).
        d = 1 if p == 2 or field == "C" else 2 if field == "R" else p - 1
        return d, d
    if name in DEGREES:
        return DEGREES[name][field], DEGREES[name][field]
    return _UNKNOWN[field], None


BUDGET = 20.0  # seconds for each question


@dataclass(frozen=True)
class BlockNeeds:
    """The block sizes and the factors that a machine needs, as bounds.

    Args:
        machine: the minimal machine.
        blocks: the block size in one layer, by field.
        depth: the block size for any number of layers, over the reals.
        factors: the number of Householder factors per letter in one layer.
    """

    machine: MooreMachine
    blocks: dict[Field, MinimalBlock]
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
        any number of layers: 2 over the reals, for Z5
        Householder factors per letter: 2 (proved)
        """
        lines = [
            ("one-hot block", str(self.machine.n_states)),
            ("real blocks", f"{_size(self.blocks['R'])}{_because(self.blocks['R'])}"),
            ("rational blocks, exact in floats", _size(self.blocks["Q"])),
            ("complex blocks", _size(self.blocks["C"])),
        ]
        depth = self.depth
        size = str(depth.value) if depth.value is not None else f"{depth.lower} to {depth.upper}"
        groups = f", for {', '.join(depth.factors)}" if depth.factors else ", as no word permutes states"
        lines.append(("any number of layers", f"{size} over the reals{groups}{_note(depth.note)}"))
        lines.append(("Householder factors per letter", _size(self.factors)))
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: the one-hot size, and "lower", "upper" and "note" for each other question.

        An unknown upper bound is null, and both bounds are null if no number suffices.
        """
        return {
            "one_hot": self.machine.n_states,
            **{FIELDS[field]: _bounds(answer) for field, answer in self.blocks.items()},
            "any_depth": {**_bounds(self.depth), "groups": list(self.depth.factors)},
            "householder": _bounds(self.factors),
        }


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
    return BlockNeeds(minimal, blocks, any_depth(minimal), factor_bounds(minimal, budget))


def _bounds(answer: MinimalBlock | AnyDepth | FactorBounds) -> dict[str, Any]:
    return {"lower": answer.lower, "upper": answer.upper, "note": answer.note}


def _size(answer: MinimalBlock | FactorBounds) -> str:
    if answer.lower is None:
        return "no number of them does (proved)"
    if answer.lower == answer.upper:
        return f"{answer.lower} (proved)"
    if answer.upper is None:
        return f"at least {answer.lower} (proved){_note(answer.note)}"
    return f"{answer.lower} to {answer.upper} (both proved){_note(answer.note)}"


def _because(answer: MinimalBlock) -> str:
    if answer.value is None or answer.impossible is None:
        return ""
    p, q = answer.impossible["states"]
    return f", since smaller ones give states {p} and {q} one vector"


def _note(note: str) -> str:
    return f"; {note}" if note else ""
