r"""Read regular expressions by automata-lib, with an alphabet, positions in messages and limits.

An expression matches whole words, without anchors. Its syntax is:

=====================  ==============================================================================================
``ab``, ``a|b``        concatenation, union (binding weakest, with ``&`` and ``^``, from the left)
``a*`` ``a+`` ``a?``   any number, at least one, at most one
``a{2,3}``             counted: also ``{2}``, ``{2,}``, ``{,3}``
``a&b``, ``a^b``       intersection, shuffle (the letters of both, interleaved)
``()``                 the empty word
``.``                  any letter of the alphabet
``[a-c]``, ``[^a]``    one of these letters, one of the others in the alphabet
``\d`` ``\w`` ``\s``      digits, word characters, white space; ``\D`` ``\W`` ``\S`` the other letters of the alphabet
``\*``                 the letter ``*``; so for every sign above, and ``\n``, ``\t``
=====================  ==============================================================================================

A space is a letter.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from automata.base.exceptions import AutomatonException, RegexException
from automata.fa.nfa import NFA
from automata.regex import parser, postfix

from fsa2lrnn.automata.formats.assemble import to_machine
from fsa2lrnn.automata.formats.graph import EPSILON, Edge, LabelledGraph, Problem, Problems, State, in_natural_order
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

MAX_LENGTH = 20_000  # characters; the parser tries some twenty patterns at each
MAX_LETTERS = 10_000  # over all classes such as [a-z]
MAX_NFA_STATES = 20_000  # counted repetitions multiply when nested: ((a{99}){99}){99} would be a million states
MAX_NFA_COPIES = 200_000  # states copied on the way; the parser copies the whole operand of each repetition

_untyped: Any = parser  # its lexer is generic without arguments

_NOT_LETTERS = {
    "$": "words are matched whole, so no anchor is needed; write \\$ for the letter",
    "ε": "write () for the empty word, \\ε for the letter",
    "{": "it opens no counted repetition such as {2,3}; write \\{ for the letter",
    "}": "it closes no counted repetition such as {2,3}; write \\} for the letter",
    "[": "it opens no class such as [a-c]; write \\[ for the letter",
    "]": "it closes no class such as [a-c]; write \\] for the letter",
    "\\": "nothing follows that it could mark; write \\\\ for the letter",
}


@dataclass(frozen=True)
class _RegexPiece:
    """A token of automata-lib with its text and its position, from 0."""

    text: str
    position: int
    token: Any

    def is_a(self, kind: type) -> bool:
        return isinstance(self.token, kind)

    @property
    def letters(self) -> frozenset[str]:
        """The letters that the token names; `.` and the shorthands name those passed to the lexer."""
        if isinstance(self.token, parser.StringToken):
            return frozenset(self.token.text)
        if isinstance(self.token, parser.CharacterClassToken):
            return frozenset(self.token.class_chars)
        return frozenset(getattr(self.token, "input_symbols", ()))

    def __str__(self) -> str:
        return f"{self.text!r} at position {self.position + 1}"


def from_regex(regex: str, alphabet: Iterable[Hashable] | None = None) -> MooreMachine:
    """Return the minimal acceptor of a regular expression in the syntax of this module.

    Args:
        alphabet: letters of one character each, in order; by default those of the expression, in natural order. `.` and
            `[^a]` refer to them.

    Raises:
        InvalidMachine: if the expression cannot be parsed, with the position of each fault, or the alphabet is empty or
            lacks a letter.
        BudgetExceeded: if the expression or its automaton is beyond the limits of this module.

    >>> from_regex("(ab)*").transduce("abab")
    [False, True, False, True]
    >>> from_regex("a.", alphabet="abc").alphabet
    ('a', 'b', 'c')
    """
    origin = f"regex {regex!r}" if len(regex) <= 200 else f"regex {regex[:200]!r}…"
    if len(regex) > MAX_LENGTH:
        raise BudgetExceeded(
            f"{origin} has {len(regex):,} characters, the limit is {MAX_LENGTH:,}: write the automaton to a file"
        )
    if alphabet is None:
        symbols = in_natural_order(frozenset[str]().union(*(piece.letters for piece in _pieces(regex, (), origin))))
    else:
        symbols = tuple(alphabet)
    letters = list(map(str, symbols))
    if bad := [letter for letter in symbols if len(str(letter)) != 1]:
        raise InvalidMachine(
            f"{origin}: letter {bad[0]!r} of the alphabet is not one character, and a regular expression has no other "
            "letters: rename it, or write the automaton to a file"
        )
    pieces = _pieces(regex, letters, origin)
    faults = map(Problem, _faults(pieces, frozenset(letters), declared=alphabet is not None))
    Problems(origin, faults).check()
    _check_size(pieces, origin)
    try:
        nfa = NFA.from_regex(regex, input_symbols=frozenset(letters))
    except (AutomatonException, RegexException) as fault:
        raise InvalidMachine(f"{origin}: {fault}; correct the expression") from None
    # automata-lib adds the letters of every class to the alphabet given; transitions on those lead nowhere here.
    symbol_of = {"": EPSILON, **dict(zip(letters, symbols, strict=True))}
    graph = LabelledGraph(
        "acceptor",
        tuple(State(q, q, q in nfa.final_states) for q in sorted(nfa.states)),
        ((nfa.initial_state, None),),
        tuple(
            Edge(source, symbol_of[letter], target)
            for source, paths in nfa.transitions.items()
            for letter, targets in paths.items()
            if letter in symbol_of
            for target in targets
        ),
        symbols,
        origin,
        may_be_empty=True,
    )
    minimal = minimise(to_machine(graph))
    return MooreMachine(minimal.delta, minimal.outputs, minimal.start, minimal.alphabet)


def _pieces(regex: str, letters: Iterable[str], origin: str) -> list[_RegexPiece]:
    lexer: Any = _untyped.get_regex_lexer(frozenset(letters), count())
    pieces: list[_RegexPiece] = []
    position, named = 0, 0
    while position < len(regex):
        token = lexer.tokens.get_token(regex, position)
        if token is None:
            raise InvalidMachine(
                f"{origin}: {regex[position]!r} at position {position + 1} is not a letter: write white space other "
                "than a blank as \\n or \\t"
            )
        make, match = token
        _check_letters(named + _span(match.group()) - len(regex), f"{match.group()[:40]!r}", origin)
        try:
            token = make(match)
        except (RegexException, ValueError) as fault:
            raise InvalidMachine(
                f"{origin}: {match.group()[:40]!r} at position {position + 1}: {str(fault)[:200]}"
            ) from None
        pieces.append(_RegexPiece(match.group(), position, token))
        named += len(token.class_chars) if isinstance(token, parser.CharacterClassToken) else 1
        _check_letters(named - len(regex), str(pieces[-1]), origin)
        position = match.end()
    return pieces


def _span(text: str) -> int:
    """Return a lower bound on the number of letters in the ranges of a class, since one can span all of Unicode."""
    if not text.startswith("["):
        return 0
    ends = re.findall(r"(?=(.)-\\?(.))", text, re.DOTALL)
    return sum(max(0, ord(last) - ord(first)) for first, last in ends)


def _check_letters(named: int, where: str, origin: str) -> None:
    if named > MAX_LETTERS:
        raise BudgetExceeded(
            f"{origin} names more than {MAX_LETTERS:,} letters in classes: narrow {where}, or map the letters to fewer"
        )


def _faults(pieces: list[_RegexPiece], letters: frozenset[str], declared: bool) -> Iterator[str]:
    unclosed: list[_RegexPiece] = []
    before: _RegexPiece | None = None
    for piece in pieces:
        is_infix = before is not None and before.is_a(postfix.InfixOperator)
        opens = before is None or is_infix or before.is_a(postfix.LeftParen)
        if opens and (piece.is_a(postfix.InfixOperator) or piece.is_a(postfix.PostfixOperator)):
            remedy = "no anchor is needed, words are matched whole" if piece.text == "^" else "write () for no letter"
            yield f"{piece} has nothing before it: {remedy}"
        if piece.is_a(postfix.LeftParen):
            unclosed.append(piece)
        elif piece.is_a(postfix.RightParen):
            if is_infix:
                yield f"{before} has nothing after it: write () for no letter"
            if not unclosed:
                yield f"{piece} closes no parenthesis: remove it, or write \\) for the letter"
            else:
                unclosed.pop()
        yield from _piece_faults(piece, letters, declared)
        before = piece
    if before is not None and before.is_a(postfix.InfixOperator):
        yield f"{before} has nothing after it: write () for no letter"
    for piece in unclosed:
        yield f"{piece} is not closed: add ), or write \\( for the letter"


def _piece_faults(piece: _RegexPiece, letters: frozenset[str], declared: bool) -> list[str]:
    if isinstance(piece.token, parser.StringToken):
        if piece.text in _NOT_LETTERS:
            return [f"{piece} is not a letter: {_NOT_LETTERS[piece.text]}"]
        if declared and not piece.letters <= letters:
            return [f"letter {piece} is not in the alphabet {tuple(sorted(letters))}: add it there"]
    elif isinstance(piece.token, parser.QuantifierToken) and piece.token.upper_bound == 0:
        # automata-lib 9.2 reads x{0} as x?
        return [f"{piece} repeats nothing: write () in place of the repetition"]
    elif isinstance(piece.token, parser.CharacterClassToken | parser.WildcardToken):
        negated = isinstance(piece.token, parser.CharacterClassToken) and piece.token.negated
        if not (letters - piece.letters if negated else letters & piece.letters):
            return [f"{piece} stands for no letter: give the alphabet, which is {tuple(sorted(letters))} here"]
    return []


def _check_size(pieces: list[_RegexPiece], origin: str) -> None:
    """Raise `BudgetExceeded` if automata-lib would build too large an automaton, computed from its constructions."""
    tokens: list[Any] = _untyped.add_concat_and_empty_string_tokens([piece.token for piece in pieces], count())
    sizes: list[int] = []
    copies = 0
    for token in postfix.tokens_to_postfix(tokens):
        if isinstance(token, postfix.InfixOperator):
            right, left = sizes.pop(), sizes.pop()
            multiplies = isinstance(token, parser.IntersectionToken | parser.ShuffleToken)
            sizes.append(left * right if multiplies else left + right + 1)
            copies += sizes[-1] if multiplies else right
        elif isinstance(token, postfix.PostfixOperator):
            times = 1
            if isinstance(token, parser.QuantifierToken):
                times = max(token.lower_bound, token.upper_bound or 0, 1)
            sizes.append(sizes.pop() * times + 1)
            copies += sizes[-1]
        else:
            sizes.append(2)
        if sizes[-1] > MAX_NFA_STATES or copies > MAX_NFA_COPIES:
            raise BudgetExceeded(
                f"{origin} needs more than {MAX_NFA_STATES:,} nondeterministic states, or copies more than "
                f"{MAX_NFA_COPIES:,} on the way: lower the counts and the nesting, or write the automaton to a file"
            )
