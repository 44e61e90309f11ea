"""How many faults do probes catch, and how many random tests? `python -m experiments.probes.mutants`.

Each fault is injected into one of eight kernels and meets three tests with the same calls: the exact probes; random
inputs with flash-linear-attention's tolerance (error ratio 0.005, the root mean square of the error relative to that of
the reference); and random inputs with mamba's (`allclose`, 6e-4 and 2e-3 in float32, 3e-2 and 5e-2 in bfloat16). The
random inputs have the distributions of flash-linear-attention's tests: normal q, k, v with keys of norm 1, β by a
sigmoid, gates by a log-sigmoid; the reference is the sequential definition in float64. Historical faults are rebuilt
from the descriptions in the threads named.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from torch.nn import functional

from experiments import results_io, script
from experiments.probes import kernels
from fsa2lrnn.probes import OPERATORS, InexactKernel, assert_exact, diagnose
from fsa2lrnn.probes.assertion import _cases
from fsa2lrnn.probes.calls import Caller
from fsa2lrnn.probes.cases import Case, expected
from fsa2lrnn.probes.operators import Operator

DTYPES = (torch.float32, torch.bfloat16)
LENGTHS = (1, 63, 64, 65, 130)
DELTA = partial(kernels.gated_delta, core=kernels.delta_chunks)
STEPS = partial(kernels.gated_delta, core=kernels.delta_steps)

# Per kernel: operator, function, faults of the forward pass, faults of the backward pass.
KERNELS: dict[str, tuple[str, Callable[..., Any], list[str], list[str]]] = {
    "chunked gated delta rule": ("gated_delta_rule", DELTA, [
        "no carry between chunks", "no carry after the first border", "the last decay is that of an empty slot",
        "the state decays by the last but one",
        "decay between tokens is exclusive", "the inverse misses its last row",
        "the inverse has the sign of A wrong",
        "scores exclude the token itself", "scores include the next token", "product in TF32",
        "state product in TF32", "the state is rounded to bfloat16 between chunks", "u is rounded to bfloat16",
        "padding repeats the last token", "an update is lost in a race", "exp2 in place of exp",
        "gates are clamped at −5",
        "the final state is that before the last chunk",
        "the first token of each chunk is not written", "the initial state is transposed",
    ], ["gradient of beta is missing", "gradient of the key in the erased value is missing"]),
    "recurrent gated delta rule": ("gated_delta_rule", STEPS, [
        "the gate acts after the write", "the erased value is not decayed", "the state is kept in bfloat16",
        "the output reads the old state", "beta has the wrong sign", "gates act one token late",
        "gates have the wrong sign", "the scale is applied twice",
    ], []),
    "chunked KDA": ("kda", DELTA, [
        "decay between tokens is exclusive", "A is not masked below its diagonal blocks",
        "tokens of chunk 0 skip the gate", "the state leaks into the next packed sequence",
        "final states of heads are rotated", "heads read the gate of head 0", "beta is clamped at 1",
    ], []),
    "DeltaProduct": ("delta_product", kernels.delta_product, [
        "the query reads after the first factor", "the gate acts before the last factor",
        "the gate acts in every factor but the first", "factors are applied in reverse",
        "cu_seqlens is not multiplied by n",
    ], []),
    "chunked SSD": ("simple_gla", kernels.ssd, [
        "decay to the end of a chunk is inclusive", "states are passed on without decay",
        "outputs read the state after their chunk", "segment sums include the earlier token", "scores in TF32",
        "gates act one token late", "exp2 in place of exp", "the initial state is dropped",
        "packed sequences use the first initial state",
    ], []),
    "recurrent RWKV-7": ("rwkv7", kernels.rwkv7, [
        "the initial state is transposed", "the decay acts on value columns", "a reads the decayed state",
        "a and b are swapped", "the state is kept in float16", "gates act one token early",
    ], []),
    "diagonal scan": ("diagonal", kernels.diagonal, [
        "padding decays the state", "doubling stops one level early", "the carry loses the sign of a",
        "no carry between blocks", "the carry is that before the last token",
    ], []),
    "chunked gated delta rule, own backward": ("gated_delta_rule", kernels.own_backward, kernels.TABLE, []),
    "chunked KDA, own backward": ("kda", kernels.own_backward, kernels.TABLE, []),
    "causal convolution": ("causal_conv1d", kernels.convolution, [
        "taps are reversed", "the window ends before the token", "bias is dropped",
        "the final state is one token late",
    ], []),
}  # fmt: skip
HISTORICAL = [
    ("vllm #22034", "chunked gated delta rule", "the initial state is dropped in a batch of one"),
    ("vllm #23279", "chunked SSD", "the initial state enters without its decay"),
    ("vllm #51562", "recurrent gated delta rule", "one token is a decode step with a stale state"),
    ("vllm-gaudi #1431", "causal convolution", "the state of a padding slot overwrites a sequence"),
    ("sglang #31833", "chunked gated delta rule", "states of packed sequences are one chunk late"),
    ("slime #1686", "chunked gated delta rule", "cu_seqlens is not passed on"),
    ("sparkinfer #604", "chunked KDA", "the last decay is that of an empty slot"),
    ("sparkinfer #1071", "chunked SSD", "the initial state is dropped"),
    ("transformers #46873", "chunked gated delta rule", "padding repeats the last token"),
    ("flash-linear-attention #1140", "causal convolution", "the gradient of short inputs is shifted"),
    ("flash-linear-attention #1140 (dropped state)", "causal convolution", "short inputs drop the initial state"),
    ("flash-linear-attention #351", "recurrent RWKV-7", "the initial state is transposed"),
    ("flash-linear-attention #36", "chunked KDA", "the state is rounded to bfloat16 between chunks"),
    ("flash-linear-attention-npu #254", "chunked KDA", "full chunks count twice"),
]
# Threads that were looked for and not found, or that describe no arithmetic that a kernel on a CPU can rebuild.
NOT_REBUILT = {
    "flash-linear-attention #945": "not found", "flash-linear-attention #285": "not found",
    "flash-linear-attention #494": "not found", "mamba #997": "not found", "vllm #55524": "not found",
    "vllm #54993": "not found",
    "flash-linear-attention #913": "read: misaligned addresses and reads out of bounds on one GPU",
    "mamba #1024": "read: writes out of bounds when a head is narrower than a tile",
}  # fmt: skip


def randomised(op: Operator, case: Case, dtype: torch.dtype, generator: torch.Generator) -> Case:
    """Return a case of the same shapes with random inputs, rounded to the dtype."""
    inputs = dict[str, Tensor]()
    for name, t in case.inputs.items():
        x = torch.randn(t.shape, generator=generator)
        if name in ("k", "a") and op.name != "diagonal":
            x = functional.normalize(x, dim=-1)
        elif name == "beta":
            x = x.sigmoid()
        elif name in op.wide:
            x = functional.logsigmoid(x)
        elif name == "a":
            x = x.sigmoid()
        inputs[name] = x.to(torch.float32 if name in op.wide else dtype).double()
    if op.name == "rwkv7":
        inputs["b"] = -inputs["a"] * torch.rand(inputs["a"].shape, generator=generator).to(dtype).double()
    state = None if case.state is None else torch.randn(case.state.shape, generator=generator).double()
    state = state if state is None or op.heads else state.to(dtype).double()
    upstream = None
    if case.upstream is not None:
        upstream = tuple(torch.randn(u.shape, generator=generator).to(dtype).double() for u in case.upstream)
    return replace(case, inputs=inputs, state=state, upstream=upstream, scale=0.25 if op.scaled else 1.0)


def close(mine: Tensor, right: Tensor, dtype: torch.dtype) -> tuple[bool, bool]:
    """Return whether a tensor passes with the tolerances of flash-linear-attention and of mamba."""
    mine = mine.double()
    if mine.shape != right.shape or not bool(mine.isfinite().all()):
        return False, False
    error, size = (mine - right).square().mean().sqrt(), right.square().mean().sqrt()
    ratio = float(error) < 1e-6 or float(error / (size + 1e-8)) < 0.005
    rtol, atol = (6e-4, 2e-3) if dtype == torch.float32 else (3e-2, 5e-2)
    return ratio, torch.allclose(mine, right, rtol=rtol, atol=atol)


def random_tests(op: Operator, kernel: Callable[..., Any]) -> tuple[bool, bool]:
    """Return whether random inputs pass with each of the two tolerances, in the same calls as the probes."""
    generator, passes = torch.Generator().manual_seed(0), [True, True]
    caller = Caller(op, kernel)
    for dtype in DTYPES:
        for shape in _cases(op, dtype, LENGTHS, (64,), True, True, True, True, gradients=True, seed=0):
            if not any(passes):
                break
            case = randomised(op, shape, dtype, generator)
            computed = caller.run(case, dtype)
            for name, right in expected(op, case).items():
                for i, good in enumerate(close(computed[name], right, dtype) if name in computed else (False, False)):
                    passes[i] &= good
    return passes[0], passes[1]


def probe(op: str, kernel: Callable[..., Any]) -> str | None:
    """Return the likely fault that the probes name, or `None` where they pass."""
    try:
        assert_exact(kernel, op=op, dtypes=DTYPES, lengths=LENGTHS)
    except InexactKernel as error:
        return error.fault
    return None


def examine(kernel: str, fault: str) -> dict[str, Any]:
    """Return what each test says of a fault."""
    op, run, _, _ = KERNELS[kernel]
    faulty = partial(run, fault=fault)
    torch.manual_seed(0)
    start = time.perf_counter()
    named = probe(op, faulty)
    middle = time.perf_counter()
    ratio, near = random_tests(OPERATORS[op], faulty)
    end = time.perf_counter()
    return {
        "kernel": kernel, "fault": fault, "probes": named, "error ratio": not ratio, "allclose": not near,
        "seconds": [round(middle - start, 1), round(end - middle, 1)],
    }  # fmt: skip


def main() -> None:
    """Inject every fault, count what is caught, write results/probe_mutants.json."""
    torch.set_num_threads(1)
    diagnose.SECONDS = 0.0  # the shortest word is of no interest here
    console, rows = Console(width=180), dict[str, list[dict[str, Any]]]()

    def report(row: dict[str, Any]) -> dict[str, Any]:
        console.print(row)
        return row

    rows["no fault"] = [report(examine(kernel, "")) for kernel in KERNELS]
    one = "one factor, correct backward pass"
    for kernel, entry in KERNELS.items():
        kind = one if entry[2] is kernels.TABLE else "forward"
        rows.setdefault(kind, []).extend(report(examine(kernel, fault)) for fault in entry[2])
    rows["backward"] = [report(examine(kernel, fault)) for kernel, entry in KERNELS.items() for fault in entry[3]]
    rows["historical"] = [report({"source": s, **examine(kernel, fault)}) for s, kernel, fault in HISTORICAL]
    counts = {
        kind: {
            "faults": len(entries),
            "probes": sum(row["probes"] is not None for row in entries),
            "error ratio": sum(row["error ratio"] for row in entries),
            "allclose": sum(row["allclose"] for row in entries),
            "seconds": [round(sum(row["seconds"][i] for row in entries), 1) for i in (0, 1)],
        }
        for kind, entries in rows.items()
    }
    console.print(counts)
    rows[one] = [row for row in rows[one] if row["probes"] is None]  # the others would be thousands of lines
    document = {"counts": counts, "rows": rows, "not rebuilt": NOT_REBUILT}
    results_io.write("probe_mutants", document, "python -m experiments.probes.mutants")


if __name__ == "__main__":
    script.run(main)
