"""MLRegTest as tables: what `learn` proves, and class labels, from the results."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from experiments import results_io
from experiments.studies.mlregtest.classes import holds
from experiments.studies.mlregtest.names import parse_name
from experiments.tables import markdown
from fsa2lrnn.automata.zoo.mlregtest import CLASSES

_SIZES = (4, 16, 64)
_CLASSIFIED = {
    "SL": "strictly_local", "TSL": "tier_strictly_local", "SP": "strictly_piecewise", "LT": "locally_testable",
    "TLT": "tier_locally_testable", "PT": "j_trivial", "LTT": "threshold_testable",
    "TLTT": "tier_threshold_testable", "PLT": "dot_depth_one", "TPLT": "tier_dot_depth_one", "SF": "aperiodic",
}  # fmt: skip

Runs = list[dict[str, Any]]


def learned() -> str:
    """Return the share of languages that `learn` proves with the machine as the source, by class and alphabet."""
    results = results_io.read("mlregtest_learned")["results"]
    runs: Runs = results["runs"]
    rows = [_row(f"{kind}", [run for run in runs if run["class"] == kind]) for kind in CLASSES]
    rows.append(_row("all", runs))
    proved, spent = sum(run["proved"] for run in runs), sum(run["processor_seconds"] for run in runs)
    unfinished = "" if len(runs) == results["languages"] else f" (of {results['languages']:,} planned)"
    heads = ["class", *(f"{size} letters" for size in _SIZES), "median s", "largest s", "largest machine proved"]
    return markdown(heads, rows) + (
        f"\n{proved:,} of {len(runs):,} languages{unfinished} were proved, in one run each with seed 0 and at most "
        f"{results['limit']:.0f} s of processor time on one core; {spent / 60:.1f} minutes in all. {_failures(runs)}"
        "(`experiments/results/mlregtest_learned.json`).\n"
    )


def _row(name: str, runs: Runs) -> list[str]:
    cells = [_share([run for run in runs if run["letters"] == size], lambda run: run["proved"]) for size in _SIZES]
    seconds = [run["processor_seconds"] for run in runs if run["proved"]]
    states = max((run["states"] for run in runs if run["proved"]), default=0)
    if not seconds:
        return [name, *cells, "–", "–", "–"]
    return [name, *cells, f"{median(seconds):.1f}", f"{max(seconds):.1f}", f"{states} states"]


def _failures(runs: Runs) -> str:
    failed = [f"{run['name']} ({run['states']} states)" for run in runs if not run["proved"]]
    return f"Not proved: {', '.join(failed)} " if failed else ""


def _share(runs: Runs, holds: Callable[[dict[str, Any]], bool]) -> str:
    return f"{sum(map(holds, runs))}/{len(runs)}" if runs else "–"


def classes() -> str:
    """Return the agreement of the classes that are decided with the labels."""
    results = results_io.read("mlregtest_classes")["results"]
    runs: Runs = [
        {"name": name, "class": parse_name(name).kind, "facts": text.split(), "holds": holds(name, text)}
        for name, text in results["runs"].items()
    ]
    rows = []
    for kind in CLASSES:
        of = [run for run in runs if run["class"] == kind]
        counts = [str(sum(fact in run["facts"] for run in of)) for fact in _CLASSIFIED.values()]
        rows.append([kind, _share(of, lambda run: run["holds"] is True), *counts])
    orders = [run for run in runs if run["class"] == "SL"]
    same = sum(f"k={parse_name(run['name']).k}" in run["facts"] for run in orders)
    agreeing = _share(runs, lambda run: run["holds"] is True)
    undecided = sum("?" in text for text in results["runs"].values())
    return markdown(["label", "agrees", *(f"{kind}: yes" for kind in _CLASSIFIED)], rows) + (
        f"\nThe class that is decided agrees with the label on {agreeing} languages; {undecided} of the "
        f"{len(runs):,} have an undecided class. For the labels Zp and Reg, agreement means that the "
        "language is not star-free. For "
        f"{same} of {len(orders)} strictly local languages the name gives the least k "
        "(`experiments/results/mlregtest_classes.json`).\n"
    )


def from_data() -> str:
    """Return the languages that `learn DATA` identifies from words alone: by number of words, and by class."""
    results = results_io.read("learn_data")["results"]
    runs: Runs = [run for run in results["runs"] if "class" in run]
    sizes = sorted({run["words"] for run in runs})
    of = {size: [run for run in runs if run["words"] == size] for size in sizes}
    rows = [
        [kind, *(_share([run for run in of[size] if run["class"] == kind], lambda run: run["exact"]) for size in sizes)]
        for kind in CLASSES
    ]
    rows.append(["all", *(_share(of[size], lambda run: run["exact"]) for size in sizes)])
    seconds = [[run["seconds"] for run in of[size] if "seconds" in run] for size in sizes]
    rows.append(["median s", *(f"{median(each):.1f}" for each in seconds)])
    limits = sorted({run["limit"] for run in runs})
    return markdown(["class", *(f"{size:,} words" for size in sizes)], rows) + (
        f"\nExact of the languages that ran, of {results['languages']} planned for each number of words. At most "
        f"{' or '.join(f'{limit:g}' for limit in limits)} s of processor time per language "
        "(`experiments/results/learn_data.json`).\n"
    )
