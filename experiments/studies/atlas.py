"""The atlas: which layer in use holds which machine, in one layer and in a stack, and which released model does.

    python -m experiments.studies.atlas --folder MLREGTEST

Machines are named tasks, groups of order at most 60 given by generators, random machines, and languages of MLRegTest.
`decide` raises an error where a layer is said to represent what a layer that contains it does not, and so does this
study where a model folder by default and stacks of its layer have opposite answers. Each machine is
written as soon as it is decided. Cells that are in the file are not decided again, except those of layers named by
`--again`, and with `--again folders` those of model folders that are unknown.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.block_sizes import NAMED
from experiments.studies.mlregtest.leaderboard import language, languages
from experiments.tables import facts, markdown
from fsa2lrnn import zoo
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import NotExact, OutOfTime
from fsa2lrnn.export.configuration import answer, of_config
from fsa2lrnn.export.in_use import IN_USE, Decision, decide, title_of
from fsa2lrnn.export.model_folders import FOLDERS
from fsa2lrnn.export.refuse import decide_stack
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.layers import LAYERS

NAME = "atlas"
COMMAND = "python -m experiments.studies.atlas --folder MLREGTEST"
GROUPS = (
    *(f"Z{n}" for n in range(2, 61)), *(f"D{n}" for n in range(3, 31)), "S3", "S4", "A4", "A5", "Q8", "Z2xZ2",
    "Z2xZ2xZ2", "Z3xZ3", "Z2xZ4", "Z4xZ4", "Z2xS3", "Z3xS3", "S3xS3", "Z2xA4", "Z2xS4", "Z2xQ8", "Z3xQ8", "Z5xQ8",
    "Z2xD4", "Z3xD4", "Z3xA4", "Z4xA4", "Z5xA4",
)  # fmt: skip
REPEATED = ("s5", "mamba-3", "mingru", "slice", "slice-sparse")
"""Layers whose answers follow from those of another row, or from a theorem on all machines."""
CARDS = {folder: of_config({"model_type": folder}) for folder in FOLDERS}
KINDS = ("any", "permutations", "monotone", "resets and identities")


def random_machine(kind: str, rng: np.random.Generator) -> MooreMachine:
    """Return an acceptor of 2 to 8 states whose 2 or 3 letters are of a kind; monotone maps make it aperiodic."""
    n, letters = int(rng.integers(2, 9)), int(rng.integers(2, 4))
    rows = {
        "any": lambda: rng.integers(n, size=n),
        "permutations": lambda: rng.permutation(n),
        "monotone": lambda: np.sort(rng.integers(n, size=n)),
        "resets and identities": lambda: np.arange(n) if rng.random() < 0.3 else np.full(n, rng.integers(n)),
    }
    outputs = rng.integers(2, size=n).astype(bool)
    return MooreMachine([rows[kind]() for _ in range(letters)], outputs.tolist())


def main(
    folder: Annotated[Path | None, typer.Option(help="of MLRegTest, if it is here", exists=True)] = None,
    machines: Annotated[int, typer.Option(min=4, help="random machines, a quarter of each kind")] = 200,
    sample: Annotated[int, typer.Option(min=1, help="languages of MLRegTest")] = 96,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="time limit per machine, the default of `explain`")] = 30,
    minutes: Annotated[float, typer.Option(min=0, help="minutes after which no machine is begun")] = 1e9,
    again: Annotated[list[str] | None, typer.Option(help="a layer to decide again, or folders; repeatable")] = None,
) -> None:
    """Decide the layers for every machine, write results/atlas.json after each, print the table."""
    sources = dict[tuple[str, str], MooreMachine]()
    sources |= {("random", f"{i}"): machine for i, machine in enumerate(random_machines(machines))}
    sources |= {("group", spec): zoo.group(spec) for spec in GROUPS}
    sources |= {("task", name): MooreMachine.from_source(f"task:{name}") for name in NAMED if "group(" not in name}
    if folder is not None:
        os.environ["FSA2LRNN_MLREGTEST"] = str(folder)
        sources |= {("language", name): language(name) for name in languages(folder, sample)}

    stored = {(row["kind"], row["name"]): row for row in known_rows(NAME)}

    def run(kind: str, name: str) -> Row:
        machine, begun = sources[kind, name].minimise(), time.process_time()
        before = stored.get((kind, name), {"cells": {}, "planned": [], "late": [], "seconds": 0.0})
        kept = {
            layer: Decision(*cell.split("/"), is_planned=layer in before["planned"])
            for layer, cell in before["cells"].items()
            if layer in IN_USE and layer not in (again or ())
        }
        rows = decide(machine, classify(machine), decide_stack, max_seconds=max_seconds, stored=kept)
        known = {folder: said for folder, said in before.get("folders", {}).items() if said != "unknown"}
        folders = of_folders(machine, max_seconds, known)
        check_folders(folders, rows)
        late = [
            layer for layer, row in rows.items() if row.is_out_of_time or (layer in kept and layer in before["late"])
        ]
        return {
            "kind": kind,
            "name": name,
            "states": machine.n_states,
            "cells": {layer: f"{row.one}/{row.stack}" for layer, row in rows.items()},
            "planned": [layer for layer, row in rows.items() if row.is_planned],
            "late": [*late, *(f"folder {folder}" for folder, said in folders.items() if said == "late")],
            "folders": {folder: "unknown" if said == "late" else said for folder, said in folders.items()},
            "seconds": round(before["seconds"] + time.process_time() - begun, 2),
        }

    def write(rows: list[Row]) -> None:
        every = [*(stored | {(row["kind"], row["name"]): row for row in rows}).values()]
        results_io.write("atlas", {"runs": every, "unknown": unknown(every)}, COMMAND)

    complete = [row for row in stored.values() if set(row["cells"]) == set(IN_USE) and not is_due(row, again or [])]
    small_first = sorted(sources, key=lambda key: sources[key].n_states)
    run_due(small_first, ("kind", "name"), complete, run, write, minutes)
    print(table())


def is_due(row: Row, again: list[str]) -> bool:
    """Return whether a machine has cells to decide again."""
    is_unknown = "folders" in again and "unknown" in row["folders"].values()
    return is_unknown or bool({*again} - {"folders"})


def of_folders(machine: MooreMachine, max_seconds: float, known: Mapping[str, str]) -> dict[str, str]:
    """Return the answer of each model folder by default, "late" where the time limit passed first.

    The limit is of processor time, so that answers do not depend on the load of the machine; `known` is not repeated.
    """
    deadline = Deadline.of(max_seconds)
    found = dict.fromkeys(CARDS, "late") | dict(known)
    for folder, card in CARDS.items():
        if folder in known:
            continue
        with suppress(OutOfTime), limited(deadline.share(0.5)):
            found[folder] = answer(machine, card).kind
    return found


def check_folders(folders: Mapping[str, str], rows: Mapping[str, Decision]) -> None:
    """Raise `NotExact` if a model folder and stacks of its layer have opposite answers."""
    for folder, said in folders.items():
        row = rows.get(LAYERS[FOLDERS[folder].layer].decided_as)
        # A folder with one layer may exclude what stacks hold (T69).
        opposite = "" if CARDS[folder].one_layer and said == "no" else {"yes": "no", "no": "yes"}.get(said)
        if row is not None and row.stack == opposite:
            raise NotExact(f"{folder} says {said}, and stacks of its layer {row.stack}")


def unknown(runs: list[Row]) -> dict[str, dict[str, list[str]]]:
    """Return the kind and name of each machine that is undecided for a layer, for one layer and for a stack."""
    lists: dict[str, dict[str, list[str]]] = {}
    for layer in IN_USE:
        for i, what in enumerate(("one", "stack")):
            cells = {f"{run['kind']} {run['name']}": run["cells"].get(layer, "/") for run in runs}
            names = [name for name, cell in cells.items() if cell.split("/")[i] == "unknown"]
            if names:
                lists.setdefault(layer, {})[what] = names
    for folder in FOLDERS:
        names = [f"{run['kind']} {run['name']}" for run in runs if run.get("folders", {}).get(folder) == "unknown"]
        if names:
            lists[f"folder {folder}"] = {"stack": names}
    return lists


def random_machines(count: int, seed: int = 0) -> list[MooreMachine]:
    """Return machines of each kind in turn."""
    rng = np.random.default_rng(seed)
    return [random_machine(KINDS[i % len(KINDS)], rng) for i in range(count)]


def table() -> str:
    """Return the share of machines that each layer holds, in one layer and in a stack, and what is undecided."""
    document = results_io.read(NAME)
    runs = document["results"]["runs"]
    rows, undecided = [], Counter[str]()
    for layer in IN_USE:
        answers = [Counter(run["cells"][layer].split("/")[i] for run in runs) for i in (0, 1)]
        open_ = [run for run in runs if "unknown" in run["cells"][layer]]
        smallest = min(open_, key=lambda run: (run["states"], run["kind"], run["name"]), default=None)
        planned = sum(layer in run["planned"] for run in runs) or ""
        named = "" if smallest is None else f"{smallest['kind']} {smallest['name']} ({smallest['states']})"
        counts = [f"{answer[what]}" for answer in answers for what in ("yes", "no", "unknown")]
        # T66: every "no" of T3 holds with a linear read-out for any number of vectors per state.
        linear = f"{answers[0]['no']}" if LAYERS[layer].family in FORCED else ""
        rows.append([title_of(layer), *counts, linear, f"{planned}", named])
    for run in runs:
        for cell in run["cells"].values():
            undecided[run["kind"]] += cell.count("unknown")
    totals = Counter(run["kind"] for run in runs)
    cells = 2 * len(IN_USE)
    open_all = sum(undecided.values())
    shares = ", ".join(f"{kind} {100 - 100 * undecided[kind] / (n * cells):.1f} %" for kind, n in totals.items())
    others = 2 * (len(IN_USE) - len(REPEATED)) * len(runs)
    of_others = open_all - sum(run["cells"][layer].count("unknown") for run in runs for layer in REPEATED)
    repeated = ", ".join(title_of(layer) for layer in REPEATED)
    by_folder = Counter(said for run in runs for said in run["folders"].values())
    n_folders = len(FOLDERS) * len(runs)
    every = len(runs) * cells + n_folders
    seconds, n_late = [run["seconds"] for run in runs], sum(bool(run["late"]) for run in runs)
    note = (
        f"{len(runs)} machines ({', '.join(f'{n} {kind}' for kind, n in totals.items())}). "
        f"{100 - 100 * open_all / (len(runs) * cells):.1f} % of {len(runs) * cells:,} cells are decided "
        f"({shares}); without the rows of {repeated} {100 - 100 * of_others / others:.1f} % of {others:,}. "
        f"Of {n_folders:,} cells of model folders {100 - 100 * by_folder['unknown'] / n_folders:.1f} % are decided, of "
        f"all {every:,} cells {100 - 100 * (open_all + by_folder['unknown']) / every:.1f} %. Median "
        f"{median(seconds):g} s per machine, at most {max(seconds):g}; for {n_late} machines a cell was not "
        "decided within the time limit"
    )
    heads = [
        "layer",
        "one: yes",
        "no",
        "unknown",
        "stack: yes",
        "no",
        "unknown",
        "one: no, any number of vectors",
        "weights",
        "smallest with an unknown cell (states)",
    ]
    return markdown(heads, rows) + facts(document, note)


if __name__ == "__main__":
    script.run(main)
