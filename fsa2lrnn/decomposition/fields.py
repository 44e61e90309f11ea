"""The cascade that a machine's labels describe: a component for each of their fields."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.decomposition.cascade import Cascade
from fsa2lrnn.decomposition.coordinates import Cover, assemble
from fsa2lrnn.decomposition.names import field_layers, field_names
from fsa2lrnn.decomposition.refine import fibre_code
from fsa2lrnn.decomposition.split import congruence_coordinates
from fsa2lrnn.errors import NotExpressible


def by_fields(machine: MooreMachine) -> Cascade:
    """The cascade without token shift that has a component for each field of a minimal machine's labels, each in the
    first layer that it can be in; its start is state 0.

    Raises:
        NotExpressible: if the labels have no fields that can be put in layers.

    >>> from fsa2lrnn.automata import zoo
    >>> by_fields(zoo.mod_arith(3, "eager").minimise()).block_sizes
    ((1, 1), (3,), (3,))
    """
    layers = field_layers(machine)
    if layers is None:
        raise NotExpressible("the labels of this machine have no fields that stand in layers: use decompose(machine)")
    values, levels = congruence_coordinates(machine.delta, layers)
    names = field_names(machine, layers)
    shifted = assemble(machine, Cover(machine.delta, np.arange(machine.n_states), values, levels, names))
    return assemble(machine, fibre_code(shifted), reads_now=True)
