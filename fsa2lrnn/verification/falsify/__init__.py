"""Counterexample search: words on which a model's output differs from the machine's (docs/theory.md §8).

A trained model that makes no error on thousands of long random words can still have short counterexamples. `falsify`
searches for the shortest: it tries all short words, periodic words, random words, and beams of the states that deviate
most; for a switched affine model, the beam keeps the states from which a failure is reached soonest. The model itself
has run, and failed on, every word that `falsify` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.nn.network import Network
from fsa2lrnn.symbols import encode
from fsa2lrnn.verdicts import Refuted, SearchRecord, Undecided
from fsa2lrnn.verification.falsify.frontiers import beam, exhaustive
from fsa2lrnn.verification.falsify.guided import guided
from fsa2lrnn.verification.falsify.long_words import periodic, random, shorten
from fsa2lrnn.verification.falsify.model_comparison import ModelComparison
from fsa2lrnn.verification.falsify.verdict import Budget, Failure, SearchOutcome

__all__ = ["Budget", "falsify"]

_Search = Callable[[ModelComparison, Budget, int, Deadline], SearchOutcome]

# Each search with its share of the remaining time. The first three are cheap; the length of the counterexample that
# they find bounds the length of the beams.
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
    """Return `Refuted` with the shortest counterexample that the searches find, or `Undecided` if they find none.

    Words have at least one letter: the output on the empty word is not compared. NaN logits are wrong wherever the
    output counts. `Undecided` proves nothing: use `prove_equivalent` or `certify` for a proof.

    Args:
        model: any LRNN (any number of layers, with a token shift, an index table) or a module in `wrap`; it runs on
            its own device, in its own dtype.
        machine: over the same letters, in any order.
        budget: the limits of the search, by default `Budget()`. Equal budgets give equal results, unless the time
            runs out, which the result records.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them.
        known: a presumed counterexample. It is run first; if the model fails on it, only shorter words are searched.

    Raises:
        InvalidMachine: if model and machine have different alphabets.
        UnsupportedFormat: if no output counts, or `ignore` is invalid.
        InvalidWord: if `known` has a letter that is not in the model's alphabet.

    >>> from fsa2lrnn import compile_machine
    >>> parity, constant = MooreMachine([[0, 1], [1, 0]], [0, 1]), MooreMachine([[0, 1], [1, 1]], [0, 1])
    >>> falsify(compile_machine(parity), constant).word
    (1, 1)
    >>> falsify(compile_machine(parity), parity).checked_length is None
    True
    """
    budget = budget or Budget()
    comparison, clock = ModelComparison(model, machine, ignore), Deadline(budget.seconds)
    record = _Record()
    if known:
        turn = clock.share(1)
        record.add("known", turn, _rerun(comparison, known))
    for name, search, share in _SEARCHES:
        if not record.is_settled:
            turn = clock.share(share)
            record.add(name, turn, search(comparison, budget, record.below(budget), turn))
    record.shorten(comparison, clock.share(0.5))
    if comparison.runner.tables is not None and budget.rounds and not record.is_settled:
        before, turn = record.best, clock.share(0.8)
        record.add("guided", turn, guided(comparison, budget, record.below(budget), turn, before))
        if record.best is not before:
            record.shorten(comparison, clock.share(1))
    return record.verdict(comparison)


def _rerun(comparison: ModelComparison, word: Sequence[Hashable]) -> SearchOutcome:
    tokens = encode(word, comparison.goal.alphabet)
    return SearchOutcome(comparison.confirm(tokens), "a word that was known", len(tokens), 1, len(tokens))


class _Record:
    def __init__(self) -> None:
        self.best: Failure | None = None
        self._found_by = ""
        self._searches: list[SearchRecord] = []
        self._checked_length: int | None = 0

    @property
    def is_settled(self) -> bool:
        checked = self._checked_length
        return checked is None or (self.best is not None and checked >= len(self.best.tokens) - 1)

    def below(self, budget: Budget) -> int:
        return budget.length + 1 if self.best is None else len(self.best.tokens)

    def add(self, name: str, turn: Deadline, outcome: SearchOutcome) -> None:
        found_length = None if outcome.failure is None else len(outcome.failure.tokens)
        if outcome.failure is not None and (self.best is None or len(outcome.failure.tokens) < len(self.best.tokens)):
            self.best, self._found_by = outcome.failure, name
        if name == "exhaustive":
            self._checked_length = None if outcome.closed else outcome.length
        _, what, length, words, letters, finished, _ = outcome
        self._searches.append(SearchRecord(name, what, length, words, letters, turn.passed(), found_length, finished))

    def shorten(self, comparison: ModelComparison, turn: Deadline) -> None:
        """Search for a shorter counterexample by deleting or replacing letters of the best one."""
        if self.best is not None and not self.is_settled:
            self.add("shorten", turn, shorten(comparison, self.best, turn))

    def verdict(self, comparison: ModelComparison) -> Refuted | Undecided:
        scope, searches = comparison.goal.scope, tuple(self._searches)
        if self.best is None:
            return Undecided(self._checked_length, scope, None, searches)
        failure = comparison.goal.failing_word(*self.best)
        return Refuted(failure, self._checked_length or 0, scope, self._found_by, searches)
