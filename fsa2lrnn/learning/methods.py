"""Learning with a proof: a network of one-hot columns is trained until a head is the machine (docs/theory.md §10)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.automata.language import minimise, output_classes, share_cells
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.compile.heads import heads_of
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.files import alone, endings, exists, is_folder
from fsa2lrnn.learning.choosing import SECONDS, choose, estimate_noise
from fsa2lrnn.learning.examples import FreshWords, UserWords
from fsa2lrnn.learning.judging import LearningTarget, agreement, is_restricted
from fsa2lrnn.learning.learning_run import LearningRun, Record, WholeRun
from fsa2lrnn.learning.merging import wrong_labels
from fsa2lrnn.learning.prune import CandidateMachine, fewest, observe
from fsa2lrnn.learning.recipe import Recipe, check_noise, check_possible, recipe_for
from fsa2lrnn.learning.result import EVERY_WORD, Agreement, Learned
from fsa2lrnn.learning.saving import RunFolder, RunRequest, write_learned
from fsa2lrnn.learning.word_files import ENDINGS, Data, from_pairs, is_word_file, read_words
from fsa2lrnn.nn.checkpoint import digest
from fsa2lrnn.nn.layers import name_of
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.symbols import align
from fsa2lrnn.training.data import Batch, make_sampler
from fsa2lrnn.training.trainer import Stop, use_threads
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.extraction import extract

METHODS = ("choice", "train")
"""Learning methods: several in turn, for data (`choosing`); gradient descent with one-hot columns."""
HELD_OUT = 0.1  # of a user's words
_LARGEST = 8  # numbers that a reflection layer exchanges, at most, unless the recipe states their number

Source = str | MooreMachine | Path | Data | Iterable[tuple[Sequence[Hashable], Hashable]]

_DATA_SCOPE = "words drawn as the held-out ones were"


def learn(
    source: Source,
    recipe: Recipe | None = None,
    *,
    method: str | None = None,
    sampler: str = "task",
    held_out: float = HELD_OUT,
    alphabet: Sequence[Hashable] | None = None,
    columns: tuple[str, str] | None = None,
    separator: str | None = None,
    folder: str | Path | None = None,
    resume: bool = True,
    report: Callable[[Record], None] | None = None,
    **changes: object,
) -> Learned:
    """Return a machine learned from its own words or from a user's, with a proof or the evidence for it.

    For a machine, fresh words are drawn as needed. The result is proved equal to the machine, or a shortest
    counterexample joins the words and training continues. Of a user's words some are held out; the evidence is the
    agreement of the learned machine with those.

    Args:
        source: a machine, or text that names one ("task:sum_mod(5)", "regex:(ab)*", a file of a machine); or data: the
            path of a file of words (`word_files.read_words`), what it returns, or pairs (word, output) as AALpy takes.
        recipe: how to train; by default `recipe_for` the number of states, with `changes`.
        method: "train", the default for a machine; for data also "choice", the default, which runs several methods
            and takes the machine of the shortest description (`choosing`).
        sampler: how words of a machine are drawn (`training.data.make_sampler`).
        held_out: the share of a user's words that are held out, 0 for none.
        alphabet: the letters; a word with another letter is refused, and a machine has to have exactly these.
        columns, separator: of a file of words, as `word_files.read_words` takes them.
        folder: the folder where the run is saved, and from which an interrupted run resumes.
        report: called at each evaluation with its record.

    Raises:
        UnsupportedFormat: for an invalid source, data or settings, and for labels that contradict each other unless
            `noise` allows wrong ones.
        NotExpressible: if theory excludes the machine for networks of the recipe's layer.
        BudgetExceeded: if no head has a machine of a manageable size at the end.

    >>> found = learn("task:sum_mod(2)")
    >>> found.is_proved, found.machine.n_states, found.scope
    (True, 2, 'every word')
    """
    if method is not None and method not in METHODS:
        raise UnsupportedFormat(f"method {method!r} is not known: choose one of {', '.join(METHODS)}")
    if not 0 <= held_out < 1:
        raise UnsupportedFormat(f"held_out = {held_out!r} must be a share from 0 to below 1")
    if recipe is not None and changes:
        raise UnsupportedFormat(f"give a recipe or changes ({', '.join(changes)}), not both")
    machine, data = _machine_or_data(source, alphabet, columns, separator)
    method = method or ("train" if data is None else "choice")
    n_states = None if machine is None else minimise(machine).n_states
    if method == "choice" and recipe is None:
        # The share of wrong labels is estimated unless it is stated.
        changes = {"noise": None, "seconds": SECONDS} | changes
    recipe = recipe or recipe_for(n_states, _counts_every_word(machine, source, sampler), **changes)
    if method == "choice" and (unused := {*changes} - {"noise", "seconds", "seed"}):
        raise UnsupportedFormat(f"{', '.join(sorted(unused))}: settings of training, for data with method='train'")
    if recipe.suffixes and not _counts_every_word(machine, source, sampler):
        raise UnsupportedFormat(
            f"suffixes = {recipe.suffixes} take a machine of which every word counts: leave suffixes out, or take "
            'sampler="uniform"'
        )
    if recipe.is_whole:
        if n_states is None:
            raise UnsupportedFormat(
                f"layer = {recipe.layer!r} is proved as a whole, against a machine: words take blocks"
            )
        if machine is not None and _counts_every_word(machine, source, sampler):
            check_possible(recipe.layer, machine)
        block = recipe.block or min(_LARGEST, n_states)
        recipe = replace(recipe, block=block, factors=recipe.factors or block - 1 or 1)
    if data is None and method != "train":
        raise UnsupportedFormat(f'method "{method}" learns from given words: give a file of words, not a machine')
    if data is not None:
        check_noise(recipe.noise, len(data.outputs))
        if recipe.is_clean:
            data.check_consistent()
    task = None if machine is None else _task_of(machine, source, sampler, recipe)
    # Run in the folder if there is one, and write the result there.
    with ExitStack() as held:
        held.enter_context(use_threads(recipe.threads))
        saved = None
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            held.enter_context(alone(Path(folder), "run"))
            sha256 = _digest(machine, data)
            request = RunRequest(_name(source), sha256, method, sampler, float(held_out), recipe)
            saved = RunFolder(Path(folder), request, resume)
        if task is not None:
            assert n_states is not None
            learned = _from_machine(*task, recipe, n_states, saved, report)
        else:
            assert data is not None
            learned = _from_data(data, recipe, method, held_out, saved, report)
        if saved is not None:
            write_learned(saved.folder, learned)
        return learned


def then_prove(model: LRNN, source: MachineSource, sampler: str = "task", seed: int = 0) -> Learned:
    """Return the machine of a trained model that is an automaton (`Layer.is_finite`), with the verdict on it.

    For one layer of one-hot columns over letters the machine is read from the heads and verified. For other models the
    model itself is verified, on every word except the empty one, on which models are not trained.

    Raises:
        UnsupportedFormat: for a model with a layer that is not an automaton.
        BudgetExceeded: if the machine has too many states.
    """
    begun = time.process_time()
    machine = as_machine(source)
    examples = FreshWords(machine, sampler, source if isinstance(source, str) else "")
    if not model.recurrences[0].has_maps or len(model.layers) > 1 or model.config.token_shift:
        return _whole(model, LearningTarget(examples.machine, examples.sampler, examples.outputs), begun)
    heads = heads_of(model)
    batch = examples.evaluation_words(examples.fit(40), torch.Generator().manual_seed(seed))
    candidate = fewest(observe(heads, batch, examples.alphabet, examples.outputs))
    if candidate is None:
        raise BudgetExceeded("the heads that determine the outputs reach too many states: train fewer or smaller ones")
    verified = LearningTarget(examples.machine, examples.sampler, examples.outputs).judge(candidate.machine)
    return Learned(
        verified.model, verified.machine, verified.verdict, verified.scope, candidate.heads, model, (), 0, 1,
        time.process_time() - begun, candidate.faults, candidate.labels,
    )  # fmt: skip


def _whole(model: LRNN, target: LearningTarget, begun: float) -> Learned:
    """Return the verdict on a network as a whole, with the machine that it is proved to be or that is extracted."""
    if other := [
        name_of(config)
        for config, layer in zip(model.config.layers, model.recurrences, strict=True)
        if not layer.is_finite(model.config.normalisation)
    ]:
        raise UnsupportedFormat(
            f"layers of kind {', '.join(other)} under the column rule {model.config.normalisation!r} have states "
            "without end: take normalisation='onehot', or a layer that is an automaton whatever its weights"
        )
    verdict = target.judge_network(model, empty_word=False)
    machine = target.specification if isinstance(verdict, Proved) else extract(model)
    heads = tuple(range(sum(layer.n_heads for layer in model.recurrences)))
    scope = f"{target.scope}, the empty one excepted"
    return Learned(model, machine, verdict, scope, heads, model, (), 0, 1, time.process_time() - begun, 0, 0)


def _machine_or_data(
    source: Source, alphabet: Sequence[Hashable] | None, columns: tuple[str, str] | None, separator: str | None
) -> tuple[MooreMachine | None, Data | None]:
    """Return the machine or the words that a source names; exactly one of the two is None."""
    is_file = isinstance(source, str | Path) and is_word_file(source)
    if (columns or separator) and not is_file:
        raise UnsupportedFormat("columns and a separator are for .csv and .jsonl files of words: leave them out")
    if isinstance(source, MooreMachine):
        if alphabet is not None:
            align(tuple(alphabet), source.alphabet)
        return source, None
    if isinstance(source, Data):
        return None, source
    if isinstance(source, str | Path):
        if is_file:
            return None, read_words(source, alphabet, columns, separator)
        if is_folder(source):
            raise UnsupportedFormat(f"{source} is a folder: give a file of words ({' '.join(ENDINGS)}) or an automaton")
        if exists(source) and not str(source).lower().endswith(tuple(endings().split())):
            raise UnsupportedFormat(
                f"{str(source)!r} cannot be read, its kind is not known: words with outputs are in "
                f"{' '.join(ENDINGS)}, automata in {endings()}"
            )
        return MooreMachine.from_source(str(source), alphabet=alphabet), None
    return None, from_pairs(source, alphabet)


def _counts_every_word(machine: MooreMachine | None, source: Source, sampler: str) -> bool:
    if machine is None:
        return False
    return not is_restricted(make_sampler(sampler, minimise(machine), source if isinstance(source, str) else ""))


def _digest(machine: MooreMachine | None, data: Data | None) -> str:
    if machine is not None:
        return hashlib.sha256(machine.to_json().encode()).hexdigest()
    assert data is not None
    return digest({name: getattr(data, name) for name in ("tokens", "labels", "lengths")})


def _name(source: Source) -> str:
    return str(source) if isinstance(source, str | Path) else type(source).__name__


def _task_of(machine: MooreMachine, source: Source, sampler: str, recipe: Recipe) -> tuple[FreshWords, LearningTarget]:
    examples = FreshWords(machine, sampler, source if isinstance(source, str) else "", recipe.noise or 0.0)
    return examples, LearningTarget(examples.machine, examples.sampler, examples.outputs)


def _from_machine(
    examples: FreshWords, target: LearningTarget, recipe: Recipe, n_states: int, saved: RunFolder | None,
    report: Callable[[Record], None] | None,
) -> Learned:  # fmt: skip
    """Return the result of training on a machine's words, with the verdict against the machine itself."""
    if recipe.is_whole:
        whole = WholeRun(recipe, examples, target, n_states)
        candidate = trained(whole, saved, report)
        return learned_of(whole, candidate, candidate.machine, whole.attempt.model, whole.verdict, target.scope)
    refined, learned = None, target
    if recipe.suffixes:
        # Learn the machine with refined labels; the verdict is on the original letters and outputs.
        refined = refine(examples.machine, recipe.suffixes)
        examples = FreshWords(refined.machine)
        learned = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    run = LearningRun(recipe, examples, learned, n_states)
    candidate = trained(run, saved, report)
    verified = target.judge(candidate.machine if refined is None else refined.original(candidate.machine))
    return learned_of(run, candidate, verified.machine, verified.model, verified.verdict, verified.scope)


def _from_data(
    data: Data, recipe: Recipe, method: str, held_out: float, saved: RunFolder | None,
    report: Callable[[Record], None] | None,
) -> Learned:  # fmt: skip
    """Return the result of merging or training on a user's words, with the agreement on those held out."""
    training, out = data.split(held_out, recipe.seed)
    begun, noise = time.process_time(), recipe.noise
    if method == "choice":
        said = (lambda what: report({"stage": what})) if report is not None else (lambda _: None)
        limit = Deadline(recipe.seconds or SECONDS)
        machine = choose(training, noise, limit, said)
        estimate = estimate_noise(machine, data)
        noise = estimate.share if noise is None else noise
        model = compile_machine(machine, normalisation="onehot")
        return Learned(
            model, machine, _evidence(machine, out, data, noise), _DATA_SCOPE, (), None, (), 0, 0,
            time.process_time() - begun, wrong_labels(machine, training), training.n_labels, estimate,
        )  # fmt: skip
    examples = UserWords(data.alphabet, data.outputs, training.tokens, training.labels)
    run = LearningRun(recipe, examples, None, None)
    candidate = trained(run, saved, report)
    model = compile_machine(candidate.machine, normalisation="onehot")
    verdict = _evidence(candidate.machine, out, data, recipe.noise)
    return learned_of(run, candidate, candidate.machine, model, verdict, _DATA_SCOPE)


def _evidence(machine: MooreMachine, out: Data | None, data: Data, noise: float | None) -> Agreement | None:
    return None if out is None else agreement(machine, Batch(out.tokens, out.labels), data.outputs, noise)


def trained(run: LearningRun, saved: RunFolder | None, report: Callable[[Record], None] | None) -> CandidateMachine:
    """Return the candidate at the end of a run; an interrupted run resumes from its folder.

    Raises `BudgetExceeded` if no machine is small enough to list.
    """
    if saved is None:
        learned = run.go(report)
    else:
        saved.restore(run)
        with Stop() as stop:
            learned = run.go(report, partial(_save_between, saved, stop))
    if learned is None:
        raise BudgetExceeded(
            f"after {run.steps:,} steps and {run.starts} starts every head reaches too many states to list them in "
            "time, so there is no machine to show: give more steps or seconds, or smaller blocks"
        )
    return learned.candidate


def _save_between(saved: RunFolder, stop: Stop, run: LearningRun) -> None:
    """Save the run if the last save is half a minute ago, or save it and raise KeyboardInterrupt after a signal."""
    if stop.asked:
        saved.save(run)
        raise KeyboardInterrupt
    saved.keep(run)


def learned_of(
    run: LearningRun,
    candidate: CandidateMachine,
    machine: MooreMachine,
    model: LRNN,
    verdict: Proved | Refuted | Undecided | Agreement | None,
    scope: str = EVERY_WORD,
) -> Learned:
    """Return the result of a run that ended with a candidate, with its verified machine and model."""
    return Learned(
        model, machine, verdict, scope, candidate.heads, run.attempt.model, tuple(run.trail), run.steps, run.starts,
        run.seconds, candidate.faults, candidate.labels,
    )  # fmt: skip


class RefinedMachine(NamedTuple):
    """The machine to be learned, with the class of each letter and the output of each label."""

    machine: MooreMachine
    alphabet: tuple[Hashable, ...]
    cell: np.ndarray
    output: dict[Hashable, Hashable]

    def original(self, machine: MooreMachine) -> MooreMachine:
        """Return a machine over the labels and letter classes as one over the outputs and letters, minimised."""
        outputs = [self.output.get(label, label) for label in machine.outputs]
        order = [machine.alphabet.index(letter) for letter in self.machine.alphabet]
        return minimise(MooreMachine(machine.delta[order][self.cell], outputs, machine.start, self.alphabet))


def refine(machine: MooreMachine, length: int) -> RefinedMachine:
    """Return a minimal machine with labels refined by suffixes of up to `length` letters, and one letter per class.

    An output that is not split is its own label; the parts of any other are pairs (output, number).

    >>> refined = refine(MooreMachine.from_source("regex:(a|b)*c(a|b)"), 2)
    >>> refined.machine.outputs, refined.machine.alphabet
    (((False, 0), (False, 1), True, (False, 2)), ('a', 'c'))
    >>> refined.original(refined.machine).transduce("abca") == [False, False, False, True]
    True
    """
    cell, representatives = share_cells(machine.delta)
    delta = machine.delta[representatives]
    classes = output_classes(machine.outputs)
    for _ in range(length):
        # Two states stay together if they have one class now and after each letter.
        rows = np.vstack([classes, classes[delta]])
        finer = output_classes(list(map(tuple, rows.T.tolist())))
        if finer.max() == classes.max():
            break
        classes = finer
    parts: dict[Hashable, dict[int, int]] = {}
    for output, number in zip(machine.outputs, classes.tolist(), strict=True):
        of_output = parts.setdefault(output, {})
        of_output.setdefault(number, len(of_output))
    labels: list[Hashable] = [
        (output, parts[output][number]) if len(parts[output]) > 1 else output
        for output, number in zip(machine.outputs, classes.tolist(), strict=True)
    ]
    letters = tuple(machine.alphabet[a] for a in representatives)
    refined = MooreMachine(delta, labels, machine.start, letters)
    return RefinedMachine(refined, machine.alphabet, cell, dict(zip(labels, machine.outputs, strict=True)))
