"""Is there a word on which this model is wrong? (docs/theory.md §8)

A trained model that makes no error on thousands of long random words has failing words all the same, often short ones.
`falsify` looks for the shortest: all short words, words that repeat, random words, and beams that follow the states
furthest astray, of a switched affine model those from which a failure is reached soonest. Every word that it returns
has been run by the model itself and has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lrnn.network import Network
from fsa2lrnn.symbols import encode
from fsa2lrnn.verdicts import Refuted, SearchRecord, Undecided
from fsa2lrnn.verification.falsify.beam import beam
from fsa2lrnn.verification.falsify.exhaustive import exhaustive
from fsa2lrnn.verification.falsify.guided import guided
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.long_words import periodic, random
from fsa2lrnn.verification.falsify.shorten import shorten
from fsa2lrnn.verification.falsify.verdict import Budget, Failure, SearchOutcome

__all__ = ["Budget", "falsify"]

_Search = Callable[[ModelComparison, Budget, int, Deadline], SearchOutcome]

# With the share of the time still left that each may take. The first three are cheap, and what they find tells the
# beams how far to go.
_SEARCHES: tuple[tuple[str, _Search, float], ...] = (
    ("exhaustive", exhaustive, 0.2),
    ("periodic", periodic, 0.2),
    ("random", random, 0.2),
    ("beam", beam, 0.5),
    ("beam", partial(beam, wider=4), 0.8),
)


def falsify(
    model: Network,
    machine: MooreMachine,
    budget: Budget | None = None,
    ignore: Ignore = (),
    known: Sequence[Hashable] = (),
) -> Refuted | Undecided:
    """The shortest failing word found, and what was searched; or what was searched, without one.

    Words have at least one letter: the output on the empty word is not judged. Logits that are not numbers are wrong
    wherever the output counts. That no word was found proves nothing (`prove_equivalent`, `certify`).

    Args:
        model: any LRNN, of any number of layers, with a token shift, or an index table, or a module in `wrap`; on its
            own device, in its own dtype.
        machine: over the same letters, in any order.
        budget: how far to look; `Budget()` unless given. With equal budgets the answers are equal, unless the time
            runs out, which they say.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them.
        known: a word that is thought to fail. It is run first, and where it fails the searches look for shorter ones.

    Raises:
        InvalidMachine: if model and machine have unlike alphabets.
        UnsupportedFormat: if no output counts, or `ignore` makes no sense.
        InvalidWord: if `known` has a letter that is none of the model's.

    >>> from fsa2lrnn import compile_machine
    >>> parity, constant = MooreMachine([[0, 1], [1, 0]], [0, 1]), MooreMachine([[0, 1], [1, 1]], [0, 1])
    >>> falsify(compile_machine(parity), constant).word
    (1, 1)
    >>> falsify(compile_machine(parity), parity).checked_length is None
    True
    """
    budget = budget or Budget()
    judge, clock = ModelComparison(model, machine, ignore), Deadline(budget.seconds)
    record = _Record()
    if known:
        turn = clock.share(1)
        record.add("known", turn, _rerun(judge, known))
    for name, search, share in _SEARCHES:
        if not record.is_settled:
            turn = clock.share(share)
            record.add(name, turn, search(judge, budget, record.below(budget), turn))
    record.shorten(judge, clock.share(0.5))
    if judge.runner.tables is not None and budget.rounds and not record.is_settled:
        before, turn = record.best, clock.share(0.8)
        record.add("guided", turn, guided(judge, budget, record.below(budget), turn, before))
        if record.best is not before:
            record.shorten(judge, clock.share(1))
    return record.verdict(judge)


def _rerun(judge: ModelComparison, known: Sequence[Hashable]) -> SearchOutcome:
    """What becomes of a word that is thought to fail."""
    tokens = encode(known, judge.goal.alphabet)
    return SearchOutcome(judge.confirm(tokens), "a word that was known", len(tokens), 1, len(tokens))


class _Record:
    """What the searches have found so far."""

    def __init__(self) -> None:
        self.best: Failure | None = None
        self._found_by = ""
        self._searches: list[SearchRecord] = []
        self._checked_length: int | None = 0

    @property
    def is_settled(self) -> bool:
        """Whether nothing shorter can be found: all shorter words were tried, or the states closed."""
        to = self._checked_length
        return to is None or (self.best is not None and to >= len(self.best.tokens) - 1)

    def below(self, budget: Budget) -> int:
        """Searches look at words shorter than this."""
        return budget.length + 1 if self.best is None else len(self.best.tokens)

    def add(self, name: str, turn: Deadline, outcome: SearchOutcome) -> None:
        """One search more."""
        found = None if outcome.failure is None else len(outcome.failure.tokens)
        if outcome.failure is not None and (self.best is None or len(outcome.failure.tokens) < len(self.best.tokens)):
            self.best, self._found_by = outcome.failure, name
        if name == "exhaustive":
            self._checked_length = None if outcome.closed else outcome.length
        _, what, length, words, letters, finished, _ = outcome
        self._searches.append(SearchRecord(name, what, length, words, letters, turn.passed(), found, finished))

    def shorten(self, judge: ModelComparison, turn: Deadline) -> None:
        """The best that was found, with letters cut out or replaced."""
        if self.best is not None and not self.is_settled:
            self.add("shorten", turn, shorten(judge, self.best, turn))

    def verdict(self, judge: ModelComparison) -> Refuted | Undecided:
        """The answer."""
        scope, searches = judge.goal.scope, tuple(self._searches)
        if self.best is None:
            return Undecided(self._checked_length, scope, None, searches)
        failure = judge.goal.failing_word(*self.best)
        return Refuted(failure, self._checked_length or 0, scope, self._found_by, searches)
