"""Block sizes with which training succeeds, compared with those that theory requires (docs/block-sizes.md)."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments import results_io
from experiments.tables import facts, markdown

LEARNED = 0.99  # of last outputs, from every seed
_RULES = {"none": "free", "clip-2": "2-norm ≤ 1", "clip-1": "1-norm ≤ 1"}  # settings of the sweep: what columns may be


class Threshold(NamedTuple):
    """The least size that theory requires, and whether it is known for this rule or for free transitions only."""

    size: int
    is_of_the_rule: bool


class Cell(NamedTuple):
    """The results of networks of one size on a task: accuracies at the training length and at the longer one."""

    size: int
    at_length: dict[str, float] | None  # mean, min, max over seeds; None if every run diverged
    longer: dict[str, float] | None
    diverged: int

    @property
    def is_learned(self) -> bool:
        """Whether every seed is right on nearly all words of the training length."""
        return self.at_length is not None and not self.diverged and self.at_length["min"] >= LEARNED


def table() -> str:
    """Return one line per task and rule: the least size by theory, and the accuracy of each size."""
    document = results_io.read("sweep_block_sizes")
    known = {row["machine"]: row for row in results_io.read("block_sizes")["results"]["machines"]}
    cells = gathered(document["results"]["cells"])
    sizes = sorted({cell.size for line in cells.values() for cell in line})
    rows, agreeing, total = [], 0, 0
    for (task, rule), line in cells.items():
        threshold = predicted(known[task], rule)
        rows.append([task, _RULES[rule], _least(threshold), *map(shown, line)])
        if threshold is not None and threshold.is_of_the_rule:
            agreeing += sum(cell.is_learned == (cell.size >= threshold.size) for cell in line)
            total += len(line)
    length, longer = (f"{n:,}" for n in document["results"]["sweep"]["lengths"])
    note = (
        f"Share of last outputs right at {length} letters and, after the bar, at {longer}: means over seeds, in "
        f"brackets the least if it differs. Bold: at least {LEARNED:.0%} from every seed at {length}. Training agrees "
        f"with theory (bold exactly from the least size on) in {agreeing} of {total} cells whose least size is known"
    )
    heads = ["machine", "columns", "least size", *(f"b = {size}" for size in sizes)]
    return markdown(heads, rows) + facts(document, note)


def gathered(cells: list[dict[str, Any]]) -> dict[tuple[str, str], list[Cell]]:
    """Return the cells of the sweep by task and setting, sorted by size."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        size = int(cell["network"].removeprefix("block-"))
        lines = [line["last_position"] for line in cell["lengths"]] or [None, None]
        diverged = sum(n for end, n in cell["ends"].items() if end not in ("steps", "stop_at"))
        key = cell["task"].removeprefix("task:"), cell["setting"]
        found.setdefault(key, []).append(Cell(size, lines[0], lines[1], diverged))
    return {key: sorted(line) for key, line in found.items()}


def predicted(known: dict[str, Any], rule: str) -> Threshold | None:
    """Return the least size of a machine under a rule; None where it is unknown.

    Orthogonal matrices have columns of 2-norm 1, so that a group needs no larger size under 2-norm ≤ 1 than freely.
    """
    if rule == "clip-1":
        bounds = known["columns"]
        return None if bounds is None or bounds["lower"] != bounds["upper"] else Threshold(bounds["lower"], True)
    permutes = known["columns"] is not None
    return Threshold(known["real"]["upper"], rule == "none" or permutes)


def _least(threshold: Threshold | None) -> str:
    if threshold is None:
        return "–"
    return f"{threshold.size}" if threshold.is_of_the_rule else f"≥ {threshold.size}"


def shown(cell: Cell) -> str:
    """Return one cell as text: bold if learned, with the number of diverged runs."""
    if cell.at_length is None or cell.longer is None:
        return "diverged"
    text = _spread(cell.at_length)
    text = f"**{text}**" if cell.is_learned else text
    return f"{text} \\| {cell.longer['mean']:.2f}" + (f", {cell.diverged} diverged" if cell.diverged else "")


def _spread(found: dict[str, float]) -> str:
    mean, least = (f"{found[name]:.2f}" for name in ("mean", "min"))
    return mean if mean == least else f"{mean} ({least})"
