"""What a machine's blocks need, in sentences: for `explain` and for people."""

from __future__ import annotations

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families.minimal_block import FIELDS, minimal_block
from fsa2lrnn.families.minimal_block.answer import Field, MinimalBlock
from fsa2lrnn.families.minimal_block.columns import signed_blocks
from fsa2lrnn.families.minimal_block.depth import any_depth
from fsa2lrnn.families.minimal_block.householder import FactorBounds, factor_bounds

BUDGET = 20.0  # seconds for each question


def sentences(machine: MooreMachine, budget: float = BUDGET) -> list[tuple[str, str]]:
    """What is asked and the answer, a line each.

    >>> from fsa2lrnn.automata import zoo
    >>> for question, answer in sentences(zoo.sum_mod(5)):
    ...     print(f"{question}: {answer}")
    one-hot block: 5
    real blocks: 2 (proved), since the functions of the state split no further
    rational blocks, exact in floats: 4 (proved)
    complex blocks: 1 (proved)
    columns of 1-norm at most 1: 5 (by all subgroups)
    any number of layers: 2 over the reals, for Z5
    Householder factors a letter: 2 (proved)
    """
    minimal = minimise(machine)
    answers = {field: minimal_block(minimal, field, budget) for field in FIELDS}
    lines = [
        ("one-hot block", str(minimal.n_states)),
        ("real blocks", f"{_size(answers['R'])}{_because(answers['R'])}"),
        ("rational blocks, exact in floats", _size(answers["Q"])),
        ("complex blocks", _size(answers["C"])),
    ]
    signed = signed_blocks(minimal)
    if signed is not None:
        size = f"{signed.value} (by all subgroups)" if signed.value is not None else f"{signed.lower} to {signed.upper}"
        lines.append(("columns of 1-norm at most 1", f"{size}{_note(signed.note)}"))
    depth = any_depth(minimal)
    size = str(depth.value) if depth.value is not None else f"{depth.lower} to {depth.upper}"
    groups = f", for {', '.join(depth.factors)}" if depth.factors else ", as no word permutes states"
    lines.append(("any number of layers", f"{size} over the reals{groups}{_note(depth.note)}"))
    lines.append(("Householder factors a letter", _factors(factor_bounds(minimal, budget))))
    return lines


def _size(answer: MinimalBlock) -> str:
    if answer.value is not None:
        return f"{answer.value} (proved)"
    return f"{answer.lower} to {answer.upper} (both proved){_note(answer.note)}"


def _because(answer: MinimalBlock) -> str:
    n = answer.machine.n_states
    if answer.value is None or n <= 2:
        return ""
    if answer.value == n - 1:
        return ", since no fewer functions than all are closed under the letters"
    return ", since the functions of the state split no further"


def _factors(bounds: FactorBounds) -> str:
    if bounds.lower is None:
        return "no number of them does (proved)"
    if bounds.upper is None:
        return f"at least {bounds.lower} (proved){_note(bounds.note)}"
    if bounds.lower == bounds.upper:
        return f"{bounds.lower} (proved)"
    return f"{bounds.lower} to {bounds.upper} (both proved)"


def _note(note: str) -> str:
    return f"; {note}" if note else ""


def field_name(field: Field) -> str:
    """The field as people call it."""
    return FIELDS[field]
