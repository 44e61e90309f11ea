"""The exceptions of the library, whose messages name the value, the invariant that it breaks and the remedy.

All derive from `Fsa2LrnnError`: to catch it is to catch every error that input causes, and no defect of the library.
"""

import difflib
from collections.abc import Iterable


class Fsa2LrnnError(Exception):
    """The base class of all errors that input can cause."""


class InvalidMachine(Fsa2LrnnError, ValueError):
    """An error in data that do not describe a complete deterministic machine."""


class InvalidWord(Fsa2LrnnError, ValueError):
    """An error in a word: a letter outside the alphabet, or text that can be read in several ways."""


class UnsupportedFormat(Fsa2LrnnError, ValueError):
    """An error in a source, file or option: the library does not support it."""


class NotExpressible(Fsa2LrnnError, ValueError):
    """The error that a parametrisation cannot represent a machine or weights; the message gives the reason."""


class NotExact(Fsa2LrnnError, ArithmeticError):
    """The error that a computation that has to be exact cannot be."""


class BudgetExceeded(Fsa2LrnnError, RuntimeError):
    """The error that a limit on memory, states or time was reached before an answer."""


class OutOfTime(BudgetExceeded):
    """The error that a time limit passed before an answer; the message names the step."""


class MissingPackage(Fsa2LrnnError, ImportError):
    """The error that an optional package is not installed; the message contains the remedy."""


class CheckpointError(Fsa2LrnnError, ValueError):
    """An error in a weights file: damaged, foreign, incomplete, or of a newer version of the library."""


class MissingFile(Fsa2LrnnError, FileNotFoundError):
    """The error that a file does not exist."""


class SourceWarning(UserWarning):
    """The warning that a source was read, but may not mean what its author meant; the message names the remedy."""


def check_type(value: object, kind: type | tuple[type, ...], name: str, expected: str) -> None:
    """Raise `UnsupportedFormat` for an argument of a wrong type; the message says what is expected.

    >>> check_type("20", int, "max_states", "a whole number")
    Traceback (most recent call last):
        ...
    fsa2lrnn.errors.UnsupportedFormat: max_states = '20' of type str: give a whole number
    """
    if not isinstance(value, kind):
        raise UnsupportedFormat(f"{name} = {shortened(repr(value))} of type {type(value).__name__}: give {expected}")


def meant(name: str, choices: Iterable[str]) -> str:
    """Return a question for a message, with the choice that is nearest to a name or has it as initials; "" for none.

    >>> meant("lr", ["steps", "learning_rate"]), meant("mamba_2", ["mamba-2"]), meant("x", ["steps"])
    ('did you mean learning_rate? ', 'did you mean mamba-2? ', '')
    """
    known = list(choices)
    initials = [choice for choice in known if len(name) > 1 and name == "".join(x[0] for x in choice.split("_") if x)]
    near = initials or difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]}? " if near else ""


def shortened(text: str, limit: int = 200) -> str:
    """Return a text for a message, with its middle left out if it has more than `limit` characters.

    >>> shortened("a" * 990 + "b" * 10, 20)
    'aaaaaaaaaa…(980 characters)…bbbbbbbbbb'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}…({len(text) - 2 * half:,} characters)…{text[-half:]}"


def counted(n: int, noun: str) -> str:
    """Return a number followed by a noun, in the plural (with s) unless the number is 1.

    >>> counted(1, "letter"), counted(12_000, "letter")
    ('1 letter', '12,000 letters')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
