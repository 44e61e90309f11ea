"""Build the page of a report, a self-contained HTML text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fsa2lrnn.display.cards import trace
from fsa2lrnn.display.markup import Markup
from fsa2lrnn.errors import counted
from fsa2lrnn.extra.report import charts
from fsa2lrnn.extra.report.drawing.automaton import automaton, fold, hue, notes
from fsa2lrnn.extra.report.facts import (
    KINDS,
    NEAR,
    NOWHERE,
    REPAIRED,
    HistorySnapshot,
    LayerHead,
    Learning,
    Model,
    ReportFacts,
    repairs_of,
    verdict,
)
from fsa2lrnn.extra.report.render import render

MOST = 24  # the most steps of a history that are shown
_BYTES = 3_000_000  # the largest size of all drawings of a history
_SECTIONS = {
    "verdicts": "In one sentence each",
    "horizon": "Length up to which each is correct",
    "accuracy": "Accuracy by length",
    "automaton": "The automaton",
    "models": "The models from within",
    "provenance": "Where this comes from",
}


def build(facts: ReportFacts, data: str | None = None) -> str:
    """Return the page of a report as HTML; `data` is the name of the JSON file of the facts in the same folder."""
    is_shown = {
        "horizon": not all(model.evidence for model in facts.models),
        "accuracy": any(model.accuracy for model in facts.models),
        "models": bool(facts.models),
        "provenance": bool(data or facts.provenance or any(model.provenance for model in facts.models)),
    }
    n, letters = charts.LETTERS, facts.machine.alphabet
    return render(
        "report.html",
        facts=facts, data=data, summary=_summary(facts), repairs=_repairs(facts), groups=_groups(facts), charts=charts,
        sections={name: title for name, title in _SECTIONS.items() if is_shown.get(name, True)},
        kinds=KINDS, near=NEAR, nowhere=NOWHERE, places=charts.places_of(facts), film_frames=MOST,
        of_letters=f"of the first {n} of {len(letters)} letters" if len(letters) > n else "letter",
        block_drawings=lambda models: _block_drawings(models, letters), affordable=_affordable, automaton=automaton,
        counted=counted, fold=fold, hue=hue, notes=notes, reads=_reads, sentence=_sentence, signed=_signed,
        story=_story, trace=trace, turns=_turns, used_outputs=_used_outputs, verdict=verdict,
    )  # fmt: skip


def _summary(facts: ReportFacts) -> str:
    numbers = [(kind, sum(model.kind == kind for model in facts.models)) for kind in KINDS]
    models = ", ".join(f"{n} {kind}" for kind, n in numbers if n)
    machine = facts.machine
    return (
        f"{facts.source} · {len(machine.states)} states, {len(machine.alphabet)} letters, "
        f"{len(set(machine.outputs))} outputs · models: {models} · {facts.date}"
    )


def _repairs(facts: ReportFacts) -> dict[str, tuple[str, str]]:
    """Return the kind of repair and its description, by the name of the first model of each kind."""
    found: dict[str, tuple[str, str]] = {}
    for model in facts.models:
        kind = model.name.rpartition(": ")[2]
        if model.kind == "repaired" and kind in REPAIRED and (kind, REPAIRED[kind]) not in found.values():
            found[model.name] = kind, REPAIRED[kind]
    return found


def _groups(facts: ReportFacts) -> list[tuple[Model, list[Model]]]:
    """Return each learned model, with its repairs and the constructed models."""
    heads = [model for model in facts.models if model.kind == "learned"] or facts.models[:1]
    constructed = [model for model in facts.models if model.kind == "constructed"]
    return [
        (model, [model, *repairs_of(facts, model), *(other for other in constructed if other is not model)])
        for model in heads
    ]


def _block_drawings(models: list[Model], alphabet: list[str]) -> Iterator[tuple[Model, Markup, Any]]:
    """Yield each model with a drawing of its blocks and, if repaired, a drawing of the change with its caption."""
    full = charts.largest(models[0])
    for model in models:
        changed = charts.change(models[0], model) if model.kind == "repaired" else None
        drawn = charts.blocks(model, alphabet, full if model.kind == "repaired" else None)
        caption = f"the change, full colour at {charts.largest(changed):.2f} in place of {full:.2f}" if changed else ""
        yield model, drawn, (charts.blocks(changed, alphabet), caption) if changed else None


def _signed(x: float) -> str:
    return f"{x:+.4f}".replace("-", "−") if abs(x) >= 1e-6 else "0"


def _turns(cycle: Mapping[str, Any] | None, alphabet: list[str]) -> str:
    if cycle is None:
        return ""
    letter = alphabet[cycle["letter"]]
    return f"{cycle['frequency']}/{cycle['length']} at letter {letter} ({cycle['share'] * 100:.1f} % of the power)"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _story(learning: Learning) -> str:
    if not learning.of:
        return f"{_sentence(learning.known)} No network was trained."
    starts = f"{learning.starts} starts" if learning.starts > 1 else "one start"
    numbers = " and ".join(map(str, learning.kept))
    many = len(learning.kept) > 1
    took = f"It took {learning.steps:,} steps, {starts} and {learning.seconds:.1f} seconds."
    read = (
        "The verdict is on the network as it was trained, with all heads and the read-out."
        if learning.is_whole
        else f"The machine was read from head{'s' if many else ''} {numbers} of {learning.of}; the verdict is on a "
        "model without the other heads and the trained read-out."
    )
    return f"{_sentence(learning.known)} {took} {read}"


def _affordable(learning: Learning) -> list[HistorySnapshot]:
    """Return the last steps of a history, thinned by half until the drawings are small enough."""
    shots = learning.film[-MOST:]
    while len(shots) > 2 and sum(map(_size, shots)) > _BYTES:
        shots = shots[::-2][::-1]
    return shots


def _size(shot: HistorySnapshot) -> int:
    return sum(len(automaton(head.machine) or "") for head in shot.heads if head.machine is not None)


def _used_outputs(shots: list[HistorySnapshot]) -> set[str]:
    return {output for shot in shots for head in shot.heads if head.machine for output in head.machine.outputs}


def _reads(head: LayerHead, every: list[LayerHead]) -> str:
    parts = ["the letter", *(["the one before"] if head.reads_last else [])]
    parts += [f"head {every[j].head} of layer {every[j].layer}" for j in head.reads]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
