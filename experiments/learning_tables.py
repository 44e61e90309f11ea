"""The tables on learning from wrong labels, and on the time until a proof, from the results."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from experiments import results_io
from experiments.studies import learn_and_prove
from experiments.tables import facts, markdown

_METHODS = {"train": "trained", "test": "merged by test", "rpni": "RPNI", "edsm": "EDSM", "alergia": "ALERGIA"}
_LABELS = {"dense": "every letter", "last": "the end"}


def in_short() -> str:
    """Return a summary of which training runs end in a proof, and after how much time."""
    document = results_io.read("learn_and_prove")
    runs = [(run, learn_and_prove.group(run["task"])) for run in document["results"]["runs"]]
    large = {learn_and_prove.group(task) for task in learn_and_prove.LARGE}
    named = [run for run, of in runs if of not in (*large, learn_and_prove.RANDOM)]
    short = [run for run in named if run["task"] != _LONGEST]
    groups = {
        f"{len({run['task'] for run in short})} named tasks": short,
        "ModArith(5)": [run for run in named if run["task"] == _LONGEST],
        _sized("random machines", [run for run, of in runs if of == learn_and_prove.RANDOM]): [
            run for run, of in runs if of == learn_and_prove.RANDOM
        ],
        _sized("random machines", [run for run, of in runs if of in large]): [run for run, of in runs if of in large],
    }
    rows = list[list[str]]()
    for name, found in groups.items():
        proved = [run["processor_seconds"] for run in found if run["proved"]]
        took = [f"{of(proved):.1f}" for of in (median, max)] if proved else ["", ""]
        rows.append([name, f"{len(proved)} of {len(found)}", *took])
    return markdown(["what is learned", "proved for all lengths", "seconds, median", "most"], rows) + facts(
        document, "Seconds of one core, of the runs that ended in a proof"
    )


_LONGEST = "mod_arith(5)"


def _sized(what: str, runs: list[dict[str, Any]]) -> str:
    sizes = [run["target_states"] for run in runs]
    return f"{what} of {min(sizes)} to {max(sizes)} states"


def noise() -> str:
    """Return the share of machines that each method identifies exactly, by words and labels, and the times."""
    document = results_io.read("noise")
    found, cells = document["results"], dict[tuple[Any, ...], dict[str, Any]]()
    for row in found["cells"]:
        cells[row["labels"], row["words"], row["wrong"], row["method"]] = row["runs"]
    places = sorted({key[:3] for key in cells})
    rows = [
        [_LABELS[labels], f"{words:,}", f"{100 * wrong:g} %"]
        + [_share(cells.get((labels, words, wrong, method))) for method in _METHODS]
        for labels, words, wrong in places
    ]
    done = sum(len(runs["machine"]) for runs in cells.values())
    asked = found["asked"] * len(places) * len(_METHODS)
    note = (
        f"Machines identified exactly, of those run ({found['asked']} planned per cell), and median seconds; a run "
        f"that reaches the limit of {found['limit']:g} s counts as a failure. {done:,} of {asked:,} runs were done"
    )
    return markdown(["labels after", "words", "wrong", *_METHODS.values()], rows) + facts(document, note)


def selective_learned() -> str:
    """Return how often each hard selective layer was learned and proved on each group, with its processor time."""
    document = results_io.read("selective")
    runs = document["results"]["learned"]
    layers = list(dict.fromkeys(row["layer"] for row in runs))
    tasks = sorted({row["task"] for row in runs})
    rows = []
    for task in tasks:
        cells = [[row for row in runs if (row["task"], row["layer"]) == (task, layer)] for layer in layers]
        rows.append([task, *(_proved(cell) for cell in cells)])
    note = (
        f"Networks proved equal to the group's automaton on all words, within {runs[0]['limit']:g} s of processor "
        "time; in brackets median and largest number of seconds"
    )
    return markdown(["group", *layers], rows) + facts(document, note)


def _proved(cell: list[dict[str, Any]]) -> str:
    seconds = [row["processor_seconds"] for row in cell if row["end"] == "proved"]
    numbers = f" ({median(seconds):.1f}, {max(seconds):.1f})" if seconds else ""
    return f"{len(seconds)} of {len(cell)}{numbers}"


def selective_trained() -> str:
    """Return what is proved and refuted of trained selective layers: accuracy, certified length, counterexample."""
    document = results_io.read("selective")
    rows = [
        [
            *(row["layer"], row["task"], "" if row["accuracy"] is None else f"{row['accuracy']:.2f}"),
            f"{row['certified']}",
            *("none" if row["fails_at"] is None else f"{row['fails_at']}", row["extracted"]),
            row["repaired"].partition(":")[0],
        ]
        for row in document["results"]["trained"]
    ]
    note = (
        "Lengths are numbers of letters; 1,000 steps, one run per row. Certificates hold for float32, the scans "
        '"sequential", "fused" and "letters" and calls of every shape. The constructed model turns a pair by 2πa/5 for '
        "letter a; its counterexample has random letters, the others are the shortest found"
    )
    heads = ["layer", "task", "accuracy", "certified", "counterexample", "extracted", "repaired"]
    return markdown(heads, rows) + facts(document, note)


def _share(runs: Mapping[str, list[Any]] | None) -> str:
    """Return how many machines were identified exactly, and the median of seconds over the runs made."""
    if runs is None or not runs["machine"]:
        return "not run"
    n, exact = len(runs["machine"]), sum(runs["exact"])
    seconds = [value for value in runs["seconds"] if value is not None]
    took = f" ({_seconds(median(seconds))})" if seconds else " (out of time)"
    return f"{exact} of {n}{took}"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"
