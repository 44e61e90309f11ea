"""Provide reference kernels: the sequential and the chunked forms of the operators, with the operators' signatures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from .operators import operator, sequential


def reference(op: str, form: str = "sequential", chunk: int = 64) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """Return a kernel that computes an operator in float32 and returns outputs in the dtype of its inputs.

    Args:
        op: the operator, a key of `OPERATORS`. Another name raises `ValueError`.
        form: "sequential", or a key of the operator's `forms`.
        chunk: the chunk size of a chunked form.
    """
    operation = operator(op)

    def kernel(
        *tensors: Tensor, scale: float = 1.0, initial_state: Tensor | None = None, output_final_state: bool = False,
        cu_seqlens: Tensor | None = None, **named: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        names = (*operation.tensors, *operation.static)
        arguments = {**dict(zip(names, tensors, strict=False)), **{n: t for n, t in named.items() if n in names}}
        dtype = (
            arguments[names[-1]].dtype if operation.static else arguments["v" if "v" in arguments else names[0]].dtype
        )
        inputs = {n: t if n == "p" else t.float() for n, t in arguments.items()}
        T, B = operation.length(inputs), inputs[names[0]].shape[0]
        ends = [0, T] if cu_seqlens is None else cu_seqlens.tolist()
        if initial_state is None:
            heads = (inputs[names[0]].shape[2],) if operation.heads else ()
            batch = B if cu_seqlens is None else len(ends) - 1
            state = (inputs["k"].shape[-1], inputs["v"].shape[-1]) if "k" in inputs else operation.state
            initial_state = torch.zeros(batch, *heads, *state, device=inputs[names[0]].device)
        outputs, states = list[Tensor](), list[Tensor]()
        # Packed sequences run one after the other, each from its own state.
        for i, (start, stop) in enumerate(pairwise(ends)):
            S = initial_state.float() if cu_seqlens is None else initial_state[i : i + 1].float()
            part = operation.cut(inputs, start, stop)
            o, S = sequential(operation, part, S) if form == "sequential" else operation.forms[form](part, S, chunk)
            outputs.append(o * scale)
            states.append(S)
        return torch.cat(outputs, 1).to(dtype), torch.cat(states) if output_final_state else None

    return kernel
