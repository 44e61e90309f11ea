"""Table 2 as text and as a figure, from its document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from experiments.tables import markdown
from fsa2lrnn.draw.comparison import matplotlib
from fsa2lrnn.files import write_atomically

UNFINISHED = "unfinished"
NEAR = 0.05  # how far a best evaluation may lie from the printed number that it reproduces


def table(document: Mapping[str, Any], paper_only: bool = False) -> str:
    """Return a table in Markdown: for each task and column, or each that the paper prints, the paper's number, the best
    evaluation, the chance level, and the last checkpoint at each length."""
    rows = []
    for cell in document["cells"]:
        if paper_only and cell["paper"] is None:
            continue
        chance, column = document["chance"][cell["task"]], document["columns"][cell["column"]]
        low, high = chance["interval"]
        rows.append(
            [
                cell["task"].removeprefix("task:"),
                column["title"],
                "" if cell["paper"] is None else f"{cell['paper']:.2f}",
                _number(cell.get("best_look")),
                f"{chance['best_of_looks']:.3f} ({low:.3f}–{high:.3f})",
                *(_lengths(cell, i) for i in range(len(document["lengths"]))),
                _rate(cell),
                _seeds(cell, column),
            ]
        )
    heads = ["task", "layer", "paper", "best of 40 evaluations", "a constant answer, same protocol"]
    heads += [f"last checkpoint at {length}" for length in document["lengths"]]
    return markdown([*heads, "rate", "seeds"], rows)


def remarks(document: Mapping[str, Any], training: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on the rows that the paper prints: which numbers are not reproduced, and which runs replace
    runs of results/training.json that were cut short."""
    printed = [cell for cell in document["cells"] if cell["paper"] is not None and "best_look" in cell]
    far = [cell for cell in printed if abs(cell["best_look"] - cell["paper"]) > NEAR]
    reproduced = f"{len(printed) - len(far)} of {len(printed)} printed numbers are reproduced to within {NEAR}."
    missed = [
        f"{_place(document, cell)} is not reproduced: the paper prints {cell['paper']:.2f}, the best evaluation here "
        f"is {_number(cell['best_look'])}."
        for cell in far
    ]
    return [reproduced, *missed, *_reruns(document, training)]


def _reruns(document: Mapping[str, Any], training: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    ours = {cell["task"]: cell for cell in document["cells"] if cell["column"] == "ours"}
    for task in training:
        for first in task["seeds"]:
            rerun = next((seed for seed in ours[task["task"]]["seeds"] if seed["seed"] == first["seed"]), None)
            if first["end"] == "interrupted" and rerun is not None:
                yield (
                    f"Seed {first['seed']} of {_place(document, ours[task['task']])} is a rerun on {rerun['device']}: "
                    f"the first run, on {task['settings']['device']}, was cut short at step {first['step']:,} with a "
                    f"best evaluation of {_number(first['paper_protocol']['accuracy'])}."
                )


def notes(document: Mapping[str, Any], training: Sequence[Mapping[str, Any]]) -> str:
    """Return a list in Markdown: how the columns were run, which rates were tried and chosen, and `remarks`."""
    lines = [f"- {column['title']}: {column['note']}." for column in document["columns"].values()]
    rates = []
    for cell in document["cells"]:
        tried = cell["at_40_by_rate"]
        if len(tried) > 1:
            found = ", ".join(f"{rate} {share:.3f}" for rate, share in tried.items())
            rates.append(f"{_place(document, cell)}: {found}, so {cell['rate']}")
    lines.append(
        "- Rates: the layer's own and that of the paper's code for the task. All seeds use the one whose last "
        f"checkpoint with seed 0 is right more often at 40 letters. {'; '.join(rates) or 'No cell has had both tried'}."
    )
    devices = Counter(seed["device"] for cell in document["cells"] for seed in cell["seeds"])
    lines.append(f"- Runs in the table by device: {', '.join(f'{name} {n}' for name, n in sorted(devices.items()))}.")
    return "\n".join([*lines, *(f"- {remark}" for remark in remarks(document, training)), ""])


def _place(document: Mapping[str, Any], cell: Mapping[str, Any]) -> str:
    return f"{document['columns'][cell['column']]['title']} on {cell['task'].removeprefix('task:')}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _lengths(cell: Mapping[str, Any], i: int) -> str:
    if "last" not in cell:
        return ""
    line = cell["last"][i]
    return _number(line["mean"]) + (f" ({line['least']:.3f}–{line['most']:.3f})" if len(cell["seeds"]) > 1 else "")


def _seeds(cell: Mapping[str, Any], column: Mapping[str, Any]) -> str:
    diverged = sum(seed["end"] == "diverged" for seed in cell["seeds"])
    parts = [f"{len(cell['seeds'])} of {column['seeds']}"]
    parts += [f"{diverged} diverged, not in the means"] if diverged else []
    return ", ".join(parts if cell["is_finished"] else [*parts, UNFINISHED])


def _rate(cell: Mapping[str, Any]) -> str:
    if not cell["seeds"]:
        return ""
    return f"{cell['rate']}, {cell['seeds'][0]['learning_rate']:g}"


def figure(document: Mapping[str, Any], path: Path) -> None:
    """Write an SVG figure of the last checkpoint's accuracy by length, one panel per task.

    The constant answer is dashed. Raises `MissingPackage` without matplotlib.
    """
    mpl = matplotlib()
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "table2"}):  # the same numbers make the same file
        drawn = Figure(figsize=(4 * len(document["chance"]), 3.6), layout="constrained")
        axes = drawn.subplots(1, len(document["chance"]), sharey=True, squeeze=False)[0]
        handles: dict[str, Any] = {}
        for axis, (task, chance) in zip(axes, document["chance"].items(), strict=True):
            for i, (name, column) in enumerate(document["columns"].items()):
                cell = next(c for c in document["cells"] if (c["task"], c["column"]) == (task, name))
                if "last" in cell:
                    lengths, means = ([line[key] for line in cell["last"]] for key in ("length", "mean"))
                    (handles[column["title"]],) = axis.plot(lengths, means, marker="o", markersize=3, color=f"C{i}")
            axis.axhline(chance["share"], color="black", linestyle="--", linewidth=0.8)
            axis.set(title=task.removeprefix("task:"), xscale="log", xlabel="letters", ylim=(0, 1.02))
            axis.set_xticks(document["lengths"], [str(length) for length in document["lengths"]])
            axis.minorticks_off()
        axes[0].set_ylabel("last output right")
        if handles:
            drawn.legend(handles.values(), handles.keys(), loc="outside right center", fontsize="small")
        buffer = BytesIO()
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    write_atomically(path, buffer.getvalue())
