"""Plain numba loops over words as differentiable functions of tensors: dispatch, memory, threads and autograd.

A recurrence brings two loops that read and write arrays. All else is the same for every recurrence and lives here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled import DTYPES, at_once, cuts, empty, thread_count, typed_once_differentiable

WORTH_COMPILING = 1 << 13  # numbers; below, no number of calls makes up for seconds of compilation
_SHARES = 4  # of the words, whose gradients of shared arguments are added up independently of the number of threads


def takes(*tensors: Tensor) -> bool:
    """Return whether all tensors are in the CPU's memory and have one dtype that the kernels support.

    >>> takes(torch.ones(1), torch.zeros(2)), takes(torch.ones(1), torch.ones(1).double())
    (True, False)
    """
    kinds = {(tensor.device.type, tensor.dtype) for tensor in tensors}
    return len(kinds) == 1 and kinds <= {("cpu", dtype) for dtype in DTYPES}


def refuse(what: str, instead: str, **tensors: Tensor) -> NoReturn:
    """Raise `UnsupportedFormat` for inputs that the kernel `what` does not support, naming the method to use."""
    given = ", ".join(
        f"{name} {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}" for name, tensor in tensors.items()
    )
    raise UnsupportedFormat(
        f"{given}: the compiled {what} takes float32 or float64 on the CPU, the same for all; convert them, or choose "
        f'method="{instead}"'
    )


class CompiledRecurrence(NamedTuple):
    """Two compiled loops over words, and what autograd needs to know of them.

    Arguments are shared by all words, or have a row for each word; results have a row for each word. All are passed as
    contiguous arrays, then the words `first` … `last` − 1 to do.

    - forward(*arguments, *results, first, last) writes the results.
    - backward(*arguments, *results, *of_results, *of_arguments, first, last) writes the gradients of arguments with a
      row for each word, and adds to those of shared arguments. `of_results` are those of the results that are returned.

    Attributes:
        arguments: names of the arguments, the first `n_shared` shared.
        shapes: from the arguments to the shapes of the results, of which the first `n_returned` are returned.
        cost: multiplications for a number of the largest result, roughly.
        instead: the method to recommend for arguments that compiled loops do not take.
    """

    name: str
    arguments: tuple[str, ...]
    n_shared: int
    shapes: Callable[..., list[tuple[int, ...]]]
    n_returned: int
    cost: int
    instead: str
    forward: Callable[..., None]
    backward: Callable[..., None]

    def __call__(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        """Return the results for tensors on the CPU; differentiable once.

        Raises `UnsupportedFormat` for a device or dtype that compiled loops do not take.
        """
        if not takes(*arguments):
            refuse(self.name, self.instead, **dict(zip(self.arguments, arguments, strict=True)))
        return _Recur.apply(self, *arguments)  # type: ignore[no-any-return]


class _Recur(Function):
    @staticmethod
    def forward(ctx: Any, recurrence: CompiledRecurrence, *arguments: Tensor) -> tuple[Tensor, ...]:
        arguments = tuple(x.contiguous() for x in arguments)
        results = [empty(shape, arguments[0].dtype) for shape in recurrence.shapes(*arguments)]
        n_threads = thread_count(recurrence.cost * max(x.numel() for x in results))
        run = partial(recurrence.forward, *_arrays(*arguments, *results))
        at_once([partial(run, *words) for words in cuts(len(results[0]), n_threads)], n_threads)
        ctx.save_for_backward(*arguments, *results)
        ctx.recurrence = recurrence
        return tuple(results[: recurrence.n_returned])

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, *of_results: Tensor) -> tuple[Tensor | None, ...]:
        recurrence, n_shared = ctx.recurrence, ctx.recurrence.n_shared
        arguments = ctx.saved_tensors[: len(recurrence.arguments)]
        # What is added up in one place depends on the shapes alone, so that the sums do not depend on the threads.
        shares = cuts(len(of_results[0]), _SHARES)
        of_shared = [torch.zeros(len(shares), *x.shape, dtype=x.dtype) for x in arguments[:n_shared]]
        of_words = [empty(x.shape, x.dtype) for x in arguments[n_shared:]]
        run = partial(recurrence.backward, *_arrays(*ctx.saved_tensors, *(x.contiguous() for x in of_results)))
        at_once(
            [partial(run, *_arrays(*(x[i] for x in of_shared), *of_words), *words) for i, words in enumerate(shares)],
            min(len(shares), torch.get_num_threads()),
        )
        return None, *(x.sum(0) for x in of_shared), *of_words


def _arrays(*tensors: Tensor) -> list[Any]:
    return [x.detach().numpy() for x in tensors]
