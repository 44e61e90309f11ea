"""The layers of a network that was learned as a cascade, each head drawn as the automaton that it is."""

from __future__ import annotations

from fsa2lrnn.display.markup import Markup, join, tag
from fsa2lrnn.errors import counted
from fsa2lrnn.extra.report.drawing.automaton import automaton, fold
from fsa2lrnn.extra.report.facts import LayerHead, Learning


def layers(learning: Learning) -> Markup | None:
    """A row a layer, from below; None where there are no layers to show."""
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
