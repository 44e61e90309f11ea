"""The accuracy of a model on fresh words, under two protocols.

- The paper's: every 1,000 updates the last outputs of 128 fresh words of length 500 are evaluated; a trial's score is
  the best evaluation, and training stops at 1.0. `paper_protocol` computes it from the records of training.
- This library's (`evaluate`): only the last checkpoint, many fresh words at each of several lengths, whole words as
  well as last outputs, with Wilson intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.network import Network
from fsa2lrnn.reading import shown
from fsa2lrnn.training.data import Batch, TaskWords

Record = dict[str, Any]  # a JSON object of a result or of an evaluation during training

LENGTHS = (40, 100, 500, 5_000, 50_000)
WORDS = 10_000
LETTERS = 20_000_000  # per length, which limits the number of long words
_PIECE_ENTRIES = 1 << 23  # numbers that one piece of a batch may materialise in a layer
_BATCH, _DRAWN = 256, 1024  # words and letters drawn at once, independent of the model: the seed determines the words
_MOST = 10**12  # words, letters
_Z = 1.959964  # 95 %


@dataclass(frozen=True)
class Accuracy:
    """How many of `words` words of one length are right: `whole` at all counted positions, `last` at the last one."""

    length: int
    words: int
    whole: int
    last: int

    def to_json(self) -> Record:
        """Return the counts, the accuracies and their 95 % intervals as a JSON object."""
        shares = {
            f"{name}_word" if name == "whole" else "last_position": {
                "accuracy": right / self.words,
                "interval": wilson(right, self.words),
            }
            for name, right in (("whole", self.whole), ("last", self.last))
        }
        return {**asdict(self), **shares}


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval (1927) for a share of `right` among `n`: within [0, 1], valid also at 0 and n.

    >>> wilson(10_000, 10_000)[0] > 0.9996, wilson(0, 0)
    (True, (0.0, 1.0))
    """
    if not n:
        return 0.0, 1.0
    share, spread = right / n, _Z**2 / n
    middle = share + spread / 2
    half = math.sqrt(share * (1 - share) * spread + spread**2 / 4)
    # At the ends the exact limits are 0 and 1, which rounding could miss.
    low = 0.0 if not right else (middle - half) / (1 + spread)
    high = 1.0 if right == n else (middle + half) / (1 + spread)
    return low, high


def paper_protocol(records: Iterable[Record], stop_at: float | None) -> Record:
    """Return the first best evaluation during training, the number of evaluations, and whether training stopped at it.

    `records` are the lines of a run's metrics, each with "step", "accuracy", "length" and "words".
    """
    evaluations = list(records)
    if not evaluations:
        return {"accuracy": None, "looks": 0}
    best = max(evaluations, key=lambda record: record["accuracy"])
    return {
        **{name: best[name] for name in ("accuracy", "step", "length", "words")},
        "looks": len(evaluations),
        "stopped": stop_at is not None and best["accuracy"] >= stop_at,
    }


def check_amount(lengths: Sequence[int], n_words: int, letters: int) -> None:
    """Raise `UnsupportedFormat` for numbers below 1, implausibly large ones, or a word longer than `letters`."""
    amounts = (*lengths, n_words, letters)
    if min(amounts) < 1:
        raise UnsupportedFormat(
            f"lengths {tuple(lengths)}, {n_words} words, {letters} letters a length: all must be at least 1"
        )
    if (most := max(amounts)) > _MOST:
        raise UnsupportedFormat(f"{shown(most)} words or letters are too many to be meant: at most {_MOST:,} are")
    if (longest := max(lengths, default=0)) > letters:
        raise UnsupportedFormat(
            f"length {longest:,}: one such word is longer than the {letters:,} letters that a length may take: give "
            "shorter lengths, or more letters"
        )


def evaluate(
    model: Network,
    words: TaskWords,
    seed: int,
    lengths: Sequence[int] = LENGTHS,
    n_words: int = WORDS,
    letters: int = LETTERS,
    report: Callable[[Accuracy], None] | None = None,
) -> list[Accuracy]:
    """Return the accuracy at each length on `n_words` fresh words, or as many as `letters` letters allow.

    Args:
        words: the source of words, with `model.outputs` as outputs, on the model's device.
        lengths: lengths of at most `letters`; each is lowered to the largest one at which the last output counts.
        report: called with the accuracy after each length.

    Raises `UnsupportedFormat` as `check_amount`.
    """
    check_amount(lengths, n_words, letters)
    generator, accuracies = words.generator(seed), []
    for length in dict.fromkeys(map(words.fit, lengths)):
        accuracies.append(count(model, words, length, min(n_words, letters // length), generator))
        if report is not None:
            report(accuracies[-1])
    return accuracies


def count(model: Network, words: TaskWords, length: int, n_words: int, generator: torch.Generator) -> Accuracy:
    """Return the accuracy on `n_words` words drawn from `generator`, in memory independent of `length`.

    An output with a NaN among its logits is wrong.
    """
    whole = last = 0
    for first in range(0, n_words, _BATCH):
        right_all, right_last = _batch(model, words, length, min(_BATCH, n_words - first), generator)
        whole, last = whole + right_all, last + right_last
    return Accuracy(length, n_words, whole, last)


@torch.no_grad()
def _batch(model: Network, words: TaskWords, length: int, size: int, generator: torch.Generator) -> tuple[int, int]:
    """Return how many of `size` drawn words are right at all counted positions, and how many at the last.

    A causal model reads pieces whose states are carried on, so that memory does not grow with the length.
    """
    piece = max(1, _PIECE_ENTRIES // (size * model.entries_per_token)) if model.is_causal else length
    state = model.initial_state(size)
    right = torch.ones(size, dtype=torch.bool, device=words.device)
    last = right
    for drawn in _drawn(words, length, size, _DRAWN if model.is_causal else length, generator):
        for tokens, labels in zip(drawn.tokens.split(piece, 1), drawn.labels.split(piece, 1), strict=True):
            logits, state = model.advance(tokens, state)
            # `argmax` takes NaN for the largest, which might be the right output by chance.
            correct = (logits.argmax(-1) == labels) & ~logits.isnan().any(-1)
            right = right & (correct | (labels == UNCOUNTED)).all(1)
            last = correct[:, -1]
    return int(right.sum()), int(last.sum())


def _drawn(words: TaskWords, length: int, size: int, piece: int, generator: torch.Generator) -> Iterator[Batch]:
    """Yield words in pieces of `piece` letters, a multiple of `_DRAWN` or all, drawn `_DRAWN` letters at a time."""
    walks, waiting = words.begin(size), list[Batch]()
    for first in range(0, length, _DRAWN):
        batch, walks = words.advance(walks, min(_DRAWN, length - first), generator)
        waiting.append(batch)
        if len(waiting) * _DRAWN >= piece or first + _DRAWN >= length:
            yield Batch(*(torch.cat(parts, 1) for parts in zip(*waiting, strict=True)))
            waiting.clear()
