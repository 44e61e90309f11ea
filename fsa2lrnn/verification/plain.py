"""The interface to the checker: a torch model's tables as numpy arrays, and the checker's errors as the library's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from fsa2lrnn import checker
from fsa2lrnn.checker.tables import Tables
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.lrnn.switched import SwitchedAffine


class CertificateRefused(Fsa2LrnnError, checker.InvalidCertificate):
    """The certificate does not prove what it claims; the message names what fails."""


@contextmanager
def library_errors() -> Iterator[None]:
    """Turn errors of the checker into those of the library, with the same message."""
    try:
        yield
    except checker.InvalidCertificate as error:
        raise CertificateRefused(str(error)) from error
    except checker.UnsupportedInput as error:
        raise UnsupportedFormat(str(error)) from error


def plain(tables: SwitchedAffine) -> Tables:
    """Return tables as numpy arrays, in their own dtype where numpy has it, else in float64."""
    read = {name: tensor for name, tensor in vars(tables.readout).items() if tensor is not None}
    tensors = {"A": tables.A, "v": tables.v, "x0": tables.x0, **read}
    dtype = str(tables.dtype).removeprefix("torch.")
    kind = tables.dtype if dtype in ("float32", "float64") else torch.float64
    numbers = {name: tensor.detach().cpu().to(kind).numpy() for name, tensor in tensors.items()}
    return Tables(numbers, dtype, tables.alphabet, tables.outputs)


def checked(tables: SwitchedAffine) -> Tables:
    """Return tables as numpy arrays; raise `UnsupportedFormat` if their rounding is not bounded."""
    numbers = plain(tables)
    with library_errors():
        numbers.format()
    return numbers
