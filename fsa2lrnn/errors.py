"""The exceptions of the library, by kind.

Every message names the value, the invariant that it breaks and the remedy. They share one base: `except Fsa2LrnnError`
catches all errors of the input and none of the library.
"""


class Fsa2LrnnError(Exception):
    """Base of all errors that input can cause."""


class InvalidMachine(Fsa2LrnnError, ValueError):
    """The data do not describe a complete deterministic machine."""


class InvalidWord(Fsa2LrnnError, ValueError):
    """A word contains a letter outside the alphabet, or its text is ambiguous."""


class UnsupportedFormat(Fsa2LrnnError, ValueError):
    """A source, file or option that no reader or writer of this library supports."""


class NotExpressible(Fsa2LrnnError, ValueError):
    """The target parametrisation cannot represent these weights; the message gives the reason with numbers."""


class NotExact(Fsa2LrnnError, ArithmeticError):
    """Arithmetic that had to be exact was not."""


class BudgetExceeded(Fsa2LrnnError, RuntimeError):
    """A stated limit on memory, states or time was reached before an answer."""


class OutOfTime(BudgetExceeded):
    """A time limit passed before an answer; the message names the step."""


class MissingPackage(Fsa2LrnnError, ImportError):
    """An optional package is needed and not installed; the message contains the command that installs it."""


class CheckpointError(Fsa2LrnnError, ValueError):
    """A weights file is damaged, foreign, incomplete or newer than this version."""


def shortened(text: str, limit: int = 200) -> str:
    """Return a text for display in a message: its beginning and end, if it is longer than `limit`.

    >>> shortened("a" * 990 + "b" * 10, 20)
    'aaaaaaaaaa…(980 characters)…bbbbbbbbbb'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}…({len(text) - 2 * half:,} characters)…{text[-half:]}"


def counted(n: int, noun: str) -> str:
    """Return a number with a noun whose plural ends in s.

    >>> counted(1, "letter"), counted(12_000, "letter")
    ('1 letter', '12,000 letters')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
