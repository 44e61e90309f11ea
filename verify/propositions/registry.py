"""What a proposition is, what a checker may answer, and the runner that compares answers with expectations."""

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
    """True of every case that the statement covers.

    Args:
        how: the argument, or what was exhausted.
        cases: computations made on the way, all of them as the statement says.
    """

    how: str
    cases: int


@dataclass(frozen=True)
class Tested(Verdict):
    """True of every case that was drawn; no more is said.

    Args:
        how: what was drawn.
        cases: how many.
        seed: of the generator that drew them.
    """

    __test__ = False  # pytest takes a name that begins with "Test" for a class of tests

    how: str
    cases: int
    seed: int


@dataclass(frozen=True)
class Refuted(Verdict):
    """False, with a witness.

    Args:
        witness: in words, for a reader to check.
        data: the same for a program; JSON can hold it.
    """

    witness: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Undecided(Verdict):
    """No answer within the budget, which is named."""

    budget: str


Answer = Proved | Tested | Refuted | Undecided


def refuted(witness: str, **data: Any) -> Refuted:
    """`Refuted` with its data as keywords."""
    return Refuted(witness, data)


def _nothing(done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Effort:
    """How much work a checker may do.

    Args:
        name: "fast" or "deep", or a name of your own.
        examples: hypothesis examples a property.
        exhaustive: every machine of at most this many states over two letters is tried.
        seed: of every generator.
        progress: called with a count of cases done and of those to do, while a checker works.
    """

    name: str
    examples: int
    exhaustive: int
    seed: int = 0
    progress: Callable[[int, int], None] = field(default=_nothing, compare=False)

    def track(self, cases: Sequence[T]) -> Iterator[T]:
        """The cases one by one, progress told before each."""
        for done, case in enumerate(cases):
            self.progress(done, len(cases))
            yield case


FAST = Effort("fast", examples=150, exhaustive=2)
DEEP = Effort("deep", examples=5_000, exhaustive=3)


@dataclass(frozen=True)
class Proposition:
    """A statement, and a checker that decides or tests it.

    Args:
        id: what `--only` takes.
        statement: in words, complete as it stands.
        hypotheses: what it takes for granted.
        source: the paper's place or that of docs/theory.md.
        check: `check(effort)` judges the real object; by keyword it takes another, such as a broken one.
        expects: the kind of answer that is no surprise.
        instead: where that is `Refuted`, what holds in its place.
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
        """Whether the paper, or the code released with it, says so or leaves it open."""
        return self.source.startswith(("the paper", "the code released with the paper"))


@dataclass(frozen=True)
class Outcome:
    """A proposition with the answer that its checker gave."""

    proposition: Proposition
    answer: Answer

    @property
    def expected(self) -> bool:
        """Whether the answer is of the kind that the registry expects."""
        return isinstance(self.answer, self.proposition.expects)


def run(propositions: Iterable[Proposition], effort: Effort = FAST) -> Iterator[Outcome]:
    """Check one proposition after the other; each outcome comes as soon as it is there."""
    for proposition in propositions:
        yield Outcome(proposition, proposition.check(effort))


def select(propositions: Iterable[Proposition], ids: Iterable[str]) -> list[Proposition]:
    """Those with the given ids, in the registry's order; all where none is given.

    Raises `UnsupportedFormat` for an id that is not there.
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
    """Draw cases until one has a fault, then shrink it: `Tested` with the count, or `Refuted` with the smallest.

    `fault` says what is wrong with a case, or None. The same effort draws the same cases.

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
