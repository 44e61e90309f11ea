"""The report as a page: `build(facts)` returns one self-contained HTML text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fsa2lrnn.display.cards import trace
from fsa2lrnn.display.markup import Markup, join, tag
from fsa2lrnn.errors import counted
from fsa2lrnn.extra.report.charts.blocks import LETTERS, blocks, change, eigenvalues, geometry, largest
from fsa2lrnn.extra.report.charts.horizon import PROTOCOLS, accuracy, horizon
from fsa2lrnn.extra.report.drawing.automaton import automaton, fold, notes
from fsa2lrnn.extra.report.drawing.machine import transitions
from fsa2lrnn.extra.report.facts import (
    KINDS,
    LayerHead,
    Learning,
    Model,
    ReportFacts,
    repairs_of,
    repairs_shown,
    verdict,
)
from fsa2lrnn.extra.report.film import film
from fsa2lrnn.extra.report.style import STYLE
from fsa2lrnn.verdicts import Counterexample


def layers(learning: Learning) -> Markup | None:
    """Return one row of automata per layer, from below; None without recorded layers."""
    if not learning.layers:
        return None
    rows = []
    for number in range(learning.layers[-1].layer + 1):
        heads = [head for head in learning.layers if head.layer == number]
        figures = [_head(head, learning.layers) for head in heads]
        rows += [tag("h4", f"Layer {number + 1}"), tag("div", *figures, class_="trio")]
    said = (
        "Each head is an automaton, drawn along the words that count. A layer reads the letter and the layers below; a "
        "letter with ? leads there in some of their states, and elsewhere in others."
    )
    return join(tag("h3", "Its layers, from below"), tag("p", said, class_="hint"), *rows)


def _head(head: LayerHead, every: list[LayerHead]) -> Markup:
    size = f"head {head.head + 1}: {counted(head.states, 'state')} of a block of {head.block}"
    if head.states == 1:
        return tag("figure", tag("figcaption", f"head {head.head + 1}: stays in one state"), class_="head")
    caption = f"{size}; reads {_read(head, every)}"
    drawn = None if head.machine is None else automaton(head.machine)
    if head.machine is None or drawn is None:
        return tag("figure", tag("figcaption", f"{caption}; too many states to draw"), class_="head")
    figcaption = tag("figcaption", f"{caption}. {fold(head.machine) or ''}".strip())
    return tag("figure", tag("div", drawn, class_="scroll"), figcaption, class_="head")


def _read(head: LayerHead, every: list[LayerHead]) -> str:
    parts = ["the letter", *(["the one before"] if head.reads_last else [])]
    parts += [f"head {every[j].head + 1} of layer {every[j].layer + 1}" for j in head.reads]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


_SECTIONS = {
    "verdicts": "In one sentence each",
    "horizon": "How long each is right",
    "accuracy": "Accuracy by length",
    "automaton": "The automaton",
    "models": "The models from within",
    "provenance": "Where this comes from",
}


def build(facts: ReportFacts, data: str | None = None) -> str:
    """Return the page as HTML; `data` is the name of the JSON file in the same folder."""
    sections = {
        "verdicts": _verdicts(facts),
        "horizon": _horizon(facts),
        "accuracy": _accuracy(facts),
        "automaton": _automaton(facts),
        "models": _models(facts),
        "provenance": _provenance(facts, data),
    }
    links = [tag("li", tag("a", _SECTIONS[name], href=f"#{name}")) for name, part in sections.items() if part]
    header = tag(
        "header",
        tag("a", "Skip to the verdicts", href="#verdicts", class_="skip"),
        tag("h1", facts.title),
        tag("p", _summary(facts), class_="lead"),
        tag("nav", tag("ul", *links), aria_label="Sections"),
    )
    body = [
        tag("section", tag("h2", _SECTIONS[name], id=f"{name}-title"), part, id=name, aria_labelledby=f"{name}-title")
        for name, part in sections.items()
        if part
    ]
    footer = tag("footer", tag("p", f"Made {facts.date} by fsa2lrnn."))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", facts.title),
        tag("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', header, tag('main', *body), footer), lang='en')}\n"


def _summary(facts: ReportFacts) -> str:
    numbers = [(kind, sum(model.kind == kind for model in facts.models)) for kind in KINDS]
    models = ", ".join(f"{n} {kind}" for kind, n in numbers if n)
    machine = facts.machine
    return (
        f"{facts.source} · {len(machine.states)} states, {len(machine.alphabet)} letters, "
        f"{len(set(machine.outputs))} outputs · models: {models} · {facts.date}"
    )


def _verdicts(facts: ReportFacts) -> Markup:
    titles = (("model", None), ("verdict", None), ("parameters", "number"))
    head = tag("thead", tag("tr", *(tag("th", name, scope="col", class_=class_) for name, class_ in titles)))
    rows = [
        tag(
            "tr",
            tag("th", _kind(model), model.name, scope="row"),
            tag("td", verdict(model), _meaning(facts, model)),
            tag("td", f"{model.parameters:,}" if model.parameters is not None else "", class_="number"),
        )
        for model in facts.models
    ]
    return tag("div", tag("table", head, tag("tbody", *rows)), class_="scroll")


def _meaning(facts: ReportFacts, model: Model) -> Markup | None:
    kind = model.name.rpartition(": ")[2]
    first = next((m for m in facts.models if m.kind == "repaired" and m.name.rpartition(": ")[2] == kind), None)
    meaning = repairs_shown(facts).get(kind)
    if model is not first or not meaning:
        return None
    return tag("p", join(tag("strong", f"{kind}:"), " ", meaning), class_="hint")


def _horizon(facts: ReportFacts) -> Markup | None:
    if all(model.evidence for model in facts.models):
        return None
    meanings = {
        "proved": "proved right on every word so long",
        "unknown": "unknown",
        "fails": "a failing word is known",
    }
    legend = [tag("li", tag("span", class_=f"swatch {name}"), said) for name, said in meanings.items()]
    return join(
        tag("p", "Tests of any number of words say nothing of the others. The bars say what holds for every word."),
        tag("ul", *legend, class_="legend"),
        _figure(tag("div", horizon(facts), class_="on-wide")),
        _figure(tag("div", horizon(facts, is_narrow=True), class_="on-narrow")),
    )


def _accuracy(facts: ReportFacts) -> Markup | None:
    if not any(model.accuracy for model in facts.models):
        return None
    legend = [tag("li", _kind_of(kind), kind) for kind in KINDS if any(model.kind == kind for model in facts.models)]
    figures = [_figure(accuracy(facts, protocol), said.capitalize()) for protocol, said in PROTOCOLS.items()]
    return join(
        tag("p", "The share of fresh random words, the same for all models, with 95 % intervals (Wilson)."),
        tag("ul", *legend, class_="legend"),
        tag("div", *figures, class_="pair"),
        tag("details", tag("summary", "The numbers"), _accuracy_table(facts)),
    )


def _accuracy_table(facts: ReportFacts) -> Markup:
    lengths = sorted({found["length"] for model in facts.models for found in model.accuracy})
    head = [
        tag("th", "model", scope="col"),
        *(tag("th", counted(n, "letter"), scope="col", class_="number") for n in lengths),
    ]
    rows = []
    for model in facts.models:
        by_length = {found["length"]: found["whole_word"]["accuracy"] for found in model.accuracy}
        cells = [tag("td", f"{by_length[n]:.4f}" if n in by_length else "", class_="number") for n in lengths]
        rows.append(tag("tr", tag("th", _kind(model), model.name, scope="row"), *cells))
    table = tag("table", tag("caption", PROTOCOLS["whole_word"], class_="hint"), tag("thead", tag("tr", *head)), *rows)
    return tag("div", table, class_="scroll")


def _automaton(facts: ReportFacts) -> Markup:
    drawn = automaton(facts.machine)
    said = " ".join(notes(facts.machine))
    if drawn is None:
        return join(tag("p", said), tag("details", tag("summary", "Its transitions"), transitions(facts.machine)))
    ring = (
        "A double ring accepts."
        if facts.machine.accepting
        else "Below it what it puts out, where that is not its name."
    )
    caption = f"Minimal. In a circle the state. {ring} {said}"
    return tag(
        "div", _figure(tag("div", drawn, class_="scroll"), caption), transitions(facts.machine), class_="pair wide"
    )


def _models(facts: ReportFacts) -> Markup | None:
    heads = [model for model in facts.models if model.kind == "learned"] or facts.models[:1]
    parts = [_model(facts, model, i) for i, model in enumerate(heads)]
    return join(*parts) if parts else None


def _model(facts: ReportFacts, model: Model, number: int) -> Markup:
    constructed = [other for other in facts.models if other.kind == "constructed" and other is not model]
    trio = [model, *repairs_of(facts, model), *constructed]
    within = [other for other in trio if other.inside is not None]
    alphabet = facts.machine.alphabet
    parts = [_failure(other, other.failure) for other in trio if other.failure is not None]
    if model.learning is not None:
        parts += [film(model, model.learning, number), layers(model.learning)]
    if within:
        parts += [
            tag("h3", "Eigenvalues of the transition blocks"),
            tag("p", "In colour those of heads that carry the automaton's state, for all letters. A model that is "
                "right for ever needs some of modulus exactly 1.", class_="hint"),
            _side_by_side(within, lambda other: eigenvalues(other, alphabet)),
            tag("h3", "Where its states lie"),
            tag("p", "The plane that parts the automaton's states most; the others are turned to match the first. "
                "Dots: along the first letters. Crosses: the last of 500 letters. A model that is right for ever comes "
                "back to its dots; one that drifts fails where it meets another state's.", class_="hint"),
            _side_by_side(within, lambda other: geometry(other, facts.machine)),
            tag("h3", "Transition blocks"),
            tag("p", f"For each {_of_the_first(alphabet)} a block a head (pale numbers: heads that carry "
                "nothing). Red above zero, blue below.", class_="hint"),
            _blocks(within, alphabet),
        ]  # fmt: skip
    if model.inside is not None and model.inside.automata and model.kind != "constructed" and model.learning is None:
        parts.append(_heads(model))
    if model.alignment is not None:
        parts.append(_alignment(model.name, model.alignment, alphabet))
    parts += [_notes(other) for other in trio if other.notes and other.kind != "constructed"]
    title = join(_kind(model), model.name, tag("span", " — ", verdict(model), class_="lead"))
    return tag("details", tag("summary", title), *parts, open="" if number == 0 else None)


def _heads(model: Model) -> Markup:
    figures = []
    for head in model.within.automata:
        carries = "carries a function of the state" if head.head in model.within.carrying else "carries nothing"
        if (drawn := automaton(head.machine)) is not None:
            figures.append(_figure(drawn, f"head {head.head + 1}: {carries}"))
    said = (
        "Its columns are one-hot: each of these heads is an automaton over the letters, drawn as far as letters lead."
    )
    return join(tag("h3", f"The heads of {model.name} as automata"), tag("p", said, class_="hint"),
                tag("div", *figures, class_="trio"))  # fmt: skip


def _of_the_first(alphabet: list[str]) -> str:
    return f"of the first {LETTERS} of {len(alphabet)} letters" if len(alphabet) > LETTERS else "letter"


def _blocks(models: list[Model], alphabet: list[str]) -> Markup:
    figures: list[Markup] = []
    for model in models:
        shared = largest(models[0]) if model.kind == "repaired" else None
        figures.append(_figure(blocks(model, alphabet, shared), join(_kind(model), model.name)))
        difference = change(models[0], model) if model.kind == "repaired" else None
        if difference is not None:
            caption = f"the change, full colour at {largest(difference):.2f} in place of {largest(models[0]):.2f}"
            figures.append(_figure(blocks(difference, alphabet), caption))
    return tag("div", *figures, class_="trio broad")


def _failure(model: Model, failure: Counterexample) -> Markup:
    k = failure.position
    said = (
        f"After {counted(k, 'letter')} the machine puts out {failure.wanted[k - 1]} and the model "
        f"{failure.given[k - 1]}."
        f"{f' Searched: {model.searched}.' if model.searched else ''}"
    )
    return join(
        tag("h3", f"The shortest failing word known of {model.name}"),
        trace(failure, model.name),
        tag("p", said, class_="hint"),
    )


def _alignment(name: str, found: Mapping[str, Any], alphabet: list[str]) -> Markup:
    probe, heads = found["probe"], found["heads"]
    columns = ("head", "carries", "R²", "turns", "‖UA − BU‖/‖U‖", "one-step error", "largest |λ| − 1", "variance")
    rows = [
        tag(
            "tr",
            tag("th", str(h + 1), scope="row"),
            tag("td", head["kind"]),
            tag("td", ", ".join(f"{r2:.3f}" for r2 in head["r2"])),
            tag("td", _turns(head["cycle"], alphabet)),
            *(tag("td", value, class_="number") for value in _measures(head)),
        )
        for h, head in enumerate(heads)
    ]
    said = (
        f"An affine probe finds the automaton's state with R² {probe['r2']:.4f} and a largest error of "
        f"{probe['worst_error']:.3f}. {len(found['carrying'])} of {len(heads)} heads carry a function of the state."
    )
    table = tag(
        "table", tag("thead", tag("tr", *(tag("th", title, scope="col") for title in columns))), tag("tbody", *rows)
    )
    return join(
        tag("h3", f"What the heads of {name} carry"),
        tag("p", said, class_="hint"),
        tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Heads"),
    )


def _measures(head: Mapping[str, Any]) -> list[str]:
    if not head["r2"]:
        return ["", "", _signed(head["beyond_circle"]), f"{head['variance'] * 100:.1f} %"]
    near = [f"{head[name]:.3f}" if head[name] > 1e-9 else "0" for name in ("residual", "step_error")]
    return [*near, _signed(head["beyond_circle"]), f"{head['variance'] * 100:.1f} %"]


def _signed(x: float) -> str:
    return f"{x:+.4f}".replace("-", "−") if abs(x) >= 1e-6 else "0"


def _turns(cycle: Mapping[str, Any] | None, alphabet: list[str]) -> str:
    if cycle is None:
        return ""
    letter = alphabet[cycle["letter"]]
    return f"{cycle['frequency']}/{cycle['length']} at letter {letter} ({cycle['share'] * 100:.1f} % of the power)"


def _notes(model: Model) -> Markup:
    return join(tag("h3", f"More of {model.name}"), _list(model.notes))


def _provenance(facts: ReportFacts, data: str | None) -> Markup:
    parts = [_list(facts.provenance)] if facts.provenance else []
    parts += [join(tag("h3", _kind(m), m.name), _list(m.provenance, code=True)) for m in facts.models if m.provenance]
    if data is not None:
        parts.append(tag("p", "All of this as JSON: ", tag("a", data, href=data), "."))
    return join(*parts)


def _list(values: Mapping[str, str], code: bool = False) -> Markup:
    return tag("dl", *(join(tag("dt", name), tag("dd", tag("code", x) if code else x)) for name, x in values.items()))


def _side_by_side(models: list[Model], draw: Callable[[Model], Markup]) -> Markup:
    figures = [_figure(draw(model), join(_kind(model), model.name)) for model in models]
    return tag("div", *figures, class_="trio")


def _figure(drawn: Markup, caption: object = None) -> Markup:
    return tag("figure", drawn, tag("figcaption", caption) if caption else None)


def _kind(model: Model) -> Markup:
    return _kind_of(model.kind)


def _kind_of(kind: str) -> Markup:
    return tag("span", class_=f"kind {kind}", title=kind)
