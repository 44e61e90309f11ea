"""Assemble the facts of a report on a run of `learn`: a verdict on the learned model, and the history of its heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.extra.learning import public as learning
from fsa2lrnn.extra.report.assemble import constructed_model, digest_facts, measure, proof_facts, report_facts
from fsa2lrnn.extra.report.compare import compare
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, written, written_outputs
from fsa2lrnn.extra.report.facts import NOWHERE, HistoryHead, HistorySnapshot, LayerHead, Learning, Model, ReportFacts
from fsa2lrnn.extra.report.gather import reachable
from fsa2lrnn.extraction import extract
from fsa2lrnn.extraction.closed import ModelSystem
from fsa2lrnn.extraction.walk import Interner
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.specification import specification_of
from fsa2lrnn.verification.walk import JointWalk

_PAIRS = 20_000  # the most joint states of network and machine that are enumerated
_UNSURE = "?"  # marks a letter that leads to several states, depending on lower layers


class _Steps(NamedTuple):
    before: np.ndarray  # int64 (M, H)
    after: np.ndarray
    last: np.ndarray  # int64 (M,)
    letters: np.ndarray


def heads_by_layer(model: LRNN, machine: MooreMachine, ignore: Ignore = (), most: int = 24) -> list[LayerHead]:
    """Return the heads of all layers from the lowest; none for a single layer or states that are not one-hot.

    Heads with more than `most` states have no machine. The states are those reached on the words that count in
    `machine`, enumerated until no new state appears or there are more than 20,000 joint states.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> network = compile_machine(zoo.mod_arith(5), form="cascade", max_block=5)
    >>> [(head.layer, head.states, head.reads) for head in heads_by_layer(network, zoo.mod_arith(5))]
    [(0, 3, []), (0, 5, []), (1, 5, [1])]
    """
    sizes = [layer.block_sizes for layer in model.recurrences]
    if len(sizes) < 2 or (steps := _steps(model, machine, ignore)) is None:
        return []
    alphabet = written(model.alphabet)
    start = _hot_heads(model, ModelSystem(model).start())
    assert start is not None  # the steps begin with it
    found, first = list[LayerHead](), 0
    for number, blocks in enumerate(sizes):
        for h, block in enumerate(blocks):
            i = first + h
            states = sorted({int(start[0, i]), *steps.before[:, i].tolist(), *steps.after[:, i].tolist()})
            drawn = _machine_of_head(steps, i, states, int(start[0, i]), alphabet) if 1 < len(states) <= most else None
            reads, has_last = _reads(steps, i, first)
            found.append(LayerHead(number, h, block, len(states), reads, has_last, drawn))
        first += len(blocks)
    return found


def _steps(model: LRNN, machine: MooreMachine, ignore: Ignore) -> _Steps | None:
    """Return all steps from the reached states, or None if a state is not one-hot."""
    walk = JointWalk(ModelSystem(model), specification_of(model, machine, ignore))
    parts, letters_before = list[_Steps](), Interner()
    while len(walk) and walk.seen <= _PAIRS:
        rows = walk.states
        ahead, to = walk.look()
        before, after = _hot_heads(model, rows), _hot_heads(model, ahead.states)
        if before is None or after is None:
            return None
        last = _last(model, rows, letters_before)
        parts.append(_Steps(before[ahead.parents], after, last[ahead.parents], ahead.letters))
        walk.keep_new(ahead, to)
    return _Steps(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _hot_heads(model: LRNN, rows: np.ndarray) -> np.ndarray | None:
    """Return the position of the 1 in each head, by layer: uint8 (N, D) -> int (N, H); None if not all are one-hot."""
    found = []
    for part in ModelSystem(model).state_of(rows):
        x = part.x  # (N, H, b)
        if x.dim() != 3 or not bool(((x == 0) | (x == 1)).all() and (x.sum(-1) == 1).all()):
            return None
        found.append(x.argmax(-1))
    return torch.cat(found, 1).cpu().numpy()


def _last(model: LRNN, rows: np.ndarray, known: Interner) -> np.ndarray:
    """Return a number for the previous letter that the lowest layer stores, int (N,), or zeros if it stores none."""
    kept = ModelSystem(model).state_of(rows)[0].u
    if kept is None:
        return np.zeros(len(rows), np.int64)
    return known.number(np.ascontiguousarray(kept.flatten(1).cpu().numpy()).view(np.uint8))


def _reads(steps: _Steps, i: int, n_below: int) -> tuple[list[int], bool]:
    """Return heads of lower layers that, with head `i` and the letter, determine the next state of head `i`.

    The second result is whether the previous letter is needed too. The set is found by removing candidates one by one
    while the others determine the next state.
    """
    own = [steps.before[:, i], steps.letters]
    needed: list[int | None] = [None, *reversed(range(n_below))]  # None is the letter before

    def columns(of: Sequence[int | None]) -> list[np.ndarray]:
        return [steps.last if j is None else steps.before[:, j] for j in of]

    for j in list(needed):
        fewer = [k for k in needed if k != j]
        if _determine([*own, *columns(fewer)], steps.after[:, i]):
            needed = fewer
    return sorted(j for j in needed if j is not None), None in needed


def _determine(given: list[np.ndarray], wanted: np.ndarray) -> bool:
    keys = np.unique(np.stack(given, 1), axis=0, return_inverse=True)[1].reshape(-1)
    return len(np.unique(np.stack([keys, wanted], 1), axis=0)) == int(keys.max()) + 1


def _machine_of_head(steps: _Steps, i: int, states: list[int], start: int, alphabet: list[str]) -> DrawnMachine:
    moves = np.unique(np.stack([steps.letters, steps.before[:, i], steps.after[:, i]], 1), axis=0).tolist()
    number = {q: k for k, q in enumerate(states)}
    rows: dict[tuple[int, int], list[int]] = {}  # by letter, and the rank of the target among several, or −1
    for (a, q), group in groupby(moves, key=lambda move: move[:2]):
        targets = [number[then] for _, _, then in group]
        for k, then in enumerate(targets):
            rows.setdefault((a, k if len(targets) > 1 else -1), [-1] * len(states))[number[q]] = then
    ordered = sorted(rows)
    names = [str(q) for q in states]
    letters = [alphabet[a] + (_UNSURE if k >= 0 else "") for a, k in ordered]
    return DrawnMachine(names, letters, names, [rows[key] for key in ordered], number[start])


DRAWN = 24  # the most states of a machine that is drawn
_EVENTS = {
    "focused": "from here only the best head is trained",
    "repaired": "the best head is repaired by a search, and trained alone from here",
}
_COMPUTED = {"rpni": "states of right labels were merged (RPNI)", "merge": "states were merged by a test"}


def assemble_learned(
    run: Any,
    evaluated: dict[str, Any],
    against: str | None = None,
    ignore: Any = (),
    say: Callable[[str], None] | None = None,
    seconds: float | None = None,
) -> ReportFacts:
    """Return the facts of a report on the model that a run of `learn` has learned.

    The model is compared anew with a machine, the run's source or `against`; the verdict in the folder is not used. For
    a model learned from words the page shows the extracted machine and the accuracy on held-out words.

    Args:
        run: the finished run, as `learning.public.read_finished` returns it.
        evaluated: the arguments of `fsa2lrnn.extra.report.compare.compare` except `source` and `models`.
        against: the source of the machine to compare with; None for that of the run.
        ignore: the outputs that do not count, if `against` is given.
        seconds: the time limit of the proof; None for no limit.

    Raises `UnsupportedFormat` for a run from a machine without a source, unless `against` is given.
    """
    name = run.folder.resolve().name
    recorded, say = run.recorded, say or (lambda _: None)
    is_of_words = recorded.verdict is None or recorded.verdict["verdict"] == "agreement"
    source = against or run.asked.source
    request = {"source": run.asked.source, "method": run.asked.method, "seed": str(run.asked.recipe.seed)}
    provenance = {**request, **digest_facts(run.model)}
    if is_of_words and against is None:
        machine = extract(run.model)
        agreement = learning.verdict_clause(learning.read_agreement(run), learning.EVERY_WORD, machine.alphabet)
        agreement = f"a machine of {counted(machine.n_states, 'state')}{agreement}"
        method = _COMPUTED.get(run.asked.method)
        evidence = f"learned from words, so nothing is proved of it; {f'{method}; ' if method else ''}{agreement}"
        parameters = sum(weight.numel() for weight in run.model.parameters())
        model = Model(
            name, "learned", parameters=parameters, evidence=evidence, learning=_learning(run, agreement),
            provenance=provenance,
        )  # fmt: skip
        return report_facts(f"{source}: learned from words", source, machine, [model])
    # The verdict is computed anew, because the folder may be from another version or an untrusted source.
    machine = _machine(source, run.model)
    say(f"{name}: prove")
    verdict, scope, target, ignored = _compared(run, machine, source, None if against is None else ignore, seconds)
    say(f"{name}: compare")
    document = compare(source, {name: run.model}, **evaluated, machine=machine)
    model = Model(
        name,
        "learned",
        **measure(name, run.model, target, document, ignore=ignored),
        **_verdict_facts(verdict),
        scope=_scope(verdict, scope),
        learning=replace(
            _learning(run, f"a model, judged anew{learning.verdict_clause(verdict, scope, machine.alphabet)}"),
            layers=heads_by_layer(run.model, target, ignored, DRAWN),
        ),
        provenance=provenance,
    )
    constructed = constructed_model(machine, document, model.inside)
    end = "learned and proved" if isinstance(verdict, Proved) else "learned against constructed"
    return report_facts(f"{source.removeprefix('task:')}: {end}", source, machine, [model, constructed])


def _machine(source: str, model: LRNN) -> MooreMachine:
    try:
        machine = MooreMachine.from_source(source)
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{error}; give the SOURCE that the run learned after the folder") from error
    if machine.alphabet != model.alphabet and set(machine.alphabet) <= set(model.alphabet):
        return MooreMachine.from_source(source, alphabet=model.alphabet)
    return machine


def _compared(
    run: Any, machine: MooreMachine, source: str, ignore: Any, seconds: float | None
) -> tuple[Proved | Refuted | Undecided, str, MooreMachine, Any]:
    if ignore is not None:
        verdict = prove_equivalent(run.model, machine, ignore=ignore, seconds=seconds)
        return verdict, learning.EVERY_WORD, machine, ignore
    target = run.target(machine, source)
    verdict, scope = target.verdict(run.model, seconds)
    return verdict, scope, *target.counting(scope)


def _verdict_facts(verdict: Proved | Refuted | Undecided) -> dict[str, Any]:
    if isinstance(verdict, Refuted):
        return {"failure": verdict.failure.as_text()}
    if isinstance(verdict, Undecided):
        return {"proved": verdict.checked_length}
    return proof_facts(None, verdict)


def _scope(verdict: Proved | Refuted | Undecided, scope: str) -> str | None:
    if scope != learning.EVERY_WORD:
        return f"counted: {scope}"
    return str(verdict.scope) if verdict.scope.ignored_states else None


def _learning(run: Any, evidence: str) -> Learning:
    recorded, recipe = run.recorded, run.asked.recipe
    n_heads = recipe.heads if run.network is not None else 0
    return Learning(
        evidence, list(_carrying_heads(run)), n_heads, recorded.steps, recorded.starts, recorded.seconds,
        *([], []) if run.film is None else _history(run.film), is_whole=recipe.is_whole,
    )  # fmt: skip


def _carrying_heads(run: Any) -> tuple[int, ...]:
    if run.film is None or run.network is None:
        return run.recorded.heads
    return tuple(run.film.frames[-1].heads[h] for h in run.recorded.heads)


def _history(film: Any) -> tuple[list[str], list[HistorySnapshot]]:
    shots = []
    for frame in film.frames:
        heads = [_filmed(film, frame, i, head) for i, head in enumerate(frame.heads)]
        shots.append(HistorySnapshot(frame.step, frame.length, _EVENTS.get(frame.event, ""), heads))
    return [*written_outputs(film.outputs), NOWHERE], shots


def _filmed(film: Any, frame: Any, i: int, head: int) -> HistoryHead:
    rows, start = [letter[i] for letter in frame.next_state], frame.start[i]
    minimal = minimise(MooreMachine(rows, frame.outputs[i], start))
    machine = None
    if minimal.n_states <= DRAWN:
        names = written_outputs(film.outputs)
        outputs = [NOWHERE if output == learning.NEVER else names[int(str(output))] for output in minimal.outputs]
        machine = DrawnMachine.of(minimal.delta.tolist(), outputs, minimal.start, film.alphabet)
    return HistoryHead(head, len(reachable(rows, start)), minimal.n_states, frame.faults[i], machine)
