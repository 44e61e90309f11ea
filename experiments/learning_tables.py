"""The tables of what was learned under noise, how soon, and of random languages, from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from experiments import results_io
from experiments.tables import facts, markdown

_METHODS = {"train": "trained", "test": "merged by test", "rpni": "RPNI", "edsm": "EDSM", "alergia": "ALERGIA"}
_LABELS = {"dense": "every letter", "last": "the end"}
_CLASSES = ("group", "aperiodic", "mixed")
_LEARNED = "whole_40"  # words of 40 letters right at every letter: all of them, where a cell counts as learned


def noise() -> str:
    """Which share of machines each method finds exactly, by words, labels and wrong labels; of how many, how long."""
    document = results_io.read("noise")
    found, cells = document["results"], dict[tuple[Any, ...], dict[str, Any]]()
    for row in found["cells"]:
        cells[row["labels"], row["words"], row["noise"], row["method"]] = row["runs"]
    places = sorted({key[:3] for key in cells})
    rows = [
        [_LABELS[labels], f"{words:,}", f"{100 * noise:.0f} %"]
        + [_share(cells.get((labels, words, noise, method)), found["asked"]) for method in _METHODS]
        for labels, words, noise in places
    ]
    done = sum(len(runs["machine"]) for runs in cells.values())
    asked = found["asked"] * len(places) * len(_METHODS)
    note = (
        f"Machines found exactly, of those that were run; {found['asked']} are asked for in each cell, and where fewer "
        f"were run the cell says so. In brackets the median of seconds, {found['limit']:g} being the limit, at which "
        f"a run counts as a failure. {done:,} of {asked:,} runs were done"
    )
    return markdown(["labels after", "words", "wrong", *_METHODS.values()], rows) + facts(document, note)


def _share(runs: Mapping[str, list[Any]] | None, asked: int) -> str:
    """Found of run, and the median of seconds; of a run that was left out since fewer words took too long, none."""
    if runs is None or not runs["machine"]:
        return "not run"
    n, exact = len(runs["machine"]), sum(runs["exact"])
    seconds = [value for value in runs["seconds"] if value is not None]
    took = f" ({_seconds(median(seconds))})" if seconds else " (out of time)"
    return f"{exact} of {n}{took}"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def sooner() -> str:
    """Seconds until a proof and until the released rule's first perfect look."""
    document = results_io.read("sooner")
    rows = [
        [
            row["task"].removeprefix("task:"),
            f"{row['both']} of {row['seeds']}",
            *(_number(row[name], 1) for name in ("proved_seconds", "released_seconds")),
            *(_number(row[name], 0) for name in ("ratio", "least_ratio")),
        ]
        for row in document["results"]["tasks"]
    ]
    heads = ["task", "seeds with both", "proved after, s", "released rule, s", "ratio", "least"]
    note = "Medians over seeds; processor time on one thread"
    return markdown(heads, rows) + facts(document, note)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def random_languages() -> str:
    """Learned against representable, a line a layer; then the exceptions, and what has not been run."""
    document = results_io.read("random_languages")
    found = document["results"]
    machines = {row["number"]: row for row in found["machines"]}
    words, rows = found["protocol"]["words"], []
    for arm in found["asked"]["arms"]:
        runs = [run for run in found["runs"] if run["arm"] == arm]
        row = [found["titles"][arm], str(len(runs))]
        for answer in ("yes", "no", "not excluded"):
            of = [run for run in runs if machines[run["machine"]]["theory"][arm]["answer"] == answer]
            row.append(f"{sum(_is_learned(run, words) for run in of)} of {len(of)}" if of else "–")
        learned = [run for run in runs if _is_learned(run, words)]
        row += [
            f"{sum(run['whole_500'] == words for run in learned)}",
            f"{sum(run['fails_at'] is None for run in learned)}",
            f"{sum(run['proved'] for run in runs)}",
            f"{median(run['seconds'] for run in runs):.1f}" if runs else "",
        ]
        rows.append(row)
    heads = ["layer and rule", "runs", "learned where theory says yes", "… no", "… does not say"]
    heads += ["of them right at 500", "no failing word found", "proved", "s"]
    asked = found["asked"]["machines"] * found["asked"]["seeds"] * len(rows)
    note = (
        f"{len(machines)} of {found['asked']['machines']} machines so far, {len(found['runs']):,} of {asked:,} cells. "
        f'"Learned": {words:,} fresh words of 40 letters right at every letter; "right at 500": as many words of 500'
    )
    return markdown(heads, rows) + facts(document, note) + _exceptions(found, machines, words)


def _is_learned(run: Mapping[str, Any], words: int) -> bool:
    return run.get(_LEARNED) == words


def _exceptions(found: Mapping[str, Any], machines: Mapping[int, Mapping[str, Any]], words: int) -> str:
    """The runs that learned at 40 letters what theory says the layer can't represent, with their failing words."""
    lines = []
    for run in found["runs"]:
        row = machines[run["machine"]]
        if row["theory"][run["arm"]]["answer"] != "no" or not _is_learned(run, words):
            continue
        fails = f"fails on a word of {run['fails_at']}" if run["fails_at"] else "no failing word was found"
        lines.append(
            f"- {found['titles'][run['arm']]} on {row['kind']} {row['number']} ({row['states']} states, "
            f"{row['letters']} letters), seed {run['seed']}: {run['whole_500']:,} of {words:,} words of 500 letters "
            f"right; {fails}."
        )
    if not lines:
        return "\nNo run learned what theory says its layer can't represent.\n"
    return "\n".join(["\nLearned, though theory says that the layer can't represent it:\n", *lines, ""])


def by_class(found: Mapping[str, Any]) -> Iterable[tuple[str, list[Mapping[str, Any]]]]:
    """The runs of each class of machines."""
    kinds = {row["number"]: row["kind"] for row in found["machines"]}
    return [(kind, [run for run in found["runs"] if kinds[run["machine"]] == kind]) for kind in _CLASSES]
