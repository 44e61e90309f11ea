"""Call a kernel on a case, with the argument names and dtypes that flash-linear-attention uses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .cases import Case, backward
from .operators import Operator
from .words import KEYS, VALUES

Kernel = Callable[..., Any]


class WrongResult(Exception):
    """Raised for a kernel whose result cannot be compared: it has a wrong type, no final state or no gradient."""


class Caller:
    """A kernel under test, called with the arguments that its signature accepts.

    Args:
        op: the operator.
        kernel: a function with the operator's tensors, passed by name if it names them all and by position otherwise;
            `scale`, `initial_state` and `output_final_state` are passed by name.
        device: the device of the tensors.
        chunk_size: the chunk size to pass; None to pass none.
        head_dim: the size of keys and values that the kernel gets, if not that of the probes, over which the
            coordinates of the probes are spread.
    """

    def __init__(
        self, op: Operator, kernel: Kernel, device: str = "cpu", chunk_size: int | None = None,
        head_dim: int | None = None,
    ) -> None:  # fmt: skip
        self.op, self.kernel, self.device, self.chunk_size = op, kernel, device, chunk_size
        if head_dim is not None and (op.state != (KEYS, VALUES) or head_dim < KEYS):
            raise ValueError(
                f"head_dim={head_dim} for {op.name}: it is at least {KEYS}, for operators with keys and values alone"
            )
        self._dim = head_dim or KEYS
        self._places = torch.linspace(0, self._dim - 1, KEYS).long().to(device)
        try:
            parameters = inspect.signature(kernel).parameters
        except (TypeError, ValueError):  # a builtin
            parameters = dict[str, inspect.Parameter]()
        kinds = {p.kind for p in parameters.values()}
        named = {n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        forwards = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds
        self.by_name = set(op.tensors) <= named
        self.takes_chunk_size = "chunk_size" in named or inspect.Parameter.VAR_KEYWORD in kinds
        self.names_cu_seqlens = "cu_seqlens" in named
        self.takes_cu_seqlens = self.names_cu_seqlens or forwards

    def prepare(self, inputs: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
        """Return the inputs on the device, in `dtype`, or float32 for log gates and int64 for indices."""
        kinds = {n: torch.float32 if n in self.op.wide else torch.int64 if n == "p" else dtype for n in inputs}
        return {n: t.to(self.device, kinds[n]).contiguous() for n, t in inputs.items()}

    def state(self, S: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """Return an initial state on the device, in float32, or in `dtype` for a convolution; None for None."""
        return None if S is None else S.to(self.device, torch.float32 if self.op.heads else dtype).contiguous()

    def __call__(
        self, tensors: dict[str, Tensor], S: Tensor | None, scale: float, **more: Any
    ) -> tuple[Tensor, Tensor]:
        """Call the kernel once and return outputs and final state; raise `WrongResult` for another result."""
        ordered = {n: tensors[n] for n in (*self.op.tensors, *self.op.static)}
        if self._dim > KEYS:
            ordered = {n: self._widened(t, len(self.op.tensors[n])) for n, t in ordered.items()}
            S = None if S is None else self._widened(S, 2)
        options = {**self.op.options, **more, "initial_state": S, "output_final_state": True}
        if self.names_cu_seqlens:
            options.setdefault("cu_seqlens", None)
        if self.op.scaled:
            options["scale"] = scale
        if self.chunk_size is not None:
            options["chunk_size"] = self.chunk_size
        result = self.kernel(**ordered, **options) if self.by_name else self.kernel(*ordered.values(), **options)
        if not isinstance(result, (tuple, list)) or len(result) < 2 or not isinstance(result[0], Tensor):
            raise WrongResult(f"the kernel returned {type(result).__name__}, not (outputs, final state)")
        if not isinstance(result[1], Tensor):
            raise WrongResult("the kernel returned no final state although output_final_state=True")
        if self._dim > KEYS:
            return self._narrowed(result[0], 1), self._narrowed(result[1], 2)
        return result[0], result[1]

    def _widened(self, t: Tensor, axes: int) -> Tensor:
        """Return a tensor with the probes' coordinates of its last axes spread over wider ones of zeros."""
        for axis in range(t.dim() - axes, t.dim()):
            shape = (*t.shape[:axis], self._dim, *t.shape[axis + 1 :])
            t = t.new_zeros(shape).index_copy(axis, self._places, t)
        return t

    def _narrowed(self, t: Tensor, axes: int) -> Tensor:
        """Return the probes' coordinates; raise `WrongResult` unless all others, which no input reaches, are zero."""
        for axis in range(t.dim() - axes, t.dim()):
            if t.shape[axis] != self._dim:
                raise WrongResult(f"the kernel returned a tensor of shape {tuple(t.shape)} for heads of {self._dim}")
            if t.detach().index_fill(axis, self._places, 0).any():
                raise WrongResult("an output or state is not zero in a coordinate in which all inputs are")
            t = t.index_select(axis, self._places)
        return t

    def run(self, case: Case, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return the outputs `o`, the final `state` and the gradients that the kernel computes for a case.

        Raises `WrongResult` for a result that cannot be compared.
        """
        tensors, S = self.prepare(case.inputs, dtype), self.state(case.state, dtype)
        if case.upstream is not None:
            return self._run_backward(case, tensors, S)
        if case.lengths:
            ends = torch.tensor((0, *case.lengths), device=self.device).cumsum(0)
            more = {"cu_seqlens": ends.to(torch.int64)} if self.takes_cu_seqlens else {}
            o, S = self(tensors, S, case.scale, **more)
            return {"o": o.detach(), "state": S.detach()}
        T, parts = self.op.length(tensors), list[Tensor]()
        for start, stop in zip((0, *case.cuts), (*case.cuts, T), strict=True):
            piece = {n: t.contiguous() for n, t in self.op.cut(tensors, start, stop).items()}
            o, S = self(piece, S, case.scale)
            parts.append(o.detach())
        assert S is not None
        return {"o": torch.cat(parts, 1) if len({p.dim() for p in parts}) == 1 else parts[-1], "state": S.detach()}

    def _run_backward(self, case: Case, tensors: dict[str, Tensor], S: Tensor | None) -> dict[str, Tensor]:
        leaves = {n: t.requires_grad_() for n, t in tensors.items() if t.is_floating_point()}
        S = None if S is None else S.requires_grad_()
        o, final = self({**tensors, **leaves}, S, case.scale)
        if not o.requires_grad or not final.requires_grad:
            name = "outputs" if not o.requires_grad else "final state"
            raise WrongResult(f"the kernel's {name} have no gradient: pass gradients=False if it has no backward pass")
        if case.upstream is not None and (o.shape != case.upstream[0].shape or final.shape != case.upstream[1].shape):
            return {"o": o.detach(), "state": final.detach()}
        return {"o": o.detach(), "state": final.detach(), **backward(leaves, S, o, final, case)}
