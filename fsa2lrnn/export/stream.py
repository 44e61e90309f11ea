"""Lay out the stream of a whole model, and write the weights that recognise its content.

The stream has one coordinate per letter, one for each entry of a mark (`plan`), and one per symbol that units write. A
letter is 1,024 in its coordinate and the width H is a power of 4, so that RMSNorm maps a letter alone to exactly √H:
the norm's 1e-6 is less than half an ulp. Next to marks and symbols of its size a letter becomes smaller (`length`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.export.huggingface import PADDING
from fsa2lrnn.export.packages import modeling, transformers
from fsa2lrnn.export.plan import Orbit, StagePlan, Unit

LETTER = 1024.0  # the size of a letter in the stream
KEY = 64.0  # stands for 1 before a SiLU, which does not change it
SATURATED = 512.0  # the logit of a saturated gate
FIRES = 2_048.0  # twice the gate of a unit that fires
MAX_WIDTH = 4_096  # the largest hidden size that is written


@dataclass(frozen=True)
class StreamLayout:
    """The layout of the stream: the first coordinates of the mark of each orbit, and of the symbols of each stage."""

    n_letters: int
    marks: tuple[int, ...]
    symbols: tuple[int, ...]
    width: int


def layout(plan: StagePlan) -> StreamLayout:
    """Return the layout of the stream of a plan. Raises `NotExpressible` beyond the width `MAX_WIDTH`."""
    n = used = len(plan.machine.alphabet)
    marks, symbols = list[int](), list[int]()
    for stage in plan.stages:
        for orbit in stage.orbits:
            marks.append(used)
            used += orbit.marks.shape[1]
        symbols.append(used)
        used += stage.n_symbols
    width = 64
    # H = 64 · 4^i is the square of a power of two, so that √H is exact.
    while width < used:
        width *= 4
    if width > MAX_WIDTH:
        raise NotExpressible(
            f"{n:,} letters, {sum(o.marks.shape[1] for s in plan.stages for o in s.orbits):,} coordinates of marks and "
            f"{sum(s.n_symbols for s in plan.stages):,} symbols need a hidden size of {used:,}, and {MAX_WIDTH:,} is "
            "the largest that is written: give a smaller alphabet or machine"
        )
    return StreamLayout(n, tuple(marks), tuple(symbols), width)


def length(plan: StagePlan, number: int, with_marks: bool = False) -> float:
    """Return the size of a letter after RMSNorm before stage `number`, or `with_marks` before its units.

    It is exactly √H if the stream holds only the letter. Marks and symbols are assumed to have the size of a letter.
    """
    # The letter, and for each earlier stage a mark per orbit and one symbol.
    held = 1 + sum(len(stage.orbits) + 1 for stage in plan.stages[:number])
    return math.sqrt(layout(plan).width / (held + (len(plan.stages[number].orbits) if with_marks else 0)))


def gates(plan: StagePlan, number: int, r: float | None = None) -> np.ndarray:
    """Return weights (n, H) of the gates of a stage's n units: above `FIRES`/3 if a unit fires, else below −`FIRES`/3.

    `r` is the size of a letter after RMSNorm if it is not `length`.
    """
    where, stage = layout(plan), plan.stages[number]
    orbits = [orbit for s in plan.stages[: number + 1] for orbit in s.orbits]
    scale = FIRES / (length(plan, number, with_marks=True) if r is None else r)
    return scale * np.array([_match(unit, orbits, where) for unit in stage.units])


def write(parameter: torch.Tensor, values: np.ndarray) -> None:
    """Write an array into the first rows and columns of a parameter."""
    with torch.no_grad():
        parameter[tuple(slice(0, size) for size in values.shape)] = torch.from_numpy(values).to(parameter.dtype)


def blank(model: nn.Module) -> None:
    """Set every parameter of a model to 0."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()


@transformers()
def blank_model(
    kind: str, prefix: str, plan: StagePlan, dtype: torch.dtype, symbol: float = LETTER, config: str = "Config",
    **settings: Any,
) -> Any:  # fmt: skip
    """Return a whole model of transformers, in evaluation mode, with weights in the embedding and the read-out only.

    Args:
        kind: the name of the architecture's module, such as "mamba2".
        prefix: the prefix of its class names.
        plan: the plan, which determines the sizes of the vocabulary and the stream.
        dtype: the dtype of the weights.
        symbol: the size of a symbol in the stream.
        config: the name of the configuration class after the prefix.
        settings: other entries of the configuration.
    """
    code, where = modeling(kind), layout(plan)
    made = getattr(code, f"{prefix}{config}")(
        vocab_size=where.n_letters + len(plan.outputs) + PADDING,
        hidden_size=where.width,
        tie_word_embeddings=False,
        **settings,
    )
    model = getattr(code, f"{prefix}ForCausalLM")(made).to(dtype).eval()
    blank(model)
    write_around(model.get_input_embeddings(), model.lm_head, plan, symbol)
    return model


def n_units(plan: StagePlan) -> int:
    """Return the largest number of units of a stage, or the next multiple of 8.

    Rows of experts must have a multiple of 16 bytes where torch multiplies them in groups.
    """
    return -(-max(len(stage.units) for stage in plan.stages) // 8) * 8


def write_experts(router: torch.Tensor, experts: Any, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """Write the same units into every expert, and a router that sends each letter to two of them.

    Their scores are equal and those of the others negligible, so that the weights of the two are ½ exactly.
    """
    letters, E = np.flatnonzero(up[0]), len(router)
    write(router, ((np.arange(E)[:, None] - letters) % E < 2) * SATURATED * up[0, letters])
    for e in range(E):
        if hasattr(experts, "gate_up_proj"):
            write(experts.gate_up_proj[e], gate)
            write(experts.gate_up_proj[e, experts.intermediate_dim :], up)
        else:  # without a gate
            write(experts.up_proj[e], gate)
        write(experts.down_proj[e], down)


def stage_parts(plan: StagePlan, number: int) -> tuple[np.ndarray, int]:
    """Return the coordinates of the symbols that stage `number` reads, and the number of its first orbit."""
    where = layout(plan)
    n = where.n_letters if number == 0 else plan.stages[number - 1].n_symbols
    at = np.arange(n) + (0 if number == 0 else where.symbols[number - 1])
    return at, sum(len(stage.orbits) for stage in plan.stages[:number])


def write_around(embedding: nn.Embedding, head: nn.Linear, plan: StagePlan, symbol: float = LETTER) -> None:
    """Write the letters into an embedding, and into a read-out the rows that read the last stage's symbols.

    `symbol` is the size of a symbol in the stream.
    """
    where = layout(plan)
    with torch.no_grad():
        for a in range(where.n_letters):
            embedding.weight[a, a] = LETTER
        for j in range(len(plan.outputs)):
            head.weight[where.n_letters + j, where.symbols[-1] + j] = LETTER / symbol


def _match(unit: Unit, orbits: list[Orbit], where: StreamLayout) -> np.ndarray:
    """Return weights (H,) whose product with the stream divided by `LETTER` is ½ if the unit fires, else at most −½.

    The product is ½ plus one term for each condition of the unit, which is 0 if the condition holds and at most −1
    otherwise.
    """
    row, constant = np.zeros(where.width), 0.5
    if unit.letter is not None:
        row[unit.letter] += 1
        constant -= 1
    for orbit, mark, at in zip(orbits, unit.marks, where.marks, strict=False):
        if mark is None:
            continue
        size = orbit.marks.shape[1]
        if orbit.marks[mark].any():
            # With the right mark d this term and the constant give d·d − 1 = 0, with another one at most −gap / gap =
            # −1.
            row[at : at + size] += orbit.marks[mark] / orbit.gap
            constant -= 1 / orbit.gap
        else:
            row[at : at + size] -= orbit.head.towards / orbit.gap
    # Exactly one letter stands in the stream, so that a constant is a weight on every letter.
    row[: where.n_letters] += constant
    return row
