"""The figures of docs/block-sizes.md, from the results: `python -m experiments.figures`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from experiments import results_io, script
from fsa2lrnn.files import write_atomically

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
ROW, UNIT, LEFT, CHARACTER = 46, 26, 70, 8  # pixels: a level, a dimension, before the boxes, a letter of a word
ENTER, HEADING = "functions that enter", "states told apart by all functions so far"
COLOURS = ("#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb", "#fbb4b9", "#d9d9d9")  # of kinds


def chain(found: dict[str, Any]) -> str:
    """Return a chain as SVG: one line per size, with the constituents that enter and the states separated so far."""
    levels, states = found["levels"], found["states"]
    width = UNIT * max(sum(copy["dimension"] for copy in level["enters"]) for level in levels)
    right = LEFT + max(width, CHARACTER * len(ENTER)) + 30
    ends = [right + CHARACTER * len(HEADING)]
    body = [
        _text(10, 20, "size"),
        _text(LEFT, 20, ENTER),
        _text(right, 20, HEADING),
    ]
    for line, level in enumerate(levels):
        top = 34 + line * ROW
        body.append(_text(10, top + 20, f"≤ {level['size']}"))
        x = LEFT
        for copy in level["enters"]:
            size = UNIT * copy["dimension"]
            body.append(_box(x, top, size - 3, COLOURS[copy["kind"] % len(COLOURS)]))
            parts = copy["dimension"] // copy["weight"]
            body.append(_text(x + size / 2 - 2, top + 20, "+".join([str(copy["weight"])] * parts), "middle"))
            x += size
        x = right
        for number in range(max(level["classes"]) + 1):
            members = [name for name, other in zip(states, level["classes"], strict=True) if other == number]
            label = " ".join(members)
            size = CHARACTER * len(label) + 12
            body += [_box(x, top, size, "white"), _text(x + 6, top + 20, label)]
            x += size + 6
        ends.append(x)
    height = 34 + len(levels) * ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(ends) + 10:.0f}" height="{height}" '
        f'font-family="monospace" font-size="13">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def _box(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="30" rx="3" fill="{colour}" stroke="black"/>'


def path_of(source: str) -> Path:
    """Return the file of a machine's chain: `even_pair(3)` → chain_even_pair_3.svg."""
    return FOLDER / f"chain_{re.sub(r'[^a-z0-9]+', '_', source.lower()).strip('_')}.svg"


def main() -> None:
    """Draw the chains of two machines into docs/figures/."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for source, found in results_io.read("block_sizes")["results"]["chains"].items():
        write_atomically(path_of(source), chain(found).encode())


if __name__ == "__main__":
    script.run(main)
