"""Sequential against parallel scan on the CPU: `python -m experiments.bench_scans`.

Both run in turns in one process, forward and backward, on norm-preserving blocks; medians of several turns, as a ratio.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import results_io
from fsa2lrnn.lrnn.scans import METHODS, scan

# (batch, length, heads, block): the paper's training shape and test length, a long word, b = 1, and one large block.
SHAPES = [(128, 40, 8, 8), (16, 500, 8, 8), (1, 4096, 8, 8), (128, 40, 64, 1), (16, 500, 64, 1), (4, 256, 1, 51)]
TURNS = 7
THREADS = 1


def main() -> None:
    """Measure, write results/bench_scans.json, print the table."""
    torch.set_num_threads(THREADS)
    rows = [measure(*shape) for shape in track(SHAPES, description="scans", transient=True)]
    path = results_io.write("bench_scans", rows, "python -m experiments.bench_scans")
    table = Table("batch", "length", "heads", "block", "sequential ms", "pscan ms", "pscan / sequential")
    for row in rows:
        table.add_row(
            *(str(row[name]) for name in ("batch", "length", "heads", "block")),
            *(f"{row['milliseconds'][name]:.1f}" for name in ("sequential", "pscan")),
            f"{row['pscan_over_sequential']:.1f}",
        )
    Console().print(table, f"forward and backward, float32, {THREADS} thread; written to {path.name}")


def measure(batch: int, length: int, heads: int, block: int) -> dict:
    """Median milliseconds of each method for forward and backward at one shape."""
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(batch, length, heads, block, block, generator=generator)).Q
    v = torch.randn(batch, length, heads, block, generator=generator)
    x0 = torch.randn(heads, block, generator=generator)
    inputs = [tensor.requires_grad_() for tensor in (A, v, x0)]

    def turn(method: str) -> Callable[[], None]:
        def run() -> None:
            scan(*inputs, method=method).sum().backward()

        return run

    milliseconds = interleaved({method: turn(method) for method in METHODS}, TURNS)
    return {
        "batch": batch,
        "length": length,
        "heads": heads,
        "block": block,
        "milliseconds": milliseconds,
        "pscan_over_sequential": milliseconds["pscan"] / milliseconds["sequential"],
    }


def interleaved(actions: dict[str, Callable[[], None]], turns: int) -> dict[str, float]:
    """Median milliseconds of each action, the actions taking turns so that noise meets all alike; one turn warms up."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for k in range(turns + 1):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            if k:
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


if __name__ == "__main__":
    main()
