r"""Read regular expressions in the syntax of Python's `re`, with operators of automata-lib, positions and limits.

An expression matches whole words over its alphabet, as `re.fullmatch` with `re.DOTALL` does. Its syntax is:

============================  ========================================================================================
``ab``, ``a|b``               concatenation, union (binding weakest, with ``&`` and ``^``, from the left)
``a*`` ``a+`` ``a?``          any number, at least one, at most one
``a{2,3}``                    counted: also ``{2}``, ``{2,}``, ``{,3}``, ``{,}``
``a*?`` ``a{2,3}?``           lazy quantifiers: the language is that of ``a*``, ``a{2,3}``
``a&b``, ``a^b``              intersection, shuffle (the letters of both, interleaved): letters in `re`, so noted
``(ab)``, ``()``              a group, the empty word; also ``(?:ab)``, ``(?P<name>ab)`` and the comment ``(?#…)``
``.``                         any letter of the alphabet, a line end too
``[a-c]``, ``[^a]``           one of these letters, one of the others in the alphabet
``\d`` ``\w`` ``\s``          digits, word characters, white space: those of ASCII, and others in the alphabet
``\D`` ``\W`` ``\S``          the other letters of the alphabet
``\*``                        the letter ``*``; so for every sign above
``\n`` ``\x41`` ``\u00e9``    letters by name or number: also ``\a \f \r \t \v``, ``\U…``, ``\N{…}``, ``\0``, ``\101``
============================  ========================================================================================

A space is a letter. Every other construct of `re` is refused by name: anchors, back-references, look-around, flags,
atomic and conditional groups, possessive quantifiers. So are ``{`` ``}`` ``]`` ``$`` ``ε`` ``λ`` as
letters without ``\``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from fsa2lrnn.automata.formats.graph import (
    EPSILON,
    MAX_TABLE_ENTRIES,
    Edge,
    LabelledGraph,
    Problems,
    State,
    in_natural_order,
    to_machine,
)
from fsa2lrnn.automata.formats.thompson import Nfa, Part
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, SourceWarning, check_type

MAX_LENGTH = 20_000  # characters
MAX_LETTERS = 10_000  # over all classes such as [a-z]
MAX_MEMBERS = 300_000  # letters of the alphabet in all classes: of [^a], [^b], … each has almost all

_LETTER = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|%s|.)"
_TOKEN = re.compile(
    r"(?P<comment>\(\?\#[^)]*+\))|(?P<open>\((?:\?:|\?P<[^>)]*>|(?!\?)))|(?P<refused>\(\?(?:\([^)]*\)|P.|<.|.)?)"
    r"|(?P<close>\))|(?P<infix>[|&^])"
    r"|(?P<repeat>[*+?]|\{(?:[0-9]+|(?P<low>[0-9]*),(?P<high>[0-9]*))\})(?P<mode>[?+]?)"
    r"|(?P<set>\[\^?+\]?+(?:\\.|[^\]\\])*+\]|\.|\\[dDsSwW])"
    rf"|(?P<escape>{_LETTER % '0[0-7]{0,2}|[1-7][0-7]{2}|[1-9][0-9]?'})|(?P<letter>.)",
    re.DOTALL,
)
_ITEM = rf"{_LETTER % '[0-7]{1,3}'}|."
_RANGE = re.compile(rf"({_ITEM})(?:-({_ITEM}))?", re.DOTALL)  # of a class: a letter or a shorthand, or two letters

_WHOLE = "words are matched whole, so no anchor is needed"
_REFUSED = {
    "(?=": "look-ahead: name the words that are meant, perhaps by the intersection &",
    "(?!": "look-ahead: name the words that are meant, perhaps by the intersection &",
    "(?<=": "look-behind: name the words that are meant, perhaps by the intersection &",
    "(?<!": "look-behind: name the words that are meant, perhaps by the intersection &",
    "(?<": "not a group of re: write (?P<name>…) or (…)",
    "(?>": "an atomic group, which gives no letter back: write (…) if all ways to match are meant",
    "(?(": "a conditional group: write both cases with |",
    "(?P=": "a back-reference, which no finite automaton can follow: write out the words that are meant",
    "(?#": "a comment without its end: add )",
    "(?P>": "a recursive group, which no finite automaton can follow: write it out to a depth",
    "\\A": f"an anchor: {_WHOLE}",
    "\\Z": f"an anchor: {_WHOLE}",
    "\\z": f"an anchor: {_WHOLE}",
    "\\b": "a word boundary: write out where one is needed; \\x08 is the letter backspace",
    "\\B": "the opposite of a word boundary: write out where none is needed",
}
_NOT_LETTERS = {
    "$": f"{_WHOLE}; write \\$ for the letter",
    "ε": "write () for the empty word, \\ε for the letter",
    "λ": "write () for the empty word, \\λ for the letter",
    "{": "it opens no counted repetition such as {2,3}; write \\{ for the letter",
    "}": "it closes no counted repetition such as {2,3}; write \\} for the letter",
    "[": "it opens no class such as [a-c]; write \\[ for the letter",
    "]": "it closes no class such as [a-c]; write \\] for the letter",
    "\\": "nothing follows that it could mark; write \\\\ for the letter",
}
_OPERATORS = {"&": "the intersection of both sides", "^": "the shuffle of both sides"}
_SHORTHANDS = {"\\d": "0123456789", "\\s": " \t\n\r\f\v"}
_SHORTHANDS["\\w"] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_" + _SHORTHANDS["\\d"]


@dataclass(frozen=True)
class _Piece:
    """A token with its kind (the name of a group of `_TOKEN`), its position from 0, and the letters that it names."""

    kind: str
    text: str
    position: int
    letters: str = ""
    bounds: tuple[int, int | None] = (0, None)

    def __str__(self) -> str:
        return f"{self.text[:40]!r} at position {self.position + 1}"


def from_regex(regex: str, alphabet: Iterable[Hashable] | None = None) -> MooreMachine:
    """Return the minimal acceptor of a regular expression in the syntax of this module.

    Args:
        alphabet: letters of one character each, in order; by default those of the expression, in natural order. `.` and
            `[^a]` refer to them.

    Raises:
        InvalidMachine: if the expression cannot be parsed, with the position of each fault, or the alphabet is empty or
            lacks a letter.
        BudgetExceeded: if the expression or its automaton is beyond the limits of this module.

    A `SourceWarning` names each operator `&` and `^`, which are letters in `re`.

    >>> from_regex("(ab)*").transduce("abab")
    [False, True, False, True]
    >>> from_regex("a.", alphabet="abc").alphabet
    ('a', 'b', 'c')
    """
    check_type(regex, str, "regex", "the text of a regular expression")
    origin = f"regex {regex!r}" if len(regex) <= 200 else f"regex {regex[:200]!r}…"
    if len(regex) > MAX_LENGTH:
        raise BudgetExceeded(
            f"{origin} has {len(regex):,} characters, the limit is {MAX_LENGTH:,}: write the automaton to a file"
        )
    problems = Problems(origin)
    pieces = _pieces(regex, problems)
    symbols = in_natural_order("".join(p.letters for p in pieces)) if alphabet is None else tuple(alphabet)
    letters = list(map(str, symbols))
    if bad := [symbol for symbol, letter in zip(symbols, letters, strict=True) if len(letter) != 1]:
        raise InvalidMachine(
            f"{origin}: letter {bad[0]!r} of the alphabet is not one character, and a regular expression has no other "
            "letters: rename it, or write the automaton to a file"
        )
    if len(set(letters)) < len(letters):
        raise InvalidMachine(f"{origin}: two letters of the alphabet {symbols} have the same text: rename one")
    members = _members(pieces, letters, problems)
    class_of, labels = _classes(letters, members)
    nfa = Nfa(origin)
    part, without_words = _parsed(pieces, labels, nfa, problems)
    problems.check()
    graph = LabelledGraph(
        "acceptor",
        tuple(State(q, q, q == part.final) for q in range(nfa.n_states)),
        ((part.start, None),),
        tuple(Edge(source, EPSILON if label < 0 else label, target) for source, label, target in nfa.edges),
        tuple(dict.fromkeys(class_of)),
        origin,
        may_be_empty=True,
    )
    minimal = minimise(to_machine(graph))
    if minimal.n_states * len(symbols) > MAX_TABLE_ENTRIES:
        raise BudgetExceeded(
            f"{origin}: {minimal.n_states:,} states and {len(symbols):,} letters make a table of more than "
            f"{MAX_TABLE_ENTRIES:,} entries: map the letters to fewer"
        )
    for sign, name in _OPERATORS.items():
        if used := [piece for piece in pieces if piece.kind == "infix" and piece.text == sign]:
            piece = next((piece for piece in used if piece in without_words), used[0])
            empty = ", and no word is on both" if piece in without_words else ""
            note = f"{origin}: {piece} is {name}{empty}; write \\{sign} for the letter"
            warnings.warn(note, SourceWarning, stacklevel=2)
    return MooreMachine(minimal.delta[class_of], minimal.outputs, minimal.start, symbols)


def _pieces(regex: str, problems: Problems) -> list[_Piece]:
    """Return the tokens of an expression without comments; a fault ends none but an unclosed class."""
    pieces: list[_Piece] = []
    named: dict[str, str] = {}  # letters of each class
    groups = set[str]()
    for match in _TOKEN.finditer(regex):
        kind, text, position = str(match.lastgroup), match.group(), match.start()
        piece = _Piece(kind, text, position)
        if kind == "comment":
            continue
        if kind == "mode":  # a quantifier, by its last group
            piece = _Piece("repeat", text, position, bounds=_bounds(match))
            low, high = piece.bounds
            if match["mode"] == "+":
                problems.add(f"{piece} is possessive, it gives no letter back: write {text[:-1]} if all ways are meant")
            elif high is not None and high < low:
                problems.add(f"{piece} has its bounds reversed: write {{{match['high']},{match['low']}}}")
        elif kind == "open" and len(text) > 3:
            if _error_of_re(f"{text})") or text in groups:
                problems.add(f"{piece} has no valid name, or that of another group: write (…)")
            groups.add(text)
        elif kind == "refused":
            name = next((name for start, name in _REFUSED.items() if text.startswith(start)), None)
            problems.add(f"{piece} is {name or 'a flag or an unknown group: leave it out, write [aA] for both cases'}")
            piece = _Piece("open", text, position)
        elif kind == "set" and text != ".":
            if text not in named:
                named[text] = _named(piece, sum(map(len, named.values())), problems)
            piece = _Piece("set", text, position, named[text])
        elif kind == "escape":
            if fault := _escape_fault(text):
                problems.add(f"{piece} is {fault}")
                piece = _Piece("set", text, position)
            else:
                piece = _Piece("letter", text, position, _letter(text))
        elif kind == "letter":
            piece = _Piece("set" if text in _NOT_LETTERS else "letter", text, position, text)
            if text in _NOT_LETTERS:
                problems.add(f"{piece} is not a letter: {_NOT_LETTERS[text]}")
        if any("\ud800" <= letter <= "\udfff" for letter in piece.letters):
            problems.add(f"{piece} names half a character, which UTF-8 does not have: write the whole character")
        pieces.append(piece)
        if text == "[":
            break  # all that follows could be meant as its letters
    return pieces


def _bounds(match: re.Match[str]) -> tuple[int, int | None]:
    """Return the bounds of a quantifier; None is infinite, and numbers are cut to nine digits, beyond all limits."""
    signs = {"*": (0, None), "+": (1, None), "?": (0, 1)}
    if (text := match["repeat"]) in signs:
        return signs[text]
    if match["low"] is None:
        times = int(text[1:-1].lstrip("0")[:9] or 0)
        return times, times
    low, high = (int(match[name].lstrip("0")[:9] or 0) for name in ("low", "high"))
    return low, high if match["high"] else None


def _error_of_re(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError) as fault:
        return str(getattr(fault, "msg", fault))
    return ""


def _escape_fault(text: str) -> str:
    if text in _REFUSED:
        return _REFUSED[text]
    if text[1] in "123456789" and len(text) < 4:
        return "a back-reference, which no finite automaton can follow: write out the words that are meant"
    if error := _error_of_re(text):
        return f"not an escape ({error}): write \\\\ for the letter \\, \\x41 for a letter by its number"
    return ""


def _letter(text: str) -> str:
    if len(text) == 1:
        return text
    return text.encode().decode("unicode_escape") if text[1] in "abfnrtvxuUN01234567" else text[1:]


def _named(piece: _Piece, before: int, problems: Problems) -> str:
    """Return the letters that a class names, those after ^ included, so that they are letters of the alphabet."""
    text = piece.text
    if text in _SHORTHANDS or text.startswith("\\"):
        return _SHORTHANDS.get(text, "")
    body = text[2 if text.startswith("[^") else 1 : -1]
    if re.search(r"^\[|--|&&|\|\||~~", re.sub(r"\\.", "  ", body, flags=re.DOTALL)):
        problems.add(f"{piece} may be a set operation or a POSIX class, which re has not: write \\ before [ - & | ~")
    elif error := _error_of_re(text):
        problems.add(f"{piece} is not a class ({error}): write [a-z] from the smaller letter, \\ before [ ] - ^")
    else:
        ranges = [(first, last or first) for first, last in _RANGE.findall(body)]
        ends = [(first, last) for first, last in ranges if first[-1] not in "dDsSwW" or len(first) != 2]
        codes = [(ord(_letter(first)), ord(_letter(last))) for first, last in ends]
        if before + sum(last - first + 1 for first, last in codes) > MAX_LETTERS:
            raise BudgetExceeded(
                f"{problems.origin} names more than {MAX_LETTERS:,} letters in classes: narrow {piece}, or map the "
                "letters to fewer"
            )
        shorthands = (_SHORTHANDS.get(first, "") for first, _ in ranges)
        return "".join(map(chr, (c for first, last in codes for c in range(first, last + 1)))) + "".join(shorthands)
    return ""


def _members(pieces: list[_Piece], letters: list[str], problems: Problems) -> dict[str, list[str]]:
    """Return the letters of the alphabet that each letter or class stands for, by the text of the piece."""
    text, alphabet, members = "".join(letters), set(letters), dict[str, list[str]]()
    size = 0
    for piece in pieces:
        if piece.kind == "letter" and piece.letters not in alphabet:
            problems.add(f"letter {piece} is not in the alphabet {tuple(sorted(letters))}: add it there")
        elif piece.kind == "letter":
            members[piece.text] = [piece.letters]
        elif piece.kind == "set" and not problems.all:
            if piece.text not in members:
                members[piece.text] = re.findall(piece.text, text, re.DOTALL)
                size += len(members[piece.text])
            if not members[piece.text]:
                problems.add(f"{piece} stands for no letter: give the alphabet, which is {tuple(sorted(letters))} here")
        if size > MAX_MEMBERS:
            raise BudgetExceeded(
                f"{problems.origin}: classes stand for more than {MAX_MEMBERS:,} letters in all: map the letters to "
                "fewer"
            )
    return members


def _classes(letters: list[str], members: dict[str, list[str]]) -> tuple[list[int], dict[str, list[int]]]:
    """Return the class of each letter, and the classes in each piece; no piece tells the letters of a class apart."""
    pieces_of: dict[str, list[str]] = {letter: [] for letter in letters}
    for text, letters_of_piece in members.items():
        for letter in letters_of_piece:
            pieces_of[letter].append(text)
    number: dict[tuple[str, ...], int] = {}
    class_of = {letter: number.setdefault(tuple(texts), len(number)) for letter, texts in pieces_of.items()}
    return list(class_of.values()), {text: sorted({class_of[c] for c in found}) for text, found in members.items()}


@dataclass
class _Level:
    """An open parenthesis (or the whole expression), what stands before the last operator, and the parts after it."""

    opening: _Piece | None = None
    left: Part | None = None
    operator: _Piece | None = None
    parts: list[Part] = field(default_factory=list[Part])


def _parsed(
    pieces: list[_Piece], labels: dict[str, list[int]], nfa: Nfa, problems: Problems
) -> tuple[Part, set[_Piece]]:
    """Return the automaton of an expression and its operators that leave no word, or add its faults.

    Parts are built in the order of the pieces, as `Nfa` repeats and combines those that were built last.
    """
    levels, without_words = [_Level()], set[_Piece]()

    def folded(level: _Level) -> Part:
        operator = level.operator
        if operator is not None and operator.text in _OPERATORS and not level.parts:
            problems.add(f"{operator} has nothing after it: write () for no letter")
        part = nfa.concatenation(level.parts)
        if level.left is None or operator is None:
            return part
        if operator.text == "|":
            return nfa.union(level.left, part)
        part = nfa.product(level.left, part, operator.text == "&")
        if nfa.is_empty(part):
            without_words.add(operator)
        return part

    before: _Piece | None = None
    for piece in pieces:
        level = levels[-1]
        if piece.kind in ("letter", "set"):
            level.parts.append(nfa.letters(labels.get(piece.text, [])))
        elif piece.kind == "open":
            levels.append(_Level(piece))
        elif piece.kind == "repeat":
            if not level.parts:
                problems.add(f"{piece} has nothing before it: write () for no letter")
            elif before is not None and before.kind == "repeat":
                problems.add(f"{piece} repeats a repetition: put {before} and what it repeats in parentheses")
            else:
                level.parts.append(nfa.repetition(level.parts.pop(), *piece.bounds))
        elif piece.kind == "infix":
            if piece.text in _OPERATORS and not level.parts:
                remedy = _WHOLE if piece.text == "^" else "write () for no letter"
                problems.add(f"{piece} has nothing before it: {remedy}")
            level.left, level.operator, level.parts = folded(level), piece, []
        elif len(levels) == 1:
            problems.add(f"{piece} closes no parenthesis: remove it, or write \\) for the letter")
        else:
            part = folded(levels.pop())
            levels[-1].parts.append(part)
        before = piece
    for level in levels[1:]:
        problems.add(f"{level.opening} is not closed: add ), or write \\( for the letter")
    return folded(levels[0]), without_words
