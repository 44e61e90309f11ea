"""The facts of a report on a run of `learn`: the verdict on the learned model, and the history of its heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.extra.report.assemble import constructed_model, digest_facts, look_inside, proof_facts
from fsa2lrnn.extra.report.compare import compare
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, written
from fsa2lrnn.extra.report.drawing.ranks import distances
from fsa2lrnn.extra.report.facts import NOWHERE, HistoryHead, HistorySnapshot, Learning, Model, ReportFacts
from fsa2lrnn.extra.report.gather import accuracy_of, machine_facts
from fsa2lrnn.extra.report.joint import heads_by_layer
from fsa2lrnn.extraction import extract
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.learning.examples import FreshWords
from fsa2lrnn.training.learning.film import NEVER, Frame, HeadHistory
from fsa2lrnn.training.learning.judging import LearningTarget
from fsa2lrnn.training.learning.result import EVERY_WORD, told
from fsa2lrnn.training.learning.saving import FinishedRun, read_agreement
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.versions import versions

DRAWN = 24  # states of a machine that is drawn
_EVENTS = {
    "focused": "from here one head alone is trained, the best",
    "mended": "the best head is mended by search, and goes on alone",
}
_COMPUTED = {"rpni": "states of right labels were merged (RPNI)", "merge": "states were merged by a test"}


def assemble_learned(
    run: FinishedRun,
    evaluated: dict[str, Any],
    against: str | None = None,
    ignore: Any = (),
    say: Callable[[str], None] | None = None,
    seconds: float | None = None,
) -> ReportFacts:
    """Return all facts on the model that a run of `learn` has learned.

    The model is compared anew with a machine, the run's source or `against`, without trust in the verdict of the
    folder. For a model learned from words the page shows the extracted machine and the accuracy on held-out words.

    Args:
        evaluated: the arguments of `training.compare.compare` except the models.
        ignore: outputs that do not count, if `against` names the machine.
        seconds: the time limit of the proof; by default there is none.

    Raises:
        UnsupportedFormat: for a run from a machine that had no name, unless `against` names it.
    """
    name = run.folder.resolve().name
    recorded, say = run.recorded, say or (lambda _: None)
    is_of_words = recorded.verdict is None or recorded.verdict["verdict"] == "agreement"
    source = against or run.asked.source
    request = {"source": run.asked.source, "method": run.asked.method, "seed": str(run.asked.recipe.seed)}
    provenance = {**request, **digest_facts(run.model)}
    if is_of_words and against is None:
        machine = extract(run.model)
        agreement = told(read_agreement(run), EVERY_WORD, machine.alphabet)
        agreement = f"a machine of {counted(machine.n_states, 'state')}{agreement}"
        method = _COMPUTED.get(run.asked.method)
        evidence = f"learned from words, so nothing is proved of it; {f'{method}; ' if method else ''}{agreement}"
        parameters = sum(weight.numel() for weight in run.model.parameters())
        model = Model(
            name, "learned", parameters=parameters, evidence=evidence, learning=_learning(run, agreement),
            provenance=provenance,
        )  # fmt: skip
        return _facts(f"{source}: learned from words", source, machine, [model])
    machine = _machine(source, run.model)
    say(f"{name}: prove")
    verdict, scope, target, ignored = _compared(run, machine, source, None if against is None else ignore, seconds)
    say(f"{name}: compare")
    document = compare(source, {name: run.model}, **evaluated, machine=machine)
    within = look_inside(run.model, target, ignore=ignored)
    model = Model(
        name,
        "learned",
        parameters=document["models"][name]["parameters"],
        **_verdict_facts(verdict),
        scope=_scope(verdict, scope),
        accuracy=accuracy_of(document, name),
        inside=within[0] if within else None,
        alignment=within[1] if within else None,
        learning=replace(
            _learning(run, f"a model, judged anew{told(verdict, scope, machine.alphabet)}"),
            layers=heads_by_layer(run.model, target, ignored, DRAWN),
        ),
        provenance=provenance,
    )
    constructed = constructed_model(machine, document, model.inside)
    end = "learned and proved" if isinstance(verdict, Proved) else "learned against constructed"
    return _facts(f"{source.removeprefix('task:')}: {end}", source, machine, [model, constructed])


def _facts(title: str, source: str, machine: MooreMachine, models: list[Model]) -> ReportFacts:
    return ReportFacts(title, source, date.today().isoformat(), machine_facts(machine), models, versions())


def _machine(source: str, model: LRNN) -> MooreMachine:
    """Return the machine of a source, over the model's letters in their order where these include its own."""
    try:
        machine = MooreMachine.from_source(source)
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{error}; give the SOURCE that the run learned after the folder") from error
    if machine.alphabet != model.alphabet and set(machine.alphabet) <= set(model.alphabet):
        return MooreMachine.from_source(source, alphabet=model.alphabet)
    return machine


def _compared(
    run: FinishedRun, machine: MooreMachine, source: str, ignore: Any, seconds: float | None
) -> tuple[Proved | Refuted | Undecided, str, MooreMachine, Any]:
    """Return the verdict, its words, the machine of the comparison, and the outputs that do not count."""
    if ignore is not None:
        return prove_equivalent(run.model, machine, ignore=ignore, seconds=seconds), EVERY_WORD, machine, ignore
    examples = FreshWords(machine, run.asked.sampler, source)
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    verdict, scope = target.verdict(run.model, seconds)
    return verdict, scope, *target.counting(scope)


def _verdict_facts(verdict: Proved | Refuted | Undecided) -> dict[str, Any]:
    if isinstance(verdict, Refuted):
        return {"failure": verdict.failure.as_text()}
    if isinstance(verdict, Undecided):
        return {"proved": verdict.checked_length}
    return proof_facts(None, verdict)


def _scope(verdict: Proved | Refuted | Undecided, scope: str) -> str | None:
    if scope != EVERY_WORD:
        return f"counted: {scope}"
    return str(verdict.scope) if verdict.scope.ignored_states else None


def _learning(run: FinishedRun, evidence: str) -> Learning:
    recorded = run.recorded
    return Learning(
        evidence, list(_carrying_heads(run)), _heads(run), recorded.steps, recorded.starts, recorded.seconds,
        *([], []) if run.film is None else _history(run.film), is_whole=run.asked.recipe.is_whole,
    )  # fmt: skip


def _carrying_heads(run: FinishedRun) -> tuple[int, ...]:
    """Return the heads of the final model, by their numbers before training continued with one alone."""
    if run.film is None or run.network is None:
        return run.recorded.heads
    return tuple(run.film.frames[-1].heads[h] for h in run.recorded.heads)


def _heads(run: FinishedRun) -> int:
    return run.asked.recipe.layers * run.asked.recipe.heads if run.network is not None else 0


def _history(film: HeadHistory) -> tuple[list[str], list[HistorySnapshot]]:
    """Return the outputs in the order of their colours, and the frames."""
    return [*written(film.outputs), NOWHERE], [_shot(film, frame) for frame in film.frames]


def _shot(film: HeadHistory, frame: Frame) -> HistorySnapshot:
    heads = [_filmed(film, frame, i, head) for i, head in enumerate(frame.heads)]
    return HistorySnapshot(frame.step, frame.length, _EVENTS.get(frame.event, ""), heads)


def _filmed(film: HeadHistory, frame: Frame, i: int, head: int) -> HistoryHead:
    """Return a head's reachable automaton, its states merged where the majority outputs of all continuations agree."""
    rows, start = [letter[i] for letter in frame.next_state], frame.start[i]
    steps = distances(len(rows[0]), [(q, then) for row in rows for q, then in enumerate(row)], start)
    n_states = sum(q == start or steps[q] > 0 for q in range(len(rows[0])))
    minimal = minimise(MooreMachine(rows, frame.outputs[i], start))
    machine = None
    if minimal.n_states <= DRAWN:
        names = written(film.outputs)
        outputs = [NOWHERE if output == NEVER else names[int(str(output))] for output in minimal.outputs]
        machine = DrawnMachine.of(minimal.delta.tolist(), outputs, minimal.start, film.alphabet)
    return HistoryHead(head, n_states, minimal.n_states, frame.faults[i], machine)
