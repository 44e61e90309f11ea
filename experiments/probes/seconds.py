"""Processor seconds of the default suite, 10⁶ tokens included: `python -m experiments.probes.seconds --fla FOLDER`.

One thread; the kernels are two chunked references of flash-linear-attention in torch. On a GPU, its Triton kernels run
with `assert_exact(kernel, op, device="cuda")`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from experiments import results_io, script
from experiments.probes.implementations import fla as kernels_of
from fsa2lrnn.probes import assert_exact

NAMES = ("naive_chunk_simple_gla", "naive_chunk_gated_delta_rule")


def main(fla: Annotated[Path, typer.Option(help="Checkout of flash-linear-attention.")]) -> None:
    """Time `assert_exact` with its defaults; write results/probe_seconds.json."""
    torch.set_num_threads(1)
    rows = list[dict[str, Any]]()
    for implementation in (k for k in kernels_of(fla) if k.name in NAMES):
        start = time.process_time()
        coverage = assert_exact(implementation.kernel, op=implementation.op)
        seconds = round(time.process_time() - start, 1)
        cases = sum(coverage.cases.values())
        rows.append({"kernel": implementation.name, "op": implementation.op, "cases": cases, "seconds": seconds})
        Console().print(rows[-1])
    results_io.write("probe_seconds", rows, "python -m experiments.probes.seconds --fla FOLDER")


if __name__ == "__main__":
    script.run(main)
