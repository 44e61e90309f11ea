"""Which layers can represent subtraction: the paper's Propositions 1 and 2, and its claims on Liquid-S4."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fsa2lrnn import verification as judge
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.recurrence import compile_recurrence
from fsa2lrnn.families import Impossibility, RejectedCertificate, Witness, represent
from verify.propositions.contradiction import (
    PAPER,
    PARITY,
    Commutation,
    Words,
    cancels,
    commutator,
    diagonal,
    equation,
    input_independent,
    liquid,
    missing,
)
from verify.propositions.registry import Answer, Effort, Proposition, Proved, Refuted, Undecided, refuted

MODULI = range(3, 8)
WINDOWS = range(1, 9)
COMPLETIONS = ("sink", "ignore")
COMMUTATOR = commutator("", "-", "01", "0-")


def by_words(
    effort: Effort,
    commutation: Commutation,
    words: Words = PAPER,
    machine_of: Callable[..., MooreMachine] = zoo.subtraction,
    moduli: Sequence[int] = MODULI,
) -> Answer:
    """Check a contradiction in words, for every modulus and completion."""
    if not cancels(words, commutation):
        return refuted(f"the states of {', '.join(words)} do not cancel in every layer of the family")
    for modulus in effort.track(moduli):
        for completion in COMPLETIONS:
            minimal = machine_of(modulus, completion).minimise()
            if (fault := missing(words, minimal.run)) is not None:
                return refuted(f"modulo {modulus}, {completion}: {fault}", modulus=modulus, completion=completion)
    shown = f"{moduli[0]} … {moduli[-1]}" if len(moduli) > 1 else f"{moduli[0]}"
    how = (
        f"{equation(words)} is an identity of formal sums, and the machines modulo {shown} have it otherwise; all "
        "words are legal, so illegal strings play no part"
    )
    return Proved(how, len(moduli) * len(COMPLETIONS))


def proposition_1_by_words(
    effort: Effort, words: Words = PAPER, commutation: Commutation = input_independent
) -> Answer:
    """Check the paper's proof of Proposition 1."""
    return by_words(effort, commutation, words)


def proposition_2_by_words(effort: Effort, words: Words = PAPER, commutation: Commutation = diagonal) -> Answer:
    """Check the paper's proof of Proposition 2."""
    return by_words(effort, commutation, words)


def over_the_integers(
    effort: Effort, words: Words = PAPER, machine_of: Callable[[int, str], MooreMachine] | None = None
) -> Answer:
    """Check the same words over ℤ, and over every window that contains their values."""
    build = machine_of or integer_subtraction
    for name, commutation in (("input-independent", input_independent), ("diagonal", diagonal)):
        if not cancels(words, commutation):
            return refuted(f"the states of {', '.join(words)} do not cancel in every {name} layer")
    if (fault := missing(words, _integer_state)) is not None:
        return refuted(f"over ℤ: {fault}")
    for window in effort.track(WINDOWS):
        for beyond in ("saturate", "error"):
            if (fault := missing(words, build(window, beyond).minimise().run)) is not None:
                return refuted(f"window −{window} … {window}, {beyond}: {fault}", window=window, beyond=beyond)
    how = f"{equation(words)}, over ℤ and over the windows −W … W, W = 1 … {WINDOWS[-1]}, saturating or with an error"
    return Proved(how, 1 + 2 * len(WINDOWS))


def by_representation(
    effort: Effort,
    families: Sequence[str],
    decide: Callable[[MooreMachine, str], Any] = represent,
    machine_of: Callable[..., MooreMachine] = zoo.subtraction,
) -> Answer:
    """Check that T3 finds every machine impossible for every family, with each certificate accepted by the checker.

    The checker shares no code with the search.
    """
    machines = {f"modulo {M}, {c}": machine_of(M, c) for M in (2, *MODULI) for c in COMPLETIONS}
    machines |= {f"window {W}, {c}": integer_subtraction(W, c) for W in (1, 2, 4) for c in ("saturate", "error")}
    cases = [(name, family) for name in machines for family in families]
    for name, family in effort.track(cases):
        verdict = decide(machines[name], family)
        if not isinstance(verdict, Impossibility):
            return refuted(f"{name}: {verdict.explain()}", machine=name, family=family)
        try:
            verdict.check()
        except RejectedCertificate as error:
            return refuted(
                f"{name}: the certificate against {family} is rejected: {error}", machine=name, family=family
            )
    how = (
        f"{len(machines)} machines (modulo 2 … 7, windows of ℤ, each with two completions) and {', '.join(families)}: "
        "certificates over ℚ, re-checked"
    )
    return Proved(how, len(cases))


def proposition_1_by_representation(
    effort: Effort,
    decide: Callable[[MooreMachine, str], Any] = represent,
    machine_of: Callable[..., MooreMachine] = zoo.subtraction,
) -> Answer:
    """Apply T3 to input-independent layers."""
    return by_representation(effort, ("lti", "lti-diagonalisable"), decide, machine_of)


def proposition_2_by_representation(
    effort: Effort,
    decide: Callable[[MooreMachine, str], Any] = represent,
    machine_of: Callable[..., MooreMachine] = zoo.subtraction,
) -> Answer:
    """Apply T3 to diagonal layers."""
    return by_representation(
        effort, ("diagonal[0,1]", "diagonal[-1,1]", "diagonal-complex", "liquid-s4-diagonal"), decide, machine_of
    )


def modulo_2_input_independent(effort: Effort, words: Words = PARITY) -> Answer:
    """Check M = 2, where 0−1 = 1−0: the paper's words prove nothing, four others of one length do."""
    if missing(PAPER, zoo.subtraction(2).minimise().run) is None:
        return refuted("the paper's words tell 0−1 from 1−0 modulo 2, where both are 1")
    return by_words(effort, input_independent, words, moduli=(2,))


def modulo_2_diagonal(effort: Effort, machine: MooreMachine | None = None) -> Answer:
    """Check whether a diagonal layer represents a completion of subtraction modulo 2 (default: parity_subtraction)."""
    total = machine or parity_subtraction()
    for word in effort.track(_legal_words(2, 9)):
        if total.transduce(word)[-1] != zoo.subtraction(2).transduce(word)[-1]:
            return Undecided(f"one completion, and that differs from subtraction on {word}")
    verdict = represent(total, "diagonal[-1,1]")
    if not isinstance(verdict, Witness):
        return Undecided(f"one completion, and that has no witness: {verdict.explain()}")
    return refuted(
        "the paper's words need 0−1 ≠ 1−0. Let − leave the value, a digit be added, and the outputs None and the value "
        f"take turns: that agrees on every legal string, and {verdict.check()}",
        states=total.n_states,
        dimension=verdict.dimension,
    )


def block_diagonal_represents(
    effort: Effort,
    machine_of: Callable[..., MooreMachine] = zoo.subtraction,
    compiler: Callable[..., Any] | None = None,
) -> Answer:
    """Compile a layer of the paper's own family for every modulus; prove it equal for all lengths."""
    build, cases = compiler or compile_recurrence, [(M, c) for M in (2, *MODULI) for c in COMPLETIONS]
    transitions = 0
    for modulus, completion in effort.track(cases):
        machine = machine_of(modulus, completion)
        verdict = judge.prove_equivalent(build(machine), machine)
        if not isinstance(verdict, judge.Proved):
            return refuted(f"modulo {modulus}, {completion}: {verdict}", modulus=modulus, completion=completion)
        transitions += verdict.transitions
    return Proved("compiled layers, each proved equal to its machine on every word, M = 2 … 7", transitions)


def liquid_s4_escapes(effort: Effort, words: Words = PAPER, commutation: Commutation = diagonal) -> Answer:
    """Search for a contradiction in words for A_a = A + diag(B u_a) with A diagonal."""
    answer = by_words(effort, commutation, words)
    if isinstance(answer, Proved):
        return refuted(
            f"with A diagonal, as in its S4D form, A + diag(B u) is diagonal and input-dependent: {answer.how}",
            words=dict(words),
        )
    return Undecided("the words of Proposition 2, which lead to no contradiction")


def dense_liquid_s4_escapes_the_words(
    effort: Effort, weights: Callable[[np.random.Generator], tuple[np.ndarray, Mapping[str, np.ndarray]]] | None = None
) -> Answer:
    """Search for integer weights with A dense on which the states of the four words do not cancel."""
    draw = weights or _liquid_weights
    generator = np.random.default_rng(effort.seed)
    for attempt in effort.track(range(10)):
        A, inputs = draw(generator)
        total = np.zeros(len(A), dtype=np.int64)
        for word, weight in PAPER.items():
            x = np.zeros(len(A), dtype=np.int64)
            for letter in word:
                x = (A + np.diag(inputs[letter])) @ x + inputs[letter]
            total += weight * x
        if total.any():
            shown = {letter: u.tolist() for letter, u in inputs.items()}
            how = f"A = {A.tolist()}, B u = {shown}, z = 0: x_0-1 − x_1-0 − x_0-0-1 + x_0-1-0 = {total.tolist()} ≠ 0"
            return Proved(how, attempt + 1)
    return refuted("the four words cancel on ten layers A + diag(B u)")


def dense_liquid_s4_represents(effort: Effort, words: Words = COMMUTATOR, commutation: Commutation = liquid) -> Answer:
    """Check the commutator words with A dense: A_a − A_b is still diagonal, so any two of these differences commute."""
    if not cancels(words, commutation):
        return Undecided("twelve words, whose states do not cancel in every layer A + diag(B u)")
    for modulus in effort.track((2, *MODULI)):
        if (fault := missing(words, zoo.subtraction(modulus).minimise().run)) is not None:
            return Undecided(f"twelve words; modulo {modulus}, {fault}")
    return refuted(
        f"A_a − A_b = diag(B u_a − B u_b), so these differences commute: (A_0 − A_1)(A_0 − A_-) on x − x_- gives "
        f"{equation(words)}, of which modulo 2 … 7 two unlike states are left that would be equal",
        words=dict(words),
    )


def integer_subtraction(window: int, beyond: str = "saturate") -> MooreMachine:
    """Return the machine of d − d − … − d over ℤ with the digits 0 and 1, for values in −W … W.

    A value outside the window saturates ("saturate") or leads to a permanent error ("error"); so does an illegal
    letter.

    >>> integer_subtraction(2).transduce("0-1-1-1")
    [0, None, -1, None, -2, None, -2]
    """

    def step(before: tuple[str, int], letter: Hashable) -> tuple[str, int]:
        last, value = before
        if last == "digit" and letter == "-":
            return "operator", value
        if last not in ("start", "operator") or letter == "-":
            return "error", 0
        value = int(str(letter)) if last == "start" else value - int(str(letter))
        if abs(value) <= window:
            return "digit", value
        return ("digit", max(-window, min(window, value))) if beyond == "saturate" else ("error", 0)

    def output(at: tuple[str, int]) -> Hashable:
        return at[1] if at[0] == "digit" else "error" if at[0] == "error" else None

    return explore("01-", ("start", 0), step, output)


def parity_subtraction() -> MooreMachine:
    """Return a completion of subtraction modulo 2: the parity of the ones, shown after every other letter."""

    def step(before: tuple[int, int], letter: Hashable) -> tuple[int, int]:
        turn, value = before
        return 1 - turn, (value + (letter == "1")) % 2

    return explore("01-", (0, 0), step, lambda at: at[1] if at[0] else None)


def _integer_state(word: str) -> tuple[str, int]:
    """Return the state over ℤ after a legal word that ends in a digit, computed with Python's integers."""
    first, *others = (int(digit) for digit in word.split("-"))
    return "digit", first - sum(others)


def _legal_words(modulus: int, longest: int) -> list[str]:
    found, digits = list[str](), [str(d) for d in range(modulus)]
    layer = digits
    while layer and len(layer[0]) <= longest:
        found += layer
        layer = [f"{word}-{d}" for word in layer for d in digits]
    return found


def _liquid_weights(generator: np.random.Generator) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    return generator.integers(-2, 3, (2, 2)), {letter: generator.integers(-2, 3, 2) for letter in "01-"}


_ONE_VECTOR = "one vector a state (strings that have the same future share it), exact arithmetic"
_LIQUID = "the paper, Improved Expressiveness: Liquid-S4"

PROPOSITIONS = (
    Proposition(
        "prop-1-words",
        "An input-independent LRNN is inconsistent in representing subtraction: by the paper's four words.",
        f"{_ONE_VECTOR}; modulo M = 3 … 7 (0−1 ≠ 1−0)",
        "the paper, Proposition 1; docs/theory.md, T4",
        proposition_1_by_words,
        Proved,
    ),
    Proposition(
        "prop-2-words",
        "A diagonal input-dependent LRNN is inconsistent in representing subtraction: by the paper's four words.",
        f"{_ONE_VECTOR}; modulo M = 3 … 7 (0−1 ≠ 1−0)",
        "the paper, Proposition 2; docs/theory.md, T4",
        proposition_2_by_words,
        Proved,
    ),
    Proposition(
        "prop-1-2-integers",
        "Neither represents subtraction over ℤ, nor over a window of ℤ that holds −1 … 1.",
        f"{_ONE_VECTOR}",
        "the paper, Propositions 1 and 2",
        over_the_integers,
        Proved,
    ),
    Proposition(
        "prop-1-T3",
        "No input-independent layer, dense or diagonalisable, represents the machine of subtraction.",
        f"{_ONE_VECTOR}; M = 2 … 7 and windows of ℤ, the machine being complete: illegal strings count",
        "the paper, Proposition 1; docs/theory.md, T3",
        proposition_1_by_representation,
        Proved,
    ),
    Proposition(
        "prop-2-T3",
        "No diagonal layer, with entries in [0,1], in [−1,1] or complex, nor Liquid-S4 with a diagonal A, represents "
        "the machine of subtraction.",
        f"{_ONE_VECTOR}; M = 2 … 7 and windows of ℤ, the machine being complete: illegal strings count",
        "the paper, Proposition 2; docs/theory.md, T3",
        proposition_2_by_representation,
        Proved,
    ),
    Proposition(
        "prop-1-modulo-2",
        "An input-independent LRNN is inconsistent in representing subtraction modulo 2, where 0−1 = 1−0 and the "
        "paper's words show nothing.",
        f"{_ONE_VECTOR}; M = 2, legal strings only",
        "the paper, Proposition 1, by other words",
        modulo_2_input_independent,
        Proved,
    ),
    Proposition(
        "prop-2-modulo-2",
        "A diagonal input-dependent LRNN is inconsistent in representing subtraction modulo 2.",
        f"{_ONE_VECTOR}; M = 2, legal strings only",
        "the paper, Proposition 2, without its hypothesis 0−1 ≠ 1−0",
        modulo_2_diagonal,
        Refuted,
        instead="for M = 2 subtraction is addition, and two channels with entries ±1 do it on legal strings; with "
        "illegal strings complete as in the zoo, prop-2-T3 holds for M = 2 as well",
    ),
    Proposition(
        "block-diagonal",
        "A block-diagonal input-dependent layer represents subtraction.",
        "M = 2 … 7, one block as large as the minimal machine",
        "the paper, Eq. 5; docs/theory.md, T1",
        block_diagonal_represents,
        Proved,
    ),
    Proposition(
        "liquid-s4-diagonal",
        "Liquid-S4 does not suffer from the limitation outlined in Proposition 2: with A diagonal.",
        f"{_ONE_VECTOR}; M = 3 … 7",
        f"{_LIQUID}; docs/theory.md, T6",
        liquid_s4_escapes,
        Refuted,
        instead="with A diagonal Proposition 2 covers it; only a dense A escapes (liquid-s4-dense)",
    ),
    Proposition(
        "liquid-s4-dense",
        "Liquid-S4 does not suffer from the limitation outlined in Proposition 2: with A dense, its four words lead to "
        "no contradiction.",
        "that says nothing of whether such a layer represents subtraction",
        f"{_LIQUID}; docs/theory.md, T6",
        dense_liquid_s4_escapes_the_words,
        Proved,
    ),
    Proposition(
        "liquid-s4-subtraction",
        "A Liquid-S4 layer with a dense A represents the machine of subtraction.",
        f"{_ONE_VECTOR}; M = 2 … 7, illegal strings leading to an error for ever",
        "the paper leaves it open; docs/theory.md, T6",
        dense_liquid_s4_represents,
        Refuted,
        instead="no Liquid-S4 layer does, whatever its A; the twelve words hold illegal strings, and what is possible "
        "on legal ones alone is open",
    ),
)
