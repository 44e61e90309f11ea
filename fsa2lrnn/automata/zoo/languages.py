"""Acceptors of well-known languages: Tomita's seven, bounded brackets, (ab)* and string matching."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from fsa2lrnn.automata.language import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, text, within_budget
from fsa2lrnn.errors import InvalidMachine

_BRACKETS = ("()", "[]", "{}", "<>")
_REJECTED = "rejected"
_Stack = tuple[Hashable, ...] | str


def tomita(i: int) -> MooreMachine:
    """Return an acceptor of the i-th language of Tomita (1982) over "0" and "1", a common benchmark for learning DFAs.

    | i | accepted | minimal states | |
    |---|---|---|---|
    | 1 | 1* | 2 | aperiodic |
    | 2 | (10)* | 3 | aperiodic |
    | 3 | no run of ones of odd length is followed, at once or later, by a run of zeros of odd length | 5 | neither |
    | 4 | no 000 | 4 | aperiodic |
    | 5 | even number of zeros and even number of ones | 4 | group Z₂ × Z₂ |
    | 6 | number of zeros ≡ number of ones modulo 3 | 3 | group Z₃ |
    | 7 | 0*1*0*1* | 5 | aperiodic |

    Runs are maximal blocks of one letter; the last one ends with the word. Some sources forbid in language 3 only an
    odd run of zeros directly after an odd run of ones; their language contains 100110, this one does not. Raises
    `InvalidMachine` unless i is 1 … 7.

    >>> [tomita(i).minimise().n_states for i in range(1, 8)]
    [2, 3, 5, 4, 4, 3, 5]
    >>> [tomita(3).accepts(word) for word in ("110", "100", "10", "100110")]
    [True, True, False, False]
    """
    if at_least(1, "tomita", "i", i, "Tomita's languages are numbered 1 to 7") > 7:
        raise InvalidMachine(f"tomita(i={i!r}): Tomita's languages are numbered 1 to 7")
    return _TOMITA[i]()


def dyck(k: int, depth: int) -> MooreMachine:
    """Return an acceptor of the well-nested words of k kinds of brackets that are at most `depth` deep.

    This is the Dyck language with a bounded stack. It is aperiodic at any depth: the machine decomposes into a cascade
    of resets only. It is minimal with 1 + k + … + k^depth + 1 states, one per stack and a rejecting sink (16, 32 and 64
    for k = 2 and depth 3, 4 and 5). The letters are ( ) [ ] { } < > for k ≤ 4, else (1 )1 (2 )2 and so on. Labels are
    tuples of open brackets, outermost first, or "rejected".

    >>> dyck(2, 3).n_states, dyck(2, 3).accepts("([])[]"), dyck(2, 3).accepts("([)]")
    (16, True, False)
    """
    k = at_least(1, "dyck", "k", k)
    depth = at_least(1, "dyck", "depth", depth)
    within_budget(f"dyck({k}, {depth})", depth + 2 if k == 1 else k ** min(depth, 64), 2 * k)
    pairs = _BRACKETS[:k] if k <= len(_BRACKETS) else [(f"({j}", f"){j}") for j in range(1, k + 1)]
    opener: dict[Hashable, str] = {closing: opening for opening, closing in pairs}

    def step(stack: _Stack, letter: Hashable) -> _Stack:
        if isinstance(stack, str):
            return stack
        if letter not in opener:
            return (*stack, letter) if len(stack) < depth else _REJECTED
        return stack[:-1] if stack and stack[-1] == opener[letter] else _REJECTED

    start: _Stack = ()
    return explore([bracket for pair in pairs for bracket in pair], start, step, lambda stack: stack == ())


def ab_star() -> MooreMachine:
    """Return an acceptor of (ab)*, a small language that no diagonal layer recognises.

    The machine is aperiodic and minimal with 3 states. From the start, ab leads back to the start and ba to the
    rejecting sink, but diagonal matrices commute (T3 of docs/theory.md).

    >>> ab_star().transduce("abab")
    [False, True, False, True]
    """
    edges = {("start", "a"): "after a", ("after a", "b"): "start"}
    return _by_edges("ab", "start", edges, frozenset({"after a"}))


def contains(pattern: str, letters: str = "ab") -> MooreMachine:
    """Return the string-matching acceptor of Knuth, Morris and Pratt (1977): words with `pattern` as a factor.

    The machine is aperiodic and minimal with |pattern| + 1 states. The state is the longest prefix of the pattern with
    which the word ends, or the pattern once it has occurred. Raises `InvalidMachine` if the pattern is empty or has a
    character outside `letters`.

    >>> contains("aba").transduce("ababb")
    [False, False, True, True, True]
    """
    pattern, letters = text("contains", "pattern", pattern), text("contains", "letters", letters)
    unknown = [c for c in pattern if c not in letters]
    if not pattern or unknown:
        fault = f"{unknown[0]!r} is not among the letters {letters!r}" if unknown else "the pattern is empty"
        raise InvalidMachine(f"contains(pattern={pattern!r}): {fault}: give at least one letter, each of the alphabet")
    within_budget(f"contains({pattern[:20]!r})", len(pattern) ** 2, len(letters))

    def step(seen: str, letter: Hashable) -> str:
        if seen == pattern:
            return seen
        end = seen + str(letter)
        return next(end[i:] for i in range(len(end) + 1) if pattern.startswith(end[i:]))

    return explore(letters, "", step, lambda seen: seen == pattern)


def _no_three_zeros() -> MooreMachine:
    return explore("01", 0, lambda run, a: 3 if run == 3 else (run + 1 if a == "0" else 0), lambda run: run < 3)


def _both_even() -> MooreMachine:
    def step(odd: tuple[int, int], letter: Hashable) -> tuple[int, int]:
        return odd[0] ^ (letter == "0"), odd[1] ^ (letter == "1")

    return explore("01", (0, 0), step, lambda odd: odd == (0, 0))


def _few_blocks() -> MooreMachine:
    def step(block: int, letter: Hashable) -> int:
        return block if block == 4 or letter == "0101"[block] else block + 1

    return explore("01", 0, step, lambda block: block < 4)


def _by_edges(letters: str, start: str, edges: dict[tuple[str, str], str], refused: frozenset[str]) -> MooreMachine:
    return explore(
        letters,
        start,
        lambda state, letter: edges.get((state, str(letter)), _REJECTED),
        lambda state: state != _REJECTED and state not in refused,
    )


_ODD_RUNS = {
    ("calm", "0"): "calm",
    ("calm", "1"): "odd ones",
    ("odd ones", "1"): "calm",
    ("odd ones", "0"): "odd zeros",
    ("odd zeros", "0"): "warned",
    ("warned", "0"): "odd zeros",
    ("warned", "1"): "warned",
}
_TEN_STAR = {("start", "1"): "after 1", ("after 1", "0"): "start"}

_TOMITA: dict[int, Callable[[], MooreMachine]] = {
    1: lambda: explore("01", True, lambda ones, letter: ones and letter == "1", lambda ones: ones),
    2: lambda: _by_edges("01", "start", _TEN_STAR, frozenset({"after 1"})),
    3: lambda: _by_edges("01", "calm", _ODD_RUNS, frozenset({"odd zeros"})),
    4: _no_three_zeros,
    5: _both_even,
    6: lambda: explore("01", 0, lambda d, letter: (d + (1 if letter == "0" else -1)) % 3, lambda d: d == 0),
    7: _few_blocks,
}
