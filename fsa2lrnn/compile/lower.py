"""Lower a `Recurrence` to an `LRNN`, and compile a machine into one (`compile_machine`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from fsa2lrnn.automata.machine import MachineSource
from fsa2lrnn.compile.integer_tables import DenseTables, IndexTables, ReluGate
from fsa2lrnn.compile.recurrence import (
    DENSE_MEMORY,
    DenseReadout,
    Form,
    Layout,
    Recurrence,
    StateReadout,
    compile_recurrence,
)
from fsa2lrnn.compile.stack import GatedStack
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.gate import Values, look_up
from fsa2lrnn.nn.layers import BlockLayerConfig, IndexLayerConfig
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.normalise import paper_rule_scale

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""The floating-point types that machines are compiled into."""


def compile_machine(
    machine: MachineSource,
    form: Form = "onehot",
    max_block: int | None = None,
    token_shift: bool = True,
    dtype: torch.dtype = torch.float32,
    layout: Layout = "auto",
    normalisation: str = "clip",
    p: float = 1.2,
    dense_memory: int = DENSE_MEMORY,
) -> LRNN:
    """Return an LRNN with exact weights that computes `machine` on words of every length (T1, §6 of docs/theory.md).

    Args:
        machine: any complete Moore machine, or its source: "regex:(ab)*", "task:parity", a file.
        form: "onehot", a single layer of one-hot blocks; "cascade", layers of small blocks whose gates read the states
            below; "auto", the cheaper of the two (`choice.choose` gives the reason).
        max_block: the largest block allowed; if None, the one-hot form uses as large blocks as it needs, and a cascade
            splits its components down to 8 states, which a fibre code may increase.
        token_shift: whether a layer may also read its previous input; at the first letter, the previous input consists
            of the initial states of the layers below. Cascades use it if they need it, and without it their blocks may
            be larger. The one-hot form never needs it.
        dtype: float64, float32, bfloat16 or float16; the result is exact in each.
        layout: "dense" weights, an "index" table of the same linear map, or "auto": dense if blocks have at most 64
            states and the weights fit into `dense_memory`.
        normalisation: the column rule of the model, "clip" or "none", for forms without resets and scalar channels also
            "onehot"; blocks under "paper" cannot have one-hot columns. An index layout ignores it.
        p: the order of the column norm.
        dense_memory: the bytes that dense weights (float32) may take.

    Returns:
        An `LRNN` of the class that is trained, its weights set. An index layout has no weights to train.

    Raises:
        NotExpressible: if blocks of at most `max_block` do not suffice, for dense weights under the rule "paper", or
            for resets under "onehot".
        NotExact: if a sum in a cascade's gates could exceed 256, beyond which bfloat16 rounds, whatever `dtype` is.
        BudgetExceeded: if dense weights are requested and do not fit.
        UnsupportedFormat: for an unknown form, layout, dtype or normalisation; for layout "index" with form "cascade";
            or unless 1 ≤ p < ∞.

    >>> model = compile_machine("regex:(ab)*")
    >>> model.transduce("aba"), model.layers[0].block_sizes
    ([False, True, False], (3,))
    >>> from fsa2lrnn.automata import zoo
    >>> model = compile_machine(zoo.mod_arith(5, "eager"), form="cascade", token_shift=False)
    >>> model.transduce("1+2-3*4")[-1], [layer.block_sizes for layer in model.layers]
    (1, [(1, 1), (1, 4), (5,)])
    """
    recurrence = compile_recurrence(machine, form, max_block, token_shift, layout, dense_memory)
    return lower(recurrence, dtype, normalisation, p)


def lower(
    recurrence: Recurrence, dtype: torch.dtype = torch.float32, normalisation: str = "clip", p: float = 1.2
) -> LRNN:
    """Return the network whose weights are the tables of a recurrence; other arguments as for `compile_machine`.

    Raises `UnsupportedFormat`, `NotExpressible` and `NotExact` as `compile_machine` does.

    >>> lower(compile_recurrence("regex:(ab)*")).transduce("aba")
    [False, True, False]
    """
    if dtype not in DTYPES:
        raise UnsupportedFormat(f"dtype {dtype} is not offered: choose one of {', '.join(map(str, DTYPES))}")
    tables, readout = recurrence.tables, recurrence.readout
    with torch.no_grad():
        if isinstance(tables, IndexTables) and isinstance(readout, StateReadout):
            return _lower_index(recurrence, tables, readout, normalisation, p).to(dtype)
        if not isinstance(tables, IndexTables) and isinstance(readout, DenseReadout):
            if normalisation == "paper":
                raise NotExpressible(_why_not_paper_rule(max(tables.block_sizes), p))
            if isinstance(tables, DenseTables):
                return _lower_dense(recurrence, tables, readout, normalisation, p).to(dtype)
            return _lower_stack(recurrence, tables, readout, dtype, normalisation, p)
    raise UnsupportedFormat(f"no network for {type(tables).__name__} with {type(readout).__name__}")


def _lower_dense(
    recurrence: Recurrence, layer: DenseTables, readout: DenseReadout, normalisation: str, p: float
) -> LRNN:
    """Return the network of a single layer.

    Cells have one-hot embeddings e_c, and relu(I e_c) selects column c of a gate's second matrix, which holds A[c] or
    v[c].
    """
    n_cells = len(layer.A)
    model = LRNN(
        LRNNConfig(
            alphabet=recurrence.alphabet,
            outputs=recurrence.outputs,
            layers=(BlockLayerConfig(layer.block_sizes, transition_hidden=n_cells, value_hidden=n_cells),),
            embedding_dim=n_cells,
            readout_hidden=len(readout.W1),
            normalisation=normalisation,
            p=p,
        )
    )
    tables = {"transition": look_up(torch.tensor(layer.A))}
    if normalisation == "onehot":
        _check_maps(bool(layer.v.any()))
    else:
        tables["value"] = look_up(torch.tensor(layer.v))
    model.write(torch.eye(n_cells)[torch.tensor(layer.cell)], [(torch.tensor(layer.x0), tables)], values(readout))
    return model


def _lower_stack(
    recurrence: Recurrence, stack: GatedStack, readout: DenseReadout, dtype: torch.dtype, normalisation: str, p: float
) -> LRNN:
    """Return the network of a stack, with the stack's own gates.

    With connection "concat" and one-hot embeddings of cells, the layers have the same inputs as these gates.
    """
    gates: dict[str, ReluGate] = {"readout": readout}
    is_hard = normalisation == "onehot"
    if is_hard:
        _check_maps(any(layer.value.W2.any() or layer.value.b2.any() for layer in stack.layers))
    for i, layer in enumerate(stack.layers):
        gates |= {f"layers.{i}.transition": layer.transition, f"layers.{i}.value": layer.value}
    for name, gate in gates.items():
        _check_exact(name, gate, _one_hot_parts(stack, name), dtype)
    config = LRNNConfig(
        alphabet=recurrence.alphabet,
        outputs=recurrence.outputs,
        layers=tuple(
            # A gate without hidden units is constant; it gets one unit of zero weights.
            BlockLayerConfig(layer.block_sizes, max(1, layer.transition.n_units), max(1, layer.value.n_units))
            for layer in stack.layers
        ),
        embedding_dim=stack.n_cells,
        readout_hidden=max(1, readout.n_units),
        normalisation=normalisation,
        p=p,
        connection="concat",
        token_shift=stack.token_shift,
    )
    model = LRNN(config).to(dtype)
    model.write(
        torch.eye(stack.n_cells)[torch.tensor(stack.cell)],
        [
            (
                torch.tensor(layer.x0),
                {"transition": values(layer.transition)} | ({} if is_hard else {"value": values(layer.value)}),
            )
            for layer in stack.layers
        ],
        values(readout),
    )
    return model


def _check_maps(has_resets: bool) -> None:
    if has_resets:
        raise NotExpressible(
            "under the column rule 'onehot' every block moves by one-hot columns and v = 0, but this form has resets "
            "or channels: compile with form='onehot', or with normalisation='clip' or 'none'"
        )


def values(gate: ReluGate) -> Values:
    """Return the weights of an integer gate as tensors by name, the argument of `Gate.set`."""
    # Without units the network's gate keeps its one unit with zero weights, and only the bias is written.
    of_units = {"W1": gate.W1, "b1": gate.b1, "W2": gate.W2} if gate.n_units else {}
    return {name: torch.tensor(part) for name, part in {**of_units, "b2": gate.b2}.items()}


def _one_hot_parts(stack: GatedStack, name: str) -> list[np.ndarray]:
    """Return groups of columns of a gate's input in each of which at most one is 1: cells and blocks, also shifted.

    `_check_exact` bounds sums by one column of each group.
    """
    cells, lower, offset = [np.arange(stack.n_cells)], list[np.ndarray](), stack.n_cells
    n_below = len(stack.layers) if name == "readout" else int(name.split(".")[1])
    for layer in stack.layers[:n_below]:
        b = max(layer.block_sizes)
        lower += [offset + h * b + np.arange(size) for h, size in enumerate(layer.block_sizes)]
        offset += layer.width
    if name == "readout":
        return [part - stack.n_cells for part in lower]
    return [*cells, *lower, *(part + offset for part in cells + lower if stack.token_shift)]


def _check_exact(name: str, gate: ReluGate, parts: list[np.ndarray], dtype: torch.dtype) -> None:
    """Raise `NotExact` if a sum, in any order, could leave the range in which `dtype` holds every integer.

    The bound adds the absolute values of all summands of a unit, with at most one column of each part: cells and block
    states are one-hot, and scalar channels are 0 or 1.
    """
    limit = 2 / torch.finfo(dtype).eps  # 2^53, 2^24, 2^8 or 2^11
    W1, b1, W2, b2 = gate.weights
    sums = np.abs(b1) + sum(np.abs(W1[:, part]).max(1) for part in parts)
    _check_sums(name, "hidden unit", sums, limit, dtype)
    _check_sums(name, "entry", np.abs(W2).max(1, initial=0) + np.abs(b2), limit, dtype)
    # At most one feature of each part is 1, or none, so a unit's largest value is the bias plus each part's largest
    # weight.
    highest = {i: W1[:, part].max(1, initial=0) for i, part in enumerate(parts)}
    total = b1 + sum(highest.values())
    sums = np.abs(W2) @ np.maximum(total, 0) + np.abs(b2)
    if (sums > limit).any():
        # Units that read different columns of one part are never active together, which tightens the bound.
        for i, part in enumerate(parts):
            alone = np.pad(W1[:, part], ((0, 0), (0, 1)))  # one column of the part is 1, or none is
            fires = np.maximum((total - highest[i])[:, None] + alone, 0)
            sums = np.minimum(sums, (np.abs(W2) @ fires).max(1) + np.abs(b2))
    _check_sums(name, "entry", sums, limit, dtype)


def _check_sums(name: str, what: str, sums: np.ndarray, limit: float, dtype: torch.dtype) -> None:
    if (wrong := np.flatnonzero(sums > limit)).size:
        i, kind = int(wrong[0]), str(dtype).removeprefix("torch.")
        raise NotExact(
            f"{what} {i} of {name} adds up weights of {int(sums[i]):,} in all, but {kind} holds every integer only to "
            f"{int(limit):,}: choose a wider dtype"
        )


def _lower_index(
    recurrence: Recurrence, layer: IndexTables, readout: StateReadout, normalisation: str, p: float
) -> LRNN:
    """Return the LRNN of tables whose state is a number: one gather per step instead of a matrix product."""
    n_maps, n_states = layer.next_state.shape
    config = LRNNConfig(recurrence.alphabet, recurrence.outputs, (IndexLayerConfig(n_states, n_maps),))
    replace(config, normalisation=normalisation, p=p)  # checks both, although an index table has no columns
    model = LRNN(config)
    model.load_state_dict(
        {
            "embedding.cell": torch.tensor(layer.cell),
            "layers.0.next_state": torch.tensor(layer.next_state),
            "layers.0.start": torch.tensor(layer.start),
            "readout.output": torch.tensor(readout.output),
            "readout.unit": torch.ones(()),
        }
    )
    return model


def _why_not_paper_rule(b: int, p: float) -> str:
    """Return the message why the paper's column rule cannot hold one-hot blocks of size b at p-norm p."""
    if b == 1:
        return (
            "the column rule paper centres a block of size 1 to 0 and divides 0 by 0: "
            "compile with normalisation='clip' (the paper's Eq. 6)"
        )
    return (
        "the column rule paper (centre each column, divide the block by its largest column "
        f"{p}-norm) cannot hold one-hot columns: at block size {b} a permutation is scaled by "
        f"{paper_rule_scale(b, p):.4f} a step, so states fade or grow with time, and a block of zeros gives 0/0: "
        "compile with normalisation='clip' (the paper's Eq. 6) or 'none'"
    )
