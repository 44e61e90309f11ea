"""Learned, then proved: named tasks and random machines, several seeds each, until the judge says Proved.

    python -m experiments.studies.learn_and_prove --seeds 5 --machines 100

Each run is written as soon as it ends, and a run that is in the file is not done again. Time is processor time, so that
what else the machine does counts little.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.learning import Learned, learn, summary

COMMAND = "python -m experiments.studies.learn_and_prove"
TASKS = (
    "sum_mod(2)", "sum_mod(3)", "sum_mod(5)", "sum_mod(7)", "sum_mod(11)", "even_pair(2)", "even_pair(3)",
    "even_pair(5)", "group(S3)", "group(D4)", "group(A4)", "group(Q8)", "group(S4)", "tomita(1)", "tomita(2)",
    "tomita(3)", "tomita(4)", "tomita(5)", "tomita(6)", "tomita(7)", "flip_flop", "shift_register(3)", "ab_star",
    "cycle_navigation(5)", "mod_arith(2)", "mod_arith(3)",
)  # fmt: skip
LONG = ("dyck(1, 4)", "dyck(2, 3)", "shift_register(5)", "mod_arith(5)")  # after the others
RANDOM = "random machines"
LARGE = tuple(f"random_dfa({n}, {k}, seed=0, minimal=true)" for n in (24, 32, 48, 64) for k in (3, 2))  # last of all
LIMITS = {"mod_arith(5)": 180.0, **{task: 600.0 for task in LARGE if task.startswith("random_dfa(64")}}
_STATES, _LETTERS = range(4, 17), range(2, 5)


class _OutOfTime(Exception):
    """Raised when the processor time of a run is used up."""


def random_tasks(n: int) -> list[str]:
    """Return minimal machines of 4 to 16 states over 2 to 4 letters, the sizes in turn."""
    sizes = [(s, k) for s in _STATES for k in _LETTERS]
    return [
        f"random_dfa({s}, {k}, seed={seed}, minimal=true)" for seed in range(-(-n // len(sizes))) for s, k in sizes
    ][:n]


def main(
    seeds: Annotated[int, typer.Option(min=1, help="runs of each named task")] = 5,
    machines: Annotated[int, typer.Option(min=0, help="random machines, one run each")] = 100,
    seconds: Annotated[float, typer.Option(min=1, help="processor time of a run; large ones have more")] = 60.0,
) -> None:
    """Learn every task from several seeds and write experiments/results/learn_and_prove.json."""
    torch.set_num_threads(1)
    wanted, known = plan(seeds, machines), known_rows("learn_and_prove")
    learn("task:parity")  # compiles what is compiled once

    def write(runs: list[Row]) -> None:
        results = {"asked": dict(Counter(group(task) for task, _ in wanted)), "runs": runs}
        results_io.write("learn_and_prove", {**results, "table": table(results)}, COMMAND)

    run_due(wanted, ("task", "seed"), known, lambda task, seed: run_one(task, seed, LIMITS.get(task, seconds)), write)


def plan(seeds: int, machines: int) -> list[tuple[str, int]]:
    """Return tasks and seeds in the order of the runs: short tasks once, then random machines, large ones last."""
    short = [[(task, seed) for task in TASKS] for seed in range(seeds)]
    long = [[(task, seed) for task in LONG] for seed in range(seeds)]
    rest = [pair for seed in range(1, seeds) for pair in (*short[seed], *long[seed])]
    return [*short[0], *((task, 0) for task in random_tasks(machines)), *long[0], *rest, *((t, 0) for t in LARGE)]


def run_one(task: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return one run: whether it was proved, and its cost."""
    begun = time.process_time()
    target = MooreMachine.from_source(f"task:{task}").minimise().n_states
    run = {"task": task, "seed": seed, "target_states": target, "limit": seconds}
    found, last = learn_within(f"task:{task}", seed, seconds)
    run |= {"proved": found is not None and found.is_proved, "processor_seconds": time.process_time() - begun}
    if found is None:
        return run | {"starts": last["start"] + 1, "steps": last["step"], "last_look": last}
    return run | summary(found)


def learn_within(
    source: str | MooreMachine, seed: int, seconds: float, **changes: Any
) -> tuple[Learned | None, dict[str, Any]]:
    """Return the result of `learn` within a limit of processor time, or None, and its last evaluation record."""
    last = dict[str, Any]()
    try:
        report = _until(time.process_time() + seconds, last)
        return learn(source, seed=seed, steps=1_000_000, report=report, **changes), last
    except _OutOfTime:
        return None, last


def _until(end: float, last: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def look(record: dict[str, Any]) -> None:
        last.update(record)
        if time.process_time() > end:
            raise _OutOfTime

    return look


def group(task: str) -> str:
    """Return the row of the table to which a task belongs.

    >>> group("random_dfa(5, 2, seed=0, minimal=true)"), group(LARGE[0])
    ('random machines', 'random machine, 24 states, 3 letters')
    """
    if task in LARGE:
        n, k = task.removeprefix("random_dfa(").split(", ")[:2]
        return f"random machine, {n} states, {k} letters"
    return RANDOM if task.startswith("random") else task


def table(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per named task, and one for all random machines; times and steps of runs that ended in a proof."""
    rows: list[dict[str, Any]] = []
    for name, asked in results["asked"].items():
        runs = [run for run in results["runs"] if group(run["task"]) == name]
        proved = [run for run in runs if run["proved"]]
        medians = {
            f"median_{of}": _median([run[of] for run in proved]) for of in ("starts", "steps", "processor_seconds")
        }
        worst = max((run["processor_seconds"] for run in proved), default=None)
        rows.append({"task": name, "asked": asked, "runs": len(runs), "proved": len(proved), **medians, "worst": worst})
    return rows


def _median(values: list[float]) -> float | None:
    if not values:
        return None
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


if __name__ == "__main__":
    script.run(main)
