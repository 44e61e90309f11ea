"""Kernels of others with the signatures of the probes.

Sources are folders of the user: checkouts of flash-linear-attention and mamba. Of their files only the named functions
are executed, so neither package needs to be installed; einops must be.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fsa2lrnn.nn import scan, scan_tokens

Kernel = Callable[..., tuple[Tensor, Tensor]]
SCALE = 4.0  # kernels that always divide queries by √16 get them multiplied by 4


@dataclass(frozen=True)
class Implementation:
    """A kernel to probe.

    Args:
        project: where it comes from.
        name: of the function.
        op: the operator.
        kernel: with the operator's signature.
        longest: the longest word that it is given; its memory or time grows too fast beyond.
        state: whether it takes an initial state.
        gradients: whether the adapter passes gradients on as they are.
        note: what the adapter had to do.
    """

    project: str
    name: str
    op: str
    kernel: Kernel
    longest: int = 10**6
    state: bool = True
    gradients: bool = True
    note: str = ""


def functions(path: Path, *names: str) -> dict[str, Any]:
    """Return functions of a source file, executed without the rest of the file."""
    einops = import_module("einops")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    for node in body:
        node.decorator_list.clear()
    scope: dict[str, Any] = {
        "torch": torch, "F": functional, "rearrange": einops.rearrange, "repeat": einops.repeat, "einops": einops,
    }  # fmt: skip
    module = ast.Module([ast.parse("from __future__ import annotations").body[0], *body], [])
    exec(compile(module, str(path), "exec"), scope)
    return {name: scope[name] for name in names}


def head_first(kernel: Kernel, queries: int = 0) -> Kernel:
    """Return a kernel of (B, T, H, ·) tensors from one of (B, H, T, ·) tensors that divides queries by √16."""

    def run(*tensors: Tensor, scale: float, initial_state: Tensor | None, output_final_state: bool) -> Any:
        assert output_final_state
        moved = [t.transpose(1, 2) * (scale * SCALE if i == queries else 1) for i, t in enumerate(tensors)]
        o, S = kernel(*moved, **({} if initial_state is None else {"initial_state": initial_state}))
        return o.transpose(1, 2), S

    return run


def whole_chunks(kernel: Kernel, chunk: int) -> Kernel:
    """Return a kernel for every length from one for multiples of a chunk, by tokens of zeros at the end."""

    def run(*tensors: Tensor, **options: Any) -> Any:
        T = tensors[0].shape[1]
        padded = [functional.pad(t, (0, 0) * (t.dim() - 2) + (0, -T % chunk)) for t in tensors]
        o, S = kernel(*padded, **options)
        return o[:, :T], S

    return run


def in_float32(kernel: Kernel) -> Kernel:
    """Return a kernel that converts its tensors to float32 and outputs back, as layers around it do."""

    def run(*tensors: Tensor, **options: Any) -> Any:
        o, S = kernel(*(t.float() for t in tensors), **options)
        return o.to(tensors[0].dtype), S

    return run


def fla(folder: Path) -> Iterator[Implementation]:
    """Yield the naive references of flash-linear-attention."""
    ops, project = folder / "fla/ops", "flash-linear-attention"
    gdn = functions(
        ops / "gated_delta_rule/naive.py", "naive_recurrent_gated_delta_rule", "naive_chunk_gated_delta_rule"
    )
    for name, kernel in gdn.items():
        yield Implementation(project, name, "gated_delta_rule", kernel)
    delta = functions(ops / "delta_rule/naive.py", "delta_rule_recurrence", "delta_rule_chunkwise")
    yield Implementation(project, "delta_rule_recurrence", "delta_rule", head_first(delta["delta_rule_recurrence"]))

    def chunkwise(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, **options: Any) -> Any:
        def one(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Any:
            return delta["delta_rule_chunkwise"](q, k, v, beta[..., 0])

        return whole_chunks(in_float32(head_first(one)), 32)(q, k, v, beta[..., None], **options)

    note = "given float32: it mixes dtypes otherwise"
    yield Implementation(project, "delta_rule_chunkwise", "delta_rule", chunkwise, state=False, note=note)
    product = functions(ops / "gated_delta_product/naive.py", "naive_recurrent_gated_delta_product")

    def naive_product(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, num_householder: int, scale: float,
        initial_state: Tensor | None, output_final_state: bool,
    ) -> Any:  # fmt: skip
        run = product["naive_recurrent_gated_delta_product"]
        return run(q * scale, k, v, g, beta, None, None, initial_state, output_final_state, num_householder)

    note = "queries scaled by the adapter: the reference takes `scale` and ignores it"
    yield Implementation(project, "naive_recurrent_gated_delta_product", "delta_product", naive_product, note=note)
    kda = functions(ops / "kda/naive.py", "naive_recurrent_kda", "naive_chunk_kda")
    yield Implementation(project, "naive_recurrent_kda", "kda", kda["naive_recurrent_kda"])

    def chunk_kda(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, **options: Any) -> Any:
        def one(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, **options: Any) -> Any:
            return kda["naive_chunk_kda"](q, k, v, g, beta[..., 0], **options)

        return whole_chunks(one, 64)(q, k, v, g, beta[..., None], **options)

    yield Implementation(project, "naive_chunk_kda", "kda", chunk_kda, longest=4096)
    gla = functions(ops / "simple_gla/naive.py", "naive_recurrent_simple_gla", "naive_chunk_simple_gla")
    for name, kernel in gla.items():
        yield Implementation(project, name, "simple_gla", kernel)
    dplr = functions(ops / "generalized_delta_rule/dplr/naive.py", "dplr_recurrence", "dplr_chunkwise")

    def ordered(kernel: Kernel) -> Kernel:
        def run(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, **options: Any) -> Any:
            return kernel(r, k, v, a, b, w, **options)

        return run

    yield Implementation(project, "dplr_recurrence", "rwkv7", ordered(head_first(dplr["dplr_recurrence"])))
    chunked = ordered(whole_chunks(in_float32(head_first(dplr["dplr_chunkwise"])), 32))
    yield Implementation(project, "dplr_chunkwise", "rwkv7", chunked, longest=4096, note=note)


# dt of Mamba's kernels scales the gate and the input. A token that decays by exp(g) and writes x has dt = −g and
# x / dt; where g = 0, dt = 2^−40, whose decay is 1 in every float format and whose products with x are exact.
IDLE = 2.0**-40


def _steps(g: Tensor) -> Tensor:
    return torch.where(g == 0, torch.full_like(g, IDLE), -g)


def mamba2(kernel: Callable[..., Any]) -> Kernel:
    """Return simple gated linear attention by a kernel of Mamba-2, with the arguments x, dt, A, B, C and the state."""

    def run(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float, initial_state: Tensor | None, output_final_state: bool
    ) -> Any:
        assert output_final_state
        dt = _steps(g)
        A = -torch.ones(g.shape[-1], device=g.device)
        S = None if initial_state is None else initial_state.mT
        o, S = kernel(v / dt[..., None], dt, A, k, q * scale, S)
        return o.to(v.dtype), S.mT

    return run


def mamba(folder: Path) -> Iterator[Implementation]:
    """Yield reference functions of state-spaces/mamba."""
    project, ops = "mamba", folder / "mamba_ssm"
    minimal = functions(ops / "modules/ssd_minimal.py", "segsum", "ssd_minimal_discrete")["ssd_minimal_discrete"]

    def discrete(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float, initial_state: Tensor | None, output_final_state: bool
    ) -> Any:
        assert output_final_state
        T = q.shape[1]
        g, k, v, q = (
            functional.pad(t.float(), (0, 0) * (t.dim() - 2) + (0, -T % 64)) for t in (g, k, v, q * scale)
        )  # fmt: skip
        S = None if initial_state is None else initial_state.mT[:, None]
        o, S = minimal(v, g, k, q, 64, S)
        return o[:, :T], S.mT

    # Its gate is an argument of its own, so gradients pass through the adapter as they are.
    yield Implementation(project, "ssd_minimal_discrete", "simple_gla", discrete, longest=4096, note="given float32")
    passing = functions(ops / "ops/triton/ssd_state_passing.py", "state_passing_ref")["state_passing_ref"]

    def state_passing(states: Tensor, g: Tensor, initial_state: Tensor | None, output_final_state: bool) -> Any:
        assert output_final_state
        return passing(states.float(), g.transpose(1, 2), initial_state)

    yield Implementation(
        project, "state_passing_ref", "state_passing", state_passing, longest=4096, note="given float32"
    )
    selective = functions(ops / "ops/selective_scan_interface.py", "selective_scan_ref")["selective_scan_ref"]
    last = _selective(functools.partial(selective, return_last_state=True))
    note = "one channel per value column"
    yield Implementation(
        project, "selective_scan_ref", "simple_gla", last, state=False, gradients=False, longest=4096, note=note
    )


def _selective(kernel: Callable[..., Any]) -> Kernel:
    """Return simple gated linear attention by Mamba's selective scan: heads in the batch, value columns as channels."""

    def run(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float, initial_state: None, output_final_state: bool
    ) -> Any:
        assert output_final_state
        assert initial_state is None
        B, T, H, K = k.shape
        rows = lambda t: t.transpose(1, 2).flatten(0, 1).transpose(1, 2)  # noqa: E731  (B·H, ·, T)
        dt = _steps(g)[..., None].expand(*g.shape, v.shape[-1])
        A = -torch.ones(v.shape[-1], K)
        o, S = kernel(rows(v / dt), rows(dt), A, rows(k.float()), rows(q.float() * scale))
        o = o.transpose(1, 2).reshape(B, H, T, -1).transpose(1, 2)
        return o.to(v.dtype), S.reshape(B, H, -1, K).mT

    return run


def transformers() -> Iterator[Implementation]:
    """Yield the torch fallbacks of transformers, without kernels from the hub."""

    def fallback(model: str, name: str) -> Callable[..., Any]:
        return getattr(import_module(f"transformers.models.{model}.modeling_{model}"), name)

    def scaled(kernel: Callable[..., Any]) -> Kernel:
        # Without `cu_seqlens`, which the fallbacks refuse.
        def run(
            q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, scale: float, initial_state: Tensor | None,
            output_final_state: bool,
        ) -> Any:  # fmt: skip
            options = {"initial_state": initial_state, "output_final_state": output_final_state}
            return kernel(q * (scale * SCALE), k, v, g=g, beta=beta, **options)

        return run

    for model in ("qwen3_next", "olmo_hybrid", "qwen3_5"):
        for name in ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"):
            yield Implementation(f"transformers {model}", name, "gated_delta_rule", scaled(fallback(model, name)))
    for name in ("chunk_kimi_delta_attention", "recurrent_kimi_delta_attention"):
        kernel = scaled(fallback("kimi_linear", name))
        yield Implementation("transformers kimi_linear", name, "kda", kernel, longest=4096)
    for model in ("mamba2", "bamba", "zamba2"):
        scan2 = fallback(model, "mamba2_chunk_scan")

        def combined(
            x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, S: Tensor | None, kernel: Callable[..., Any] = scan2
        ) -> Any:
            return kernel(x, dt, A, B, C, 64, initial_states=S, return_final_states=True)

        kernel = mamba2(combined)
        yield Implementation(
            f"transformers {model}", "mamba2_chunk_scan", "simple_gla", kernel, longest=4096, gradients=False
        )
    selective = fallback("mamba", "mamba_selective_scan")
    last = functools.partial(selective, return_last_state=True)
    yield Implementation(
        "transformers mamba",
        "mamba_selective_scan",
        "simple_gla",
        _selective(last),
        state=False,
        gradients=False,
        longest=4096,
    )
    update = fallback("qwen3_next", "causal_conv1d_update")

    def convolution(
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        activation: None,
        initial_state: Tensor | None,
        output_final_state: bool,
    ) -> Any:
        assert output_final_state
        S = x.new_zeros(x.shape[0], x.shape[2], weight.shape[1]) if initial_state is None else initial_state.clone()
        o = update(x.transpose(1, 2), S, weight, bias, activation)
        return o.transpose(1, 2), S

    yield Implementation("transformers qwen3_next", "causal_conv1d_update", "causal_conv1d", convolution)


def ours(methods: Sequence[str] = ("sequential", "pscan", "chunked", "fused")) -> Iterator[Implementation]:
    """Yield the scans of this library, those of blocks by several methods."""

    def blocks(method: str) -> Kernel:
        def run(A: Tensor, v: Tensor, initial_state: Tensor | None, output_final_state: bool) -> Any:
            assert output_final_state
            x0 = v.new_zeros(v.shape[0], *v.shape[2:]) if initial_state is None else initial_state.to(v.dtype)
            states = scan(A, v, x0, method)
            return states, states[:, -1]

        return run

    def tokens(A: Tensor, v: Tensor, initial_state: Tensor | None, output_final_state: bool) -> Any:
        """Use one row of the tables per token: the look-up is what is tested."""
        assert output_final_state
        x0 = v.new_zeros(v.shape[0], *v.shape[2:]) if initial_state is None else initial_state.to(v.dtype)
        index = torch.arange(v.shape[0] * v.shape[1], device=v.device).reshape(v.shape[:2])
        states = scan_tokens(index, A.flatten(0, 1), v.flatten(0, 1), x0)
        return states, states[:, -1]

    for method in methods:
        longest = 4096 if method in ("sequential", "pscan") else 10**6
        yield Implementation("fsa2lrnn", f"scan, {method}", "block_diagonal", blocks(method), longest=longest)
    yield Implementation("fsa2lrnn", "scan_tokens, auto", "block_diagonal", tokens, longest=4096)

    def diagonal(a: Tensor, v: Tensor, **options: Any) -> Any:
        S = options.pop("initial_state")
        flat = None if S is None else S.flatten(1)[..., None]
        o, S = blocks("pscan")(a.flatten(2)[..., None, None], v.flatten(2)[..., None], initial_state=flat, **options)
        return o.reshape(v.shape), S.reshape(v.shape[0], *v.shape[2:])

    yield Implementation("fsa2lrnn", "scan, pscan, blocks of 1", "diagonal", diagonal, longest=4096)

    def permuted(p: Tensor, d: Tensor, v: Tensor, **options: Any) -> Any:
        rows = torch.arange(v.shape[-1], device=v.device)[:, None] == p[..., None, :]
        return blocks("chunked")(rows.to(d.dtype) * d[..., None, :], v, **options)

    yield Implementation("fsa2lrnn", "scan, chunked, P diag(d)", "pd_ssm", permuted, longest=4096)
