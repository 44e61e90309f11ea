"""The scan x_k = A_k x_{k-1} + v_k and its gradient on a GPU, as torch functions that launch the kernels of `kernels`.

One program per word and head reads A once in each direction and keeps the state in registers. If words and heads are
too few to occupy the device, time is split into chunks, in three launches: every chunk composes its steps into one
affine map, a state is passed from chunk to chunk, and every chunk runs from its first state. The backward pass does the
same from the end.

The gradient of a table is a sum over all steps that read a row. No two programs add to the same address: the steps are
sorted by row, each program sums a share of the steps of one row in order, and the shares are summed last. So the same
inputs give the same bits.

States are float32, or float64 if an input is. On a machine without a GPU, Triton's interpreter runs the same kernels,
slowly, if TRITON_INTERPRET=1 is set before they are first used.
"""

from __future__ import annotations

import math
import os
from functools import cache, reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.compiled import Context, typed_once_differentiable
from fsa2lrnn.optional import is_installed, missing

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
# Limits of the kernels. A product of blocks, P³ numbers at once, needs more registers than a matrix-vector step.
WIDEST = 64  # the largest block size that fits in a program's registers
WIDEST_SPLIT = 16  # the largest block size of which products fit too

_FULL = 1024  # programs that fill a GPU
_SHORTEST = 64  # the fewest steps of a chunk
_WORTH_SPLITTING = 4  # the fewest chunks; composing takes a second pass over A, and carrying the state takes time
_SHARE = 32  # the fewest steps that a program adds up, if there are so many


def dense(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Return the states x_k = A_k x_{k-1} + v_k on a GPU: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    The result is differentiable once. If the inputs differ in dtype, the states have the promoted dtype.

    Raises:
        UnsupportedFormat: for a device, dtype or block size that the kernels do not support.
        MissingPackage: if Triton is not installed.
    """
    check(A, v, x0)
    return _GpuScan.apply(None, A, v, x0)  # type: ignore[no-any-return]


def by_tokens(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Return the states of `dense` for tables indexed by tokens (B,T): A (N,H,b,b), v (N,H,b), x0 (B,H,b) -> (B,T,H,b).

    Raises the errors of `dense`. On a GPU, a token outside 0..N−1 fails an asynchronous assertion of torch.
    """
    check(A, v, x0)
    return _GpuScan.apply(tokens, A, v, x0)  # type: ignore[no-any-return]


def check(A: Tensor, v: Tensor, x0: Tensor) -> None:
    """Raise `UnsupportedFormat` unless the kernels support these tensors, `MissingPackage` without Triton."""
    tensors = {"A": A, "v": v, "x0": x0}
    if not is_installed("triton"):
        raise missing("triton", "gpu", 'method="triton"', 'choose the scan "chunked"')
    inputs = ", ".join(f"{name} {str(t.dtype).removeprefix('torch.')} on {t.device}" for name, t in tensors.items())
    if len({t.device for t in tensors.values()}) > 1 or any(t.dtype not in DTYPES for t in tensors.values()):
        raise UnsupportedFormat(
            f"{inputs}: the Triton scan takes float32, float64, bfloat16 or float16, all on one GPU; convert them, or "
            'choose the scan "sequential"'
        )
    if A.device.type != "cuda" and not (A.device.type == "cpu" and is_interpreted()):
        raise UnsupportedFormat(
            f'{inputs}: the Triton scan runs on a GPU; move them to one, choose the scan "auto", or to try the kernels '
            "without one set TRITON_INTERPRET=1 before Python starts"
        )
    if (b := v.shape[-1]) > WIDEST:
        raise UnsupportedFormat(
            f'blocks of size {b}: the Triton scan keeps up to {WIDEST} in registers; choose the scan "chunked" or '
            '"sequential"'
        )


def is_interpreted() -> bool:
    """Return whether the environment selects Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on", "y")


def takes(dtype: torch.dtype, batch: int, length: int, heads: int, b: int) -> bool:
    """Return whether the automatic choice of a method on a GPU is these kernels, for inputs of these sizes.

    It is not for blocks that are too wide, nor if time must be split and the products of blocks are too wide.

    >>> takes(torch.float32, 1, 4096, 1, 16), takes(torch.float32, 1, 4096, 1, 17), takes(torch.float32, 1, 40, 1, 17)
    (True, False, True)
    """
    fills = b <= WIDEST_SPLIT or _n_chunks(batch, length, heads) == 1
    return dtype in DTYPES and b <= WIDEST and fills


class _Shape(NamedTuple):
    batch: int
    length: int
    heads: int
    b: int
    size: int  # of a chunk, in steps
    n_chunks: int
    state: torch.dtype

    @property
    def constants(self) -> dict[str, Any]:
        """The compile-time constants of the kernels, which depend on the block size and the dtype only."""
        import triton.language as tl

        P = _power_of_two(self.b)
        stages = 8 if P <= 16 else 4 if P <= 32 else 2
        state = tl.float64 if self.state == torch.float64 else tl.float32
        return {"b": self.b, "P": P, "STATE": state, "STAGES": stages}

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The sizes T, H, steps per chunk and number of chunks."""
        return self.length, self.heads, self.size, self.n_chunks


class _GpuScan(Function):
    @staticmethod
    def forward(tokens: Tensor | None, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        if tokens is not None and tokens.numel():
            # The kernels would read past the tables; this check does not synchronise.
            low, high = tokens.aminmax()
            message = f"a token is not a row of the tables: 0..{len(A) - 1}"
            torch.ops.aten._assert_async.msg((low >= 0) & (high < len(A)), message)
        tokens = None if tokens is None else tokens.contiguous()
        return _forward(tokens, A.contiguous(), v.contiguous(), x0.contiguous())

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor | None, Tensor, Tensor, Tensor], output: Tensor) -> None:
        tokens, A, v, x0 = inputs
        ctx.save_for_backward(tokens, A, x0, output)
        ctx.dtypes = [t.dtype for t in (A, v, x0)]

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Context, dx: Tensor) -> tuple[Tensor | None, ...]:
        tokens, *others = ctx.saved_tensors
        A, x0, x = (t.contiguous() for t in others)
        _, *needed = ctx.needs_input_grad
        dA = torch.empty_like(A) if tokens is None and needed[0] else None
        dtype = ctx.dtypes[1] if tokens is None else _state(*ctx.dtypes)  # sums over the steps of a row come after
        # With tokens g stays in the precision of the states, because its sums over a row's steps are rounded only at
        # the end.
        g = torch.empty(x.shape, dtype=dtype, device=x.device)
        tokens = None if tokens is None else tokens.contiguous()
        dx0, dv = _backward(tokens, A, x0, x, dx.contiguous(), dA, g), g
        if tokens is not None:
            dA, dv = _collected(tokens, g, x0, x, len(A)) if any(needed[:2]) else (None, None)
        gradients = zip((dA, dv, dx0), needed, ctx.dtypes, strict=True)
        # Each gradient gets the dtype of its input, as autograd requires.
        return None, *(t.to(dtype) if t is not None and is_needed else None for t, is_needed, dtype in gradients)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *tensors: Any) -> tuple[Tensor, int]:
        # Models side by side are more words in a batch, and more rows of the tables: those of model s begin at s·N.
        n, tokens = info.batch_size, tensors[0]
        A, v, x0 = (_stacked(t, dim, n) for t, dim in zip(tensors[1:], in_dims[1:], strict=True))
        if tokens is not None:
            rows = A.shape[1] * torch.arange(n, device=tokens.device)[:, None, None]
            tokens = (_stacked(tokens, in_dims[0], n) + rows).flatten(0, 1)
        x = _GpuScan.apply(tokens, A.flatten(0, 1), v.flatten(0, 1), x0.flatten(0, 1))
        return x.unflatten(0, (n, x0.shape[1])), 0


def _stacked(tensor: Tensor, dim: int | None, n: int) -> Tensor:
    return tensor.expand(n, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _forward(tokens: Tensor | None, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    batch, length = (v if tokens is None else tokens).shape[:2]
    x = torch.empty(batch, length, *v.shape[-2:], dtype=_widest(A, v, x0), device=v.device)
    if not x.numel():
        return x
    shape = _shape(x, _state(*(t.dtype for t in (A, v, x0))))
    # A single chunk starts from x0 and reads no `ends`; x0 stands in as a valid address.
    ends = _carried(tokens, A, v, x0, shape, is_reversed=False) if shape.n_chunks > 1 else x0
    _launch("forward", shape, shape.n_chunks, tokens, A, v, x0, ends, x, *shape.sizes)
    return x


def _backward(
    tokens: Tensor | None, A: Tensor, x0: Tensor, x: Tensor, dx: Tensor, dA: Tensor | None, g: Tensor
) -> Tensor:
    """Write g = dv (B,T,H,b) and, unless it is None, dA (B,T,H,b,b), and return dx0 (B,H,b).

    Chunks count from the word's end; each starts from the gradient that the later ones carry to it (`_carried`).
    """
    if not x.numel():
        return torch.zeros_like(x0)
    dx0 = torch.empty_like(x0)
    shape = _shape(x, _state(A.dtype, x.dtype))
    # Nothing comes after the last letter, so the reversed recurrence starts from a zero gradient.
    zero = x0.new_zeros(x0.shape, dtype=shape.state)
    ends = _carried(tokens, A, dx, zero, shape, is_reversed=True) if shape.n_chunks > 1 else zero
    _launch("backward", shape, shape.n_chunks, tokens, A, x0, x, dx, ends, dA, g, dx0, *shape.sizes)
    return dx0


def _carried(tokens: Tensor | None, A: Tensor, u: Tensor, start: Tensor, shape: _Shape, is_reversed: bool) -> Tensor:
    """Return the state that each chunk but the last passes to the next: (B, n_chunks − 1, H, b)."""
    sizes = (shape.batch, shape.n_chunks - 1, shape.heads, shape.b)
    products = torch.empty(*sizes, shape.b, dtype=shape.state, device=A.device)
    offsets, ends = (torch.empty(sizes, dtype=shape.state, device=A.device) for _ in range(2))
    arguments = (tokens, A, u, products, offsets, *shape.sizes)
    _launch("compose", shape, shape.n_chunks - 1, *arguments, REVERSED=is_reversed)
    # The maps of the chunks are themselves a recurrence of n_chunks − 1 steps, which one program per word and head
    # runs.
    whole = shape._replace(length=shape.n_chunks - 1, size=shape.n_chunks - 1, n_chunks=1)
    _launch("forward", whole, 1, None, products, offsets, start, start, ends, *whole.sizes)
    return ends


def _collected(tokens: Tensor, g: Tensor, x0: Tensor, x: Tensor, n_rows: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of the tables, (N,H,b,b) and (N,H,b), from the gradients g (B,T,H,b) of the steps."""
    batch, length, heads, b = x.shape
    if not x.numel():
        return g.new_zeros(n_rows, heads, b, b), g.new_zeros(n_rows, heads, b)
    # A stable sort keeps the steps of a row in order, so that the sum, and its rounding, is the same in every run.
    rows, order = tokens.flatten().sort(stable=True)
    bounds = torch.searchsorted(rows, torch.arange(n_rows + 1, device=rows.device))
    # Enough programs to fill the device, but at least about _SHARE steps for each on average.
    n_shares = max(1, min(-(-_FULL // (n_rows * heads)), batch * length // (n_rows * _SHARE)))
    dA, dv = (torch.empty(n_shares, n_rows, heads, *each, dtype=g.dtype, device=g.device) for each in ((b, b), (b,)))
    # `_launch` takes the grid from `batch`, which is the number of rows of the table here.
    shape = _Shape(n_rows, length, heads, b, length, 1, g.dtype)
    _launch("collect", shape, n_shares, order, bounds, g, x0, x, dA, dv, length, heads, n_rows, n_shares)
    return dA.sum(0), dv.sum(0)


def _launch(name: str, shape: _Shape, columns: int, *arguments: object, **constants: object) -> None:
    """Launch the kernel `name` on a grid of batch·heads × `columns` programs."""
    P = _power_of_two(shape.b)
    entries = P**3 if name == "compose" else P**2  # that a program works on at once
    grid = shape.batch * shape.heads, columns
    options = {"num_warps": max(1, entries // 1024), "enable_fp_fusion": True}  # products are added unrounded
    with torch.cuda.device_of(next(each for each in arguments if isinstance(each, Tensor))):
        _kernel(name)[grid](*arguments, **shape.constants, **constants, **options)


@cache
def _kernel(name: str) -> Any:
    from fsa2lrnn.nn.scans import triton_kernels as kernels  # not before it is needed: it loads Triton

    return getattr(kernels, name)


def _shape(x: Tensor, state: torch.dtype) -> _Shape:
    batch, length, heads, b = x.shape
    n_chunks = _n_chunks(batch, length, heads) if b <= WIDEST_SPLIT else 1
    # Chunks of equal size, rounded up, may be fewer than n_chunks: the number is computed anew from the size.
    size = -(-length // n_chunks)
    return _Shape(batch, length, heads, b, size, -(-length // size), state)


def _n_chunks(batch: int, length: int, heads: int) -> int:
    """Return the number of chunks into which the steps of a word are split.

    >>> _n_chunks(128, 500, 8), _n_chunks(8, 4096, 8), _n_chunks(1, 65_536, 8)
    (1, 16, 128)
    """
    # At most √T chunks: the states are carried through the chunks one after another, as through the steps of a chunk.
    fitting = min(_FULL // max(1, batch * heads), length // _SHORTEST, math.isqrt(length))
    return fitting if fitting >= _WORTH_SPLITTING else 1


def _state(*dtypes: torch.dtype) -> torch.dtype:
    return torch.float64 if torch.float64 in dtypes else torch.float32


def _widest(*tensors: Tensor) -> torch.dtype:
    return reduce(torch.promote_types, (t.dtype for t in tensors))


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
