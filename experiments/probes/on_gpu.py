"""Triton kernels on a GPU: `python -m experiments.probes.on_gpu --seconds 150`, with flash-linear-attention installed.

An autotuner times the configurations of a kernel and takes the fastest, so which one runs depends on the card and its
load. Here every autotuner takes its first configuration for all suites; then all take their second for whole sequences
and gradients, and so on: with the k-th, a kernel of n configurations runs its (k mod n)-th. A configuration for which
the card has too little memory is left out. Each kernel and dtype is a process with its own time.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import types
from importlib import import_module, metadata
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from experiments import results_io, script
from experiments.probes.implementations import Implementation, Kernel, mamba2, ours
from experiments.probes.survey import cell, suites
from experiments.resumable import Row, known_rows

# Module, function and operator.
FLA = (
    ("fla.ops.gated_delta_rule.chunk", "chunk_gated_delta_rule", "gated_delta_rule"),
    ("fla.ops.kda.chunk", "chunk_kda", "kda"),
    ("fla.ops.gated_delta_product.chunk", "chunk_gated_delta_product", "delta_product"),
    ("fla.ops.rwkv7.chunk", "chunk_rwkv7", "rwkv7"),
    ("fla.ops.delta_rule.chunk", "chunk_delta_rule", "delta_rule"),
    ("fla.ops.simple_gla.chunk", "chunk_simple_gla", "simple_gla"),
    ("fla.ops.gated_delta_rule.fused_recurrent", "fused_recurrent_gated_delta_rule", "gated_delta_rule"),
    ("fla.ops.kda.fused_recurrent", "fused_recurrent_kda", "kda"),
    ("fla.ops.rwkv7.fused_recurrent", "fused_recurrent_rwkv7", "rwkv7"),
    ("fla.ops.delta_rule.fused_recurrent", "fused_recurrent_delta_rule", "delta_rule"),
    ("fla.ops.simple_gla.fused_recurrent", "fused_recurrent_simple_gla", "simple_gla"),
    ("fla.modules.causal_conv1d", "causal_conv1d", "causal_conv1d"),
)
NO_BACKWARD = ("fused_recurrent_gated_delta_rule", "fused_recurrent_kda", "fused_recurrent_rwkv7")
SWEPT = ("whole sequences", "gradients")  # with all configurations
DTYPES = ("float32", "bfloat16", "float16")
IEEE = "float32 ieee"  # matrix products in float32 rather than TF32, Triton's default
LIFTED = "gradients, refusal lifted"  # of flash-linear-attention where Triton is known to miscompile (its issue 640)


def kernels(mamba: Path | None) -> list[Implementation]:
    """Return the kernels: those of flash-linear-attention, of a checkout of mamba, and of this library."""
    listed = [
        Implementation("flash-linear-attention", name, op, getattr(import_module(module), name),
                       gradients=name not in NO_BACKWARD)
        for module, name, op in FLA
    ]  # fmt: skip
    if mamba:
        listed.append(Implementation("mamba", "mamba_chunk_scan_combined", "simple_gla", mamba_chunks(mamba),
                                     gradients=False))  # fmt: skip
    return [*listed, *ours(("triton",))]


def mamba_chunks(folder: Path) -> Kernel:
    """Return Mamba-2's kernel, from a checkout whose packages are loaded without their `__init__`."""
    for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton", "mamba_ssm.utils"):
        package: Any = types.ModuleType(name)
        package.__path__ = [str(folder / name.replace(".", "/"))]
        sys.modules[name] = package
    combined = import_module("mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined
    return mamba2(lambda x, dt, A, B, C, S: combined(x, dt, A, B, C, 64, initial_states=S, return_final_states=True))


class Configurations:
    """Makes every autotuner of Triton take its configuration number `k`, modulo how many it has.

    Attributes:
        k: the number, set between calls.
        most: the most configurations that an autotuner had.
    """

    def __init__(self) -> None:
        self.k, self.most = 0, 1
        autotuner: Any = import_module("triton.runtime.autotuner").Autotuner
        too_large: type[Exception] = import_module("triton.runtime.errors").OutOfResources

        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            configurations = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
            self.most = max(self.most, len(configurations))
            for i in range(len(configurations)):
                configuration = configurations[(self.k + i) % len(configurations)]
                try:
                    if configuration.pre_hook is not None:
                        configuration.pre_hook({**tuner.nargs, **kwargs, **configuration.all_kwargs()})
                    return tuner.fn.run(*args, **{**kwargs, **configuration.all_kwargs()})
                except too_large:
                    continue
            raise RuntimeError(f"none of {len(configurations)} configurations fits the card")

        autotuner.run = run


def probe(place: int, dtype: str, part: tuple[int, int], device: str, seconds: float, mamba: Path | None) -> Row:
    """Return the verdicts of one kernel in one dtype.

    The i-th of n parts takes the configurations i, i + n, … as the time allows; the first runs all suites before.
    """
    torch.set_num_threads(1)
    if dtype == IEEE:
        os.environ["TRITON_F32_DEFAULT"] = "ieee"
    begun, configurations, (first, parts) = time.monotonic(), Configurations(), part
    kernel, of = kernels(mamba)[place], getattr(torch, dtype.partition(" ")[0])
    row: Row = {"project": kernel.project, "kernel": kernel.name, "op": kernel.op, "dtype": dtype}
    cells = {suite: cell(kernel, suite, of, device) for suite in (SWEPT if first else suites(kernel))}
    if "gradients" not in suites(kernel):
        cells.pop("gradients", None)
    if "#640" in cells.get("gradients", ""):
        vars(import_module("fla.ops.common.chunk_o"))["IS_NVIDIA_HOPPER"] = False
        cells[LIFTED] = cell(kernel, "gradients", of, device)
    swept, wrong = [0], dict[str, dict[str, str]]()
    due = [suite for suite in SWEPT if cells.get(suite, "refused").startswith(("exact", kernel.op))]
    due += ["gradients"] if LIFTED in cells else []
    for k in range(first or parts, configurations.most if due else 1, parts):
        if time.monotonic() - begun > seconds:
            break
        configurations.k = k
        verdicts = {suite: cell(kernel, suite, of, device) for suite in due}
        wrong |= {str(k): each} if (each := {s: v for s, v in verdicts.items() if v != "exact"}) else {}
        swept.append(k)
    row |= {"cells": cells if not first else {}, "wrong": wrong, "swept": swept, "configurations": configurations.most}
    return row | {"seconds": round(time.monotonic() - begun)}


def merged(rows: list[Row], new: Row) -> list[Row]:
    """Return the rows with a new one, united with that of the same kernel, dtype and device."""
    keys = ("kernel", "dtype", "device")
    for i, row in enumerate(rows):
        if all(row[key] == new[key] for key in keys):
            both = {key: row[key] | new[key] for key in ("cells", "wrong")}
            both["swept"] = sorted({*row["swept"], *new["swept"]})
            both["configurations"] = max(row["configurations"], new["configurations"])
            return [*rows[:i], row | both | {"seconds": row["seconds"] + new["seconds"]}, *rows[i + 1 :]]
    return [*rows, new]


def main(
    seconds: Annotated[float, typer.Option(min=1, help="after which a process begins no configuration")] = 150.0,
    workers: Annotated[int, typer.Option(min=1, help="processes at once")] = 14,
    parts: Annotated[int, typer.Option(min=1, help="processes for the configurations of a kernel in a dtype")] = 1,
    only: Annotated[str, typer.Option(help="kernels, separated by commas, each with dtypes after a colon")] = "",
    mamba: Annotated[Path | None, typer.Option(help="checkout of state-spaces/mamba")] = None,
    device: Annotated[str, typer.Option(help="torch device")] = "cuda",
) -> None:
    """Probe the kernels on a GPU and write experiments/results/probe_gpu.json after each."""
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("experiments.probes.on_gpu probes kernels on a GPU, and torch sees no CUDA device here")
    where = {
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
        **{name: metadata.version(name) for name in ("fla-core", "triton", "torch")},
    }
    chosen = [each.partition(":")[::2] for each in only.split(",") if each]
    tasks = [
        (place, dtype, (i, parts), device, seconds, mamba)
        for (place, kernel), dtype, i in product(enumerate(kernels(mamba)), (*DTYPES, IEEE), range(parts))
        if (not chosen and dtype != IEEE) or any(kernel.name == name and dtype in of.split("+") for name, of in chosen)
    ]
    rows = known_rows("probe_gpu", "kernels")
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for done in [pool.apply_async(probe, task) for task in tasks]:
            rows = merged(rows, row := done.get() | where)
            Console(width=200).print(row)
            results_io.write("probe_gpu", {"kernels": rows}, "python -m experiments.probes.on_gpu")


if __name__ == "__main__":
    script.run(main)
