"""Names for the components of a cascade, from the fields of a machine's state labels."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.decomposition.congruence import canonical, is_finer, meet


def field_names(machine: MooreMachine, layers: list[list[np.ndarray]]) -> tuple[str, ...]:
    """Return, for each congruence of each layer, the fields of the labels that it determines and lower layers do not.

    Fields have names where the labels are named tuples; elsewhere, and where no field is determined, the name is empty.

    >>> from fsa2lrnn.automata import zoo
    >>> register = zoo.mod_arith(5, "register").minimise()
    >>> term = canonical(np.array([label.term for label in register.labels]))
    >>> field_names(register, [[term], [np.arange(25)]])
    ('term', 'sum')
    """
    fields = _fields(machine)
    names: list[str] = []
    context = np.zeros(machine.n_states, np.int64)
    for layer in layers:
        for congruence in layer:
            refined = meet(context, congruence)
            new = [name for name, field in fields.items() if is_finer(refined, field) and not is_finer(context, field)]
            names.append(" & ".join(new))
        for congruence in layer:
            context = meet(context, congruence)
    return tuple(names)


def field_layers(machine: MooreMachine) -> list[list[np.ndarray]] | None:
    """Return the fields of the labels as layers of congruences, each in the first possible layer, or None.

    The result is None if the labels have no named fields, or if some fields separate states only together with others
    that in turn need them.

    >>> from fsa2lrnn.automata import zoo
    >>> layers = field_layers(zoo.mod_arith(5, "eager").minimise())
    >>> [[int(congruence.max()) + 1 for congruence in layer] for layer in layers]
    [[3], [15], [75]]
    """
    waiting = list(_fields(machine).values())
    context = np.zeros(machine.n_states, np.int64)
    layers: list[list[np.ndarray]] = []
    while context.max() + 1 < machine.n_states:
        joint = [meet(context, field) for field in waiting]
        layer = [refined for refined in joint if refined.max() > context.max() and _is_closed(machine.delta, refined)]
        if not layer:
            return None
        layers.append(layer)
        for refined in layer:
            context = meet(context, refined)
    return layers


def _is_closed(maps: np.ndarray, partition: np.ndarray) -> bool:
    return all(is_finer(partition, canonical(partition[row])) for row in maps)


def _fields(machine: MooreMachine) -> dict[str, np.ndarray]:
    labels = machine.labels or ()
    if not labels or not all(type(label) is type(labels[0]) and hasattr(label, "_fields") for label in labels):
        return {}
    fields: dict[str, np.ndarray] = {}
    for position, name in enumerate(labels[0]._fields):  # type: ignore[attr-defined]
        number: dict[object, int] = {}
        column = [number.setdefault(label[position], len(number)) for label in labels]  # type: ignore[index]
        fields[name] = canonical(np.array(column))
    return fields
