"""Learn the distribution of a sample of words: by linear algebra, then by maximal likelihood, whichever is better."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from fsa2lrnn.deadline import Deadline, present
from fsa2lrnn.display import Brief
from fsa2lrnn.weighted.baum_welch import ProbabilisticAutomaton, Sample, Word, checked_words, held_out
from fsa2lrnn.weighted.spectral import estimate
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton

SECONDS = 120.0
"""The default limit, in seconds of processor time."""
_TIMES = (1, 3)  # states of probabilistic automata, in multiples of the rank of the estimate
_LEAST_STATES, _MOST_STATES = 10, 128
_SHARE = 0.45  # of the limit for the first probabilistic automaton, and of the rest for the second
_EVERY, _GAIN = 10, 1e-4  # iterations between two tests, and the bits per word that they have to gain
_PARTS = (0.1, 0.3, 1.0)  # of the words, in turn: the first iterations are cheap
_LAST = 20  # iterations on all words


@dataclass(frozen=True)
class Distribution(Brief):
    """A weighted automaton that gives words their probabilities.

    Args:
        automaton: negative numbers occur if `method` is "spectral".
        method: "spectral" or "maximal likelihood".
        bits: the mean of −log₂ of the probabilities of the words that were held out.
        tried: the same of every method and number of states.
    """

    automaton: WeightedAutomaton
    method: str
    bits: float
    tried: dict[tuple[str, int], float]


def learn_distribution(
    words: Sequence[Word], alphabet: Sequence[Hashable], limit: Deadline | None = None
) -> Distribution:
    """Return the automaton under which the held-out words of a sample are most likely, for words of letter numbers.

    The spectral estimate is compared with probabilistic automata of as many states, but at least 10, and of three times
    as many, each trained until the held-out words gain nothing or its share of the limit is over. The best is trained
    on all words.

    Raises `UnsupportedFormat` for no words or letters that are not in the alphabet.

    >>> found = learn_distribution([(0,) * (n % 3) for n in range(300)], "a")
    >>> found.method, f"{float(found.automaton('aa')):.2f}"
    ('spectral', '0.33')
    """
    words = checked_words(words, alphabet)
    limit = limit or Deadline.of(SECONDS)
    spectral = estimate(words, alphabet)
    held, others = held_out(words)
    r, best = min(spectral.bits.items(), key=lambda item: item[1])
    tried, trained = {("spectral", r): best}, dict[float, ProbabilisticAutomaton]()
    for times in _TIMES:
        n, part = min(times * max(r, _LEAST_STATES), _MOST_STATES), limit.share(_SHARE)
        bits, found = _trained(ProbabilisticAutomaton.random(n, len(alphabet)), others, Sample.of(held), part)
        tried["maximal likelihood", n] = bits
        trained[bits] = found
    if min(trained) > best:
        return Distribution(spectral.automaton, "spectral", best, tried)
    everything, found = Sample.of(words), trained[min(trained)]
    found.soften()
    for _ in range(_LAST):
        found.improve(everything)
        if limit.left() < 0:
            break
    return Distribution(found.weighted(alphabet), "maximal likelihood", min(trained), tried)


def _trained(
    found: ProbabilisticAutomaton, words: Sequence[Word], held: Sample, limit: Deadline
) -> tuple[float, ProbabilisticAutomaton]:
    """Train on growing parts of the words, each until the held-out words no longer gain; return their bits too."""
    bits = float("inf")
    for part in _PARTS:
        sample, before = Sample.of(words[: max(1, int(part * len(words)))]), float("inf")
        found.soften()  # the words before may lack a letter
        while before - bits >= _GAIN or before == float("inf"):
            before = bits
            for _ in range(_EVERY):
                present.at(f"maximising the likelihood with {len(found.stop)} states")
                found.improve(sample)
                if limit.left() < 0:
                    return found.bits(held), found
            bits = found.bits(held)
    return bits, found
