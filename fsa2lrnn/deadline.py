"""Limits of computations: of time, the class that implements every `--max-seconds`, and of work.

Work is counted in multiplications, which do not depend on the CPU or its load.
"""

from __future__ import annotations

import math
import re
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Real
from types import FrameType

from fsa2lrnn.errors import BudgetExceeded, OutOfTime, UnsupportedFormat, check_type

HAS_PASSED = "has passed: give more seconds (--max-seconds)"


@dataclass
class Step:
    """The present step of a long computation, and how often it was begun: what progress lines say.

    >>> step = Step()
    >>> for _ in range(1_200):
    ...     step.at("merging states")
    >>> str(step)
    'merging states (1,200)'
    """

    name: str = ""
    count: int = 0

    def at(self, name: str) -> None:
        """Count a step of this name, from 1 if the last one had another."""
        self.name, self.count = name, self.count + 1 if name == self.name else 1

    def __str__(self) -> str:
        return self.name and f"{self.name} ({self.count:,})"


present = Step()


@dataclass(frozen=True)
class Deadline:
    """A time limit in seconds of processor time, counted from construction; an infinite one never passes.

    A busy machine thus gives the same answer as an idle one. The threads of the process count together. Long loops call
    `check`, or stop when `left()` is negative if they have a partial answer to return.

    >>> Deadline.of(None).left()
    inf
    >>> Deadline(0.0).check("merging states")
    Traceback (most recent call last):
        ...
    fsa2lrnn.errors.OutOfTime: merging states: the limit of 0 s has passed: give more seconds (--max-seconds)
    """

    seconds: float
    whole: float | None = None  # the limit that this is a share of
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begun", time.process_time())

    @classmethod
    def of(cls, seconds: float | Deadline | None) -> Deadline:
        """Return the deadline after `seconds`; raise `UnsupportedFormat` unless this is positive or None (no limit)."""
        if isinstance(seconds, Deadline):
            return seconds
        check_type(0.0 if seconds is None else seconds, Real, "seconds", "a positive number, or None for no limit")
        if seconds is not None and not seconds > 0:
            raise UnsupportedFormat(f"seconds = {seconds}: a time limit is a positive number, or None for no limit")
        return cls(math.inf if seconds is None else seconds)

    def passed(self) -> float:
        """Return the seconds since construction."""
        return time.process_time() - self.begun

    def left(self) -> float:
        """Return the seconds that remain, negative when the time is over."""
        return self.seconds - self.passed()

    def share(self, fraction: float) -> Deadline:
        """Return a deadline for part of the work, after the given fraction of the seconds that remain."""
        return Deadline(fraction * self.left(), self.whole or self.seconds)

    def check(self, what: str) -> None:
        """Raise `OutOfTime` if the time is over, with a message that starts with `what`, the current step."""
        present.at(what)
        if self.left() <= 0:
            share = "" if self.whole is None else f"a share of {max(self.seconds, 0):.3g} s of "
            limit = f"the limit of {self.whole or self.seconds:.3g} s"
            raise OutOfTime(f"{what}: {share}{limit} {HAS_PASSED}")


def without_limits(text: str) -> str:
    """Return a text with each limit and remedy that it quotes from `OutOfTime` replaced by "time limit".

    >>> without_limits("no cascade (holonomy: looking for one: a share of 1 s of the limit of 2 s " + HAS_PASSED + ")")
    'no cascade (holonomy: looking for one: time limit)'
    """
    return _LIMIT.sub("time limit", text)


_LIMIT = re.compile(rf"(?:a share of \S+ s of )?the (?:limit of \S+ s|time limit) {re.escape(HAS_PASSED)}")
NEVER = Deadline(math.inf)

_CURRENT = ContextVar("deadline of the current block", default=NEVER)


@contextmanager
def limited(deadline: Deadline) -> Iterator[None]:
    """Set the deadline that `check_current` tests inside this block, unless an outer block has an earlier one.

    Steps that do not call it, such as those of other packages, are interrupted too, between two instructions of Python:
    in the main thread, where the system has `SIGVTALRM`, a timer calls it once per `TICK` seconds of processor time.

    >>> with limited(Deadline(0.0)):
    ...     check_current("searching for a cascade")
    Traceback (most recent call last):
        ...
    fsa2lrnn.errors.OutOfTime: searching for a cascade: the limit of 0 s has passed: give more seconds (--max-seconds)
    """
    outer = _CURRENT.get()
    current = deadline if deadline.left() < outer.left() else outer
    token = _CURRENT.set(current)
    starts = outer is NEVER and current is not NEVER and _may_tick()
    if starts:
        signal.signal(signal.SIGVTALRM, _tick)
        signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
    try:
        yield
    except SystemError as fault:  # how Python ends a function in C that went on after a tick
        cause: BaseException | None = fault
        while cause is not None and not isinstance(cause, OutOfTime):
            cause = cause.__cause__ or cause.__context__
        raise (cause or fault) from None
    finally:
        _CURRENT.reset(token)
        if starts:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)


TICK = 0.1
_GRACE = 0.2  # seconds in which a step may end by itself, with a partial answer
_NOT_INSIDE = ("<frozen importlib", __file__, contextmanager.__code__.co_filename, threading.__file__)
# Registries of compilers, once half filled, break each later call of a kernel; numpy replaces an error in this module.
_COMPILERS = ("numba.", "llvmlite.", "numpy._core._internal")


def _may_tick() -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and hasattr(signal, "SIGVTALRM") and signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL


def _tick(_number: int, frame: FrameType | None) -> None:
    """Raise `OutOfTime` if the current deadline passed some time ago; never inside an import, a compiler, or here."""
    if _CURRENT.get().left() > -_GRACE:
        return
    step = ""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_NOT_INSIDE):
            return  # half an import cannot be repeated, and the block has to end: the next tick comes soon
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(_COMPILERS):
            return
        step = step or (module if module.startswith("fsa2lrnn.") else "")
        frame = frame.f_back
    check_current(step or "a step")


def bounded(amount: int, most: int, what: str) -> None:
    """Raise `BudgetExceeded` if a step would need more than `most` numbers."""
    if amount > most:
        raise BudgetExceeded(f"unknown: memory limit: {what} are too many")


def is_over() -> bool:
    """Return whether the deadline of the enclosing `limited` block has passed, for steps that have a partial answer."""
    return _CURRENT.get().left() <= 0


def check_current(what: str, seconds: float = 0.0) -> None:
    """Raise `OutOfTime`, which names the step `what`, if the deadline of the enclosing `limited` block has passed.

    A step that nothing interrupts says how many seconds it takes, and is not begun if fewer are left.
    """
    current = _CURRENT.get()
    current.check(what)
    if current.left() < seconds:
        raise OutOfTime(f"{what}: the limit of {current.whole or current.seconds:.3g} s {HAS_PASSED}")


WORK = 5e9
"""The default number of multiplications of a search: about half a minute on one core."""


class SearchCutShort(UserWarning):
    """The warning that a time limit ended a search before its budget, so its result depends on the speed of the CPU."""


class WorkBudget:
    """A budget of multiplications with an optional time limit in seconds of processor time.

    Raises:
        UnsupportedFormat: for a budget or a time limit that is not a positive number.

    >>> work = WorkBudget(10.0)
    >>> work.spend(8.0)
    >>> work.allows(2.0), work.allows(3.0)
    (True, False)
    """

    def __init__(self, budget: float, seconds: float | Deadline | None = None) -> None:
        if not 0 < budget < math.inf:
            raise UnsupportedFormat(f"work = {budget}: a search needs a positive number, not infinite")
        self.budget = self._left = budget
        self.deadline, self._is_cut_short = Deadline.of(seconds), False

    def spend(self, amount: float) -> None:
        self._left -= amount

    def allows(self, amount: float, seconds: float = 0.0) -> bool:
        """Decide whether the budget leaves `amount` multiplications and the time limit more than `seconds`."""
        present.at("enclosing states")
        if amount > self._left:
            return False
        self._is_cut_short |= self.deadline.left() <= seconds
        return not self._is_cut_short

    @property
    def is_cut_short(self) -> bool:
        """Whether the time limit ended the search."""
        return self._is_cut_short or self.deadline.left() <= 0

    def warn_if_cut_short(self, horizon: int | None) -> None:
        """Warn with `SearchCutShort` if the time limit ended the search, at the certified length `horizon`."""
        if self.is_cut_short:
            warnings.warn(
                f"the search was cut short after {self.deadline.seconds:.3g} s of processor time, with "
                f"N = {horizon}: without a time limit the same model gets the same certificate on every machine",
                SearchCutShort,
                stacklevel=3,
            )
