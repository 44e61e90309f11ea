"""Compile a machine into exact integer tables (`compile_recurrence`), from which `lower` makes a network.

This package does not import torch.
"""

from __future__ import annotations

from typing import Literal, get_args

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.recurrence import Recurrence, onehot_recurrence
from fsa2lrnn.errors import UnsupportedFormat

Form = Literal["onehot", "cascade", "auto"]
Layout = Literal["auto", "dense", "index"]

DENSE_MEMORY = 4 * 2**30  # bytes that dense weights may take before they are refused


def compile_recurrence(
    machine: MooreMachine,
    form: Form = "onehot",
    max_block: int | None = None,
    token_shift: bool = True,
    layout: Layout = "auto",
    dense_memory: int = DENSE_MEMORY,
) -> Recurrence:
    """Return the exact recurrence that computes `machine` on words of every length (T1 and §6 of docs/theory.md).

    Args:
        machine: any complete Moore machine; its minimal machine is compiled.
        form: "onehot", one layer with one block that has the states of the minimal machine, or one block per factor if
            its labels show that it is a direct product; "cascade", layers of small blocks (`fsa2lrnn.decompose`);
            "auto", the cheaper of the two (`choice.choose`, which also gives the reason).
        max_block: the largest block allowed. If None, the one-hot form uses as large blocks as it needs, and a cascade
            splits its components down to 8 states, which a fibre code may increase.
        token_shift: whether a layer may also read the previous states of lower layers; without it a cascade's blocks
            encode the needed information on these in a fibre code (`cascade.refine.fibre_code`).
        layout: of the one-hot form, "dense" matrices, "index" tables of the same linear map, or "auto": dense up to 64
            states per block. A cascade is dense.
        dense_memory: the bytes that the dense weights (float32) of the one-hot form may take.

    Raises:
        NotExpressible: if blocks of at most `max_block` do not suffice.
        NotExact: if a cascade's gates need integers that bfloat16 does not hold.
        BudgetExceeded: if "dense" weights are requested and do not fit.
        UnsupportedFormat: for an unknown form or layout, or an index layout of a cascade.

    >>> r = compile_recurrence(MooreMachine([[0, 1], [1, 0]], [False, True]))
    >>> r.tables.A[1, 0].tolist(), r.transduce([1, 1, 1])
    ([[0, 1], [1, 0]], [True, False, True])
    """
    return compile_with_reason(machine, form, max_block, token_shift, layout, dense_memory)[0]


def compile_with_reason(
    machine: MooreMachine,
    form: Form = "auto",
    max_block: int | None = None,
    token_shift: bool = True,
    layout: Layout = "auto",
    dense_memory: int = DENSE_MEMORY,
) -> tuple[Recurrence, str | None]:
    """Return the result of `compile_recurrence`, and the reason for the chosen form (None unless `form` is "auto").

    Arguments and errors are those of `compile_recurrence`.

    >>> from fsa2lrnn.automata import zoo
    >>> compile_with_reason(zoo.sum_mod(5))[1]
    'one layer: its blocks, of sizes 5, are no larger than 8'
    """
    # The search for cascades takes a quarter of a second to import, which a verifier need not do.
    from fsa2lrnn.compile.choice import best_cascade, choose
    from fsa2lrnn.compile.gated_cascade import stack_recurrence

    for name, value, choices in [("form", form, get_args(Form)), ("layout", layout, get_args(Layout))]:
        if value not in choices:
            raise UnsupportedFormat(f"{name} {value!r} is not known: choose one of {', '.join(choices)}")
    if form == "cascade" and layout == "index":
        raise UnsupportedFormat("layout 'index' holds one large block: a cascade has small ones, leave layout='auto'")
    if form == "cascade":
        return stack_recurrence(best_cascade(machine, max_block, token_shift).cascade), None
    why = None
    if form == "auto" and layout == "index":
        why = "one layer: layout index holds one large block"
    elif form == "auto":
        choice = choose(machine, max_block, token_shift)
        why = choice.why
        if choice.decomposition is not None:
            return stack_recurrence(choice.decomposition.cascade), why
    return onehot_recurrence(minimise(machine), max_block, layout, dense_memory), why
