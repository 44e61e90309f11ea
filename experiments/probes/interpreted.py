"""flash-linear-attention's Triton kernels on a CPU: `python -m experiments.probes.interpreted --fla FOLDER`.

Triton's interpreter runs them. Three things are replaced, none of which computes: the autotuner takes its first
configuration in place of timing all; keys of it that name no argument are left out; and `i_t.to(tl.int64)` is `i_t`,
since loop counters are Python integers in the interpreter. The packages `fla` and `fla.ops` are loaded without their
`__init__`, which imports models. The interpreter multiplies bfloat16 matrices wrongly (`bfloat16_products`), so kernels
with `tl.dot` run in float32 and float16.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import types
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from experiments import results_io, script
from fsa2lrnn.probes import InexactKernel, assert_exact

# Module, function, operator, dtype, whether to cut and pack sequences, whether to compare gradients, tokens.
KERNELS = (
    ("ops.simple_gla.chunk", "chunk_simple_gla", "simple_gla", "float32", True, True, 65),
    ("ops.gated_delta_rule.chunk", "chunk_gated_delta_rule", "gated_delta_rule", "float32", True, True, 65),
    ("ops.gated_delta_rule.fused_recurrent", "fused_recurrent_gated_delta_rule", "gated_delta_rule", "bfloat16", False,
     False, 17),
    ("ops.kda.fused_recurrent", "fused_recurrent_kda", "kda", "bfloat16", False, False, 17),
    ("ops.rwkv7.fused_recurrent", "fused_recurrent_rwkv7", "rwkv7", "bfloat16", False, False, 17),
    ("ops.delta_rule.fused_recurrent", "fused_recurrent_delta_rule", "delta_rule", "bfloat16", False, True, 17),
    ("ops.delta_rule.chunk", "chunk_delta_rule", "delta_rule", "float16", False, True, 65),
    ("ops.kda.chunk", "chunk_kda", "kda", "float16", False, True, 65),
    ("ops.gated_delta_product.chunk", "chunk_gated_delta_product", "delta_product", "float16", False, False, 65),
    ("ops.rwkv7.chunk", "chunk_rwkv7", "rwkv7", "float16", False, False, 65),
)  # fmt: skip


def prepare(source: Path, copy: Path) -> None:
    """Copy the package `fla` with integer loop counters, and make Triton interpret it."""
    os.environ["TRITON_INTERPRET"] = "1"
    shutil.copytree(source / "fla", copy / "fla")
    for path in (copy / "fla").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "i_t.to(tl.int64)" in text:
            path.write_text(text.replace("i_t.to(tl.int64)", "i_t"), encoding="utf-8")
    for name in ("fla", "fla.ops"):
        package: Any = types.ModuleType(name)
        package.__path__, package.__version__ = [str(copy / name.replace(".", "/"))], "0"
        sys.modules[name] = package
    sys.path.insert(0, str(copy))
    autotuner: Any = import_module("triton.runtime.autotuner").Autotuner
    constructor = autotuner.__init__

    def construct(self: Any, fn: Any, names: Any, configs: Any, key: Any, *args: Any, **kwargs: Any) -> None:
        constructor(self, fn, names, configs, [k for k in key if k in names], *args, **kwargs)

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        return self.fn.run(*args, **{**kwargs, **self.configs[0].all_kwargs()})

    autotuner.__init__, autotuner.run = construct, run


def bfloat16_products() -> float:
    """Return 1 · 1 summed 16 times by `tl.dot` in bfloat16; 16 where the interpreter is right."""
    return float(import_module("experiments.probes.interpreted_dot").product(torch.bfloat16)[0, 0])


def main(
    fla: Annotated[Path, typer.Option(help="Checkout of flash-linear-attention.")],
    first: Annotated[int, typer.Option(help="How many kernels to run.")] = len(KERNELS),
) -> None:
    """Probe the Triton kernels in the interpreter; write results/probe_interpreted.json."""
    torch.set_num_threads(1)
    rows, console = list[dict[str, Any]](), Console(width=180)
    with TemporaryDirectory() as folder:
        prepare(fla, Path(folder))
        for module, name, op, dtype, carried, gradients, tokens in KERNELS[:first]:
            row: dict[str, Any] = {"kernel": name, "op": op, "dtype": dtype, "tokens": tokens}
            start = time.perf_counter()
            try:
                coverage = assert_exact(
                    getattr(import_module(f"fla.{module}"), name), op=op, dtypes=(getattr(torch, dtype),),
                    lengths=(tokens,), variable_lengths=carried, initial_state=carried, gradients=gradients,
                )  # fmt: skip
                row["cases"] = {kind: n for (kind, _), n in coverage.cases.items()}
                row["result"] = "exact"
            except InexactKernel as error:
                row["result"] = f"{str(error).splitlines()[0]}; {error.fault}"
            except Exception as error:  # whatever the interpreter cannot do
                row["result"] = f"not interpreted: {type(error).__name__}: {str(error)[:120]}"
            row["seconds"] = round(time.perf_counter() - start)
            rows.append(row)
            console.print(row)
            document = {"bfloat16 dot of ones, 16 terms": bfloat16_products(), "kernels": rows}
            results_io.write("probe_interpreted", document, "python -m experiments.probes.interpreted --fla …")


if __name__ == "__main__":
    script.run(main)
