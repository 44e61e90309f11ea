"""Decide whether the paper's own layer, blocks of bounded size, represents a machine: one-hot (T1) or real (T30)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.compile.recurrence import Recurrence
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.families.family_answers import CertifiedAnswer, FamilyAnswer, Unknown
from fsa2lrnn.families.recheck import RejectedCertificate


@dataclass(frozen=True)
class BlockWitness(FamilyAnswer):
    """A witness for `block(n)`: the compiled recurrence of one layer of one-hot blocks of at most n states."""

    answer: ClassVar[str] = "yes"
    recurrence: Recurrence

    @property
    def dimension(self) -> int:
        return sum(self.recurrence.tables.block_sizes)

    def check(self) -> str:
        """Check that the tables follow δ, and return the claim; raise `RejectedCertificate` if they do not."""
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
                    raise RejectedCertificate(
                        f"state {q} under letter {a} does not lead to the vector of state {target}"
                    )
        if len({tuple(x.tolist()) for x in vectors.values()}) != machine.n_states:
            raise RejectedCertificate("two states have the same vector")
        return f"representable: blocks of sizes {self.recurrence.tables.block_sizes} represent this machine"

    def explain(self) -> str:
        return f"One layer of one-hot blocks of sizes {', '.join(map(str, self.recurrence.tables.block_sizes))}."


def blocks_of_size(machine: MooreMachine, size: int) -> BlockWitness | CertifiedAnswer | Unknown:
    """Decide whether a layer of real blocks of at most `size` states represents a minimal machine.

    One-hot blocks are tried first.
    """
    from fsa2lrnn.families.block_sizes.answers import real_blocks

    family = f"block({size})"
    try:
        return BlockWitness(machine, family, compile_recurrence(machine, max_block=size))
    except NotExpressible:
        pass
    return real_blocks(machine, family, size)
