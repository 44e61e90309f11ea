"""The result of `learn`: the learned machine, its model and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.symbols import Alphabet, word_text
from fsa2lrnn.training.evaluate import wilson
from fsa2lrnn.verdicts import Proved, Refuted, Undecided

EVERY_WORD, LEGAL_WORDS = "every word", "every legal word, at the positions that count"


@dataclass(frozen=True)
class Agreement:
    """The agreement of a machine with held-out words: evidence, not a proof.

    If labels may be wrong, the correct machine disagrees with the wrong ones, so only the share of right labels is
    informative; a long word with no wrong label is rare.

    Args:
        words: the number of held-out words.
        right: the number of words whose labels are all the machine's outputs.
        labels, right_labels: the same numbers, counted by label.
        noise: the share of wrong labels, None for unknown.
    """

    words: int
    right: int
    labels: int
    right_labels: int
    noise: float | None = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.right <= self.words > 0 and 0 <= self.right_labels <= self.labels):
            raise UnsupportedFormat(
                f"{self.right} of {self.words} words and {self.right_labels} of {self.labels} labels are right: of one "
                "word or more it is none to all"
            )
        if self.noise is not None and not 0 <= self.noise < 1:
            raise UnsupportedFormat(f"noise = {self.noise} of an agreement must be a share from 0 to below 1, or None")

    @property
    def expected(self) -> float | None:
        """The share of labels that are the correct machine's outputs; None if it is unknown."""
        return None if self.noise is None else 1 - self.noise

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval for the share of right words if no label is wrong, else for that of right labels.

        The interval for labels assumes that errors are independent, as wrong labels are. A wrong machine errs on many
        labels of one word, so for it the interval is too narrow.
        """
        return wilson(self.right, self.words) if self.noise == 0 else wilson(self.right_labels, self.labels)

    def to_json(self) -> dict[str, Any]:
        """Return the counts, the expected share of right labels, and the interval, as a JSON object."""
        return {**vars(self), "expected": self.expected, "interval": self.interval}

    def in_words(self) -> str:
        """Return the counts as text that continues "a machine of n states"."""
        low, high = self.interval
        outputs = f"{self.right_labels:,} of {self.labels:,} held-out outputs"
        beyond = "This says nothing about longer words or words drawn otherwise"
        if self.noise == 0:
            return (
                f", right on {self.right:,} of {self.words:,} held-out words, on {outputs}: on words drawn like these "
                f"it is right with a share of {low:.4f} to {high:.4f} (95 %). {beyond}"
            )
        text = f", equal to {outputs}, a share of {low:.4f} to {high:.4f} (95 %)"
        if self.expected is None:
            return f"{text}; how many of them are wrong is unknown, so no share can be expected. {beyond}"
        return (
            f"{text}; the right machine is expected to reach {self.expected:.4f}, since a share of {self.noise:g} of "
            f"the outputs is wrong. {beyond}"
        )


@dataclass(frozen=True, eq=False)
class Learned(Brief):
    """A learned machine and the verdict on it.

    Args:
        model: the machine compiled into a model of one-hot columns, of the class that is trained.
        machine: the minimal learned machine.
        verdict: with a target, the verdict of `prove_equivalent` on `model`; otherwise the agreement with held-out
            words, or None if none were held out.
        scope: the words that a verdict against a target covers.
        heads: the heads of the trained network that the machine consists of.
        network: the trained network itself, None if another method learned the machine; with `Recipe.suffixes` it is
            over one letter per class of letters that act alike, and its outputs are the refined labels.
        trail: a record per evaluation, and one per event (`"event"`: "start", "refuted", "stuck", "end").
        steps, starts, seconds: the cost of the run.
        faults, labels: the number of label errors in the last evaluation, and the number of its labels.
    """

    model: LRNN
    machine: MooreMachine
    verdict: Proved | Refuted | Undecided | Agreement | None
    scope: str
    heads: tuple[int, ...]
    network: LRNN | None
    trail: tuple[dict[str, Any], ...]
    steps: int
    starts: int
    seconds: float
    faults: int
    labels: int

    @property
    def is_proved(self) -> bool:
        """Whether the model is proved equal to the target on all words of `scope`."""
        return isinstance(self.verdict, Proved)

    def explain(self) -> str:
        """Return a description of the machine and the verdict, in one or two sentences."""
        verdict = verdict_clause(self.verdict, self.scope, self.machine.alphabet)
        return f"a machine of {counted(self.machine.n_states, 'state')}{verdict}"

    def __str__(self) -> str:
        return self.explain()


def verdict_clause(verdict: Proved | Refuted | Undecided | Agreement | None, scope: str, alphabet: Alphabet) -> str:
    """Return a description of a verdict over an alphabet, as text that continues a description of the machine."""
    match verdict:
        case Proved():
            return f", equal to the target on {scope}"
        case Refuted(word=word):
            return f", which differs from the target on the word {word_text(word, alphabet) or 'ε'}"
        case Undecided(checked_length=length):
            if length is None:
                return ", on which no word fails by single steps, in an arithmetic that is not the scans' own: no proof"
            return f", equal to the target on words of up to {counted(length, 'letter')}; the budget ended there"
        case Agreement():
            return verdict.in_words()
        case None:
            return "; no words were held out, so nothing is known of words beyond the given ones"
