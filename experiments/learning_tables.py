"""The table on the time until a proof, from the results."""

from __future__ import annotations

from statistics import median
from typing import Any

from experiments import results_io
from experiments.studies import learn_and_prove
from experiments.tables import facts, markdown


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
