"""Extraction of the machine that a trained model has learned, without knowledge of the target (docs/theory.md §8).

A trained model's states drift and are not finitely many, but on short words the model behaves like a machine. The
extraction reconstructs that machine by suffixes. `certify` proves the length up to which the model agrees with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.counting import BLANK, UNCOUNTED, positions_of, smallest_after_first
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.table_kernels import paths
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.model import decode
from fsa2lrnn.nn.network import Network
from fsa2lrnn.verification.extraction.runner import MaskedModel
from fsa2lrnn.verification.extraction.suffixes import classes_of

SECONDS = 600  # a model that is far from every small machine ends at no other limit for hours
_HELD_OUT = 256  # random words


@dataclass(frozen=True)
class HeldOutAgreement:
    """The agreement of model and machine on random words that were not used in the extraction.

    Args:
        words, length: the number of words and their length.
        agreement: the share of the positions that count at which the two agree.
        first_disagreement: the length of the shortest prefix on which they disagree, None if they always agree.
    """

    words: int
    length: int
    agreement: float
    first_disagreement: int | None


@dataclass(frozen=True, eq=False)
class Extraction(Brief):
    """An extracted machine and the evidence for it.

    Args:
        machine: the minimal machine over the model's alphabet.
        depth: the length of the longest word that was classified.
        exhaustive_depth: all words of at most this length were classified.
        prefixes: the number of words classified.
        suffixes, suffix_length: the number of distinguishing suffixes, and the length of the longest.
        classes: the number of states before minimisation, with a separate start state.
        conflicts: pairs of words in one class that a letter separated, each resolved by an additional suffix.
        letters: the total number of model steps.
        held_out: the agreement on random words that were not used.
    """

    machine: MooreMachine
    depth: int
    exhaustive_depth: int
    prefixes: int
    suffixes: int
    suffix_length: int
    classes: int
    conflicts: int
    letters: int
    held_out: HeldOutAgreement


def extract_learned(
    model: Network,
    counts: MooreMachine | None = None,
    empty_word: bool = False,
    horizon: int = 30,
    max_classes: int = 1_000,
    max_suffix: int = 32,
    max_words: int = 100_000,
    seed: int = 0,
    seconds: float | Deadline | None = SECONDS,
) -> Extraction:
    """Return the minimal machine that a model behaves like on short words, classified by their suffixes, with evidence.

    Args:
        model: any LRNN, trained or compiled, or a module in `wrap`.
        counts: an acceptor of the words after which the output counts; elsewhere the machine gives None. By default
            every output counts, since a model does not record which outputs were trained.
        empty_word: whether the output on the empty word counts, which training rarely covers. If not, the start merges
            with a state that behaves like it on all longer words; without such a state, it has the output that the
            model's x₀ gives.
        horizon: the length of the random words of `held_out`.
        max_classes, max_suffix, max_words: the limits beyond which the extraction gives up.
        seed: the random seed.
        seconds: the time limit; None for no limit.

    Raises:
        OutOfTime: if the time limit passes first.
        BudgetExceeded: if there are more than `max_classes` states, or `max_words` words do not reach them all.
        NotExact: if two words agree on all suffixes of up to `max_suffix` letters, but not on a longer one; if logits
            that count are NaN.
        InvalidMachine: if `counts` is over other letters.
        UnsupportedFormat: if None is an output of the model and `counts` is given.

    >>> from fsa2lrnn import compile_machine
    >>> from fsa2lrnn.automata import zoo
    >>> result = extract_learned(compile_machine(zoo.sum_mod(3)))
    >>> result.machine == zoo.sum_mod(3).minimise(), result.conflicts, result.held_out.agreement
    (True, 0, 1.0)
    """
    if counts is not None and BLANK in model.outputs:
        raise UnsupportedFormat("None is an output of the model and would stand for none that counts: rename it")
    masked = MaskedModel(model, positions_of(model.alphabet, counts, empty_word), Deadline.of(seconds))
    classes = classes_of(masked, max_classes, max_suffix, max_words, seed)
    machine = _finished(model, classes.machine, counts, empty_word)
    held_out = _held_out(masked, machine, horizon, seed + 1)
    return Extraction(machine, *classes[1:], masked.letters, held_out)


def _finished(model: Network, machine: MooreMachine, counts: MooreMachine | None, empty_word: bool) -> MooreMachine:
    if empty_word:
        return minimise(machine)
    outputs = list(machine.outputs)
    if counts is None or counts.outputs[counts.start]:
        outputs[machine.start] = model.outputs[int(decode(model.initial_logits()[None], -1))]
    return smallest_after_first(MooreMachine(machine.delta, outputs, machine.start, machine.alphabet))


def _held_out(masked: MaskedModel, machine: MooreMachine, length: int, seed: int) -> HeldOutAgreement:
    """Return how a machine agrees with the model on `_HELD_OUT` random words of one length, where outputs count."""
    tokens = masked.mask.random_words(np.random.default_rng(seed), _HELD_OUT, length)
    number = {output: j for j, output in enumerate(masked.model.outputs)}
    expected = np.array([number.get(output, UNCOUNTED) for output in machine.outputs])
    predicted, counts = masked.words(tokens), masked.mask.counts[masked.mask.path(tokens)]
    path = paths(machine.delta, np.full(len(tokens), machine.start), tokens)
    wrong = counts & (expected[path] != predicted)
    bad = np.flatnonzero(wrong.any(0))
    agreement = 1 - float(wrong.sum()) / max(1, int(counts.sum()))
    return HeldOutAgreement(len(tokens), length, agreement, int(bad[0]) + 1 if len(bad) else None)
