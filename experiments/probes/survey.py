"""Which kernels are exact: `python -m experiments.probes.survey --fla FOLDER --mamba FOLDER`.

The folders are checkouts of flash-linear-attention and state-spaces/mamba. Each kernel meets five suites in every
dtype; a cell is "exact", or the first line of the report with the likely fault.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from experiments import results_io, script
from experiments.probes.implementations import Implementation, fla, mamba, ours, transformers
from fsa2lrnn.probes import InexactKernel, assert_exact

OFF = {"variable_lengths": False, "initial_state": False, "gradients": False, "gates": False}
SUITES = {
    "whole sequences": {},
    "carried state": {"initial_state": True},
    "variable lengths": {"variable_lengths": True},
    "gradients": {"gradients": True},
    "gates": {"gates": True},
}
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
LENGTHS = (1, 63, 64, 65, 257)


def cell(kernel: Implementation, suite: str, dtype: torch.dtype, device: str = "cpu") -> str:
    """Return "exact", or what went wrong, in one line."""
    options = {**OFF, **SUITES[suite]}
    lengths = LENGTHS if suite == "whole sequences" else (65,)
    try:
        coverage = assert_exact(kernel.kernel, op=kernel.op, dtypes=(dtype,), lengths=lengths, device=device, **options)
    except InexactKernel as error:
        return f"{str(error).splitlines()[0]}; {error.fault}"
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError, LookupError) as error:
        return f"refused: {type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return "exact" + ("; padding alone" if coverage.omitted and suite == "variable lengths" else "")


def suites(kernel: Implementation) -> list[str]:
    """Return the suites that apply to a kernel."""
    gated = kernel.op not in ("delta_rule", "diagonal", "block_diagonal", "pd_ssm", "causal_conv1d", "state_passing")
    skip = {"gates"} if not gated or "mamba" in kernel.project or "mamba" in kernel.name else set()
    skip |= set() if kernel.state else {"carried state", "gradients"}
    skip |= set() if kernel.gradients else {"gradients"}
    return [s for s in SUITES if s not in skip]


def main(
    fla_folder: Annotated[Path | None, typer.Option("--fla", help="Checkout of flash-linear-attention.")] = None,
    mamba_folder: Annotated[Path | None, typer.Option("--mamba", help="Checkout of state-spaces/mamba.")] = None,
    seconds: Annotated[bool, typer.Option(help="Also time the default suite, with a word of 10⁶ tokens.")] = False,
) -> None:
    """Probe the kernels of other projects and of this library; write results/probe_survey.json."""
    torch.set_num_threads(1)
    kernels = [*ours(), *transformers()]
    kernels += list(fla(fla_folder)) if fla_folder else []
    kernels += list(mamba(mamba_folder)) if mamba_folder else []
    rows, table = list[dict[str, Any]](), Table("project", "kernel", "operator", *SUITES)
    for kernel in kernels:
        row: dict[str, Any] = {
            "project": kernel.project, "kernel": kernel.name, "op": kernel.op, "note": kernel.note, "cells": {},
        }  # fmt: skip
        for suite in suites(kernel):
            for dtype in DTYPES:
                row["cells"][f"{suite}, {str(dtype).removeprefix('torch.')}"] = cell(kernel, suite, dtype)
        if (
            seconds
            and kernel.longest == 10**6
            and not kernel.name.endswith(("recurrent_gated_delta_rule", "recurrence"))
        ):
            row["seconds"] = timed(kernel)
        rows.append(row)
        table.add_row(kernel.project, kernel.name, kernel.op, *(summary(row["cells"], suite) for suite in SUITES))
        Console(width=200).print(kernel.project, kernel.name, row["cells"], row.get("seconds", ""))
    results_io.write("probe_survey", rows, "python -m experiments.probes.survey --fla … --mamba …")
    Console(width=200).print(table)


def timed(kernel: Implementation) -> float | str:
    """Return the seconds of the default suite, lengths up to 10⁶ tokens; a sentence where it fails."""
    start = time.perf_counter()
    try:
        assert_exact(kernel.kernel, op=kernel.op, initial_state=kernel.state, gradients=kernel.state)
    except (InexactKernel, RuntimeError) as error:
        return str(error).splitlines()[0]
    return round(time.perf_counter() - start, 1)


def summary(cells: dict[str, str], suite: str) -> str:
    """Return "exact" where all dtypes are, or the cells that differ."""
    mine = {name.rpartition(", ")[2]: text for name, text in cells.items() if name.startswith(suite)}
    if len(set(mine.values())) == 1:
        return next(iter(mine.values()))
    return " · ".join(f"{dtype}: {text}" for dtype, text in mine.items()) or "not applicable"


if __name__ == "__main__":
    script.run(main)
