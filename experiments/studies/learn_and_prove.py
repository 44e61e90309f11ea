"""Learned, then proved: named tasks and random machines, several seeds each, until the judge says Proved.

    python -m experiments.studies.learn_and_prove --seeds 5 --machines 100

Each run is written as soon as it ends, and a run that is in the file is not done again. Seconds are those of the
machine that it ran on, whatever else ran there.
"""

from __future__ import annotations

from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.training.learning import learn, summary

NAME = "learn_and_prove"
COMMAND = "python -m experiments.studies.learn_and_prove"
TASKS = (
    "sum_mod(2)", "sum_mod(3)", "sum_mod(5)", "sum_mod(7)", "sum_mod(11)", "even_pair(2)", "even_pair(3)",
    "even_pair(5)", "group(S3)", "group(D4)", "group(A4)", "group(Q8)", "group(S4)", "tomita(1)", "tomita(2)",
    "tomita(3)", "tomita(4)", "tomita(5)", "tomita(6)", "tomita(7)", "flip_flop", "shift_register(3)",
    "shift_register(5)", "dyck(1, 4)", "dyck(2, 3)", "ab_star", "cycle_navigation(5)", "mod_arith(2)", "mod_arith(3)",
    "mod_arith(5)",
)  # fmt: skip
LIMITS = {"mod_arith(5)": 180.0}
_STATES, _LETTERS = range(4, 17), range(2, 5)


def random_tasks(n: int) -> list[str]:
    """Minimal machines of 4 to 16 states over 2 to 4 letters, the sizes in turn."""
    sizes = [(s, k) for s in _STATES for k in _LETTERS]
    return [
        f"random_dfa({s}, {k}, seed={seed}, minimal=true)" for seed in range(-(-n // len(sizes))) for s, k in sizes
    ][:n]


def main(
    seeds: Annotated[int, typer.Option(min=1, help="runs of each named task")] = 5,
    machines: Annotated[int, typer.Option(min=0, help="random machines, one run each")] = 100,
    seconds: Annotated[float, typer.Option(min=1, help="limit of a run; ModArith(5) has 180")] = 60.0,
) -> None:
    """Learn every task from several seeds and write experiments/results/learn_and_prove.json."""
    torch.set_num_threads(1)
    path = results_io.RESULTS / f"{NAME}.json"
    runs: list[dict[str, Any]] = results_io.read(NAME)["results"]["runs"] if path.exists() else []
    done = {(run["task"], run["seed"]) for run in runs}
    wanted = [(task, seed) for seed in range(seeds) for task in TASKS] + [(task, 0) for task in random_tasks(machines)]
    learn("task:parity")  # compiles what is compiled once
    for task, seed in wanted:
        if (task, seed) in done:
            continue
        found = learn(f"task:{task}", seed=seed, seconds=LIMITS.get(task, seconds), steps=1_000_000)
        target = MooreMachine.from_source(f"task:{task}").minimise().n_states
        run = {"task": task, "seed": seed, "target_states": target, "proved": found.is_proved, **summary(found)}
        runs.append(run)
        results_io.write(NAME, {"runs": runs, "table": table(runs)}, COMMAND)
        typer.echo(f"{task} seed {seed}: {found.explain()[:90]}; {found.seconds:.1f} s, {found.steps} steps")


def table(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row a named task, and one for all random machines."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault("random machines" if run["task"].startswith("random") else run["task"], []).append(run)
    return [
        {
            "task": task,
            "runs": len(group),
            "proved": sum(run["proved"] for run in group),
            **{f"median_{name}": _median([run[name] for run in group]) for name in ("starts", "steps", "seconds")},
            "worst_seconds": max(run["seconds"] for run in group),
        }
        for task, group in groups.items()
    ]


def _median(values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


if __name__ == "__main__":
    script.run(main)
