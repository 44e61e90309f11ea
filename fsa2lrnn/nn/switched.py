"""The tables of a model of one layer over letters, on which `falsify`, `certify` and `repair` operate."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.nn.affine import EPS as EPS
from fsa2lrnn.nn.affine import Readout, SwitchedAffine
from fsa2lrnn.nn.config import adds
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layer_checks import check_layers, same
from fsa2lrnn.nn.layers import name_of
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.network import Network
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers

_SHAPES = ((64, 300), (8, 16))  # words whose logits `as_tables` compares: the model scans them by different methods


def switched(model: Network) -> SwitchedAffine:
    """Return the tables of a model of one layer over letters, in its dtype.

    They are the bits that `model(tokens)` scans if it reads 2|Σ| letters or more at once. For fewer letters the model
    computes A and v by products of other shapes, and for the scans "sequential", "pscan" and "chunked" by another
    method of the column rule. These may round otherwise; `table_error` bounds the difference, and `LRNN.from_affine`
    makes a model without it. The tables of a user-defined layer are first compared with its `forward` on random inputs
    (`check_layers`).

    Raises:
        FalseDeclaration: for tables that differ from what a user-defined layer computes.
        UnsupportedFormat: unless the model has one layer, with tables, without a token shift, and a read-out that reads
            only the state (no residual stream).
    """
    if not (isinstance(model, LRNN) and model.is_switched):
        raise UnsupportedFormat(
            f"the model has {_what_it_has(model)}: only one layer with tables, without token shift, whose states alone "
            "are read out, is a switched affine system"
        )
    check_layers(model)
    layer = model.recurrences[0]
    with torch.no_grad():
        A, v = layer.tables(model.first_inputs())
        x0 = layer.initial_state(1)[0]
        parts: list[Tensor] = list(cast("Gate", model.readout).weights)
        if model.config.layer_norm:
            norm = cast("nn.LayerNorm", model.norms[-1])
            parts += [norm.weight, norm.bias]
        readout = Readout(*(part.detach().clone() for part in parts))
    return SwitchedAffine(A.detach(), v.detach(), x0.detach().clone(), readout, model.alphabet, model.outputs)


def _what_it_has(model: Network) -> str:
    if not isinstance(model, LRNN):
        return "the modules of its own making"
    is_affine = model.recurrences[0].has_tables or len(model.layers) > 1
    kind = f"{len(model.layers)} layers" if is_affine else f"a layer of kind {name_of(model.config.layers[0])}"
    stream = " and a residual stream up to the read-out" if adds(model.config.connection, is_last=True) else ""
    has_ends = model.has_plain_ends or not model.recurrences[0].has_tables
    ends = "" if has_ends else " and an embedding or a read-out that is not a table or a gate"
    return kind + (" and a token shift" if model.config.token_shift else "") + stream + ends


def table_error(model: LRNN) -> tuple[Tensor, Tensor]:
    """Return bounds on the difference of A and v (`switched`) from those of any other evaluation.

    The bounds are float64, (|Σ|, H, b, b) and (|Σ|, H, b). They are zero where no operation rounds in a way that
    depends on the order of summation, and infinite where no bound is known: for numbers near the end of the format's
    range, and for p above 64.

    Raises:
        UnsupportedFormat: as `switched` does, and for a layer that declares no such bound.
    """
    tables, layer = switched(model), model.recurrences[0]
    with torch.no_grad():
        if layer.is_lookup(u := model.first_inputs()):
            return torch.zeros_like(tables.A, dtype=torch.float64), torch.zeros_like(tables.v, dtype=torch.float64)
        A, v = layer.rounded_tables(RoundedNumbers.exact(u))
    return _apart(tables.A, A), _apart(tables.v, v)


def _apart(verified: Tensor, bounds: RoundedNumbers) -> Tensor:
    # The verified table is one evaluation; T27 bounds any other one by its distance from `mid` plus `off`.
    return (bounds.off + (verified.cpu().double() - bounds.mid).abs()) * (1 + 2.0**-30)


def as_tables(model: LRNN) -> LRNN:
    """Return a copy of a model of one layer over letters with lookups as gates.

    Raises `CheckpointError` unless its logits equal those of `model`, bit for bit, on words of random letters.
    """
    copy, drawn = type(model).from_affine(switched(model)), torch.Generator().manual_seed(0)
    with torch.no_grad():
        words = [torch.randint(len(model.alphabet), shape, generator=drawn) for shape in _SHAPES]
        differing = [
            shape for shape, tokens in zip(_SHAPES, words, strict=True) if not same(model(tokens), copy(tokens))
        ]
    if differing:
        raise CheckpointError(
            f"the tables do not give the model's own logits, bit for bit, on (words, letters) = {differing}: keep its "
            "weights"
        )
    return copy
