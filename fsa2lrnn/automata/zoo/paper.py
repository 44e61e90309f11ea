"""The tasks of the paper: Sum(M), EvenPair(M), ModArith(M), and the subtraction of its Propositions 1 and 2.

The digits are the letters "0" … "M−1", so that a word can be written as one string if M ≤ 10.
"""

# M is the paper's name, not a constant.
# pyright: reportConstantRedefinition=false

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from fsa2lrnn.automata.language import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, digits, one_of, within_budget


class PairEnds(NamedTuple):
    """A state of EvenPair: the first letter or None, and whether the last one is the "same" or an "other"."""

    first: Hashable
    last: str


class Expression(NamedTuple):
    """A state of ModArith: the kind of the last letter, the sum of finished terms, the current term, the output."""

    last: str
    sum: int
    term: int
    output: Hashable


class PendingOperator(NamedTuple):
    """A state of ModArith in which an operator is stored until the next digit."""

    operator: Hashable
    term: int
    accumulator: int


class Registers(NamedTuple):
    """A state of ModArith in its smallest form: the sum of finished terms, and the current term."""

    sum: int
    term: int


class SubtractionState(NamedTuple):
    """A state of a chain of subtractions: the kind of the last letter, the value, the sign of the next digit."""

    last: str
    value: int
    sign: int


def sum_mod(M: int) -> MooreMachine:
    """Return the machine Sum(M), which outputs the sum of the digits so far, modulo M.

    In this simplest group task (Z_M) every letter permutes the states, and one wrong addition makes all later outputs
    wrong. The machine is minimal with M states. Sum(2) is parity.

    >>> sum_mod(5).transduce("0324")
    [0, 3, 0, 4]
    """
    M = at_least(2, "sum_mod", "M", M, "modulo 1 every sum is 0")
    within_budget(f"sum_mod({M})", M, M)
    value: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}
    return explore(digits(M), 0, lambda total, letter: (total + value[letter]) % M, lambda total: total)


def even_pair(M: int) -> MooreMachine:
    """Return the machine EvenPair(M), which outputs 1 if the last letter equals the first, else 0.

    It requires the opposite of Sum: to remember the first letter for all lengths and to forget all others except the
    last. The machine is aperiodic and minimal with 2M + 1 states: the start, and pairs of the first letter and whether
    the last one equals it. The output on the empty word is 0, so that the outputs are {0, 1} as in the paper.

    >>> even_pair(5).transduce("0320")
    [1, 0, 0, 1]
    """
    M = at_least(2, "even_pair", "M", M, "with one letter the first always equals the last")
    within_budget(f"even_pair({M})", 2 * M + 1, M)

    def step(state: PairEnds, letter: Hashable) -> PairEnds:
        first = letter if state.first is None else state.first
        return PairEnds(first, "same" if letter == first else "other")

    return explore(digits(M), PairEnds(None, "other"), step, lambda state: int(state.last == "same"))


def mod_arith(M: int, completion: str = "sink") -> MooreMachine:
    """Return the machine ModArith(M): the value modulo M of an expression with +, − and ×, where × takes precedence.

    The paper's words have odd length, digits and operators in turn, and it compares the output after a digit. There all
    machines below agree. The task leaves all other outputs open, and their choice determines the size and the algebra:

    | completion | minimal states | M = 5 | beyond legal expressions |
    |---|---|---|---|
    | "sink" | 2M² + 1 | 51 | an illegal letter leads to an absorbing state with output "error"; no value yet is None |
    | "ignore" | 2M² | 50 | an illegal letter changes nothing; no value yet is None |
    | "running" | 2M² + 2M + 1 | 61 | as "sink", but after an operator the value so far, 0 at the start |
    | "operator" | 3M² | 75 | an operator replaces the one that waits, a digit applies it; the value so far, always |
    | "eager" | 3M² | 75 | + and − do s ← s + t at once and wait, a digit does t ← ±d or t·d; s + t, always |
    | "register" | M² | 25 | + and − do s ← s + t, t ← ±1; a digit d does t ← t·d; × nothing; s + t, always |

    At the start and after an operator no value is known yet. For M = 2, where − is +, "running" has 11 states and
    "operator" 8. All monoids contain the group of addition and, for M > 2, that of the units modulo M, and also resets:
    they are neither groups nor aperiodic. Labels are named tuples: `PendingOperator` for "operator" and "eager",
    `Registers` for "register", else `Expression`. Multiplication may be written *, × or ·.

    >>> mod_arith(5).transduce("1+2-3×4")
    [1, None, 3, None, 0, None, 1]
    >>> mod_arith(5).run("1++") == mod_arith(5).run("12+"), mod_arith(5).transduce("1++")
    (True, [1, None, 'error'])
    >>> {c: mod_arith(5, c).minimise().n_states for c in ("sink", "ignore", "running", "operator", "eager", "register")}
    {'sink': 51, 'ignore': 50, 'running': 61, 'operator': 75, 'eager': 75, 'register': 25}
    """
    M = at_least(2, "mod_arith", "M", M, "modulo 1 every value is 0")
    one_of(_MOD_ARITH, "mod_arith", "completion", completion)
    within_budget(f"mod_arith({M})", 3 * M * M, M + 3)
    return _MOD_ARITH[completion](M)


def subtraction(M: int, completion: str = "sink") -> MooreMachine:
    """Return the machine of the paper's Propositions 1 and 2: the value modulo M of subtractions d − d − … − d.

    "0-1" and "1-0" differ in value, yet after the prefix "0-" the two words lead to one state, since 0 − 0 − 1 =
    0 − 1 − 0. No input-independent and no diagonal layer represents both facts. Completions are "sink" (minimal with
    2M + 2 states) or "ignore" (2M + 1), as for `mod_arith`; M = 2, where − is +, has one state less. The monoid
    contains Z_M and is neither a group nor aperiodic. Labels are named tuples, `SubtractionState`.

    >>> m = subtraction(5)
    >>> [m.transduce(word)[-1] for word in ("0-1", "1-0", "0-0-1", "0-1-0")]
    [4, 1, 4, 4]
    >>> m.run("0-1") == m.run("1-0"), m.run("0-0-1") == m.run("0-1-0")
    (False, True)
    """
    M = at_least(2, "subtraction", "M", M, "modulo 1 every value is 0")
    one_of(("sink", "ignore"), "subtraction", "completion", completion)
    within_budget(f"subtraction({M})", 2 * M + 2, M + 1)
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: SubtractionState, letter: Hashable) -> SubtractionState:
        last, value, sign = state
        if last == "operator" and letter in number:
            return SubtractionState("digit", (value + sign * number[letter]) % M, -1)
        if last == "digit" and letter not in number:
            return SubtractionState("operator", value, -1)
        return state if completion == "ignore" else SubtractionState("error", 0, 0)

    outputs: dict[str, Callable[[int], Hashable]] = {
        "digit": lambda value: value,
        "operator": lambda _: None,
        "error": lambda _: "error",
    }
    return explore(
        (*digits(M), "-"), SubtractionState("operator", 0, 1), step, lambda state: outputs[state.last](state.value)
    )


def _expressions(M: int, completion: str) -> MooreMachine:
    """Return ModArith with errors detected; states hold the last symbol's kind, the finished sum, the term, the output.

    A term starts as 1 or M − 1 (for −1), so that a digit multiplies it whatever the operator was.
    """
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: Expression, letter: Hashable) -> Expression:
        last, s, t, _ = state
        if last == "operator" and letter in number:
            t = t * number[letter] % M
            return Expression("digit", s, t, (s + t) % M)
        if last == "digit" and letter not in number:
            shown = (s + t) % M if completion == "running" else None
            if letter == "*":
                return Expression("operator", s, t, shown)
            return Expression("operator", (s + t) % M, 1 if letter == "+" else M - 1, shown)
        return state if completion == "ignore" else Expression("error", 0, 0, "error")

    start = Expression("operator", 0, 1, 0 if completion == "running" else None)
    return explore((*digits(M), "+", "-", "*"), start, step, lambda state: state.output)


def _pending_operator(M: int) -> MooreMachine:
    """Return ModArith with the operator kept until a digit applies it: states (operator, term, sum before the term)."""
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: PendingOperator, letter: Hashable) -> PendingOperator:
        operator, term, accumulator = state
        if letter not in number:
            return state._replace(operator=letter)
        if operator == "*":
            return state._replace(term=term * number[letter] % M)
        sign = 1 if operator == "+" else -1
        return PendingOperator(operator, sign * number[letter] % M, (accumulator + term) % M)

    start = PendingOperator("+", 0, 0)
    return explore((*digits(M), "+", "-", "*"), start, step, lambda state: (state.term + state.accumulator) % M)


def _adding_at_once(M: int) -> MooreMachine:
    """Return ModArith in which + and − add the term to the sum at once, and the digit only forms the next term."""
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: PendingOperator, letter: Hashable) -> PendingOperator:
        operator, term, accumulator = state
        if letter in number:
            sign = -1 if operator == "-" else 1
            return state._replace(term=(term if operator == "*" else sign) * number[letter] % M)
        return PendingOperator(letter, term, accumulator if letter == "*" else (accumulator + term) % M)

    start = PendingOperator("+", 0, 0)
    return explore((*digits(M), "+", "-", "*"), start, step, lambda state: (state.term + state.accumulator) % M)


def _two_registers(M: int) -> MooreMachine:
    """Return ModArith with M² states, (sum, term) modulo M: + and − make the next term 1 or −1, digits multiply it."""
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: Registers, letter: Hashable) -> Registers:
        s, t = state
        if letter == "*":
            return state
        if letter in number:
            return Registers(s, t * number[letter] % M)
        return Registers((s + t) % M, 1 if letter == "+" else M - 1)

    start = Registers(0, 1)
    return explore((*digits(M), "+", "-", "*"), start, step, lambda state: (state.sum + state.term) % M)


_MOD_ARITH: dict[str, Callable[[int], MooreMachine]] = {
    "sink": lambda M: _expressions(M, "sink"),
    "ignore": lambda M: _expressions(M, "ignore"),
    "running": lambda M: _expressions(M, "running"),
    "operator": _pending_operator,
    "eager": _adding_at_once,
    "register": _two_registers,
}
