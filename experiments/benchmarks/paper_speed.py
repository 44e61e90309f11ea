"""The paper's speed comparison here: `python -m experiments.benchmarks.paper_speed`; `--device cuda` on a GPU.

Sum(5), one layer of eight blocks of 8 or 64 blocks of 1, batches of 128 words: a training step at 40 letters, outputs
alone at 500. Sequential and PScan are the paper's own two (`baselines`) in a network of torch's operations; ours is the
network that is trained here. All are one function of the same weights. They take turns in one process; medians, of the
processor's time with one thread on the CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import results_io, script
from experiments.benchmarks.scans import interleaved
from experiments.benchmarks.steps import FORWARDS, OURS, prepare, step
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.trainer import use_threads

SEQUENTIAL, PSCAN = "authors' Sequential", "authors' PScan"
NAMES = (SEQUENTIAL, PSCAN, OURS)
TRAINING, INFERENCE = "training step", "inference"
CASES = ((TRAINING, 40), (INFERENCE, 500))
BLOCKS = ((8, 8), (1, 64))  # b and h
TURNS = 7
PAPER: dict[tuple[str, int], tuple[float, float]] = {  # seconds an instance, Sequential and PScan, on a Quadro RTX 8000
    (TRAINING, 8): (0.033, 0.021),
    (INFERENCE, 8): (0.03, 0.03),
    (INFERENCE, 1): (0.002, 0.0008),
}

COMMAND = "python -m experiments.benchmarks.paper_speed"


def main(
    device: Annotated[str, typer.Option(help="cpu, or cuda")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="of torch and of the kernels")] = 1,
) -> None:
    """Measure, write results/paper_speed.json (paper_speed_gpu.json on a GPU), print the table."""
    cases = [(what, length, b, h) for what, length in CASES for b, h in BLOCKS]
    with use_threads(threads):
        rows = [measure(*case, device=device) for case in track(cases, description="speed", transient=True)]
    found = {"device": described(device), "threads": threads, "rows": rows}
    if device == "cpu":
        path = results_io.write("paper_speed", found, COMMAND)
    else:
        path = results_io.write("paper_speed_gpu", found, COMMAND)
    Console().print(_table(rows), f"written to {path.name}")


def described(device: str) -> str:
    """Return the name of the device."""
    return "CPU" if device == "cpu" else torch.cuda.get_device_name()


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "what", "letters", "b", "h", *(f"{name} ms" for name in NAMES), "Sequential / PScan", "paper", "best / ours"
    )
    for row in rows:
        paper = row["paper_sequential_over_pscan"]
        table.add_row(
            *(str(row[name]) for name in ("what", "length", "block", "heads")),
            *(f"{row['milliseconds'][name]:.2f}" for name in NAMES),
            f"{row['sequential_over_pscan']:.2f}",
            "" if paper is None else f"{paper:.2f}",
            f"{row['best_over_ours']:.1f}",
        )
    return table


def measure(what: str, length: int, block: int, heads: int, device: str = "cpu", **changes: Any) -> dict[str, Any]:
    """Return median milliseconds per batch of each network, and ratios; `changes` override settings."""
    rule = "paper" if block > 1 else "clip"  # the paper rule divides a block of 1 by zero
    settings = preset(
        "paper", "task:sum_mod(5)", block=block, heads=heads, normalisation=rule, length=length, **changes
    )
    model, batch = prepare(settings)
    model, batch = model.to(device), Batch(*(part.to(device) for part in batch))
    actions = {name: action(what, model, name, batch, settings) for name in NAMES}
    alone = device == "cpu" and torch.get_num_threads() == 1
    milliseconds = interleaved(actions, TURNS, time.process_time if alone else time.perf_counter)
    sequential, pscan, ours = (milliseconds[name] for name in NAMES)
    paper = PAPER.get((what, block))
    return {
        "what": what,
        "length": length,
        "block": block,
        "heads": heads,
        "batch": settings.batch,
        "milliseconds": milliseconds,
        "sequential_over_pscan": sequential / pscan,
        "paper_sequential_over_pscan": None if paper is None else paper[0] / paper[1],
        "best_over_ours": min(sequential, pscan) / ours,
    }


def action(what: str, model: LRNN, name: str, batch: Batch, settings: Settings) -> Callable[[], None]:
    """Return a training step of a copy of the model, or the computation of its outputs."""
    copy = deepcopy(model)
    run = step(copy, name, batch, settings) if what == TRAINING else partial(_outputs, copy, name, batch)
    if batch.tokens.device.type != "cuda":
        return run

    def and_wait() -> None:
        run()
        torch.cuda.synchronize()

    return and_wait


@torch.no_grad()
def _outputs(model: LRNN, name: str, batch: Batch) -> None:
    FORWARDS[name](model, batch.tokens)


if __name__ == "__main__":
    script.run(main)
