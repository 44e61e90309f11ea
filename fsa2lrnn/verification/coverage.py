"""Which model and which runs a verdict is about: what the verifiers name, and the table of docs/coverage.md.

There are three cases. Where states are one-hot and rounding changes no choice, every schedule computes them, and where
it changes no output either, the same outputs (T53 of docs/theory.md). Where steps multiply and add without rounding,
that is so for schedules that make x_k of x_{k-1}, with margins that exceed what the read-out may be off by (T26, T28).
Else what was computed holds for calls like those that computed it, in an environment that adds up in the same order.
No case covers `torch.compile`, whose code rounds neither in these places nor to these formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.config import LRNNConfig
from fsa2lrnn.lrnn.layer_checks import user_layers
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.scans import METHODS
from fsa2lrnn.lrnn.tensor_file import digest
from fsa2lrnn.recurrence import Recurrence
from fsa2lrnn.verdicts import EVERY, LETTERS, Coverage
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.versions import environment

STEPPING = ("sequential", "fused", "letters")  # scans that make x_k of x_{k-1}, by inner products in some order


def of_integers(_: Recurrence) -> Coverage:
    """Exact tables: integers do not round."""
    return Coverage("int", tuple(METHODS), EVERY, None)


def of_exact(model: LRNN) -> Coverage:
    """A model of which rounding changes nothing that was reached (`judge.exactness`)."""
    return Coverage(_name(model.dtype), model.methods, EVERY, None, tested_layers=user_layers(model))


def of_exact_steps(model: LRNN) -> Coverage:
    """A model whose steps do not round and whose margins bear what the read-out rounds (`judge.stepping`)."""
    return Coverage(_name(model.dtype), STEPPING, EVERY, None, tested_layers=user_layers(model))


def of_letters(arithmetic: str, tested_layers: tuple[str, ...] = ()) -> Coverage:
    """Return the coverage of a model that was stepped a letter at a time, one word alone, in this process."""
    return Coverage(arithmetic, ("sequential",), LETTERS, torch.get_num_threads(), environment(), tested_layers)


def of_certificate(certificate: Certificate) -> Coverage:
    """Return the coverage of a certificate that this process accepts: sets hold for any order of sums.

    An enumeration of a model that rounds is done again by whoever checks it, with their threads, in their environment.
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
    try:  # read back, a configuration is the same whether its numbers were given as 1 or as 1.0
        config = LRNNConfig.from_json(json.loads(json.dumps(model.config.to_json())))
        text = json.dumps(config.to_json())
    except (UnsupportedFormat, TypeError):  # letters or layers that no file holds
        text = repr(model.config)
    return digest(model.state_dict(), text)


def _tensors(name: str, part: Any) -> Iterator[tuple[str, Tensor]]:
    """The numbers of exact tables by the names of their fields."""
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
