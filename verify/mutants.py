"""Mutants: models, tables, scans and column rules with one fault each, which the checks of this library must reject.

A function that takes a model returns a copy of it with one fault, and raises `UnsupportedFormat` if the model has no
place for that fault. Letters of one cell share their weights, so that a fault in the weights of one is a fault in all.
A function that takes a scan or a schedule returns a wrong one of the same signature; only `twice` returns a correct
one, whose fault is twice the work. A scan maps A (B, T, H, b, b), v (B, T, H, b) and x₀ (B, H, b) to the states (B, T,
H, b); broken scans run on ring tensors too (`verify.free`). A function whose name ends in `_rule` is itself a wrong
column rule, with the arguments of `normalise`: blocks A (…, b, b), the name of the rule, and the order p of the norm.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from fsa2lrnn.compile.integer_tables import DenseTables
from fsa2lrnn.compile.recurrence import Recurrence
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layers import BlockLayer, IndexLayer, Layer
from fsa2lrnn.nn.model import LRNN, State
from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.symbols import encode

_NO_GATES = "an index table has neither gates nor heads to break: use a dense model"


def flip_transition(model: LRNN, letter: Hashable, state: int, target: int, head: int = 0) -> LRNN:
    """Return the model with a wrong transition: the letter leads `state` to `target` in the block of one head."""
    broken, cell = _open(model, letter)
    layer = broken.recurrences[0]
    if isinstance(layer, IndexLayer):
        layer.next_state[cell, state] = target
        return broken
    size = layer.block_sizes[head]
    rows = _block(layer, cell, head)[:size, :size].argmax(0)
    rows[state] = target
    layer.set_map(cell, head, rows)
    return broken


def transpose_block(model: LRNN, letter: Hashable, head: int = 0) -> LRNN:
    """Return the model with the letter's block transposed; the model must be dense."""
    broken, cell = _open(model, letter)
    block = _block(broken.recurrences[0], cell, head)
    block.copy_(block.T.clone())
    return broken


def drop_letter(model: LRNN, letter: Hashable) -> LRNN:
    """Return the model with the identity as the letter's transition."""
    broken, cell = _open(model, letter)
    layer = broken.recurrences[0]
    for head, size in enumerate(layer.block_sizes):
        layer.set_map(cell, head, torch.arange(size))
    return broken


def swap_outputs(model: LRNN, first: int, second: int) -> LRNN:
    """Return the model with output numbers `first` and `second` swapped in the read-out."""
    broken = deepcopy(model)
    if isinstance(broken.readout, Gate):
        for part in (broken.readout.weights.W2.detach(), broken.readout.weights.b2.detach()):
            part[[first, second]] = part[[second, first]].clone()
    else:
        output = broken.readout.get_buffer("output")
        is_first, is_second = output == first, output == second
        output[is_first], output[is_second] = second, first
    return broken


def wrong_gate_weight(model: LRNN, layer: int, unit: int, column: int, gate: str = "transition") -> LRNN:
    """Return the model with one weight of a layer's gate off by one: input `column` of hidden unit `unit`."""
    broken = deepcopy(model)
    gates = dict(broken.recurrences[layer].gates)
    if gate not in gates:
        raise UnsupportedFormat(
            f"gate {gate!r} of layer {layer}: it has the gates {', '.join(gates)}, break one of those"
            if gates
            else _NO_GATES
        )
    gates[gate].weights.W1.detach()[unit, column] += 1
    return broken


def shift_by_zeros(model: LRNN) -> LRNN:
    """Return the model with zeros as the shifted input at k = 1, in place of the input at x₀.

    Its class is a subclass of `LRNN`, which verifiers refuse: use `falsify`.
    """
    if not model.config.token_shift:
        raise UnsupportedFormat("this model has no token shift, so there is nothing to be shown at k = 1")
    broken = _ShiftsInZeros(model.config).to(model.device, model.dtype)
    broken.load_state_dict(model.state_dict())
    return broken


class _ShiftsInZeros(LRNN):
    def initial_state(self, batch: int = 1) -> State:
        state = super().initial_state(batch)
        return tuple(part._replace(u=torch.zeros_like(part.u)) for part in state if part.u is not None)


def swap_heads(model: LRNN, layer: int, first: int, second: int) -> LRNN:
    """Return the model with two blocks of a layer swapped, but not the weights that read their states."""
    broken = deepcopy(model)
    changed = broken.recurrences[layer]
    sizes = changed.block_sizes
    if isinstance(changed, IndexLayer):
        raise UnsupportedFormat(_NO_GATES)
    if sizes[first] != sizes[second]:
        raise UnsupportedFormat(f"heads {first} and {second} have blocks of sizes {sizes}: take equal ones")
    of_gates = [part for _, gate in changed.gates for part in (gate.weights.W2, gate.weights.b2)]
    for part in [changed.get_parameter("x0").detach(), *(weight.detach() for weight in of_gates)]:
        heads = part.view(len(sizes), -1)
        heads[[first, second]] = heads[[second, first]].clone()
    return broken


def _block(layer: Layer, cell: int, head: int) -> Tensor:
    """Return the weights of the block of one head that an input e_cell selects, (b, b), a view."""
    if not isinstance(layer, BlockLayer):
        raise UnsupportedFormat(f"{type(layer).__name__} has no blocks, nothing to transpose: use a dense model")
    n_heads, b = layer.mask.shape
    return layer.transition.weights.W2.detach().view(n_heads, b, b, -1)[head, :, :, cell]


def reset_for_map(recurrence: Recurrence) -> Recurrence:
    """Return the recurrence with a reset (A = 0, v one-hot) as the first head of the first cell.

    Raises `UnsupportedFormat` for an index table.
    """
    tables = recurrence.tables
    if not isinstance(tables, DenseTables):
        raise UnsupportedFormat("an index table holds maps only, no place for a reset: use a dense layout")
    A, v = tables.A.copy(), tables.v.copy()
    A[0, 0], v[0, 0] = 0, tables.x0[0]
    return replace(recurrence, tables=replace(tables, A=A, v=v))


Scan = Callable[[Any, Any, Any], Any]


def early_transitions(scan: Scan) -> Scan:
    """Return a scan that uses A_{k+1} in place of A_k, and A_1 in place of A_T."""
    return lambda A, v, x0: scan(torch.cat([A[:, 1:], A[:, :1]], dim=1), v, x0)


def forgetful(scan: Scan) -> Scan:
    """Return a scan that uses v_1 in place of the initial state."""
    return lambda A, v, x0: scan(A, v, v[:, 0] if v.shape[1] else x0)


def wrong_at(scan: Scan, length: int) -> Scan:
    """Return a scan that is correct at every length T but one, where x_T is replaced by x_{T−1}."""

    def broken(A: Any, v: Any, x0: Any) -> Any:
        x = scan(A, v, x0)
        return x if v.shape[1] != length else torch.cat([x[:, :-1], x[:, -2:-1]], dim=1)

    return broken


def twice(scan: Scan) -> Scan:
    """Return a correct scan that does its work twice."""

    def wasteful(A: Any, v: Any, x0: Any) -> Any:
        scan(A, v, x0)
        return scan(A, v, x0)

    return wasteful


def idle(scan: Scan) -> Scan:  # noqa: ARG001 - broken so far that nothing of it is left
    """Return a scan that computes nothing and returns v as the states."""
    return lambda A, v, x0: v  # noqa: ARG005 - the signature of a scan


def swapped_products(products: Any) -> tuple[Any, Any]:
    """Return the result of `fsa2lrnn.nn.scans.cpu.spt` with the factors of each product in the wrong order."""
    used, remaining = products[:, ::2], products[:, 1::2]
    return used, torch.cat([remaining, remaining[:, :, -1:] @ used[:, 1:]], dim=2)


def swapped_names(schedule: Callable[[int], list[list[list[str]]]]) -> Callable[[int], list[list[list[str]]]]:
    """Return a schedule that names each product's factors from the earliest to the latest."""

    def turned(name: str) -> str:
        return "".join(f"A{k}" for k in reversed(name.split("A")[1:]))

    return lambda length: [[[turned(name) for name in group] for group in used] for used in schedule(length)]


def shrinking_rule(A: Tensor, rule: str, p: float) -> Tensor:
    """Return the result of `normalise` with every column 1 % too short."""
    return 0.99 * normalise(A, rule, p)


def unclipped_rule(A: Tensor, rule: str, p: float) -> Tensor:
    """Return the result of `normalise`, except that the rule "clip" does nothing."""
    return A if rule == "clip" else normalise(A, rule, p)


def uncentred_rule(A: Tensor, rule: str, p: float) -> Tensor:
    """Return the result of `normalise` with the rule "clip" in place of "paper"."""
    return normalise(A, "clip" if rule == "paper" else rule, p)


def _open(model: LRNN, letter: Hashable) -> tuple[LRNN, int]:
    token = int(encode([letter], model.alphabet)[0])
    broken = deepcopy(model)
    if broken.config.reads_letters:
        return broken, int(broken.embedding(torch.tensor([[token]])))
    row = broken.embedding.get_parameter("weight").detach()[token]
    if len(broken.layers) != 1 or not (row.max() == 1 and row.abs().sum() == 1):
        raise UnsupportedFormat("this is not a compiled one-layer model: its embedding is not one-hot in cells")
    return broken, int(row.argmax())
