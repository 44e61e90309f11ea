"""The pictures of pages, from a machine, results and the declarations of layers: `python -m experiments.pictures`."""

from __future__ import annotations

import cmath
import math
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from experiments import results_io, script
from experiments.studies.warm_start import CLIENTS, STARTS
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.draw.figure import figure_of
from fsa2lrnn.export.eigenvalues import ARCHITECTURES
from fsa2lrnn.files import write_atomically

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
COLOURS = ("#1f6fb4", "#c8500a", "#2c8a4b")  # of tasks


def by_length(tasks: list[dict[str, Any]]) -> str:
    """Return a chart of accuracy at the last letter by length, logarithmic, one line per task, means over seeds."""
    left, top, width, height = 60, 20, 440, 220
    lengths = [line["length"] for line in tasks[0]["seeds"][0]["last_checkpoint"]]
    low, high = math.log(lengths[0]), math.log(lengths[-1])
    places = [left + width * (math.log(length) - low) / (high - low) for length in lengths]
    body = [_line(left, top + height, left + width, top + height, "#333"), _line(left, top, left, top + height, "#333")]
    body += [_text(place, top + height + 20, f"{length:,}") for place, length in zip(places, lengths, strict=True)]
    body += [_text(left - 22, top + height * (1 - share) + 5, f"{share:.1f}") for share in (0.0, 0.5, 1.0)]
    body.append(_text(left + width / 2, top + height + 42, "letters of a word; trained on 40"))
    for task, colour, form in zip(tasks, COLOURS, ("", "6 3", "2 3"), strict=True):
        rates = [
            sum(seed["last_checkpoint"][i]["last_position"]["accuracy"] for seed in task["seeds"]) / len(task["seeds"])
            for i in range(len(lengths))
        ]
        points = [(place, top + height * (1 - rate)) for place, rate in zip(places, rates, strict=True)]
        line = " ".join(f"{at:.0f},{down:.0f}" for at, down in points)
        body.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{form}"/>'
        )
        body += [f'<circle cx="{at:.0f}" cy="{down:.0f}" r="3.5" fill="{colour}"/>' for at, down in points]
        row = top + 130 + 22 * tasks.index(task)
        body.append(f'<path d="M{left + 20} {row} h34" stroke="{colour}" stroke-width="2" stroke-dasharray="{form}"/>')
        name = task["task"].removeprefix("task:")
        body.append(_text(left + 62, row + 5, name, "#333", "start"))
    return _svg(left + width + 40, top + height + 60, body)


def warm_start(results: dict[str, Any]) -> str:
    """Return a chart of the steps until a run is right at 500 letters, by start; circles that never were are open."""
    left, top, row, width = 110, 30, 20, 380
    shown = [start for start in STARTS if start not in ("compiled", "learn")]
    body = list[str]()
    for panel, n in enumerate(CLIENTS):
        first = top + panel * row * (len(shown) + 2)
        body.append(_text(left, first - 8, f"{n} clients", "#333", "start"))
        for i, start in enumerate(shown):
            y = first + row * (i + 0.5)
            body += [_text(left - 8, y + 5, start, "#333", "end"), _line(left, y, left + width, y, "#ddd")]
            for run in results["runs"]:
                if (run["clients"], run["start"]) == (n, start):
                    steps, colour = run["right"]["500"], COLOURS[panel]
                    x = left + width * (run["steps"] if steps is None else steps) / results["steps"]
                    fill = "white" if steps is None else colour
                    body.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="{fill}" stroke="{colour}"/>')
    bottom = top + len(CLIENTS) * row * (len(shown) + 2) - row
    body += [_text(left + width * part, bottom, f"{results['steps'] * part:,.0f}") for part in (0, 0.5, 1)]
    body.append(_text(left + width / 2, bottom + 22, "steps until right on 64 words of 500 letters"))
    return _svg(left + width + 40, bottom + 34, body)


def reach(layer: str) -> str:
    """Return a drawing of the eigenvalues that an external layer reaches, and those that machines require."""
    middle_x, middle_y, radius = 130, 130, 100
    low, high = REACHED[layer]

    def place(z: complex) -> tuple[float, float]:
        return middle_x + radius * z.real, middle_y - radius * z.imag

    body = [f'<circle cx="{middle_x}" cy="{middle_y}" r="{radius}" fill="none" stroke="#999"/>']
    body.append(_line(middle_x - radius - 20, middle_y, middle_x + radius + 20, middle_y, "#999"))
    (left, y), (right, _) = place(low), place(high)
    body.append(f'<path d="M{left:.0f} {y:.0f} L{right:.0f} {y:.0f}" stroke="{COLOURS[0]}" stroke-width="7"/>')
    for row, (name, wanted) in enumerate(WANTED.items()):
        colour = COLOURS[row % len(COLOURS)]
        is_held = [abs(z.imag) < 1e-9 and low <= z.real <= high for z in wanted]
        for z, is_one in zip(wanted, is_held, strict=True):
            x, y = place(z)
            body.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{5 + row}" fill="{colour if is_one else "white"}" '
                f'stroke="{colour}" stroke-width="2"/>'
            )
        down = 60 + 34 * row
        body.append(
            f'<circle cx="290" cy="{down}" r="{5 + row}" fill="{colour if all(is_held) else "white"}" '
            f'stroke="{colour}" stroke-width="2"/>'
        )
        body.append(
            _text(308, down + 5, f"{name}: {'reached' if all(is_held) else 'not all reached'}", "#333", "start")
        )
    ends = f"from {low:.4g} to {high:g}".replace("-", "−")
    body.append(_text(308, 60 + 34 * len(WANTED) + 5, ends, "#333", "start"))
    return _svg(660, 260, body)


REACHED = {name: ARCHITECTURES[name].eigenvalues for name in ("olmo-hybrid", "mamba-2", "rwkv-7", "qwen3-next")}
WANTED = {
    "0 and 1, a flip-flop": (0j, 1 + 0j),
    "−1, parity": (-1 + 0j,),
    "third roots of 1, Sum(3)": tuple(cmath.exp(2j * math.pi * k / 3) for k in (1, 2)),
    "fifth roots of 1, Sum(5)": tuple(cmath.exp(2j * math.pi * k / 5) for k in (1, 2, 3, 4)),
}


def _svg(width: float, height: float, body: list[str]) -> str:
    tip = '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="sans-serif" font-size="14">\n'
        f'<defs>{tip}<path d="M0 0 L10 5 L0 10 z" fill="context-stroke"/></marker></defs>\n'
        '<rect width="100%" height="100%" rx="8" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, colour: str = "#333", anchor: str = "middle") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _line(x0: float, y0: float, x1: float, y1: float, colour: str) -> str:
    tip = ' marker-end="url(#tip)"' if y0 == y1 and x1 - x0 < 40 else ""
    return f'<path d="M{x0:.0f} {y0:.0f} L{x1:.0f} {y1:.0f}" stroke="{colour}"{tip}/>'


def pictures() -> dict[str, str]:
    """Return each picture by the name of its file."""
    return {
        "two_letters.svg": figure_of(MooreMachine.from_source("regex:(ab)*").minimise(), matrices=True).to_svg(),
        "by_length.svg": by_length(results_io.read("training")["results"]),
        "warm_start.svg": warm_start(results_io.read("warm_start")["results"]),
        **{f"reach_{layer}.svg": reach(layer) for layer in REACHED},
    }


def main() -> None:
    """Draw the pictures of the first pages into docs/figures/."""
    for name, picture in pictures().items():
        write_atomically(FOLDER / name, picture.encode())


if __name__ == "__main__":
    script.run(main)
