"""Check the arguments of the zoo's tasks; `task` and `name` are those of the task and the argument, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat

MAX_TRANSITIONS = 250_000  # one second of exploring, and 50 MB for a name; larger tables go straight to MooreMachine


def at_least(least: int, task: str, name: str, value: object, why: str = "") -> int:
    """Return `value` as an int; raise `InvalidMachine` unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        reason = f" ({why})" if why else ""
        raise InvalidMachine(f"{task}({name}={value!r}): {name} must be a whole number of at least {least}{reason}")
    return int(value)


def one_of(choices: Iterable[str], task: str, name: str, value: object) -> None:
    """Raise `UnsupportedFormat` unless `value` is one of `choices`."""
    options = tuple(choices)
    if value not in options:
        raise UnsupportedFormat(f"{task}({name}={value!r}): {name} must be one of {', '.join(options)}")


def text(task: str, name: str, value: object) -> str:
    """Return `value` if it is a string; else raise `InvalidMachine`."""
    if not isinstance(value, str):
        raise InvalidMachine(f"{task}({name}={value!r}): {name} must be text: write it in quotes")
    return value


def within_budget(task: str, n_states: int, n_letters: int) -> None:
    """Raise `BudgetExceeded` if the table would have more than 250,000 transitions."""
    if n_states * n_letters > MAX_TRANSITIONS:
        size = f"about {n_states:.3g}" if n_states < 1e300 else "more than 1e+300"  # past the floats, :g fails
        raise BudgetExceeded(
            f"{task} has {size} states and {n_letters:,} letters, above the limit of "
            f"{MAX_TRANSITIONS:,} transitions: choose smaller parameters, or give MooreMachine a table of your own"
        )


def digits(M: int) -> tuple[str, ...]:
    """Return the decimal texts of 0 … M−1, the letters of the arithmetic tasks."""
    return tuple(str(d) for d in range(M))
