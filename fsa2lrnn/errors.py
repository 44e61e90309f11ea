"""The exceptions of the toolkit, by kind.

Every message names the value, the invariant that it breaks and the remedy. All of them share one base, so that
`except Fsa2LrnnError` catches whatever is the user's to mend and nothing that is a fault of ours.
"""


class Fsa2LrnnError(Exception):
    """Base of all errors that input can cause."""


class InvalidMachine(Fsa2LrnnError, ValueError):
    """The data given do not describe a complete deterministic machine."""


class InvalidWord(Fsa2LrnnError, ValueError):
    """A word holds a letter outside the alphabet, or its text can be read in more than one way."""


class UnsupportedFormat(Fsa2LrnnError, ValueError):
    """A source, file or option that no reader or writer of ours understands."""


class NotExpressible(Fsa2LrnnError, ValueError):
    """The wanted parametrisation cannot hold these weights; the message says why, with numbers."""


class NotExact(Fsa2LrnnError, ArithmeticError):
    """Arithmetic that had to be exact was not."""


class BudgetExceeded(Fsa2LrnnError, RuntimeError):
    """A stated limit on memory, states or time was reached before an answer."""


class OutOfTime(BudgetExceeded):
    """A time limit passed before an answer; the message says what was being done."""


class MissingPackage(Fsa2LrnnError, ImportError):
    """An optional package that is needed and not installed; the message holds the line that installs it."""


class CheckpointError(Fsa2LrnnError, ValueError):
    """A weights file that is damaged, foreign, incomplete or newer than this version."""


def shortened(text: str, limit: int = 200) -> str:
    """A text as a message echoes it: its beginning and its end, where it is longer than `limit`.

    >>> shortened("a" * 990 + "b" * 10, 20)
    'aaaaaaaaaa…(980 characters)…bbbbbbbbbb'
    """
    if len(text) <= limit:
        return text
    kept = limit // 2
    return f"{text[:kept]}…({len(text) - 2 * kept:,} characters)…{text[-kept:]}"


def counted(n: int, noun: str) -> str:
    """So many of something, for nouns with a plural in s.

    >>> counted(1, "letter"), counted(12_000, "letter")
    ('1 letter', '12,000 letters')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
