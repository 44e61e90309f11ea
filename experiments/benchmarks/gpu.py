"""Scans and training steps on a GPU: `python -m experiments.benchmarks.gpu`.

A scan computes little per byte that it reads, so memory is its limit. The tables state the necessary bytes per second,
as a share of the rate of a plain copy on the same card. The bytes include the arrays that grow with words and letters,
each once, without data that a split of time reads twice and without tables. Data that fit in the card's cache can
exceed the copy.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from experiments import results_io, script
from experiments.benchmarks.scans import inputs
from experiments.studies.table2 import columns
from fsa2lrnn.nn.scans import scan, scan_tokens
from fsa2lrnn.training.seeds import StackedLosses, update
from fsa2lrnn.training.settings import PRECISIONS, Settings, preset
from fsa2lrnn.training.train import TrainingRun

SHAPES = [(128, 500, 8, 8), (8, 4096, 8, 8), (1, 65_536, 8, 8), (128, 40, 8, 8)]  # (batch, length, heads, block)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
KINDS = ("dense", "tokens")
N_LETTERS = 5
SEEDS = (0, 1, 2, 3, 4)
TURNS = 20
_WARM_UP = 3
_COPIED = 1 << 30  # bytes
_TOKEN = 8  # bytes

Shape = tuple[int, int, int, int]


def main() -> None:
    """Measure scans and training steps on a GPU, write results/bench_gpu.json, print the tables."""
    if not torch.cuda.is_available():
        raise SystemExit(
            "experiments.benchmarks.gpu measures a GPU, and torch sees no CUDA device here: run it where one is"
        )
    document = measure("cuda", SHAPES, preset("paper", "task:sum_mod(5)", device="cuda"), _COPIED, TURNS)
    path = results_io.write("bench_gpu", document, "python -m experiments.benchmarks.gpu")
    console = Console()
    for table in tables(document):
        console.print(table)
    console.print(f"{document['device']}; written to {path.name}")


def measure(device: str, shapes: list[Shape], settings: Settings, copied: int, turns: int) -> dict[str, Any]:
    """Return the results that `main` writes: copy bandwidth, scans by shape and dtype, steps, layers, seeds."""
    copy = copy_bandwidth(device, copied, turns)
    return {
        "device": torch.cuda.get_device_name(device) if device == "cuda" else device,
        "copy_bytes_per_second": copy,
        "scans": [measure_scan(kind, *case, device, copy, turns) for kind in KINDS for case in product(shapes, DTYPES)],
        "steps": [measure_step(each, turns) for each in variants(settings)],
        "layers": [measure_layer(name, device, turns) for name in columns.COLUMNS if device != "cpu"],
        "seeds": measure_seeds(settings, SEEDS, turns),
    }


def copy_bandwidth(device: str, n_bytes: int, turns: int) -> float:
    """Return the bytes read and written per second by a copy of `n_bytes`."""
    source = torch.zeros(n_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * n_bytes / (1e-3 * milliseconds(lambda: target.copy_(source), device, turns))


def bytes_moved(kind: str, shape: Shape, size: int) -> tuple[int, int]:
    """Return the bytes that a scan of numbers of `size` bytes must move, forward and backward.

    Forward a dense scan reads A and v and writes x, one by tokens reads tokens and writes x. Backward a dense one reads
    A, x and dx and writes dA and dv, one by tokens reads tokens, x and dx.

    >>> bytes_moved("dense", (1, 1, 8, 8), 4), bytes_moved("tokens", (1, 1, 8, 8), 4)
    ((2560, 4864), (264, 520))
    """
    batch, length, heads, block = shape
    steps, vector = batch * length, heads * block * size
    if kind == "tokens":
        return steps * (_TOKEN + vector), steps * (_TOKEN + 2 * vector)
    return steps * (block + 2) * vector, steps * (2 * block + 3) * vector


def measure_scan(kind: str, shape: Shape, dtype: str, device: str, copy: float, turns: int) -> dict[str, Any]:
    """Measure the Triton scan at one shape, forward and backward: milliseconds, bytes per second, share of `copy`."""
    run, arguments = _scan(kind, shape, DTYPES[dtype], device)
    x = run(*arguments)
    dx = torch.ones_like(x)
    actions: list[Callable[[], object]] = [
        lambda: run(*arguments),
        lambda: torch.autograd.grad(x, arguments, dx, retain_graph=True),
    ]
    row: dict[str, Any] = {"kind": kind, **dict(zip(("batch", "length", "heads", "block"), shape, strict=True))}
    row["dtype"] = dtype
    moved = bytes_moved(kind, shape, DTYPES[dtype].itemsize)
    for name, action, n_bytes in zip(("forward", "backward"), actions, moved, strict=True):
        taken = milliseconds(action, device, turns)
        rate = n_bytes / (1e-3 * taken)
        row[name] = {"milliseconds": taken, "bytes": n_bytes, "bytes_per_second": rate, "share_of_copy": rate / copy}
    return row


def _scan(kind: str, shape: Shape, dtype: torch.dtype, device: str) -> tuple[Callable[..., Tensor], list[Tensor]]:
    batch, length, heads, block = shape
    sizes = shape if kind == "dense" else (1, N_LETTERS, heads, block)
    A, v, x0 = (t.detach().to(device, dtype) for t in inputs(*sizes))
    if kind == "dense":
        return partial(scan, method="triton"), [t.requires_grad_() for t in (A, v, x0)]
    tokens = torch.randint(N_LETTERS, (batch, length), generator=torch.Generator().manual_seed(2)).to(device)
    return partial(scan_tokens, tokens, method="triton"), [t.requires_grad_() for t in (A[0], v[0], x0)]


def variants(settings: Settings) -> list[Settings]:
    """Return the run with and without mixed precision and compilation, and with a CUDA graph.

    On a CPU there is neither mixed precision nor a CUDA graph.
    """
    precisions = PRECISIONS if settings.device != "cpu" else PRECISIONS[:1]
    found = [
        replace(settings, precision=precision, compile=is_compiled)
        for precision, is_compiled in product(precisions, (False, True))
    ]
    return found if settings.device == "cpu" else [*found, replace(settings, cuda_graph=True)]


def measure_step(settings: Settings, turns: int) -> dict[str, Any]:
    """Return milliseconds per training step with optimiser and new words, or why torch could not compile it."""
    row: dict[str, Any] = {name: getattr(settings, name) for name in ("precision", "compile", "cuda_graph")}
    with tempfile.TemporaryDirectory() as folder:
        run = TrainingRun(settings, Path(folder), resume=False)
        try:
            row["milliseconds"] = milliseconds(run.update, settings.device, turns)
        except RuntimeError as error:
            if not settings.compile:
                raise
            row["error"] = str(error).partition("\n")[0]
    return row


def measure_layer(name: str, device: str, turns: int) -> dict[str, Any]:
    """Return milliseconds per step of a column of Table 2 on Sum(5), with separate launches and with a CUDA graph."""
    rate = columns.rates_of(name)[:1]
    replayed = columns.sweep(columns.TASKS[0], name, rate, (0,), device).trials[0].settings
    launched, by_graph = (measure_step(each, turns) for each in (replace(replayed, cuda_graph=False), replayed))
    return {"layer": name, "milliseconds": launched["milliseconds"], "replayed": by_graph["milliseconds"]}


def measure_seeds(settings: Settings, seeds: tuple[int, ...], turns: int) -> dict[str, Any]:
    """Return milliseconds for one step of every seed: one after another, and stacked into one model."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [TrainingRun(settings.with_seed(seed), Path(folder) / str(seed), resume=False) for seed in seeds]
        losses = StackedLosses(runs[0].model.config, settings)
        in_turn = milliseconds(lambda: [run.update() for run in runs], settings.device, turns)
        stacked = milliseconds(lambda: update(runs, losses), settings.device, turns)
    return {"seeds": len(seeds), "in_turn_milliseconds": in_turn, "stacked_milliseconds": stacked}


def milliseconds(action: Callable[[], object], device: str, turns: int) -> float:
    """Return the median time of an action on a device, including its launches, after some warm-up runs."""
    taken: list[float] = []
    for k in range(_WARM_UP + turns):
        begun = time.perf_counter()
        action()
        if device != "cpu":
            torch.cuda.synchronize(device)
        if k >= _WARM_UP:
            taken.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(taken)


def tables(document: dict[str, Any]) -> list[Table]:
    """Return the document as tables."""
    copy = document["copy_bytes_per_second"]
    scans = Table("scan", "dtype", "batch", "length", "forward ms", "of copy", "backward ms", "of copy")
    scans.title = f"Triton scans; a copy moves {copy / 1e9:,.0f} GB/s"
    for row in document["scans"]:
        times = [
            f"{row[way][what]:.3f}" for way in ("forward", "backward") for what in ("milliseconds", "share_of_copy")
        ]
        scans.add_row(row["kind"], row["dtype"], f"{row['batch']:,}", f"{row['length']:,}", *times)
    steps = Table("precision", "torch.compile", "CUDA graph", "ms a step", title="Training steps")
    for row in document["steps"]:
        outcome = f"{row['milliseconds']:.2f}" if "milliseconds" in row else row["error"]
        helps = ("yes" if row[name] else "no" for name in ("compile", "cuda_graph"))
        steps.add_row(row["precision"], *helps, outcome)
    layers = Table("layer", "launched, ms", "replayed, ms", title="A step of the layers of Table 2")
    for row in document["layers"]:
        layers.add_row(row["layer"], *(f"{row[name]:.2f}" for name in ("milliseconds", "replayed")))
    seeds = Table("seeds", "in turn, ms", "stacked, ms", title="A step of every seed")
    found = document["seeds"]
    times = [f"{found[name]:.2f}" for name in ("in_turn_milliseconds", "stacked_milliseconds")]
    seeds.add_row(str(found["seeds"]), *times)
    return [scans, steps, layers, seeds]


if __name__ == "__main__":
    script.run(main)
