"""The answers of `families.represent`, which carry their evidence and check it.

All concern *representation*: one vector per state of the minimal machine, exact arithmetic, any read-out. T5 of
docs/theory.md names other notions.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.automata.language import distinguish
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.families.channels import Affine, ScalarChannel
from fsa2lrnn.families.four_words import FourWords
from fsa2lrnn.families.identities import RunLengthWord
from fsa2lrnn.families.recheck import recheck

FORMAT, VERSION = "fsa2lrnn-family-certificate", 1


@dataclass(frozen=True)
class FamilyAnswer(Brief):
    """The base class of answers on a machine and a family.

    Args:
        machine: the minimal machine.
        family: the name of the family.
    """

    answer: ClassVar[str]
    machine: MooreMachine
    family: str

    def explain(self) -> str:
        """Return the evidence as a sentence."""
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """What the answer is about: one layer of the family, or a kind of networks."""
        return f"one {self.family} layer"

    def __str__(self) -> str:
        return f"{self.subject}: {self.answer}. {' '.join(self.explain().split())}"


class CertifiedAnswer(FamilyAnswer):
    """An answer with a certificate that is checked independently."""

    def to_json(self) -> dict[str, Any]:
        """Return the certificate, a JSON object that `recheck` accepts."""
        raise NotImplementedError

    def check(self) -> str:
        """Check the certificate by `recheck`, which shares no code with the search; return the claim that it proves.

        Raises `recheck.RejectedCertificate` if the certificate is wrong.
        """
        return recheck(self.to_json())


@dataclass(frozen=True)
class Term(Brief):
    """A multiple of the equation x_{su} − x_{tu} − x_{su'} + x_{tu'} = 0, of states s, t and words u, u', after `then`.

    For Liquid-S4 with dense A, `words` are the six of `identities.commutator`, and the equation has twelve vectors.
    """

    coefficient: Fraction
    source: int
    target: int
    words: tuple[RunLengthWord, ...]
    then: tuple[int, ...]


@dataclass(frozen=True)
class Impossibility(CertifiedAnswer):
    """A certificate that no layer of the family represents the machine.

    Args:
        states: two states that would have to share one vector.
        separator: a word that separates them, as letter numbers.
        terms: equations forced by the family that add up to x_p − x_q = 0.
        words: the shortest four-word certificate that was found, or None, which proves nothing.
        obstruction: the dimensions of W and of the space of all differences.
    """

    answer: ClassVar[str] = "no"
    states: tuple[int, int]
    separator: tuple[int, ...]
    terms: tuple[Term, ...]
    words: FourWords | None
    obstruction: tuple[int, int]

    @property
    def four_words(self) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...], tuple[Hashable, ...]] | None:
        """The words p, u, u' in letters: the machine violates the forced equation x_{pu} − x_{pu'} = x_u − x_u'."""
        if self.words is None:
            return None
        prefix, u, other = (
            tuple(self.machine.alphabet[a] for a in word)
            for word in (self.words.prefix, self.words.u, self.words.other)
        )
        return prefix, u, other

    def check(self) -> str:
        if self.words is not None:
            recheck(self._four_word_json(self.words))
        return super().check()

    def explain(self) -> str:
        p, q = self.states
        difference = f'"{self._text(self.separator)}" tells them apart' if self.separator else "their outputs differ"
        lines = [f"States {self._name(p)} and {self._name(q)} would have to share one vector, though {difference}."]
        if self.words is not None:
            prefix, u, other = self.words.prefix, self.words.u, self.words.other
            must, may_not = ((u, other), ((*prefix, *u), (*prefix, *other)))
            if not self.words.differ_at_start:
                must, may_not = may_not, must
            (a, b), (c, d) = [[self._text(word) for word in pair] for pair in (must, may_not)]
            relation = "equal length" if self.family.startswith(("lti", "matrices(input")) else "the same letters"
            lines.append(
                f'"{a}" and "{b}" must differ, "{c}" and "{d}" must agree; yet "{self._text(u)}" and '
                f'"{self._text(other)}" have {relation}, so in this family '
                f"x({self._text((*prefix, *u))}) − x({self._text((*prefix, *other))}) = "
                f"x({self._text(u)}) − x({self._text(other)}): a contradiction in four words."
            )
        else:
            count = "An equation that the family forces amounts to it"
            if len(self.terms) > 1:
                count = f"{len(self.terms)} equations that the family forces add up to it"
            if self.family == "liquid-s4":
                lines.append(f"{count}: differences of letters, being diagonal, commute.")
            else:
                lines.append(f"{count}; no four words were found that do so by themselves.")
        return " ".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            **certificate_header(self.machine, self.family, "impossible"),
            "states": list(self.states),
            "separator": [[a, 1] for a in self.separator],
            "terms": [
                {
                    "coefficient": str(term.coefficient),
                    "from": term.source,
                    "to": term.target,
                    "words": [[list(run) for run in word] for word in term.words],
                    "then": [[a, 1] for a in term.then],
                }
                for term in self.terms
            ],
        }

    def _four_word_json(self, words: FourWords) -> dict[str, Any]:
        """Return the certificate of four words: one term that leads to the difference of two states that it merges."""
        start = self.machine.start
        after = _run(self.machine, start, words.prefix)
        (a, b), (c, d) = ([_run(self.machine, s, word) for word in (words.u, words.other)] for s in (after, start))
        sign, states = (-1, (c, d)) if words.differ_at_start else (1, (a, b))
        runs = [[[letter, 1] for letter in word] for word in (words.u, words.other)]
        return {
            **certificate_header(self.machine, self.family, "impossible"),
            "states": list(states),
            "separator": [[letter, 1] for letter in distinguish(self.machine, *states) or ()],
            "terms": [{"coefficient": str(sign), "from": after, "to": start, "words": runs, "then": []}],
        }

    def _name(self, q: int) -> str:
        labels = self.machine.labels
        return f"{q}" if labels is None else f"{q} ({symbols.show_label(labels[q])})"

    def _text(self, word: tuple[int, ...]) -> str:
        alphabet = self.machine.alphabet
        return symbols.word_text([alphabet[a] for a in word], alphabet)


@dataclass(frozen=True)
class Witness(CertifiedAnswer):
    """A layer of the family that represents the machine, given by its exact weights.

    Args:
        form: the diagonal entries (a complex one is a rotation in two real dimensions), or the integer matrix and
            vectors of an input-independent layer.
        obstruction: the dimensions of W and of the space of all differences.
    """

    answer: ClassVar[str] = "yes"
    form: tuple[ScalarChannel, ...] | Affine
    obstruction: tuple[int, int]

    @property
    def dimension(self) -> int:
        """The number of real dimensions of the state."""
        return self.form.dimension if isinstance(self.form, Affine) else sum(channel.dimension for channel in self.form)

    @property
    def is_exact(self) -> bool:
        """Whether the weights are integers, so that floating point is exact below 2⁵³; else there are rotations."""
        return isinstance(self.form, Affine) or all(channel.is_integer for channel in self.form)

    def explain(self) -> str:
        if isinstance(self.form, Affine):
            return f"An integer matrix of {self.form.dimension} dimensions, the same for every letter."
        orders = sorted(channel.order for channel in self.form)
        rotations = [f"1/{order} turn" for order in orders if order > 2]
        parts = [f"{real} real channel{'s' if real > 1 else ''}"] if (real := len(orders) - len(rotations)) else []
        parts += [f"{len(rotations)} rotating by multiples of {', '.join(rotations)}"] if rotations else []
        size = f"{self.dimension} real dimension{'' if self.dimension == 1 else 's'}"
        return f"{size}: {' and '.join(parts) or 'a single state needs none'}."

    def to_json(self) -> dict[str, Any]:
        header = certificate_header(self.machine, self.family, "representable")
        if isinstance(self.form, Affine):
            parts = {"matrix": self.form.A, "vectors": self.form.vectors, "shifts": self.form.shifts}
            return {**header, **{name: [[str(x) for x in row] for row in rows] for name, rows in parts.items()}}
        channels = [
            {
                "order": channel.order,
                "exponents": list(channel.exponents),
                "values": [[str(c) for c in value] for value in channel.values],
                "shifts": [[str(c) for c in shift] for shift in channel.shifts],
            }
            for channel in self.form
        ]
        return {**header, "channels": channels}


@dataclass(frozen=True)
class Unknown(FamilyAnswer):
    """An open answer, without a witness or a certificate; `reason` says what was tried."""

    answer: ClassVar[str] = "unknown"
    reason: str

    def explain(self) -> str:
        return self.reason


def certificate_header(machine: MooreMachine, family: str, verdict: str) -> dict[str, Any]:
    """Return the fields common to all certificates: format, version, family, verdict and machine."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "family": family,
        "verdict": verdict,
        "machine": {
            "alphabet": [symbols.to_json(letter) for letter in machine.alphabet],
            "delta": machine.delta.tolist(),
            "outputs": [symbols.to_json(output) for output in machine.outputs],
            "start": machine.start,
        },
    }


def _run(machine: MooreMachine, q: int, word: tuple[int, ...]) -> int:
    for a in word:
        q = int(machine.delta[a, q])
    return q


@dataclass(frozen=True)
class AffineTables:
    """The matrices and shifts of a layer per letter, and the vector of each state, in float64.

    Args:
        A: the matrices, shape (|Σ|, H, b, b), with blocks padded with zeros to the largest.
        v: the shifts, shape (|Σ|, H, b).
        x: the vectors, shape (n, H, b); that of the start state is x₀.
        block_sizes: the H sizes.
    """

    A: np.ndarray
    v: np.ndarray
    x: np.ndarray
    block_sizes: tuple[int, ...]


class AffineWitness:
    """A base class of witnesses whose layer is x ↦ A_a x + v_a, enough to build a network."""

    machine: MooreMachine

    def tables(self) -> AffineTables:
        """Return the layer's tables, rounded to float64."""
        raise NotImplementedError

    @property
    def is_exact(self) -> bool:
        """Whether the tables are integers, so that floating point is exact below 2⁵³."""
        tables = self.tables()
        return not ((tables.A % 1).any() or (tables.v % 1).any() or (tables.x % 1).any())


@dataclass(frozen=True)
class HeadTables:
    """The keys of a layer's Householder factors in float64, with heads padded with zeros to the largest.

    Args:
        keys: the keys k of the factors I − k kᵀ in the order of application, zero for none, shape (|Σ|, H, m, b).
        shifts: the vectors added after the factors, shape (|Σ|, H, b).
        vectors: the vectors of the states, shape (n, H, b).
    """

    keys: np.ndarray
    shifts: np.ndarray
    vectors: np.ndarray


class HeadsWitness:
    """A base class of witnesses with heads of Householder factors, enough to build a network."""

    machine: MooreMachine

    def tables(self) -> HeadTables:
        """Return the keys, shifts and vectors, rounded to float64."""
        raise NotImplementedError
