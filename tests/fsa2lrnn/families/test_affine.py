"""A witness that gives tables runs, whoever wrote it."""

from dataclasses import dataclass

import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.families.verdicts import AffineTables, AffineWitness
from fsa2lrnn.lower.witness import lower_witness
from fsa2lrnn.verification import Proved, Refuted, prove_equivalent


@dataclass(frozen=True)
class OneHot(AffineWitness):
    """States at the unit vectors, each letter its own matrix."""

    machine: MooreMachine

    def tables(self):
        delta, n = self.machine.delta, self.machine.n_states
        A = np.zeros((len(delta), 1, n, n))
        for a, step in enumerate(delta):
            A[a, 0, step, np.arange(n)] = 1
        return AffineTables(A, np.zeros((len(delta), 1, n)), np.eye(n)[:, None], (n,))


class Swapped(OneHot):
    """With the vectors of two letters in each other's place."""

    def tables(self):
        tables = super().tables()
        return AffineTables(tables.A[::-1].copy(), tables.v, tables.x, tables.block_sizes)


def test_tables_become_a_network_that_is_proved_equal():
    machine = zoo.group("S3")
    model = lower_witness(OneHot(machine))
    assert model.layers[0].block_sizes == (6,)
    assert isinstance(prove_equivalent(model, machine), Proved)
    assert isinstance(prove_equivalent(lower_witness(Swapped(machine)), machine), Refuted)


def test_a_witness_without_tables_is_not_lowered():
    with pytest.raises(NotImplementedError):
        lower_witness(AffineWitness())
