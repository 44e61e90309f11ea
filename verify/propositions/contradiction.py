"""Contradictions in words: how the paper proves Propositions 1 and 2 (T4 of docs/theory.md).

A contradiction is a combination of words, with integer weights, whose states cancel in every layer of a family but not
in the machine. x_w is a sum of products of transitions. With letters instead of matrices, and the commutation that the
family has, the first half is an identity of formal sums, checked once for all layers.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

Commutation = Callable[[str], Iterable[Hashable]]  # the monomials that A_{a_T} ⋯ A_{a_1} is the sum of
Words = Mapping[str, int]
Run = Callable[[str], Hashable]

PAPER: Words = {"0-1": 1, "1-0": -1, "0-0-1": -1, "0-1-0": 1}  # x_u − x_v − x_pu + x_pv
PARITY: Words = {"0-0": 1, "1-1": 1, "0-1": -1, "1-0": -1}


def input_independent(word: str) -> Iterable[Hashable]:
    """Yield the only power A^T, represented by the number of letters."""
    return (len(word),)


def diagonal(word: str) -> Iterable[Hashable]:
    """Yield the letters in sorted order, because diagonal matrices commute."""
    return (tuple(sorted(word)),)


def dense(word: str) -> Iterable[Hashable]:
    """Yield the word itself, because dense matrices need not commute."""
    return (word,)


def liquid(word: str) -> Iterable[Hashable]:
    """Yield the terms of Liquid-S4, A_a = A + D_a with D_a diagonal: a letter is A or D_a, and adjacent D commute.

    >>> list(liquid("10"))
    [('', '', ''), ('', '0'), ('1', ''), ('01',)]
    """
    for choice in itertools.product((False, True), repeat=len(word)):
        runs = [""]
        for letter, is_diagonal in zip(word, choice, strict=True):
            if is_diagonal:
                runs[-1] += letter
            else:
                runs.append("")
        yield tuple("".join(sorted(run)) for run in runs)


def commutator(s: str, t: str, first: str, second: str) -> Words:
    """Return [A_a − A_b, A_c − A_d] applied to x_s − x_t as weighted words.

    `first` is "ab", `second` is "cd". The words cancel in a family in which the commutator is 0.

    >>> cancels(commutator("", "0", "01", "0-"), liquid), cancels(commutator("", "0", "01", "0-"), dense)
    (True, False)
    """
    words: Counter[str] = Counter()
    for (x, i), (y, j) in itertools.product(zip(first, (1, -1), strict=True), zip(second, (1, -1), strict=True)):
        for prefix, sign in ((s, 1), (t, -1)):
            words[prefix + y + x] += sign * i * j
            words[prefix + x + y] -= sign * i * j
    return {word: n for word, n in words.items() if n}


def state(word: str, commutation: Commutation) -> Counter[tuple[Hashable, str]]:
    """Return x_w as a formal sum: A_{a_T} ⋯ A_{a_{i+1}} u_{a_i} for every i, and A_{a_T} ⋯ A_{a_1} z.

    >>> state("0-", input_independent) == Counter({(0, "-"): 1, (1, "0"): 1, (2, "z"): 1})
    True
    """
    return Counter(
        (monomial, word[i - 1] if i else "z") for i in range(len(word) + 1) for monomial in commutation(word[i:])
    )


def cancels(words: Words, commutation: Commutation) -> bool:
    """Return whether the weighted states of the words cancel for all transitions with this commutation, all u and z."""
    total: Counter[tuple[Hashable, str]] = Counter()
    for word, weight in words.items():
        for term, n in state(word, commutation).items():
            total[term] += weight * n
    return not any(total.values())


def missing(words: Words, run: Run) -> str | None:
    """Return why the words do not force x_p = x_q for states p ≠ q, or None if they do."""
    total: Counter[Hashable] = Counter()
    for word, weight in words.items():
        total[run(word)] += weight
    left = {q: n for q, n in total.items() if n}
    ends = ", ".join(f"{word} ↦ {run(word)}" for word in words)
    if len(left) != 2 or sum(left.values()) != 0:
        return f"the weighted states leave {left or 'nothing'}, not a multiple of one difference: {ends}"
    return None


def equation(words: Words) -> str:
    """Return the equation that the words force, as text."""
    terms = [f"{'+' if n > 0 else '−'} {abs(n) if abs(n) > 1 else ''}x_{word}" for word, n in words.items()]
    return " ".join(terms).removeprefix("+ ") + " = 0"
