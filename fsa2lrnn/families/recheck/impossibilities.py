"""Check impossibility by words that agree in every layer of a family (docs/theory.md §4) or every network of a kind.

In the first case their linear parts agree, in the second their states do (T55, T56).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, NamedTuple

from .certificate_fields import as_list, fields, integers, require, spend
from .checked_machine import CheckedMachine, Word, after, power, read_states, read_word


class MatrixHypotheses(NamedTuple):
    """The hypotheses on the matrices of a family on differences of states.

    Args:
        letters: the relation between the matrices of different letters.
        eigenvalues: their range, if the matrices are diagonalisable.
        beta: the largest in factors I - beta k k^T with |k| = 1; None if products of such factors are not witnesses.
        factors: the largest number of factors per letter and head; None for any number.
    """

    letters: str
    eigenvalues: str | None = None
    beta: Fraction | None = None
    factors: int | None = None


FAMILIES = {
    "lti": MatrixHypotheses("input-independent"),
    "lti-diagonalisable": MatrixHypotheses("input-independent", "complex"),
    "diagonal[0,1]": MatrixHypotheses("commuting", "[0,1]"),
    "diagonal[-1,1]": MatrixHypotheses("commuting", "[-1,1]"),
    "diagonal-complex": MatrixHypotheses("commuting", "complex"),
    "liquid-s4": MatrixHypotheses("commuting-differences"),
    "liquid-s4-diagonal": MatrixHypotheses("commuting", "complex"),  # A + diag(Bu) is diagonal
    "householder": MatrixHypotheses("contracting", beta=Fraction(2)),
    "matrices(contracting, any)": MatrixHypotheses("contracting"),
    "matrices(paracontracting, any)": MatrixHypotheses("paracontracting", beta=Fraction(1)),
}
POWERS = {"[0,1]": 2, "[-1,1]": 3}  # k with A^k = A: eigenvalues on differences of states are 0 or roots of unity
MATRICES = re.compile(
    r"matrices\((input-independent|commuting|commuting-differences|any), (\[0,1\]|\[-1,1\]|complex|any)\)"
)
PRODUCTS = re.compile(r"householder\((?:([1-9][0-9]{0,8}),)?\[0,([0-9]{1,9}(?:/[1-9][0-9]{0,8})?)\]\)")


def read_family(name: str) -> MatrixHypotheses:
    """Return the hypotheses of a family by name; raise `RejectedCertificate` for an unknown one."""
    if parts := MATRICES.fullmatch(name):
        return MatrixHypotheses(parts[1], None if parts[2] == "any" else parts[2])
    if parts := PRODUCTS.fullmatch(name):
        beta, factors = Fraction(parts[2]), int(parts[1]) if parts[1] else None
        require(1 <= beta <= 2, f"beta up to {beta} is not covered: the largest beta is from 1 to 2")
        if (
            factors == 1
        ):  # symmetric; without reflections, products of two have eigenvalues 0 and 1 only if they commute
            return (
                MatrixHypotheses("contracting", "[-1,1]", beta, 1)
                if beta == 2
                else MatrixHypotheses("commuting", "[0,1]", beta, 1)
            )
        return MatrixHypotheses("contracting" if beta == 2 else "paracontracting", None, beta, factors)
    require(name in FAMILIES, f"family {name[:80]!r} is not known")
    return FAMILIES[name]


def check_impossible(certificate: dict[str, Any], machine: CheckedMachine, form: MatrixHypotheses) -> None:
    """Raise `RejectedCertificate` unless the certificate's equations add up to x_p = x_q for two separated states."""
    p, q = read_states(certificate["states"], machine)
    separator = read_word(certificate["separator"], machine)
    is_separated = machine.outputs[after(p, separator, machine)] != machine.outputs[after(q, separator, machine)]
    require(is_separated, f"the separator does not tell {p} from {q}")
    terms = [fields(term, "coefficient", "from", "to", "words", "then") for term in as_list(certificate["terms"])]
    # All coefficients are integers over one denominator `scale`, so the sum has to be scale · (e_p − e_q).
    scale, coefficients = integers([term[0] for term in terms])
    total = [0] * machine.n
    for (_, *term), coefficient in zip(terms, coefficients, strict=True):
        zero = forced_zero(term, machine, form, certificate["family"])
        total = [x + coefficient * y for x, y in zip(total, zero, strict=True)]
    total[p] -= scale
    total[q] += scale
    require(not any(total), f"the terms do not add up to x_{p} − x_{q}")


def forced_zero(term: list[Any], machine: CheckedMachine, form: MatrixHypotheses, family: str) -> list[int]:
    """Return the combination of states that a term (source, target, words, then) says the family forces to be zero."""
    source, target, words, then = term
    source, target = read_states([source, target], machine)
    then, total = read_word(then, machine), [0] * machine.n
    for word, sign in _cancelling([read_word(word, machine) for word in as_list(words)], machine, form, family):
        total[after(after(source, word, machine), then, machine)] += sign
        total[after(after(target, word, machine), then, machine)] -= sign
    return total


def _cancelling(
    words: list[Word], machine: CheckedMachine, form: MatrixHypotheses, family: str
) -> list[tuple[Word, int]]:
    """Return the words of a term with signs under which they cancel in all layers of the family; refuse others."""
    if form.letters == "commuting-differences" and len(words) == 6:  # A_a - A_c and A_b - A_c commute
        b, a, c = words[0][0][0], words[0][1][0], words[1][0][0]
        pairs = ((b, a), (c, a), (b, c), (a, b), (c, b), (a, c))
        commutator = [[[first, 1], [second, 1]] for first, second in pairs]
        require(words == commutator, f"{words} is not a commutator")
        return list(zip(words, (1, -1, -1, -1, 1, 1), strict=True))
    u, other = words
    require(_must_agree(u, other, machine, form), f"the words {u} and {other} may differ in the family {family}")
    return [(u, 1), (other, -1)]


def _must_agree(u: Word, other: Word, machine: CheckedMachine, form: MatrixHypotheses) -> bool:
    """Return whether the hypotheses force one linear part for two words, by a sufficient condition for each form."""
    letters, others = _counts(u), _counts(other)
    if form.letters == "input-independent" and sum(letters.values()) == sum(others.values()):
        return True
    if form.letters == "commuting" and letters == others:
        return True
    # T54: both words act as the projection onto what all their letters fix.
    if form.letters == "paracontracting" and letters.keys() == others.keys():
        return _is_projection(u, machine.n - 1) and _is_projection(other, machine.n - 1)
    if form.letters == "contracting" and _are_idempotents(u, other, machine):
        return True
    if form.eigenvalues is None or len(letters) != 1 or list(letters) != list(others):
        return False
    ((a, high),), low = letters.items(), sum(others.values())
    if low != 1:
        return False
    if form.eigenvalues in POWERS:
        return high == POWERS[form.eigenvalues]
    # Sufficient: high − 1 is a multiple of a's cycle lengths, so χ^high = χ for its eigenvalues; n steps reach cycles
    turned = power(machine.delta[a], high - 1)
    return all(turned[q] == q for q in power(machine.delta[a], machine.n))


def _is_projection(word: Word, N: int) -> bool:
    """Return whether T54 applies: the word has N pieces, each with all its letters, or all letters have powers >= N."""
    runs = [(a, repetitions) for a, repetitions in word if repetitions]
    content, piece, pieces = {a for a, _ in runs}, set[int](), 0
    if all(repetitions >= N for _, repetitions in runs):
        return True
    for a, _ in runs:
        piece.add(a)
        if piece == content:
            pieces, piece = pieces + 1, set()
    return pieces >= N


def _are_idempotents(u: Word, other: Word, machine: CheckedMachine) -> bool:
    """Return whether T58 applies: the words are ef and fe, and e and f act as idempotents."""
    for k in range(1, len(u)):
        e, f = u[:k], u[k:]
        if other == f + e:
            spend(4 * machine.n * len(u))
            images = [(q, word) for word in (e, f) for q in {after(q, word, machine) for q in range(machine.n)}]
            if all(after(q, word, machine) == q for q, word in images):
                return True
    return False


def _counts(word: Word) -> dict[int, int]:
    counts: dict[int, int] = {}
    for a, repetitions in word:
        counts[a] = counts.get(a, 0) + repetitions
    return {a: count for a, count in sorted(counts.items()) if count}


KINDS = (
    "lti-stack", "lti-diagonalisable-stack", "hard-attention", "ends-stack", "last-letter-stack", "diagonal-layer-1",
    "diagonal-layer-2", "diagonal-layer-3", "diagonal-layer-4",
)  # fmt: skip


def check_confused(words: object, separator: object, machine: CheckedMachine, start: int, kind: str) -> None:
    """Raise `RejectedCertificate` unless all networks of a kind confuse two words after which outputs differ."""
    words, separator = [read_word(word, machine) for word in as_list(words)], read_word(separator, machine)
    if kind in ("lti-stack", "ends-stack"):
        u, loop, detour = words
        p, q = after(start, u, machine), after(after(start, u, machine), detour, machine)
        require(_length(loop) > 0, "the loop is empty")
        # T62: without counters the length of the detour does not matter.
        is_multiple = kind == "ends-stack" or _length(detour) % _length(loop) == 0
        require(is_multiple, "a length is not a multiple of the loop's")
        require(after(p, loop, machine) == p and after(q, loop, machine) == q, "the loop moves a state")
    elif kind == "lti-diagonalisable-stack":
        u, w, loop = words
        p, q = after(start, u, machine), after(start, w, machine)
        longer, period = _length(w) - _length(u), _length(loop)
        # T55 (b): an empty loop stands for words of equal length.
        require(longer % period == 0 if period else longer == 0, "the lengths are not congruent")
        require(len(set(map(_last, words if period else (u, w)))) == 1, "the last letters differ")
        require(after(q, loop, machine) == q, "the loop moves a state")
    elif kind.startswith("diagonal-layer"):
        x, u, w, common = words
        window = int(kind[-1])  # of letters on which the inputs of the layer depend
        p, q = (after(start, x + word + common, machine) for word in (u, w))
        late = set(_letters(common, window)[window - 1 :])
        last = _letters(x, window)[::-1][: window - 1]
        require(len(last) == window - 1, "the first word is too short")
        # T69: from letters of the last word, which has each of them later than the inputs look back.
        require(late >= {*last, *_letters(u + w + common, 1)}, "a letter does not come late in the last word")
    else:
        u, w = words
        p, q = after(start, u, machine), after(start, w, machine)
        if kind == "last-letter-stack":
            require(_last(u) == _last(w), "the last letters differ")
        else:
            require(_profile(u) == _profile(w), "the words have different profiles")
    differ = machine.outputs[after(p, separator, machine)] != machine.outputs[after(q, separator, machine)]
    require(differ, "the separator does not tell the states apart")


def _letters(word: Word, most: int) -> list[int]:
    """Return the letters of a word, each repeated at most so many times in sequence."""
    spend(most * len(word))
    return [a for a, repetitions in word for _ in range(min(repetitions, most))]


def _length(word: Word) -> int:
    return sum(repetitions for _, repetitions in word)


def _last(word: Word) -> int:
    letters = [a for a, repetitions in word if repetitions]
    require(len(letters) > 0, "a word is empty")
    return letters[-1]


def _profile(word: Word) -> tuple[list[int], list[int], int]:
    """Return the letters by first and by last occurrence before the last letter, and the last letter."""
    letters = _letters(word, 2)  # more repetitions change no profile
    spend(2 * len(letters))
    last = _last(word)
    earlier = letters[:-1]
    return list(dict.fromkeys(earlier)), list(dict.fromkeys(reversed(earlier))), last
