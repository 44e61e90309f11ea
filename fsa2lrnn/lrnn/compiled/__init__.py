"""What compiled kernels on the CPU share: vector instructions, torch's threads, and memory for their results."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat

DTYPES = (torch.float32, torch.float64)  # that kernels compute in as they are


def takes(*tensors: Tensor) -> bool:
    """Whether all are in the CPU's memory, in one dtype that kernels compute in.

    >>> takes(torch.ones(1), torch.zeros(2)), takes(torch.ones(1), torch.ones(1).double())
    (True, False)
    """
    kinds = {(tensor.device.type, tensor.dtype) for tensor in tensors}
    return len(kinds) == 1 and kinds <= {("cpu", dtype) for dtype in DTYPES}


def refuse(what: str, instead: str, **tensors: Tensor) -> NoReturn:
    """Raises `UnsupportedFormat` for inputs that the kernel `what` does not take, naming what may be chosen instead."""
    given = ", ".join(
        f"{name} {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}" for name, tensor in tensors.items()
    )
    raise UnsupportedFormat(
        f"{given}: the compiled {what} takes float32 or float64 on the CPU, the same for all; convert them, or choose "
        f'method="{instead}"'
    )
