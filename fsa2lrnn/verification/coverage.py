"""The model and the runs that a verdict covers, as the verifiers name them and docs/coverage.md tabulates them.

There are three cases. If states are one-hot and rounding changes neither a choice nor an output, every schedule
computes the same states and outputs (T53 of docs/theory.md). If steps do not round and margins exceed the rounding of
the read-out, this holds for schedules that compute x_k from x_{k-1} (T26, T28). Otherwise the result holds for calls
like those that computed it, in an environment that sums in the same order.
No case covers `torch.compile`, whose code rounds in other places and to other formats.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from fsa2lrnn import __version__
from fsa2lrnn.compile.recurrence import Recurrence
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.checkpoint import digest
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.layer_checks import user_layers
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.scans import METHODS
from fsa2lrnn.verdicts import EVERY, LETTERS, Coverage, Proved
from fsa2lrnn.verification.certificate import Certificate

STEPPING = ("sequential", "fused", "letters")  # scans that compute x_k from x_{k-1} by inner products in some order
_BLAS = re.compile(r"(Math Kernel Library|BLAS_INFO=)(?: Version )?([^\s,]+)")
_SETTINGS = ("MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_")  # begin the environment variables that these libraries read


def of_integers(_: Recurrence) -> Coverage:
    """Return the coverage of a `Recurrence`, whose integer tables do not round."""
    return Coverage("int", tuple(METHODS), EVERY, None)


def of_exact(model: LRNN) -> Coverage:
    """Return the coverage of a model whose reached states and outputs rounding cannot change (`walk.RoundingWatch`)."""
    return Coverage(_name(model.dtype), model.methods, EVERY, None, tested_layers=user_layers(model))


def of_exact_steps(model: LRNN) -> Coverage:
    """Return the coverage of a model with exact steps and margins above the read-out's rounding (`stepping`)."""
    return Coverage(_name(model.dtype), STEPPING, EVERY, None, tested_layers=user_layers(model))


def of_letters(arithmetic: str, tested_layers: tuple[str, ...] = ()) -> Coverage:
    """Return the coverage of a model that this process stepped letter by letter, on one word at a time."""
    return Coverage(arithmetic, ("sequential",), LETTERS, torch.get_num_threads(), environment(), tested_layers)


def of_certificate(certificate: Certificate) -> Coverage:
    """Return the coverage of a certificate that this process accepts; sets hold for any order of summation.

    An enumeration of a model that rounds covers only the threads and the environment of the process that checks it.
    """
    if certificate.method == "enumeration" and certificate.scans == ("sequential",):
        return of_letters(certificate.dtype, certificate.tested_layers)
    return Coverage(certificate.dtype, certificate.scans, EVERY, None, (), certificate.tested_layers)


def model_digest(model: LRNN | Recurrence) -> str:
    """Return the SHA-256 of a model's configuration and weights, or of the alphabets and tables of a `Recurrence`.

    >>> from fsa2lrnn import compile_machine, prove_equivalent, zoo
    >>> model = compile_machine(zoo.parity())
    >>> prove_equivalent(model, zoo.parity()).digest == model_digest(model)
    True
    """
    if isinstance(model, Recurrence):
        tensors = dict(_tensors("tables", model.tables)) | dict(_tensors("readout", model.readout))
        return digest(tensors, repr((model.alphabet, model.outputs)))
    try:  # a round trip through JSON makes 1 and 1.0 the same
        config = LRNNConfig.from_json(json.loads(json.dumps(model.config.to_json())))
        text = json.dumps(config.to_json())
    except (UnsupportedFormat, TypeError):  # letters or layers that JSON cannot represent
        text = repr(model.config)
    return digest(model.state_dict(), text)


def _tensors(name: str, part: object) -> Iterator[tuple[str, Tensor]]:
    if is_dataclass(part):
        for field in fields(part):
            yield from _tensors(f"{name}.{field.name}", getattr(part, field.name))
    elif isinstance(part, tuple) and any(map(is_dataclass, part)):
        for i, each in enumerate(part):
            yield from _tensors(f"{name}.{i}", each)
    else:
        yield name, torch.tensor(part)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def proof_json(proof: Proved) -> dict[str, Any]:
    """Return what a proof covers, as a JSON object."""
    covered = {**vars(proof.covers), "covered": str(proof.covers)}
    return {"joint_states": proof.pairs, "digest": proof.digest, **covered}


def certified_length(certificate: Certificate) -> int | str:
    """Return the certified length, "all lengths" where there is no bound."""
    return "all lengths" if certificate.horizon is None else certificate.horizon


def versions() -> dict[str, str]:
    """Return the versions of fsa2lrnn, Python, torch and numpy by name."""
    libraries = {name: version(name) for name in ("torch", "numpy")}
    return {"fsa2lrnn": __version__, "python": platform.python_version(), **libraries}


def environment() -> tuple[str, ...]:
    """Return the versions and settings that fix the order of float sums, one text each: torch, CPU, BLAS, variables."""
    blas = dict(_BLAS.findall(torch.__config__.show()))
    mkl = blas.get("Math Kernel Library")
    return (
        f"torch {torch.__version__}",
        f"CPU capability {torch.backends.cpu.get_cpu_capability()}",
        f"MKL {mkl}" if mkl else f"BLAS {blas.get('BLAS_INFO=', 'unknown')}",
        *([] if torch.backends.mkldnn.enabled else ["oneDNN off"]),
        *sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_SETTINGS)),
    )
