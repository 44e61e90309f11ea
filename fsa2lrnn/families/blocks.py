"""One-hot blocks of bounded size: the paper's own layer, as far as one layer of it goes (T1)."""

from __future__ import annotations

from dataclasses import dataclass

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.families.recheck import Rejected
from fsa2lrnn.families.verdicts import Unknown
from fsa2lrnn.recurrence import Recurrence


@dataclass(frozen=True)
class BlockWitness:
    """The compiled recurrence of one layer, its blocks no larger than the family allows."""

    machine: MooreMachine
    family: str
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


def one_hot_blocks(machine: MooreMachine, size: int) -> BlockWitness | Unknown:
    """A layer of one-hot blocks of at most `size` states, if the machine is that small or a visible direct product."""
    family = f"block({size})"
    try:
        return BlockWitness(machine, family, compile_recurrence(machine, max_block=size))
    except NotExpressible as fault:
        return Unknown(machine, family, f"{fault}; several layers of smaller blocks may do it")
