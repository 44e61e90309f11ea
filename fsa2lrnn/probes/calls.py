"""Call a kernel on a case, with the argument names and dtypes that flash-linear-attention uses."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .cases import Case, backward
from .differences import INTEGERS
from .operators import Operator
from .random_words import KEYS, VALUES

Kernel = Callable[..., Any]


class WrongResult(Exception):
    """Raised for a kernel whose result cannot be compared, or that wrote into an input.

    The result has a wrong type, no final state or no gradient.
    """


@contextmanager
def _unchanged(tensors: dict[str, Tensor | None]) -> Iterator[None]:
    """Raise `WrongResult` if the body changes a bit of a tensor."""
    present = {n: t.detach() for n, t in tensors.items() if t is not None}
    before = {n: t.clone() for n, t in present.items()}
    yield
    for name, t in present.items():
        if not torch.equal(*(x.view(INTEGERS[x.element_size()]) for x in (t, before[name]))):
            raise WrongResult(f"the kernel wrote into its argument {name}, which belongs to the caller")


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
        own = parameters["chunk_size"].default if "chunk_size" in parameters else None
        self.own_chunk = own if isinstance(own, int) and own > 0 else None
        self._named = {n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        self._any_keyword = not parameters or inspect.Parameter.VAR_KEYWORD in kinds
        self._forwards = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds
        self._refused = set[str]()
        self.by_name = set(op.tensors) <= self._named
        self.returns_state = True

    def takes(self, keyword: str) -> bool:
        """Return whether the kernel accepts a keyword; packed sequences must be named, as **options may ignore them."""
        passes_on = self._forwards if keyword == "cu_seqlens" else self._any_keyword
        return keyword not in self._refused and (keyword in self._named or passes_on)

    def refuse(self, error: TypeError) -> bool:
        """Return whether a kernel behind **options raised an error for a keyword, which it then no longer gets."""
        found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if found is None or not self.takes(found[1]) or found[1] in self._named:
            return False
        self._refused.add(found[1])
        return True

    def prepare(self, inputs: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
        """Return the inputs on the device, in `dtype`, or float32 for log gates and int64 for indices."""
        kinds = {n: torch.float32 if n in self.op.wide else torch.int64 if n == "p" else dtype for n in inputs}
        return {n: t.to(self.device, kinds[n]).contiguous() for n, t in inputs.items()}

    def state(self, S: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """Return an initial state on the device, in float32, or in `dtype` for a convolution; None for None."""
        return None if S is None else S.to(self.device, torch.float32 if self.op.heads else dtype).contiguous()

    def __call__(
        self, tensors: dict[str, Tensor], S: Tensor | None, scale: float, **more: object
    ) -> tuple[Tensor, Tensor | None]:
        """Call the kernel once and return outputs and final state; raise `WrongResult` for another result.

        The state is `None` for a kernel that neither takes `output_final_state` nor returns one.
        """
        ordered = {n: tensors[n] for n in (*self.op.tensors, *self.op.static)}
        if self._dim > KEYS:
            ordered = {n: self._widened(t, len(self.op.tensors[n])) for n, t in ordered.items()}
            S = None if S is None else self._widened(S, 2)
        options = {**self.op.options, "initial_state": S, "output_final_state": True}
        if "cu_seqlens" in self._named:
            options["cu_seqlens"] = None
        if self.op.scaled:
            options["scale"] = scale
        if self.chunk_size is not None:
            options["chunk_size"] = self.chunk_size
        options = {name: value for name, value in (options | more).items() if self.takes(name)}
        with _unchanged({**ordered, "initial_state": S}):
            result = self.kernel(**ordered, **options) if self.by_name else self.kernel(*ordered.values(), **options)
        if isinstance(result, Tensor) and not self.takes("output_final_state"):
            self.returns_state = False
            return (self._narrowed(result, 1) if self._dim > KEYS else result), None
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
            o, S = self(tensors, S, case.scale, cu_seqlens=ends.to(torch.int64))
            return {"o": o.detach(), **_state(S)}
        T, parts = self.op.length(tensors), list[Tensor]()
        for start, stop in zip((0, *case.cuts), (*case.cuts, T), strict=True):
            piece = {n: t.contiguous() for n, t in self.op.cut(tensors, start, stop).items()}
            o, S = self(piece, S, case.scale)
            parts.append(o.detach())
        return {"o": torch.cat(parts, 1) if len({p.dim() for p in parts}) == 1 else parts[-1], **_state(S)}

    def _run_backward(self, case: Case, tensors: dict[str, Tensor], S: Tensor | None) -> dict[str, Tensor]:
        leaves = {n: t.requires_grad_() for n, t in tensors.items() if t.is_floating_point()}
        S = None if S is None else S.requires_grad_()
        assert case.upstream is not None
        with _unchanged({**tensors, "initial_state": S}):
            o, returned = self({**tensors, **leaves}, S, case.scale)
            final = o.sum() * torch.zeros_like(case.upstream[1]).to(o) if returned is None else returned
            return self._gradients(case, leaves, S, o, final)

    def _gradients(
        self, case: Case, leaves: dict[str, Tensor], S: Tensor | None, o: Tensor, final: Tensor
    ) -> dict[str, Tensor]:
        assert case.upstream is not None
        if not o.requires_grad or not final.requires_grad:
            name = "outputs" if not o.requires_grad else "final state"
            raise WrongResult(f"the kernel's {name} have no gradient: pass gradients=False if it has no backward pass")
        results = {"o": o.detach(), **(_state(final) if self.returns_state else {})}
        if o.shape != case.upstream[0].shape or final.shape != case.upstream[1].shape:
            return results
        return {**results, **backward(leaves, S, o, final, case)}


def _state(S: Tensor | None) -> dict[str, Tensor]:
    return {} if S is None else {"state": S.detach()}
