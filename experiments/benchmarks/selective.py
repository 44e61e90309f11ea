"""Training steps of the selective layers and of their published code in plain torch, on the CPU.

    python -m experiments.benchmarks.selective --references FOLDER

A step is the forward and the backward pass of one layer with all its gates on a batch of words, in single precision,
with one thread. Both have the same sizes; they take turns in one process. Medians of the processor's time, and ratios.
The published code is that of `experiments.selective_references`: kernels for GPUs are replaced by the reference
implementations of the same repositories, which compute one letter at a time, except for Mamba-2's.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from experiments import results_io, script, selective_references
from experiments.benchmarks.scans import interleaved
from experiments.selective_references import REFERENCES, Reference
from fsa2lrnn.nn.layers import Columns, Shape, layer_named
from fsa2lrnn.training.trainer import use_threads

WIDTH, HEADS, KEYS = 64, 4, 16
SHAPES = ((128, 40), (16, 500))  # words, letters
NAME, COMMAND = "bench_selective", "python -m experiments.benchmarks.selective"


def main(
    references: Annotated[Path, typer.Option(help="the folder of checkouts", exists=True)],
    turns: Annotated[int, typer.Option(min=1, help="turns of each")] = 3,
    names: Annotated[list[str] | None, typer.Argument(help="these rows alone, in place of the stored ones")] = None,
) -> None:
    """Measure, write results/bench_selective.json, print the table."""
    stored = {(row["name"], row["words"]): row for row in (results_io.read(NAME)["results"] if names else [])}
    table = Table("numbers", "words × letters", "ours ms", "published ms", "published / ours")
    with use_threads(1):
        for words, letters in SHAPES:
            selective_references.use(WIDTH, HEADS, KEYS, letters)
            for name, reference in REFERENCES.items():
                if names and name not in names:
                    continue
                row = measure(name, reference, references, words, letters, turns)
                stored[name, words] = row
                ratio = f"{row['published'] / row['ours']:.1f}"
                table.add_row(name, f"{words} × {letters}", f"{row['ours']:.0f}", f"{row['published']:.0f}", ratio)
                results_io.write(NAME, [*stored.values()], COMMAND)  # after each row, as the whole takes minutes
    Console().print(table)


def measure(name: str, reference: Reference, folder: Path, words: int, letters: int, turns: int) -> dict[str, Any]:
    """Return the medians of both, in milliseconds."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = reference.build(folder / reference.repository)
    kind = layer_named(reference.layer)
    options = {key: value for key, value in reference.options.items() if "rank" not in key}
    layer = kind.build(WIDTH, kind.Config.of_shape(Shape(HEADS, KEYS), options), Columns("none", 2.0))
    u = torch.randn(words, letters, WIDTH).requires_grad_()

    def ours() -> None:
        _clear(layer, u)
        layer(u, layer.initial_state(words))[0].sum().backward()

    def published() -> None:
        _clear(module, u)
        y = module(u)
        (y[0] if isinstance(y, tuple) else y).sum().backward()

    times = interleaved({"ours": ours, "published": published}, turns, time.process_time)
    return {"name": name, "layer": reference.layer, "words": words, "letters": letters, **times}


def _clear(module: torch.nn.Module, u: torch.Tensor) -> None:
    module.zero_grad(set_to_none=True)
    u.grad = None


if __name__ == "__main__":
    script.run(main)
