"""Learned, then proved: a network of one-hot columns is trained until a head is the machine (docs/theory.md §10)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, UnsupportedFormat
from fsa2lrnn.extraction import extract
from fsa2lrnn.files import alone, exists
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lower.harden import heads_of
from fsa2lrnn.lrnn.layers import name_of
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.tensor_file import digest
from fsa2lrnn.source_kinds import endings
from fsa2lrnn.symbols import align
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.learning.cascades import CascadePlan, DistilledRun, check_teacher, plan_cascade
from fsa2lrnn.training.learning.ending import learned_of, trained
from fsa2lrnn.training.learning.examples import FreshWords, UserWords
from fsa2lrnn.training.learning.judging import LearningTarget, agreement
from fsa2lrnn.training.learning.merging import merge
from fsa2lrnn.training.learning.noisy_merging import merge_noisy, wrong_labels
from fsa2lrnn.training.learning.prune import fewest, observe
from fsa2lrnn.training.learning.recipe import Recipe, check_noise, recipe_for
from fsa2lrnn.training.learning.result import Agreement, Learned
from fsa2lrnn.training.learning.run import LearningRun, Record
from fsa2lrnn.training.learning.saving import RunFolder, RunRequest, write_learned
from fsa2lrnn.training.learning.theory import LearnabilityPrediction, foresee
from fsa2lrnn.training.learning.whole import WholeRun
from fsa2lrnn.training.learning.word_files import Data, from_pairs, read_words
from fsa2lrnn.training.train import use_threads
from fsa2lrnn.verdicts import Proved

METHODS = ("train", "rpni", "merge", "cascade")
"""The ways to learn: by gradient with one-hot columns; by merging states, of right labels or by a test; a cascade's
components, taught to layers of small blocks."""
HELD_OUT = 0.1  # of a user's words
_LARGEST = 8  # numbers that a reflection layer exchanges where theory says nothing

_GIVEN = "words drawn as the held-out ones were"


def learn(
    source: str | MooreMachine | Path | Data | Iterable[Any],
    recipe: Recipe | None = None,
    *,
    method: str = "train",
    teacher: MooreMachine | None = None,
    sampler: str = "task",
    held_out: float = HELD_OUT,
    alphabet: Sequence[Hashable] | None = None,
    folder: str | Path | None = None,
    resume: bool = True,
    report: Callable[[Record], None] | None = None,
    **changes: Any,
) -> Learned:
    """Learn a machine from its words, or from a user's, and say how sure it is.

    Words of a machine are fresh and as many as it takes; the result is proved equal to it, or a shortest word on which
    it fails joins the words and training goes on. A user's words are all there is: some are held out, and the answer
    says how the machine does on them.

    Args:
        source: a machine, or text that names one ("task:sum_mod(5)", "regex:(ab)*", a file of a machine); or data: the
            path of a file of words (`word_files.read_words`), what it returns, or pairs (word, output) as AALpy takes.
        recipe: how to train; by default `recipe_for` the number of states, with `changes`.
        method: "train"; or, of given words, "rpni", which merges states of right labels in a second (AALpy) but knows
            no wrong ones, or "merge", which merges them by a test that does (`noisy_merging`). Or, of a machine,
            "cascade": its cascade is taught to layers of blocks of at most `block` states, 8 by default, as many as it
            takes unless `layers` and `heads` are given; then they are trained on as a whole (`cascades`).
        teacher: whose cascade is taught, such as a machine that was learned before; by default the source's.
        sampler: how words of a machine are drawn (`training.data.make_sampler`).
        held_out: the share of a user's words that are kept from learning, 0 for none.
        alphabet: the letters there are; a word with another is refused, a machine has no others.
        folder: where the run is saved, to go on from if it is cut off.
        report: called at each look with its record.

    Raises:
        UnsupportedFormat: for a source, data or settings that do not fit; labels that contradict each other are such
            unless `noise` says that some are wrong.
        NotExpressible: for a layer that can't be the machine, before it is trained, and where no cascade fits.
        BudgetExceeded: if a layer can't be taught, or if not even one head had a machine of a sensible size when the
            steps ran out.
        OutOfTime: if the recipe's seconds end a merger or the teaching of a cascade. Training that they end returns
            what it has, with the verdict on that.
        MissingPackage: for "rpni" without AALpy.

    >>> found = learn("task:sum_mod(2)")
    >>> found.is_proved, found.machine.n_states, found.scope
    (True, 2, 'every word')
    """
    if method not in METHODS:
        raise UnsupportedFormat(f"method {method!r} is not known: choose one of {', '.join(METHODS)}")
    if not 0 <= held_out < 1:
        raise UnsupportedFormat(f"held_out = {held_out!r} must be a share from 0 to below 1")
    if recipe is not None and changes:
        raise UnsupportedFormat(f"give a recipe or changes ({', '.join(changes)}), not both")
    machine, data = _machine_or_data(source, alphabet)
    if method == "cascade" and machine is None:
        raise UnsupportedFormat(
            'method "cascade" teaches a machine that is there, and proves it: learn one from these words first, its '
            "machine.json is such a source"
        )
    if teacher is not None and method != "cascade":
        raise UnsupportedFormat(f'a teacher is for method "cascade", not for "{method}"')
    n_states = None if machine is None else minimise(machine).n_states
    begun = time.monotonic()
    plan, foreseen = None, None
    if machine is not None and method == "cascade":
        plan = plan_cascade(teacher or machine, recipe, **changes)
        recipe = plan.recipe
    else:
        recipe = recipe or recipe_for(n_states, **changes)
    if machine is not None:
        recipe, foreseen = _foreseen(machine, recipe, sampler, source if isinstance(source, str) else "")
    elif recipe.is_whole:
        raise UnsupportedFormat(f"layer = {recipe.layer!r} is proved as a whole, against a machine: words take blocks")
    analysis = time.monotonic() - begun  # the recipe's seconds limit it together with the training
    if data is None and method in ("rpni", "merge"):
        raise UnsupportedFormat(f'method "{method}" learns from given words: give a file of words, not a machine')
    if method == "rpni" and not recipe.is_clean:
        raise UnsupportedFormat(
            f'method "rpni" takes every label for right, yet noise = {recipe.noise} says that some are wrong: take '
            'method "merge" or "train", or leave noise out'
        )
    if data is not None:
        check_noise(recipe.noise, len(data.outputs))
        if recipe.is_clean:
            data.check_consistent()
    asked_of = None if machine is None else _asked_of(machine, source, sampler, recipe, plan)
    with ExitStack() as held:
        held.enter_context(use_threads(recipe.threads))
        saved = None
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            held.enter_context(alone(Path(folder), "run"))
            asked = RunRequest(_name(source), _digest(machine, data, teacher), method, sampler, float(held_out), recipe)
            saved = RunFolder(Path(folder), asked, resume)
        if asked_of is not None:
            assert n_states is not None
            found = _from_machine(*asked_of, recipe, n_states, saved, report, foreseen, plan, analysis)
        else:
            assert data is not None
            found = _from_data(data, recipe, method, held_out, saved, report)
        if saved is not None:
            write_learned(saved.folder, found)
        return found


def then_prove(model: LRNN, source: str | MooreMachine, sampler: str = "task", seed: int = 0) -> Learned:
    """What a model that is an automaton (`Layer.is_finite`), trained otherwise, has learned, and the verdict on it.

    Of one layer of one-hot columns over letters it is read off the heads, and what they are is proved. Of other such
    models it is the model itself, on every word but the empty one, which training does not show it.

    Raises:
        UnsupportedFormat: for a model with a layer that is no automaton.
        BudgetExceeded: if there are too many states to show a machine.
    """
    begun = time.monotonic()
    machine = MooreMachine.from_source(source) if isinstance(source, str) else source
    examples = FreshWords(machine, sampler, source if isinstance(source, str) else "")
    if not model.recurrences[0].has_maps or len(model.layers) > 1 or model.config.token_shift:
        return _whole(model, LearningTarget(examples.machine, examples.sampler, examples.outputs), begun)
    heads = heads_of(model)
    batch = examples.look(examples.fit(40), torch.Generator().manual_seed(seed))
    candidate = fewest(observe(heads, batch, examples.alphabet, examples.outputs))
    if candidate is None:
        raise BudgetExceeded("the heads that determine the outputs reach too many states: train fewer or smaller ones")
    judged = LearningTarget(examples.machine, examples.sampler, examples.outputs).judge(candidate.machine)
    return Learned(
        judged.model, judged.machine, judged.verdict, judged.scope, candidate.heads, model, (), 0, 1,
        time.monotonic() - begun, candidate.faults, candidate.labels,
    )  # fmt: skip


def _whole(model: LRNN, target: LearningTarget, begun: float) -> Learned:
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
    machine = target.wanted if isinstance(verdict, Proved) else extract(model)
    heads = tuple(range(sum(layer.n_heads for layer in model.recurrences)))
    scope = f"{target.scope}, the empty one excepted"
    return Learned(model, machine, verdict, scope, heads, model, (), 0, 1, time.monotonic() - begun, 0, 0)


def _foreseen(
    machine: MooreMachine, recipe: Recipe, sampler: str, name: str
) -> tuple[Recipe, LearnabilityPrediction | None]:
    """The recipe with what theory says of sizes, and all that it says, of the words that are drawn. Raises
    `NotExpressible` where it says no."""
    if recipe.layer == "block":
        return recipe, None
    examples = FreshWords(machine, sampler, name)
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    wanted, ignore = target.counting(target.scope)
    wanted = minimise(wanted)
    found = foresee(wanted, recipe.layer, ignore, Deadline.of(recipe.seconds))
    if found is None:
        return recipe, None
    if found.answer == "no" and not recipe.anyway:
        how = "" if recipe.layer == "hard_lanes" else " with one vector a state"
        raise NotExpressible(
            f"no {recipe.layer} layer can be this machine{how}, so it is not trained: {found.says}; take "
            "layer='block', which can be any machine, or anyway=True to see for yourself"
        )
    block = recipe.block or found.block or min(_LARGEST, wanted.n_states)
    return replace(recipe, block=block, factors=recipe.factors or found.factors or block - 1 or 1), found


def _machine_or_data(source: Any, alphabet: Sequence[Hashable] | None) -> tuple[MooreMachine | None, Data | None]:
    if isinstance(source, MooreMachine):
        if alphabet is not None:
            align(tuple(alphabet), source.alphabet)
        return source, None
    if isinstance(source, Data):
        return None, source
    if isinstance(source, str | Path):
        if Path(source).suffix in (".jsonl", ".csv"):
            return None, read_words(source, alphabet)
        if exists(source) and not str(source).lower().endswith(tuple(endings().split())):
            raise UnsupportedFormat(
                f"{str(source)!r} can't be read, its kind is not known: words with outputs are in .jsonl and .csv, "
                f"automata in {endings()}"
            )
        return MooreMachine.from_source(str(source), alphabet=alphabet), None
    return None, from_pairs(source, alphabet)


def _digest(machine: MooreMachine | None, data: Data | None, teacher: MooreMachine | None) -> str:
    if machine is not None:
        text = machine.to_json() + ("" if teacher is None else teacher.to_json())
        return hashlib.sha256(text.encode()).hexdigest()
    assert data is not None
    return digest({name: getattr(data, name) for name in ("tokens", "labels", "lengths")})


def _name(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else type(source).__name__


def _asked_of(
    machine: MooreMachine, source: Any, sampler: str, recipe: Recipe, plan: CascadePlan | None
) -> tuple[FreshWords, LearningTarget]:
    """The words of a machine, and what is to be right on them; the cascade to be taught has to be."""
    examples = FreshWords(machine, sampler, source if isinstance(source, str) else "", recipe.noise or 0.0)
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    if plan is not None:
        check_teacher(plan, target)
    return examples, target


def _from_machine(
    examples: FreshWords, target: LearningTarget, recipe: Recipe, n_states: int, saved: RunFolder | None,
    report: Callable[[Record], None] | None, foreseen: LearnabilityPrediction | None, plan: CascadePlan | None,
    analysis: float,
) -> Learned:  # fmt: skip
    if recipe.is_whole:
        whole = (
            WholeRun(recipe, examples, target, n_states)
            if plan is None
            else DistilledRun(plan, examples, target, n_states)
        )
        if foreseen is not None:
            whole.trail.insert(0, {"step": 0, "event": "theory", "answer": foreseen.answer, "says": foreseen.says})
        whole.seconds = analysis
        candidate = trained(whole, saved, report)
        return learned_of(whole, candidate, candidate.machine, whole.attempt.model, whole.verdict, target.scope)
    run = LearningRun(recipe, examples, target, n_states)
    run.seconds = analysis
    candidate = trained(run, saved, report)
    judged = target.judge(candidate.machine)
    return learned_of(run, candidate, judged.machine, judged.model, judged.verdict, judged.scope)


def _from_data(
    data: Data, recipe: Recipe, method: str, held_out: float, saved: RunFolder | None,
    report: Callable[[Record], None] | None,
) -> Learned:  # fmt: skip
    kept, out = data.split(held_out, recipe.seed)
    begun = time.monotonic()
    if method != "train":
        deadline = Deadline.of(recipe.seconds)
        machine = merge(kept, deadline) if method == "rpni" else merge_noisy(kept, recipe.noise, deadline)
        model = compile_machine(machine, normalisation="onehot")
        return Learned(
            model, machine, _evidence(machine, out, data, recipe.noise), _GIVEN, (), None, (), 0, 0,
            time.monotonic() - begun, wrong_labels(machine, kept), kept.n_labels,
        )  # fmt: skip
    examples = UserWords(data.alphabet, data.outputs, kept.tokens, kept.labels)
    run = LearningRun(recipe, examples, None, None)
    candidate = trained(run, saved, report)
    model = compile_machine(candidate.machine, normalisation="onehot")
    verdict = _evidence(candidate.machine, out, data, recipe.noise)
    return learned_of(run, candidate, candidate.machine, model, verdict, _GIVEN)


def _evidence(machine: MooreMachine, out: Data | None, data: Data, noise: float | None) -> Agreement | None:
    return None if out is None else agreement(machine, Batch(out.tokens, out.labels), data.outputs, noise)
