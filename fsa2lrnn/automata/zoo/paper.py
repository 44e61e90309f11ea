"""The tasks of the paper: Sum(M), EvenPair(M), ModArith(M), and the subtraction of its Propositions 1 and 2.

The digits are the letters "0" … "M−1", so that a word can be written as one string while M ≤ 10.
"""

# M is the paper's name, not a constant.
# pyright: reportConstantRedefinition=false

from __future__ import annotations

from collections.abc import Callable, Hashable

from fsa2lrnn.automata.explore import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, digits, one_of, within_budget

_Expression = tuple[str, int, int, Hashable]  # what came last, s, t, output


def sum_mod(M: int) -> MooreMachine:
    """Sum(M): the sum of the digits so far, modulo M.

    The plainest group task (Z_M): every letter permutes the states, and one wrong addition spoils everything after it.
    Minimal with M states. Sum(2) is parity.

    >>> sum_mod(5).transduce("0324")
    [0, 3, 0, 4]
    """
    M = at_least(2, "sum_mod", "M", M, "modulo 1 every sum is 0")
    within_budget(f"sum_mod({M})", M, M)
    value: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}
    return explore(digits(M), 0, lambda total, letter: (total + value[letter]) % M, lambda total: total)


def even_pair(M: int) -> MooreMachine:
    """EvenPair(M): 1 if the last letter equals the first, else 0.

    Here because it asks for the opposite of Sum: remember one letter for ever, forget all the others. Aperiodic.
    Minimal with 2M + 1 states (11 for M = 5): the first letter, whether the last one equals it, and the start. The
    empty word has neither letter and gives 0, so that the outputs stay {0, 1} as in the paper.

    >>> even_pair(5).transduce("0320")
    [1, 0, 0, 1]
    """
    M = at_least(2, "even_pair", "M", M, "with one letter the first always equals the last")
    within_budget(f"even_pair({M})", 2 * M + 1, M)

    def step(state: tuple[Hashable, Hashable], letter: Hashable) -> tuple[Hashable, Hashable]:
        first = letter if state[0] is None else state[0]
        return first, "same" if letter == first else "other"

    start: tuple[Hashable, Hashable] = (None, "other")
    return explore(digits(M), start, step, lambda state: int(state[1] == "same"))


def mod_arith(M: int, completion: str = "sink") -> MooreMachine:
    """ModArith(M): the value modulo M of an expression of digits with +, − and ×, × binding tighter.

    The paper gives strings of odd length, digits and operators in turn, and looks at the output after a digit. There
    all machines below agree. What happens elsewhere is free, and the choice decides the size and the algebra:

    | completion | minimal states | M = 5 | beyond legal expressions |
    |---|---|---|---|
    | "sink" | 2M² + 1 | 51 | an illegal letter leads to an absorbing state with output "error"; no value yet is None |
    | "ignore" | 2M² | 50 | an illegal letter changes nothing; no value yet is None |
    | "running" | 2M² + 2M + 1 | 61 | as "sink", but after an operator the value so far, 0 at the start |
    | "operator" | 3M² | 75 | an operator replaces the one that waits, a digit applies it; the value so far, always |
    | "register" | M² | 25 | + and − do s ← s + t, t ← ±1; a digit d does t ← t·d; × nothing; s + t, always |

    "No value yet" means the start and after an operator. For M = 2, where − is +, "running" has 11 and "operator" 8.
    All hold the group of addition and, for M > 2, that of the units modulo M, beside resets: neither group nor
    aperiodic. State labels: (what came last, s, t, output), s the sum of the finished terms, t the current term or,
    after an operator, its sign and factors so far; (operator, term, sum) for "operator"; (s, t) for "register".
    Multiplication may be written *, × or ·.

    >>> mod_arith(5).transduce("1+2-3×4")
    [1, None, 3, None, 0, None, 1]
    >>> mod_arith(5).run("1++") == mod_arith(5).run("12+"), mod_arith(5).transduce("1++")
    (True, [1, None, 'error'])
    >>> {c: mod_arith(5, c).minimise().n_states for c in ("sink", "ignore", "running", "operator", "register")}
    {'sink': 51, 'ignore': 50, 'running': 61, 'operator': 75, 'register': 25}
    """
    M = at_least(2, "mod_arith", "M", M, "modulo 1 every value is 0")
    one_of(_MOD_ARITH, "mod_arith", "completion", completion)
    within_budget(f"mod_arith({M})", 3 * M * M, M + 3)
    return _MOD_ARITH[completion](M)


def subtraction(M: int, completion: str = "sink") -> MooreMachine:
    """The value modulo M of a chain of subtractions d − d − … − d: the machine of the paper's Propositions 1 and 2.

    "0-1" and "1-0" differ in value, yet after the prefix "0-" the two words lead to one state, since 0 − 0 − 1 =
    0 − 1 − 0. No input-independent layer and no diagonal one can do both. Completions as for `mod_arith`: "sink"
    (minimal with 2M + 2 states, 12 for M = 5) or "ignore" (2M + 1); one state less for M = 2, where − is +. Contains
    Z_M; neither group nor aperiodic. State labels: (what came last, value, the sign of the next digit).

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

    def step(state: tuple[str, int, int], letter: Hashable) -> tuple[str, int, int]:
        last, value, sign = state
        if last == "operator" and letter in number:
            return "digit", (value + sign * number[letter]) % M, -1
        if last == "digit" and letter not in number:
            return "operator", value, -1
        return state if completion == "ignore" else ("error", 0, 0)

    outputs: dict[str, Callable[[int], Hashable]] = {
        "digit": lambda value: value,
        "operator": lambda _: None,
        "error": lambda _: "error",
    }
    return explore((*digits(M), "-"), ("operator", 0, 1), step, lambda state: outputs[state[0]](state[1]))


def _expressions(M: int, completion: str) -> MooreMachine:
    """ModArith by its grammar: digits and operators in turn."""
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: _Expression, letter: Hashable) -> _Expression:
        last, s, t, _ = state
        if last == "operator" and letter in number:
            t = t * number[letter] % M
            return "digit", s, t, (s + t) % M
        if last == "digit" and letter not in number:
            shown = (s + t) % M if completion == "running" else None
            if letter == "*":
                return "operator", s, t, shown
            return "operator", (s + t) % M, 1 if letter == "+" else M - 1, shown
        return state if completion == "ignore" else ("error", 0, 0, "error")

    start: _Expression = ("operator", 0, 1, 0 if completion == "running" else None)
    return explore((*digits(M), "+", "-", "*"), start, step, lambda state: state[3])


def _pending_operator(M: int) -> MooreMachine:
    """ModArith with the operator kept until its digit comes."""
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: tuple[Hashable, int, int], letter: Hashable) -> tuple[Hashable, int, int]:
        operator, term, total = state
        if letter not in number:
            return letter, term, total
        if operator == "*":
            return operator, term * number[letter] % M, total
        return operator, (number[letter] if operator == "+" else -number[letter]) % M, (total + term) % M

    start: tuple[Hashable, int, int] = ("+", 0, 0)
    return explore((*digits(M), "+", "-", "*"), start, step, lambda state: (state[1] + state[2]) % M)


def _two_registers(M: int) -> MooreMachine:
    """ModArith in the fewest states: every letter a map of (s, t) by itself."""
    number: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(M))}

    def step(state: tuple[int, int], letter: Hashable) -> tuple[int, int]:
        s, t = state
        if letter == "*":
            return state
        return (s, t * number[letter] % M) if letter in number else ((s + t) % M, 1 if letter == "+" else M - 1)

    return explore((*digits(M), "+", "-", "*"), (0, 1), step, lambda state: (state[0] + state[1]) % M)


_MOD_ARITH: dict[str, Callable[[int], MooreMachine]] = {
    "sink": lambda M: _expressions(M, "sink"),
    "ignore": lambda M: _expressions(M, "ignore"),
    "running": lambda M: _expressions(M, "running"),
    "operator": _pending_operator,
    "register": _two_registers,
}
