"""Counterexample search: words on which a model's output differs from the machine's (docs/theory.md §8).

A trained model that makes no error on thousands of long random words can still have short counterexamples. `falsify`
searches for the shortest: it tries all short words, periodic words, random words, and beams of the states that deviate
most; for a switched affine model, the beam keeps the states from which a failure is reached soonest. The model itself
has run, and failed on, every word that `falsify` returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial

import numpy as np

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MachineSource, as_machine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import check_type
from fsa2lrnn.nn.network import Network
from fsa2lrnn.symbols import encode
from fsa2lrnn.verdicts import Refuted, SearchRecord, Undecided
from fsa2lrnn.verification.extraction.runner import pick
from fsa2lrnn.verification.falsify.frontiers import beam, exhaustive
from fsa2lrnn.verification.falsify.guided import guided
from fsa2lrnn.verification.falsify.model_comparison import Budget, Failure, ModelComparison, SearchOutcome

__all__ = ["Budget", "falsify"]


def falsify(
    model: Network,
    machine: MachineSource,
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
        machine: over the same letters, in any order, or its source.
        budget: the limits of the search, by default `Budget()`. Equal budgets give equal results, unless the time
            runs out, which the result records.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them.
        known: a presumed counterexample. It is run first; if the model fails on it, only shorter words are searched.

    Raises:
        InvalidMachine: if model and machine have different alphabets.
        UnsupportedFormat: if no output counts, or `ignore` is invalid.
        InvalidWord: if `known` has a letter that is not in the model's alphabet.

    >>> from fsa2lrnn import MooreMachine, compile_machine
    >>> parity, constant = MooreMachine([[0, 1], [1, 0]], [0, 1]), MooreMachine([[0, 1], [1, 1]], [0, 1])
    >>> falsify(compile_machine(parity), constant).word
    (1, 1)
    >>> falsify(compile_machine(parity), parity).checked_length is None
    True
    """
    budget = budget or Budget()
    check_type(budget, Budget, "budget", "a Budget(seconds=…), or None for the default")
    comparison, clock = ModelComparison(model, as_machine(machine), ignore), Deadline(budget.seconds)
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


_PIECE, _FIRST_PIECE = 64, 8  # letters that are read at once; the shortest failure in them is returned
_CANDIDATES = 1 << 13
_LONGEST_CUT = 16
_LETTERS = 1 << 20  # letters of all variants of one word: long words get fewer variants
_Pair = tuple[tuple[int, ...], tuple[int, ...]]


def read_side_by_side(comparison: ModelComparison, tokens: np.ndarray, clock: Deadline, what: str) -> SearchOutcome:
    """Search words, int64 (N, T), in parallel for a shortest failing prefix; drop words that can no longer fail."""
    n, longest = tokens.shape
    states, q = comparison.runner.start(n), np.full(n, comparison.goal.start)
    alive = np.array(range(n), np.int64)
    letters = length = 0
    while length < longest and len(alive):
        if clock.left() <= 0:
            return SearchOutcome(None, what, length, n, letters, finished=False)
        piece = tokens[alive, length : length + min(_PIECE, max(_FIRST_PIECE, length))]
        path = comparison.goal.path(piece, q)
        logits, states = comparison.runner.read(states, piece)
        letters += piece.size
        wrong = comparison.marks(logits, path).wrong
        first = np.where(wrong.any(1), wrong.argmax(1), _PIECE)
        order = [i for i in np.argsort(first, kind="stable")[:8].tolist() if first[i] < _PIECE]
        words = [tokens[alive[i], : length + int(first[i]) + 1] for i in order]
        if (failure := comparison.confirm_first(words)) is not None:
            return SearchOutcome(failure, what, len(failure.tokens), n, letters)
        length += piece.shape[1]
        live = np.flatnonzero(comparison.goal.coaccessible[path[:, -1]])
        if len(live) < len(alive):
            states = pick(states, live)
        alive, q = alive[live], path[live, -1]
    return SearchOutcome(None, what, length, n, letters)


def periodic(comparison: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Search the words u w w w … for all short u and w up to the first failure, if they stay in coaccessible states."""
    every = periodic_words(comparison.n_letters, budget.prefix, budget.period)
    pairs = _for_ever(comparison, list(itertools.islice(every, _CANDIDATES)))[: budget.periodic_words]
    k = np.arange(min(budget.length, below - 1))
    rows = [np.array(u + w)[_places(u, w, k)] for u, w in pairs]
    tokens = np.array(rows, np.int64).reshape(len(pairs), len(k))
    longest_u, longest_w = (max((len(pair[i]) for pair in pairs), default=0) for i in (0, 1))
    what = f"{len(pairs):,} words u w w w … with |u| ≤ {longest_u} and |w| ≤ {longest_w}"
    return read_side_by_side(comparison, tokens, clock, what)


def _places(u: tuple[int, ...], w: tuple[int, ...], k: np.ndarray) -> np.ndarray:
    """Return the position in u w of letter number k of u w w w …, both from 0, for an array of numbers k."""
    return np.where(k < len(u), k, len(u) + (k - len(u)) % len(w))


def _for_ever(comparison: ModelComparison, pairs: list[_Pair]) -> list[_Pair]:
    """Return the pairs (u, w) whose word u w w w … passes only coaccessible states."""
    live_pairs: list[_Pair] = []
    for u, w in pairs:
        q, visited = comparison.goal.start, set[int]()
        for a in u:
            q = int(comparison.goal.delta[a, q])
        while q not in visited:  # the states after u, u w, u w w, … are eventually periodic
            visited.add(q)
            for a in w:
                q = int(comparison.goal.delta[a, q])
        if comparison.goal.coaccessible[q]:  # only coaccessible states lead to a coaccessible one
            live_pairs.append((u, w))
    return live_pairs


def periodic_words(n_letters: int, prefix: int, period: int) -> Iterator[_Pair]:
    """Yield all (u, w) with |u| ≤ prefix and 1 ≤ |w| ≤ period that give different words u w w w …, shortest first.

    >>> list(periodic_words(2, 1, 1))
    [((), (0,)), ((), (1,)), ((0,), (1,)), ((1,), (0,))]
    """
    lengths = sorted(itertools.product(range(1, period + 1), range(prefix + 1)), key=lambda pair: (sum(pair), pair))
    for n, m in lengths:
        for u in itertools.product(range(n_letters), repeat=m):
            for w in itertools.product(range(n_letters), repeat=n):
                is_power = any(n % d == 0 and w == w[:d] * (n // d) for d in range(1, n))
                if not is_power and not (u and u[-1] == w[-1]):  # else u's last letter belongs to the period
                    yield u, w


def random(comparison: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Search random words, drawn letter by letter and uniformly among the letters into coaccessible states."""
    rng = np.random.default_rng(budget.seed)
    tokens = comparison.goal.random_words(rng, budget.random_words, min(budget.length, below - 1))
    return read_side_by_side(comparison, tokens, clock, f"{len(tokens):,} random words")


def shorten(comparison: ModelComparison, failure: Failure, clock: Deadline) -> SearchOutcome:
    """Search for the shortest failing variant of a counterexample, and repeat from it until no variant is shorter.

    In a variant a few letters are deleted, or one is replaced.
    """
    best, letters, tried = failure, 0, 0
    what = f"cuts of up to {_LONGEST_CUT} letters and replaced letters"
    while True:
        outcome = read_side_by_side(comparison, variants(best.tokens, comparison.n_letters), clock, what)
        letters, tried = letters + outcome.letters, tried + outcome.words
        if outcome.failure is None:
            shorter = best if best is not failure else None
            return SearchOutcome(shorter, what, len(best.tokens) - 1, tried, letters, outcome.finished)
        best = outcome.failure


def variants(word: np.ndarray, n_letters: int) -> np.ndarray:
    """Return the variants of a word (T,), all of T − 1 letters: int64 (N, T − 1).

    A word from which letters were deleted is padded with its last letter. A word with a replaced letter loses its last
    letter, so it counts only if it fails before the end.

    >>> variants(np.array([0, 1, 0]), 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    n = len(word)
    if n < 2:
        return np.empty((0, max(0, n - 1)), np.int64)
    most = max(1, _LETTERS // n)
    candidates = [
        np.concatenate([word[:i], word[i + cut :], np.full(cut - 1, word[-1])])
        for cut in range(1, min(_LONGEST_CUT, n - 1) + 1)
        for i in range(n - cut + 1)
    ]
    candidates += [
        np.concatenate([word[:i], [a], word[i + 1 : -1]])
        for i in range(n - 1)
        for a in range(n_letters)
        if a != word[i]
    ]
    return np.unique(np.array(candidates[:most], np.int64), axis=0)


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
