"""Blocks of bounded size: the paper's own layer, one-hot (T1) or with any real entries (T30 of docs/theory.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.block_size import MinimalBlock, StateBlock, minimal_block
from fsa2lrnn.families.affine import AffineTables, AffineWitness
from fsa2lrnn.families.recheck import Rejected
from fsa2lrnn.families.verdicts import Answer, Certified, Unknown, certificate_header
from fsa2lrnn.recurrence import Recurrence

BUDGET = 20.0  # seconds for each field


@dataclass(frozen=True)
class BlockWitness(Answer):
    """The compiled recurrence of one layer, its one-hot blocks no larger than the family allows."""

    answer: ClassVar[str] = "yes"
    recurrence: Recurrence

    @property
    def dimension(self) -> int:
        """The sum of the block sizes."""
        return sum(self.recurrence.tables.block_sizes)

    def check(self) -> str:
        """Replay δ on the tables, which checked that they are one-hot. Raises `Rejected` if they do something else."""
        layer, machine = self.recurrence.tables, self.machine
        vectors = {machine.start: layer.initial()}
        pending = [machine.start]
        for q in pending:
            for a, x in enumerate(layer.step(vectors[q][None])[0]):
                target = int(machine.delta[a, q])
                if target not in vectors:
                    vectors[target] = x
                    pending.append(target)
                if (vectors[target] != x).any():
                    raise Rejected(f"state {q} under letter {a} does not lead to the vector of state {target}")
        if len({tuple(x.tolist()) for x in vectors.values()}) != machine.n_states:
            raise Rejected("two states have the same vector")
        return f"representable: blocks of sizes {self.recurrence.tables.block_sizes} represent this machine"

    def explain(self) -> str:
        """The sizes, in a sentence."""
        return f"One layer of one-hot blocks of sizes {', '.join(map(str, self.recurrence.tables.block_sizes))}."


@dataclass(frozen=True)
class RealBlockWitness(Certified, AffineWitness):
    """Blocks whose entries are not one-hot: functions of the state that letters move affinely, exact.

    Args:
        blocks: none larger than b; with numbers of a real number field where rational ones take more.
    """

    answer: ClassVar[str] = "yes"
    blocks: tuple[StateBlock, ...]

    @property
    def dimension(self) -> int:
        """The sum of the block sizes."""
        return sum(block.real_size for block in self.blocks)

    @property
    def is_exact(self) -> bool:
        """Whether all entries are integers, so that a running module never rounds as long as floats hold them."""
        return all(block.is_rational for block in self.blocks)

    def tables(self) -> AffineTables:
        """The blocks side by side; numbers of a field are rounded."""
        n_letters, n = len(self.machine.alphabet), self.machine.n_states
        sizes = tuple(block.real_size for block in self.blocks)
        b = max(sizes)
        A, v = np.zeros((n_letters, len(sizes), b, b)), np.zeros((n_letters, len(sizes), b))
        x = np.zeros((n, len(sizes), b))
        for h, (k, block) in enumerate(zip(sizes, self.blocks, strict=True)):
            functions, A[:, h, :k, :k], v[:, h, :k] = block.rounded()
            x[:, h, :k] = functions.T
        return AffineTables(A, v, x, sizes)

    def explain(self) -> str:
        """The sizes, in a sentence."""
        numbers = "integers" if self.is_exact else "real numbers, which floats round"
        return f"One layer of blocks of sizes {', '.join(str(block.real_size) for block in self.blocks)}, of {numbers}."

    def to_json(self) -> dict[str, Any]:
        header = certificate_header(self.machine, self.family, "representable")
        return {**header, "field": "R", "blocks": [block.to_json() for block in self.blocks]}


@dataclass(frozen=True)
class BlockImpossibility(Certified):
    """No layer of blocks of this size, with any real entries, represents the machine.

    Args:
        bound: what is known of the least size.
    """

    answer: ClassVar[str] = "no"
    bound: MinimalBlock

    def explain(self) -> str:
        """How large real blocks must be."""
        least = f"at least {self.bound.lower}" if self.bound.value is None else str(self.bound.value)
        return f"Real blocks must have size {least}: smaller ones leave two states with one vector."

    def to_json(self) -> dict[str, Any]:
        """A certificate that `recheck` accepts, of the largest size that does not do."""
        assert self.bound.impossible is not None
        return self.bound.impossible


def blocks_of_size(machine: MooreMachine, size: int) -> BlockWitness | Certified | Unknown:
    """Whether one layer of real blocks of at most `size` represents a minimal machine, one vector a state.

    One-hot blocks are preferred, then integers, then real numbers.
    """
    family = f"block({size})"
    try:
        return BlockWitness(machine, family, compile_recurrence(machine, max_block=size))
    except NotExpressible:
        pass
    real = minimal_block(machine, "R", BUDGET)
    if size < real.lower:
        return BlockImpossibility(machine, family, real)
    rational = minimal_block(machine, "Q", BUDGET)
    for found in (rational, real):
        if size >= found.upper:
            return RealBlockWitness(machine, family, found.blocks)
    return Unknown(machine, family, f"{real.explain()}; several layers of smaller blocks may do it")
