"""The interface to the checker: a torch model's tables as numpy arrays with bounds on their rounding, and its errors.

The check of a certificate recomputes these bounds, so that a certificate cannot understate its model's rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from fsa2lrnn import checker
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.checker.tables import Tables
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import SwitchedAffine, table_error


class CertificateRefused(Fsa2LrnnError, checker.InvalidCertificate):
    """The error for a certificate that does not prove what it claims; the message names the check that fails."""


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
    """Return tables as numpy arrays, float32 and float64 as they are and other dtypes as float64."""
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


def slack_of(model: LRNN | SwitchedAffine, more: float = 0.0) -> Slack:
    """Return bounds on how far the tables of any evaluation of `model` differ from `switched(model)`, plus `more`.

    The bounds are `more` alone for tables, for gates that look their tables up (`Layer.is_lookup`), and for gates that
    sum integers.

    Raises:
        UnsupportedFormat: for a layer that does not bound its rounding, for numbers near the end of the format's range,
            and for a `more` that is negative, infinite or NaN.
    """
    if not 0 <= more < np.inf:
        raise UnsupportedFormat(f"slack = {more}: what tables may differ by is a number of at least 0")
    if isinstance(model, SwitchedAffine):
        return Slack(more, more)
    # T27: the bound between any two evaluations of the gates, over all letters.
    A, v = (error.numpy() for error in table_error(model))
    if not (np.isfinite(A).all() and np.isfinite(v).all()):
        raise UnsupportedFormat(
            "nothing bounds by how much the tables of this model may differ from one shape of call to the next: its "
            "gates' numbers come near the end of the format's range, or p is over 64; let "
            "LRNN.from_affine(switched(model)) look them up"
        )
    return Slack(A + more, v + more)
