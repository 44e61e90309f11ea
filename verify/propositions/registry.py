"""The types of propositions and answers, and the runner that compares answers with expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verdicts import Verdict

T = TypeVar("T")

# A checker may draw large or slow cases, and users may call it inside a test of their own.
_NO_HEALTH_CHECK = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.nested_given,
)


@dataclass(frozen=True)
class Proved(Verdict):
    """The answer that the statement holds in every case that it covers.

    Args:
        how: the argument, or the set that was exhausted.
        cases: the number of computations made, each of which agreed with the statement.
    """

    how: str
    cases: int


@dataclass(frozen=True)
class Tested(Verdict):
    """The answer that the statement holds in every case that was drawn; no further claim is made.

    Args:
        how: what was drawn.
        cases: the number of cases.
        seed: of the generator that drew them.
    """

    __test__ = False  # pytest takes a name that begins with "Test" for a class of tests

    how: str
    cases: int
    seed: int


@dataclass(frozen=True)
class Refuted(Verdict):
    """The answer that the statement is false, with a witness.

    Args:
        witness: text that a reader can check.
        data: the same as JSON values.
    """

    witness: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Undecided(Verdict):
    """The absence of an answer within the stated budget."""

    budget: str


Answer = Proved | Tested | Refuted | Undecided


def refuted(witness: str, **data: Any) -> Refuted:
    """Return `Refuted` with its data as keywords."""
    return Refuted(witness, data)


def _nothing(done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Effort:
    """The amount of work that a checker may do.

    Args:
        name: "fast" or "deep", or a user-defined name.
        examples: hypothesis examples per property.
        exhaustive: every machine of at most this many states over two letters is tried.
        seed: of every generator.
        progress: called with the number of finished cases and of all cases while a checker works.
    """

    name: str
    examples: int
    exhaustive: int
    seed: int = 0
    progress: Callable[[int, int], None] = field(default=_nothing, compare=False)

    def track(self, cases: Sequence[T]) -> Iterator[T]:
        """Yield the cases one by one, and report the progress before each."""
        for done, case in enumerate(cases):
            self.progress(done, len(cases))
            yield case


FAST = Effort("fast", examples=150, exhaustive=2)
DEEP = Effort("deep", examples=5_000, exhaustive=3)


@dataclass(frozen=True)
class Proposition:
    """A statement, and a checker that decides or tests it.

    Args:
        id: the value for `--only`.
        statement: a complete sentence.
        hypotheses: its assumptions.
        source: the place in the paper or in docs/theory.md.
        check: `check(effort)` judges the real object; a keyword replaces it by another, such as a broken one.
        expects: the expected kind of answer.
        instead: if that is `Refuted`, the statement that holds instead.
    """

    id: str
    statement: str
    hypotheses: str
    source: str
    check: Callable[..., Answer]
    expects: type[Proved] | type[Tested] | type[Refuted] | type[Undecided]
    instead: str = ""

    @property
    def is_of_paper(self) -> bool:
        """Whether the paper, or its published code, makes the statement or leaves it open."""
        return self.source.startswith(("the paper", "the code released with the paper"))


@dataclass(frozen=True)
class Outcome:
    """A proposition with the answer of its checker."""

    proposition: Proposition
    answer: Answer

    @property
    def expected(self) -> bool:
        """Whether the answer is of the kind that the registry expects."""
        return isinstance(self.answer, self.proposition.expects)


def run(propositions: Iterable[Proposition], effort: Effort = FAST) -> Iterator[Outcome]:
    """Check one proposition after the other; yield each outcome as soon as it exists."""
    for proposition in propositions:
        yield Outcome(proposition, proposition.check(effort))


def select(propositions: Iterable[Proposition], ids: Iterable[str]) -> list[Proposition]:
    """Return the propositions with the given ids, in the registry's order, or all without ids.

    Raises `UnsupportedFormat` for an unknown id.
    """
    known = {proposition.id: proposition for proposition in propositions}
    wanted = set(ids)
    if unknown := sorted(wanted - set(known)):
        raise UnsupportedFormat(f"proposition {unknown[0]!r} is not in the registry: choose from {', '.join(known)}")
    return [proposition for name, proposition in known.items() if not wanted or name in wanted]


class _Broken(Exception):
    """Raised inside a hypothesis test by a case that breaks the property."""


def trial(
    how: str, strategy: SearchStrategy[T], fault: Callable[[T], str | None], effort: Effort, data: str = "case"
) -> Tested | Refuted:
    """Draw cases until one has a fault, then shrink it: `Tested` with the count, or `Refuted` with the smallest case.

    `fault` returns the fault of a case, or None. The same effort draws the same cases.

    >>> from hypothesis import strategies as st
    >>> trial("small integers", st.integers(0, 99), lambda n: f"{n} > 6" if n > 6 else None, FAST).witness
    '7 > 6'
    """
    cases, broken = 0, list[tuple[str, T]]()

    @seed(effort.seed)
    @settings(
        max_examples=effort.examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=_NO_HEALTH_CHECK,
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(strategy)
    def holds(case: T) -> None:
        nonlocal cases
        cases += 1
        effort.progress(min(cases, effort.examples), effort.examples)
        if (text := fault(case)) is not None:
            broken.append((text, case))
            raise _Broken

    try:
        holds()
    except _Broken:
        text, case = broken[-1]  # hypothesis ends by running the smallest case once more
        return refuted(text, **{data: repr(case)})
    return Tested(how, cases, effort.seed)
