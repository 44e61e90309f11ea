"""MLRegTest as tables: what `learn` proves, what data alone gives, and class labels, from the results."""

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
_TESTS = ("SR", "SA", "LR", "LA")
_LIMIT = 60.0  # seconds of the runs that do not say it
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


def own_tasks() -> str:
    """Return what the recipe does on this library's own tasks, compared with the earlier one."""
    new = results_io.read("mlregtest_own_tasks")["results"]["runs"]
    earlier = {(run["task"], run["seed"]): run for run in results_io.read("learn_and_prove")["results"]["runs"]}
    both = [(earlier[key], run) for run in new if (key := (run["task"], run["seed"])) in earlier]
    rows = []
    groups: dict[str, Callable[[str], bool]] = {
        "named tasks": lambda task: not task.startswith("random"),
        "random machines, 4 to 16 states": lambda task: task.startswith("random") and int(task[11:].split(",")[0]) < 24,
        "random machines, 24 to 64 states": lambda t: t.startswith("random") and int(t[11:].split(",")[0]) >= 24,
    }
    for name, belongs in groups.items():
        pairs = [(was, now) for was, now in both if belongs(now["task"])]
        cells = [name]
        for runs in zip(*pairs, strict=True):
            seconds = [run["processor_seconds"] for run in runs]
            cells += [_share(list(runs), lambda run: run["proved"]), f"{median(seconds):.2f}", f"{max(seconds):.1f}"]
        rows.append(cells)
    heads = [
        "machines",
        *(f"{when}: {what}" for when in ("before", "now") for what in ("proved", "median s", "largest s")),
    ]
    return markdown(heads, rows) + (
        f"\n{len(both)} machines, seed 0, the same limits of processor time. The earlier runs are those in "
        "`learn_and_prove.json`, perhaps on other hardware "
        "(`experiments/results/mlregtest_own_tasks.json`).\n"
    )


def candidates() -> str:
    """Return what each part of the recipe contributes."""
    results = results_io.read("mlregtest_candidates")["results"]
    runs: Runs = results["runs"]
    whole = {run["name"] for run in runs if run["arm"] == results["arms"][-1]}  # languages that every arm has run
    rows = []
    for arm in results["arms"]:
        of_arm = [run for run in runs if run["arm"] == arm and run["name"] in whole]
        seconds = [run["processor_seconds"] for run in of_arm if run["proved"]]
        proved = _share(of_arm, lambda run: run["proved"])
        rows.append([arm, proved, f"{median(seconds):.1f}" if seconds else "–"])
    return markdown(["part left out or changed", "proved", "median s of those"], rows) + (
        f"\n{len(whole)} languages drawn across alphabets and classes, {results['seconds']:g} s of processor time per "
        "run, one seed: differences of one language are not significant "
        "(`experiments/results/mlregtest_candidates.json`).\n"
    )


def data_alone() -> str:
    """Return exact identification and the accuracy on the test sets: per method and number of words, and by class."""
    results = results_io.read("mlregtest_data_alone")["results"]
    runs: Runs = [run for run in results["runs"] if not run.get("second_sample")]
    second: Runs = [run for run in results["runs"] if run.get("second_sample") and "processor_seconds" in run]
    cells = sorted({(run["size"], run["method"]) for run in runs})
    of = {cell: [run for run in runs if (run["size"], run["method"]) == cell] for cell in cells}
    rows = [
        [
            method,
            f"{size:,}",
            f"{sum('training_errors' in run for run in of[size, method])}/{len(of[size, method])}",
            *_of_data(of[size, method]),
            f"{median(run.get('processor_seconds', 0.0) for run in of[size, method]):.1f}",
        ]
        for size, method in cells
    ]
    largest = max(run["size"] for run in runs if run["method"] == "hierarchy")
    best_method = max(
        (method for size, method in cells if size == largest),
        key=lambda method: sum(bool(run["exact"]) for run in of[largest, method]),
    )
    best = of[largest, best_method]
    header, where, against = _against_gru(runs)
    by_class = [
        [kind, *_of_data(chosen), *against[kind]]
        for kind in CLASSES
        if (chosen := [run for run in best if run["class"] == kind])
    ]
    inexact = [run for run in best if not run["exact"]]
    consistent = [run for run in inexact if run.get("training_errors") == 0]
    smaller = sum(run["learned_states"] < run["states"] for run in consistent)
    over = [run for run in runs if run.get("processor_seconds", 0) > _LIMIT < run.get("limit", _LIMIT)]
    longest = dict(sorted((run["method"], run["limit"]) for run in over))
    limits = "".join(f", {limit:g} s for `{method}`" for method, limit in longest.items())
    return (
        markdown(["method", "words", "ended", "exact", *_TESTS, "median s"], rows)
        + f"\n{len({run['name'] for run in runs})} languages, at most {_LIMIT:g} s of processor time per run{limits}; "
        f"about {results['test']:,} words per test set.{_second(second)} "
        f"`{best_method}` from {largest:,} words; on the right {where}:\n\n"
        + markdown(["class", "exact", *_TESTS, *header], by_class)
        + f"\nOf {len(inexact)} inexact runs, {len(consistent)} are right on all their training words, "
        f"and {smaller} of these have fewer states than the language "
        "(`experiments/results/mlregtest_data_alone.json`).\n"
    )


def _against_gru(runs: Runs) -> tuple[list[str], str, dict[str, list[str]]]:
    """Compare `likely` with the benchmark's GRU: a header, what was compared, and the cells by class."""
    size = max(run["size"] for run in runs if run["method"] == "gru")
    of = {
        method: {run["name"]: run for run in runs if (run["method"], run["size"]) == (method, size)}
        for method in ("likely", "gru")
    }
    both = sorted({*of["likely"]} & {*of["gru"]})
    cells: dict[str, list[str]] = {}
    for kind in CLASSES:
        names = [name for name in both if of["gru"][name]["class"] == kind]
        ours, theirs = (_of_data([of[method][name] for name in names]) for method in of)
        cells[kind] = [ours[0], ours[2], theirs[2], ours[4], theirs[4]]
    tests = [f"{test}: `{method}`" for test in ("SA", "LA") for method in of]
    return ["exact: `likely`", *tests], f"`likely` and `gru` from {size:,} words on {len(both)} languages", cells


def _second(runs: Runs) -> str:
    """Return how many languages of the second sample were identified, and the accuracy on words at edit distance 1."""
    return "".join(
        f" `{method}` from {size:,} words is exact on {sum(run['exact'] for run in of)} of {len(of)} other languages "
        f"({100 * sum(run['exact'] for run in of) / len(of):.0f} %; SA {_of_data(of)[2]}, LA {_of_data(of)[4]})."
        for method, size in sorted({(run["method"], run["size"]) for run in runs})
        if (of := [run for run in runs if (run["method"], run["size"]) == (method, size)])
    )


def _of_data(runs: Runs) -> list[str]:
    decided = [run["exact"] for run in runs if run["exact"] is not None]
    cells = [f"{sum(decided)}/{len(decided)}" if decided else "–"]
    for test in _TESTS:
        right = [run[test] for run in runs if isinstance(run.get(test), float)]
        cells.append(f"{sum(right) / len(right):.3f}" if right else "–")
    return cells


def classes() -> str:
    """Return the agreement of `classify` with the labels."""
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
        f"\n`classify` agrees with the label on {agreeing} languages, and leaves {undecided} of the {len(runs):,} with "
        "an undecided class. For the labels Zp and Reg, agreement means that the language is not star-free. For "
        f"{same} of {len(orders)} strictly local languages the name gives the least k "
        "(`experiments/results/mlregtest_classes.json`).\n"
    )
