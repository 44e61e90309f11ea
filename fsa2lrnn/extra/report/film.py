"""The history on the page: the heads of a layer during training, as automata, at a few steps.

One frame is visible at a time, selected by radio buttons: they work with arrow keys and touch, without a script.
"""

from __future__ import annotations

from fsa2lrnn.display.markup import Markup, join, tag
from fsa2lrnn.errors import counted
from fsa2lrnn.extra.report.drawing.automaton import automaton, fold, hue
from fsa2lrnn.extra.report.facts import NOWHERE, HistoryHead, HistorySnapshot, Learning, Model

MOST = 24  # frames, for which there are styles
_BYTES = 3_000_000  # of drawings in a history

STYLE = """
.film { border: 0; padding: 0; margin: 14px 0 4px; min-width: 0; }
.film legend { font-weight: 600; padding: 0; margin-bottom: 6px; }
.film > input { position: absolute; opacity: 0; pointer-events: none; }
.film > label { display: inline-block; min-width: 2.7em; padding: 4px 8px; margin: 0 2px 6px 0; text-align: center;
  border: 1px solid var(--rule); border-radius: 6px; font-size: 0.82rem; font-variant-numeric: tabular-nums;
  cursor: pointer; }
.film > label.event { border-style: dashed; border-color: var(--accent); }
.film > input:checked + label { background: var(--accent); border-color: var(--accent); color: var(--on); }
.film > input:focus-visible + label { outline: 2px solid var(--accent); outline-offset: 2px; }
.film .shot { display: none; }
.swatch.output { --tint: oklch(var(--state-l) var(--state-c) var(--h)); background: var(--tint); }
.head.kept figcaption { color: var(--ink); font-weight: 600; }
.head.kept svg { outline: 2px solid var(--proved); outline-offset: 6px; border-radius: 4px; }
.head figcaption { margin-top: 12px; }
""" + "\n".join(
    f".film > input:nth-of-type({i}):checked ~ .frames > .shot:nth-child({i}) {{ display: block; }}"
    for i in range(1, MOST + 1)
) + "\n"  # fmt: skip


def film(model: Model, learning: Learning, number: int) -> Markup:
    """Return a section on the training of a model, with the history if recorded; `number` makes its ids unique."""
    story = tag("p", _story(learning))
    shots = _affordable(learning)
    title = tag("h3", f"How {model.name} was learned")
    if not shots:
        return join(title, story)
    name, last = f"film-{number}", len(shots) - 1
    chosen = []
    for i, shot in enumerate(shots):
        mark = f"{name}-{i}"
        event = "event" if shot.event else None
        chosen += [
            tag("input", type="radio", name_=name, id=mark, checked="" if i == last else None),
            tag("label", f"{shot.step:,}", for_=mark, class_=event, title=shot.event or None),
        ]
    frames = tag("div", *(_frame(shot, learning) for shot in shots), class_="frames")
    hint = (
        "Each head is an automaton at every step. Drawn is what it computes where a state puts out what most outputs "
        "are there (its colour), with states merged that make no difference. Letters without room are told by "
        "hovering. Choose a step, or go through them with the arrow keys."
    )
    used = {output for shot in shots for head in shot.heads if head.machine for output in head.machine.outputs}
    colours = [
        tag("li", tag("span", class_="swatch output", style=hue(i, len(learning.outputs))), _named(output))
        for i, output in enumerate(learning.outputs)
        if output in used
    ]
    legend = tag("legend", "The heads after so many steps")
    return join(
        title,
        story,
        tag("p", hint, class_="hint"),
        tag("ul", *colours, class_="legend"),
        tag("fieldset", legend, *chosen, frames, class_="film"),
    )


def _named(output: str) -> str:
    return "no word led there" if output == NOWHERE else f"puts out {output}"


def _story(learning: Learning) -> str:
    if not learning.of:
        return f"{_sentence(learning.known)} No network was trained."
    starts = f"{learning.starts} starts" if learning.starts > 1 else "one start"
    numbers = " and ".join(str(h + 1) for h in learning.kept)
    many = len(learning.kept) > 1
    took = f"It took {learning.steps:,} steps, {starts} and {learning.seconds:.1f} seconds."
    read = (
        "What is judged is the network as it was trained, all heads and the read-out together."
        if learning.is_whole
        else f"Of {learning.of} heads the machine was read from head{'s' if many else ''} {numbers}; the others, and "
        "the trained read-out, are no part of the model that is judged."
    )
    return f"{_sentence(learning.known)} {took} {read}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _frame(shot: HistorySnapshot, learning: Learning) -> Markup:
    event = f" {shot.event[0].upper()}{shot.event[1:]}." if shot.event else ""
    caption = f"Step {shot.step:,}, trained on words of {counted(shot.length, 'letter')}.{event}"
    heads = [_head(head, learning) for head in shot.heads]
    return tag("div", tag("p", caption), tag("div", *heads, class_="pair"), class_="shot")


def _head(head: HistoryHead, learning: Learning) -> Markup:
    drawn = None if head.machine is None else automaton(head.machine, kinds=learning.outputs)
    is_kept = head.head in learning.kept
    error = f"{100 * head.faults:.1f} % of outputs wrong" if head.faults else "no output wrong"
    of = f"{head.states} state{'s' * (head.states > 1)}, {head.minimal} once merged"
    caption = f"head {head.head + 1}{', kept' if is_kept else ''}: {of}; {error}"
    if head.machine is None or drawn is None:
        return tag("figure", tag("figcaption", f"{caption}; too many states to draw"), class_="head")
    figcaption = tag("figcaption", f"{caption}. {fold(head.machine) or ''}".strip())
    return tag("figure", drawn, figcaption, class_="head kept" if is_kept else "head")


def _affordable(learning: Learning) -> list[HistorySnapshot]:
    shots = learning.film[-MOST:]
    while len(shots) > 2 and sum(map(_size, shots)) > _BYTES:
        shots = shots[::-2][::-1]
    return shots


def _size(shot: HistorySnapshot) -> int:
    return sum(len(automaton(head.machine) or "") for head in shot.heads if head.machine is not None)
