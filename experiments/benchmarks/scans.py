"""The scans on the CPU, and the authors' two as baselines: `python -m experiments.benchmarks.scans`.

All run in turns in one process, forward and backward, on norm-preserving blocks; medians of several turns, as ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from experiments import results_io, script
from experiments.benchmarks.baselines import authors_pscan, authors_sequential
from fsa2lrnn.nn.scans import METHODS, scan, scan_tokens

# (batch, length, heads, block): the paper's training shape and test length, long words, b = 1, and one large block.
SHAPES = [
    (128, 40, 8, 8),
    (16, 500, 8, 8),
    (1, 4096, 8, 8),
    (8, 4096, 8, 8),
    (1, 65_536, 8, 8),
    (128, 40, 64, 1),
    (16, 500, 64, 1),
    (4, 256, 1, 51),
]
LENGTHS = [10**3, 10**4, 10**5, 10**6]  # of one word and head, for the fused scan alone
N_LETTERS = 5
TURNS = 7
THREADS = 1
_FEW_TURNS = 3
_TURN_MS = 50
_LARGE = 1 << 22  # entries of A from which a few turns must do
_LONGEST_QUADRATIC = 500  # letters up to which the authors' Sequential is run: its backward pass is quadratic


def main() -> None:
    """Measure the scans on the CPU, write results/bench_scans.json and bench_scan_lengths.json, print the tables."""
    torch.set_num_threads(THREADS)
    rows = [measure(*shape) for shape in track(SHAPES, description="scans", transient=True)]
    lengths = [measure_length(length) for length in LENGTHS]
    path = results_io.write("bench_scans", rows, "python -m experiments.benchmarks.scans")
    results_io.write("bench_scan_lengths", lengths, "python -m experiments.benchmarks.scans")
    console = Console()
    console.print(_table(rows), f"forward and backward, float32, {THREADS} thread; written to {path.name}")
    for row in lengths:
        console.print(f"fused, one word of {row['length']:,} letters, one block of {row['block']}: ", end="")
        console.print(f"{row['nanoseconds_a_letter']:.0f} ns a letter")


def _table(rows: list[dict[str, Any]]) -> Table:
    names = list(rows[0]["milliseconds"])
    table = Table("batch", "length", "heads", "block", "fused ms", *(f"{n} / fused" for n in names if n != "fused"))
    for row in rows:
        table.add_row(
            *(f"{row[name]:,}" for name in ("batch", "length", "heads", "block")),
            f"{row['milliseconds']['fused']:.2f}",
            *(f"{row['over_fused'][n]:.1f}" if n in row["over_fused"] else "" for n in names if n != "fused"),
        )
    return table


def measure(batch: int, length: int, heads: int, block: int) -> dict[str, Any]:
    """Return median milliseconds of each method, forward and backward, at one shape, and ratios to the fused one.

    "fused tokens" scans a table of `N_LETTERS` rows at the same shape; the authors' two are `baselines`.
    """
    A, v, x0 = inputs(batch, length, heads, block)
    scans: dict[str, Callable[..., Tensor]] = {method: partial(scan, method=method) for method in METHODS}
    scans["authors' PScan"] = authors_pscan
    if length <= _LONGEST_QUADRATIC:
        scans["authors' Sequential"] = authors_sequential
    dx = torch.randn(v.shape, generator=torch.Generator().manual_seed(1))
    actions = {name: partial(forward_and_backward, run, (A, v, x0), dx) for name, run in scans.items()}
    tokens = torch.randint(N_LETTERS, (batch, length), generator=torch.Generator().manual_seed(2))
    rows = [t.detach()[0, :1].expand(N_LETTERS, *t.shape[2:]).clone().requires_grad_() for t in (A, v)]
    run = partial(scan_tokens, tokens, method="fused")
    actions["fused tokens"] = partial(forward_and_backward, run, (*rows, x0), dx)
    milliseconds = interleaved(actions, TURNS if A.numel() < _LARGE else _FEW_TURNS)
    fused = milliseconds["fused"]
    return {
        "batch": batch,
        "length": length,
        "heads": heads,
        "block": block,
        "milliseconds": milliseconds,
        "over_fused": {name: time / fused for name, time in milliseconds.items() if name != "fused"},
        "pscan_over_sequential": milliseconds["pscan"] / milliseconds["sequential"],
    }


def measure_length(length: int, block: int = 8) -> dict[str, Any]:
    """Return nanoseconds per letter of the fused scan, forward and backward, on one word of one head."""
    A, v, x0 = inputs(1, length, 1, block)
    run = partial(forward_and_backward, partial(scan, method="fused"), (A, v, x0), torch.ones_like(v))
    milliseconds = interleaved({"fused": run}, _FEW_TURNS)["fused"]
    return {
        "batch": 1,
        "length": length,
        "heads": 1,
        "block": block,
        "nanoseconds_a_letter": 1e6 * milliseconds / length,
    }


def inputs(batch: int, length: int, heads: int, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return orthogonal blocks, inputs and an initial state, all of which require a gradient."""
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(batch, length, heads, block, block, generator=generator)).Q.contiguous()
    v = torch.randn(batch, length, heads, block, generator=generator)
    return A.requires_grad_(), v.requires_grad_(), torch.randn(heads, block, generator=generator).requires_grad_()


def forward_and_backward(scan: Callable[..., Tensor], arguments: tuple[Tensor, ...], dx: Tensor) -> None:
    """Run one scan and its backward pass, then discard the gradients, because a training step makes new ones too."""
    scan(*arguments).backward(dx)
    for tensor in arguments:
        tensor.grad = None


def interleaved(
    actions: dict[str, Callable[[], None]], turns: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return median milliseconds of each action; actions take turns so that noise affects all alike; one turn warms up.

    In its turn a short action is repeated for `_TURN_MS`, because otherwise it would always find caches emptied by
    another. With one thread, `clock` may be `time.process_time`, which does not count other processes.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for k in range(turns + 1):
        for name, action in actions.items():
            turn: list[float] = []
            while not turn or (k and sum(turn) < _TURN_MS):
                start = clock()
                action()
                turn.append(1e3 * (clock() - start))
            if k:
                times[name] += turn
    return {name: statistics.median(values) for name, values in times.items()}


if __name__ == "__main__":
    script.run(main)
