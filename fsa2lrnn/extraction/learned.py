"""The machine that a trained model has learned, found without knowing it (docs/theory.md §8).

A trained model's states drift, so they do not close; but on words short enough it behaves like a machine, and that
machine is what is looked for, by suffixes (`suffixes`) or by L* (`lstar`). Up to which length the model agrees with it
on every word is another question, and `certify` answers it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.counting import BLANK, UNCOUNTED, positions_of, smallest_after_first
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.reach import paths
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extraction.asking import MaskedModel
from fsa2lrnn.extraction.suffixes import classes_of
from fsa2lrnn.lrnn.model import decode
from fsa2lrnn.lrnn.network import Network
from fsa2lrnn.optional import require

METHODS = ("suffixes", "lstar")
_HELD_OUT = 256  # random words


@dataclass(frozen=True)
class HeldOutAgreement:
    """Model against machine on random words that had no part in the extraction.

    Args:
        words, length: how many, and their length.
        agreement: the share of the positions that count at which the two agree.
        first_disagreement: the length of the shortest prefix on which they do not; None if they agree throughout.
    """

    words: int
    length: int
    agreement: float
    first_disagreement: int | None


@dataclass(frozen=True, eq=False)
class Extraction:
    """A machine and the evidence for it.

    Args:
        machine: minimal; over the model's alphabet.
        method: "suffixes" or "lstar".
        depth: the longest word whose state was told apart from others, or that L* asked for.
        exhaustive_depth: all words of at most this length were; None for L*, which looks at few.
        prefixes: words whose states were told apart; for L*, membership queries.
        suffixes, suffix_length: words by which they were told apart, and the longest of these.
        classes: states before minimising, the start apart.
        conflicts: pairs of words in one class that a letter led apart, each resolved by one suffix more; none is left.
        letters: steps of the model in all.
        held_out: random words that had no part in it.
    """

    machine: MooreMachine
    method: str
    depth: int
    exhaustive_depth: int | None
    prefixes: int
    suffixes: int
    suffix_length: int
    classes: int
    conflicts: int
    letters: int
    held_out: HeldOutAgreement


def extract_learned(
    model: Network,
    method: str = "suffixes",
    counts: MooreMachine | None = None,
    empty_word: bool = False,
    horizon: int = 30,
    max_classes: int = 1_000,
    max_suffix: int = 32,
    max_words: int = 100_000,
    seed: int = 0,
    seconds: float | Deadline | None = None,
) -> Extraction:
    """The minimal machine that a model behaves like on short words, and the evidence.

    Args:
        model: any LRNN, trained or compiled, or a module in `wrap`.
        method: "suffixes" looks at all short words and tells them apart by their suffixes; "lstar" asks AALpy's L*.
        counts: an acceptor of the words after which the output counts; everywhere else the machine gives None. Without
            it every output counts: nothing in a model tells an output that training asked for from another.
        empty_word: whether the output on the empty word counts, which training asks for no more than for those. If
            not, the start becomes one with a state that behaves like it on all longer words; where there is none, it
            has the output that the model's x₀ gives.
        horizon: the length of the random words of `held_out`, and of those that L* looks for counterexamples in.
        max_classes, max_suffix, max_words: the limits beyond which a model counts as no machine of a sensible size.
        seed: of what is drawn.
        seconds: the time limit; by default there is none.

    Raises:
        OutOfTime: where the time limit passes first.
        BudgetExceeded: if there are more than `max_classes` states, or `max_words` words do not show them all.
        NotExact: if two words are alike for all suffixes of up to `max_suffix` letters, but not for a longer one; if
            logits that count are NaN.
        InvalidMachine: if `counts` is over other letters.
        UnsupportedFormat: for an unknown method, or if None is an output of the model and `counts` is given.
        MissingPackage: for "lstar" without AALpy.

    >>> from fsa2lrnn import compile_machine
    >>> from fsa2lrnn.automata import zoo
    >>> found = extract_learned(compile_machine(zoo.sum_mod(3)))
    >>> found.machine == zoo.sum_mod(3).minimise(), found.conflicts, found.held_out.agreement
    (True, 0, 1.0)
    """
    if method not in METHODS:
        raise UnsupportedFormat(f"method {method!r} is not known: choose one of {', '.join(METHODS)}")
    if counts is not None and BLANK in model.outputs:
        raise UnsupportedFormat("None is an output of the model and would stand for none that counts: rename it")
    asked = MaskedModel(model, positions_of(model.alphabet, counts, empty_word), Deadline.of(seconds))
    if method == "suffixes":
        found = classes_of(asked, max_classes, max_suffix, max_words, seed)
        machine = _finished(model, found.machine, counts, empty_word)
        evidence = found[1:]
    else:
        require("aalpy", "learn", 'method="lstar"', 'method="suffixes"')
        from fsa2lrnn.extraction.lstar import learn

        learned = learn(asked, horizon, max_classes, seed)
        machine = _finished(model, learned.machine, counts, empty_word)
        n = learned.machine.n_states
        evidence = (learned.longest, None, learned.queries, learned.suffixes, learned.suffix_length, n, 0)
    held_out = _held_out(asked, machine, horizon, seed + 1)
    return Extraction(machine, method, *evidence, asked.letters, held_out)


def _finished(model: Network, machine: MooreMachine, counts: MooreMachine | None, empty_word: bool) -> MooreMachine:
    """Minimal, the start with an output of its own or merged."""
    if empty_word:
        return minimise(machine)
    outputs = list(machine.outputs)
    if counts is None or counts.outputs[counts.start]:
        outputs[machine.start] = model.outputs[int(decode(model.initial_logits()[None], -1))]
    return smallest_after_first(MooreMachine(machine.delta, outputs, machine.start, machine.alphabet))


def _held_out(asked: MaskedModel, machine: MooreMachine, length: int, seed: int) -> HeldOutAgreement:
    tokens = asked.mask.random_words(np.random.default_rng(seed), _HELD_OUT, length)
    number = {output: j for j, output in enumerate(asked.model.outputs)}
    wanted = np.array([number.get(output, UNCOUNTED) for output in machine.outputs])
    given, counts = asked.words(tokens), asked.mask.counts[asked.mask.path(tokens)]
    path = paths(machine.delta, np.full(len(tokens), machine.start), tokens)
    wrong = counts & (wanted[path] != given)
    bad = np.flatnonzero(wrong.any(0))
    agreement = 1 - float(wrong.sum()) / max(1, int(counts.sum()))
    return HeldOutAgreement(len(tokens), length, agreement, int(bad[0]) + 1 if len(bad) else None)
