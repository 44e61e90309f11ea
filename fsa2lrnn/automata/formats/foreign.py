"""Recognise labels that are no letters: probabilities, operations on stacks and tapes, formulas and sets of letters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsa2lrnn.automata.formats.graph import is_epsilon

_FRACTION = r"(?:0?\.[0-9]+|1\.0+)"
_NAME = r"[A-Za-z_0-9\u0080-\uffff]+"
_CODE = r"(?:\\?u[0-9a-fA-F]{4}|0x[0-9a-fA-F]+)"
_POINT = rf"(?:{_CODE}|.)"

_NO_LETTER = r"<(?i:eps|epsilon)>|ε|&epsilon;|Σ"

# Each construct with the pattern of a label that shows it; the first three show in pairs of a letter and an output too.
_CONSTRUCTS = (
    ("a probability", rf"(?:.*[:;(|\[@]\s*)?{_FRACTION}\s*[)\]]?"),
    ("an operation on a stack", r".*/\s*(?:push|pop)\s*[(\[].*"),
    ("a rewriting of a stack or tape", r".*\S\s+(?:->|→|↦|⊢)\s+\S.*|.*\S\s*→\s*\S.*|.+[/;]\s*\S+\s*[,;]\s*[LRNS]"),
    ("a set of letters", r"(?:Σ|∑|Sigma|\\Sigma|other(?=\s*[-−–∖\\]))(?:\s*[-−–∖\\]\s*.+)?|\[\^?.+\]|\{.+[,|].*\}"),
    ("an acceptance mark, for infinite words", r"\{[0-9]\}|[⓿❶-❿]+"),
    ("a range of letters", rf"[0-9]+-[0-9]+|[a-z]-[a-z]|[A-Z]-[A-Z]|{_POINT}\s*-\s*{_CODE}|{_CODE}\s*-\s*{_POINT}"),
    ("a range of letters", r". - .|.\.\.\.?[^.]"),
    ("a formula", rf"[~¬]\s*\S.*|not\s+{_NAME}|.*\S\s*(?:[∧∨∪]|\s[&|]\s|&&|\|\|)\s*\S.*|.*[&|]\s*[!~¬(].*"),
    ("cut short", r".*\S(?:\.\.\.|…)"),
    ("a list that has no letter in it", rf"(?:.*\s)?(?:{_NO_LETTER})(?:\s.*)?"),
    ("a guard or assignment", r".*(?::=|!=|==|<=|>=|\bwhere\b).*|\S+\s+\[.+\]"),
    ("a symbol for other letters", r"@_(?:UNKNOWN|IDENTITY|DEFAULT)_SYMBOL_@|<(?:rho|sigma|phi|dcare)>"),
    ("a flag diacritic", r"@[PNRDCU]\.[^@]+@"),
)
_PATTERNS = [(name, re.compile(pattern, re.DOTALL)) for name, pattern in _CONSTRUCTS]
_LONGEST = 200  # characters of a label that is looked at, since some patterns are quadratic


def foreign(letters: Iterable[str], pairs: Iterable[str] = ()) -> tuple[str, str] | None:
    """Return a label that means no letter, or no pair of a letter and an output, and what it is; None without one.

    >>> foreign(["up", "go:0.75"]), foreign(["a", "!a"]), foreign(["true", "false"]), foreign(["0", "1"])
    (('go:0.75', 'a probability'), ('!a', 'a formula'), None, None)
    """
    letters = dict.fromkeys(letters)
    for labels, patterns in ((dict.fromkeys(pairs), _PATTERNS[:3]), (letters, _PATTERNS)):
        for label in labels:
            for name, pattern in patterns:
                if (
                    (len(label) > 1 or label in "Σ∑⓿❶")
                    and not is_epsilon(label)
                    and pattern.fullmatch(label[:_LONGEST])
                ):
                    return label, name
    for letter in letters:
        if letter.startswith("!") and letter[1:].strip() in letters:
            return letter, "a formula"
        parts = re.split(r"[|+;]", letter)
        if len(parts) > 1 and all(part.strip() in letters for part in parts):
            return letter, "a list of other letters"
    if "true" in letters and "false" not in letters and len(letters) > 1:
        return "true", "a formula"
    if letters and all(re.fullmatch("[01X]+", letter) for letter in letters):
        mixed = next((letter for letter in letters if "X" in letter and set("".join(letters)) & set("01")), None)
        return None if mixed is None else (mixed, "a value that does not matter")
    return None
