"""*impossible*, by words whose linear parts must agree in every layer of a family (docs/theory.md §4)."""

from __future__ import annotations

from typing import Any

from .machine import Machine, Word, after, power, read_states, read_word
from .reading import as_list, fields, integers, require

# Which words must have equal linear parts, and which multipliers a lane may have: (rearranged letters or only equal
# length, power k with A_a^k = A_a for a letter or "cycle", largest order of χ(a), one χ for all letters).
FAMILIES: dict[str, tuple[str, int | str | None, int | None, bool]] = {
    "lti": ("length", None, None, True),
    "lti-diagonalisable": ("length", "cycle", None, True),
    "diagonal[0,1]": ("letters", 2, 1, False),
    "diagonal[-1,1]": ("letters", 3, 2, False),
    "diagonal-complex": ("letters", "cycle", None, False),
}


def check_impossible(certificate: dict[str, Any], machine: Machine, family: str) -> None:
    p, q = read_states(certificate["states"], machine)
    separator = read_word(certificate["separator"], machine)
    told_apart = machine.outputs[after(p, separator, machine)] != machine.outputs[after(q, separator, machine)]
    require(told_apart, f"the separator does not tell {p} from {q}")
    terms = [fields(term, "coefficient", "from", "to", "words", "then") for term in as_list(certificate["terms"])]
    scale, coefficients = integers([term[0] for term in terms])
    total = [0] * machine.n
    for (_, source, target, words, then), coefficient in zip(terms, coefficients, strict=True):
        source, target = read_states([source, target], machine)
        then = read_word(then, machine)
        for word, sign in _cancelling([read_word(word, machine) for word in as_list(words)], machine, family):
            total[after(after(source, word, machine), then, machine)] += sign * coefficient
            total[after(after(target, word, machine), then, machine)] -= sign * coefficient
    total[p] -= scale
    total[q] += scale
    require(not any(total), f"the terms do not add up to x_{p} − x_{q}")


def _cancelling(words: list[Word], machine: Machine, family: str) -> list[tuple[Word, int]]:
    """The words with signs with which their linear parts add up to zero in every layer of the family."""
    if family == "liquid-s4":  # the differences A_a - A_c and A_b - A_c are diagonal, so they commute
        b, a, c = words[0][0][0], words[0][1][0], words[1][0][0]
        pairs = ((b, a), (c, a), (b, c), (a, b), (c, b), (a, c))
        commutator = [[[first, 1], [second, 1]] for first, second in pairs]
        require(words == commutator, f"{words} is no commutator")
        return list(zip(words, (1, -1, -1, -1, 1, 1), strict=True))
    u, other = words
    require(_must_agree(u, other, machine, family), f"the words {u} and {other} may differ in the family {family}")
    return [(u, 1), (other, -1)]


def _must_agree(u: Word, other: Word, machine: Machine, family: str) -> bool:
    """Whether A_u = A_other in every layer of the family that represents the machine."""
    kind, exponent, _, _ = FAMILIES[family]
    letters, others = _counts(u), _counts(other)
    if (sum(letters.values()) == sum(others.values())) if kind == "length" else letters == others:
        return True
    if exponent is None or len(letters) != 1 or list(letters) != list(others):
        return False
    ((a, high),), low = letters.items(), sum(others.values())
    if low != 1:
        return False
    if (
        exponent != "cycle"
    ):  # χ² = χ for entries in [0,1], χ³ = χ in [−1,1]: eigenvalues of a map are 0 or roots of unity
        return high == exponent
    # high − 1 is a multiple of all cycle lengths of a, so χ^high = χ for χ = 0 and for its roots; n steps lead to them
    turned = power(machine.delta[a], high - 1)
    return all(turned[q] == q for q in power(machine.delta[a], machine.n))


def _counts(word: Word) -> dict[int, int]:
    counts: dict[int, int] = {}
    for a, repetitions in word:
        counts[a] = counts.get(a, 0) + repetitions
    return {a: count for a, count in sorted(counts.items()) if count}
