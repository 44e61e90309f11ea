"""The results of measurements for the paper's claims: each function reads results and decides its claim."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Kind = Literal[
    "reproduced", "sharpened", "refuted", "at chance level", "not reproduced", "unfinished", "nothing to check"
]

RESULTS = Path(__file__).parent.parent / "experiments" / "results"
_SAME = 0.01  # of accuracies of two digits
_LIKE = 1.5  # times: ratios of speeds that count as alike


@dataclass(frozen=True)
class Found:
    """The result of a claim, and the reason in one line."""

    kind: Kind
    why: str


def read(name: str) -> Any:
    """Return the results of that name, or None if they do not exist yet."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else None


def _cells(column: str) -> list[dict[str, Any]]:
    document = read("table2")
    return [cell for cell in document["cells"] if cell["column"] == column] if document else []


def _by_task(cells: list[dict[str, Any]], shown: Callable[[dict[str, Any]], str]) -> str:
    """Return the cells task by task: `sum_mod(5): s4 0.287, s4d 0.281; even_pair(5): …`."""
    tasks = dict.fromkeys(map(_task, cells))
    return "; ".join(f"{task}: {', '.join(shown(cell) for cell in cells if _task(cell) == task)}" for task in tasks)


def ours() -> Found:
    """Return the result for the paper's layer in Table 2."""
    cells = [cell for cell in _cells("ours") if "best_look" in cell]
    if not cells:
        return Found("unfinished", "no run has ended")
    shown = ", ".join(f"{_task(cell)} {cell['best_look']:.2f} (paper {cell['paper']:.2f})" for cell in cells)
    right = all(cell["best_look"] >= cell["paper"] - _SAME for cell in cells)
    last = min(line["least"] for cell in cells for line in cell["last"][-1:])
    why = f"best evaluations: {shown}; last checkpoints on 10,000 fresh words at 500, the worst seed: {last:.3f}"
    return Found("reproduced" if right else "not reproduced", why + _unfinished(cells))


def others() -> Found:
    """Return the result for S4, S4D and Liquid-S4 in Table 2, trained here."""
    cells = [cell for name in ("s4", "s4d", "liquid_polyb") for cell in _cells(name)]
    ended = [cell for cell in cells if "best_look" in cell]
    if not ended:
        return Found("unfinished", "no run has ended; the line above assesses the printed numbers")
    levels = read("table2")["chance"]
    above = [cell for cell in ended if cell["best_look"] > levels[cell["task"]]["interval"][1] + _one_seed(cell)]
    whole = all(cell["is_finished"] for cell in cells)
    kind: Kind = "not reproduced" if above else "at chance level" if whole else "unfinished"
    why = f"best evaluations above chance level: {len(above)} of {len(ended)} cells, {len(cells)} in all (Table 2)"
    return Found(kind, why + _unfinished(cells))


def _one_seed(cell: dict[str, Any]) -> float:
    """Return how far a mean of fewer than five seeds may exceed the level: three standard deviations of one trial."""
    return 0.0 if cell["is_finished"] else 3 * read("table2")["chance"][cell["task"]]["deviation"]


def same_length() -> Found:
    """Return the result for the accuracy at the training length, of all layers whose runs have ended."""
    document = read("table2")
    cells = [cell for cell in document["cells"] if "last" in cell] if document else []
    if not cells:
        return Found("unfinished", "no run has ended")
    if all(cell["column"] == "ours" for cell in cells):
        return Found("unfinished", "no run of a layer but the paper's own has ended, which is right at 40 letters")
    titles = {name: column["title"] for name, column in document["columns"].items()}
    means: dict[str, list[float]] = {}
    for cell in cells:
        means.setdefault(titles[cell["column"]], []).append(cell["last"][0]["mean"])
    shown = ", ".join(f"{layer} {min(of):.3f} to {max(of):.3f}" for layer, of in means.items())
    finished = [cell for cell in document["cells"] if cell["is_finished"]]
    wrong = [cell for cell in finished if cell["last"][0]["mean"] < 0.99]  # other seeds and rates may do better
    whole = len(finished) == len(document["cells"])
    kind: Kind = "not reproduced" if wrong else "reproduced" if whole else "unfinished"
    return Found(kind, f"last outputs right at 40 letters, over the tasks: {shown}{_unfinished(cells)}")


def behind() -> Found:
    """Return the result for RWKV and a vanilla layer compared with S4."""
    ended = {name: [cell for cell in _cells(name) if "best_look" in cell] for name in ("s4", "rwkv4", "vanilla")}
    if not all(ended.values()):
        missing = ", ".join(name for name, cells in ended.items() if not cells)
        return Found("unfinished", f"no run has ended of: {missing}; the paper prints no numbers")
    shown = _by_task(
        [cell for cells in ended.values() for cell in cells],
        lambda cell: f"{cell['column']} {cell['best_look']:.3f} ({cell['last'][0]['mean']:.3f})",
    )
    of_s4 = {cell["task"]: cell["best_look"] for cell in ended["s4"]}
    rest = [cell for name in ("rwkv4", "vanilla") for cell in _cells(name)]
    # A cell that lacks seeds decides nothing: the mean over its seeds may still change sides.
    finished = [cell for cell in rest if cell["is_finished"]]
    behind = all(cell["best_look"] <= of_s4.get(cell["task"], 1) for cell in finished)
    whole = len(finished) == len(rest)
    kind: Kind = "not reproduced" if not behind else "reproduced" if whole else "unfinished"
    return Found(kind, f"best evaluations at 500 letters (accuracy at 40): {shown}{_unfinished(rest)}")


def speed(what: str, block: int) -> Callable[[], Found]:
    """Return the function that compares sequential and parallel scans in one line of the paper's speed comparison."""

    def found() -> Found:
        documents = {name: read(name) for name in ("paper_speed", "paper_speed_gpu")}
        if documents["paper_speed"] is None:
            return Found("unfinished", "not measured")
        rows = {
            document["device"]: next(r for r in document["rows"] if (r["what"], r["block"]) == (what, block))
            for document in documents.values()
            if document is not None
        }
        shown = "; ".join(
            f"{device}: Sequential/PScan {row['sequential_over_pscan']:.2f}, paper "
            f"{row['paper_sequential_over_pscan']:.2f}; faster one/ours {row['best_over_ours']:.1f}"
            for device, row in rows.items()
        )
        if documents["paper_speed_gpu"] is None:
            return Found("unfinished", f"{shown}; not measured on a GPU, where the paper did")
        row = rows[documents["paper_speed_gpu"]["device"]]
        here, paper = row["sequential_over_pscan"], row["paper_sequential_over_pscan"]
        is_alike = 1 / _LIKE <= here / paper <= _LIKE or min(here, paper) > _LIKE  # alike, or PScan is faster in both
        return Found("reproduced" if is_alike else "not reproduced", f"{shown}; compared on the GPU")

    return found


def _task(cell: dict[str, Any]) -> str:
    return cell["task"].removeprefix("task:")


def _unfinished(cells: list[dict[str, Any]]) -> str:
    if not (left := [cell for cell in cells if not cell["is_finished"]]):
        return ""
    columns = ", ".join(dict.fromkeys(cell["column"] for cell in left))
    return f". Unfinished: {len(left)} of {len(cells)} cells ({columns})"
