"""A machine as a cascade through the layers of a model: components that reset, or of two states that may be exchanged.

Component i moves at a letter by a map that the letter and components below it choose, as these were before the letter.
So a layer of components is followed by a layer that shows what they held a letter ago, and its units, which see that
and the letter, write what the next components are to do. By Krohn & Rhodes every machine without groups is a cascade of
resets, and with two states that are exchanged come all whose groups are made of Z₂.

Values of later layers are not exact, as norms of the stream are not. What is written then is written anew by each reset
and only kept, or turned in sign, in between, neither of which rounds. At the first letter the components before show
nothing, so that units know it and set every component.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.decomposition.cascade import Cascade, Component
from fsa2lrnn.decomposition.coordinates import assemble
from fsa2lrnn.decomposition.holonomy import holonomy
from fsa2lrnn.decomposition.search import decompose
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.released.plan import MAX_STATES, UNIT, Head, Orbit, Plan, Stage, Unit
from fsa2lrnn.released.registers import letter_ago

_SMALL = 0.25  # SiLU reaches it with either sign
_RESETS = ("reset", "trivial")


def cascaded(machine: MooreMachine, has_reflections: bool) -> Plan | None:
    """A plan of two layers for each of the cascade's but the last; None where no cascade of such components is found.

    >>> from fsa2lrnn.automata import zoo
    >>> cascaded(zoo.dyck(1, 2).minimise(), has_reflections=False).how
    'a cascade of 3 components, in 5 layers'
    """
    for cascade in _cascades(machine):
        if all(c.kind in _RESETS or (has_reflections and c.n_states == 2) for c in cascade.components):
            return _Stages(cascade).plan()
    return None


def _cascades(machine: MooreMachine) -> list[Cascade]:
    found = list[Cascade]()
    for make in (
        lambda: decompose(machine, max_block=2).cascade,
        lambda: assemble(machine, holonomy(machine.delta, machine.start)),
    ):
        try:
            found.append(make())
        except (BudgetExceeded, NotExpressible):
            continue
    return sorted(found, key=lambda cascade: cascade.n_layers)


Maps = tuple[tuple[int, ...], ...]  # what each component of a layer is to do


@dataclass(frozen=True, eq=False)
class _Stages:
    """A cascade on its way to a plan."""

    cascade: Cascade

    def plan(self) -> Plan:
        """Raises `BudgetExceeded` where a layer would need too many units."""
        cascade, stages, n_orbits = self.cascade, list[Stage](), 0
        shown = dict[int, int]()  # the orbit that shows each component
        before = dict[int, int]()  # the orbit that shows a cascade's layer a letter ago
        members = [self._members(layer) for layer in range(cascade.n_layers)]
        joint = dict[int, dict[tuple[int, ...], int]]()  # what the components of a layer are in together, numbered
        symbols: list[Maps] = [tuple(_letter_map(cascade.components[i], a) for i in members[0]) for a in self._letters]
        for layer, inside in enumerate(members):
            orbits = tuple(
                _head([maps[place] for maps in symbols], cascade.components[i], is_first=layer == 0)
                for place, i in enumerate(inside)
            )
            shown |= {i: n_orbits + place for place, i in enumerate(inside)}
            n_orbits += len(orbits)
            if layer == len(members) - 1:
                stages.append(self._last(orbits, shown, n_orbits))
                break
            joint[layer] = {row: j for j, row in enumerate(sorted(set(map(tuple, cascade.states[:, inside].tolist()))))}
            after = self._after
            rows = sorted({tuple(row) for row in cascade.states[after][:, inside].tolist()})
            units = [
                Unit(None, _marks(n_orbits, {shown[i]: q for i, q in zip(inside, row, strict=True)}), joint[layer][row])
                for row in rows
            ]
            stages.append(Stage(orbits, tuple(units), len(joint[layer])))
            before[layer] = n_orbits
            n_orbits += 1
            units, symbols = self._choices(members[layer + 1], members, joint, before, n_orbits)
            stages.append(Stage((letter_ago(len(joint[layer]), 1),), tuple(units), len(symbols)))
        how = f"a cascade of {len(cascade.components)} components, in {len(stages)} layers"
        return Plan(cascade.machine, tuple(stages), how)

    @property
    def _letters(self) -> range:
        return range(len(self.cascade.delta))

    @property
    def _after(self) -> np.ndarray:
        """Numbers of the joint states that some letter leads to."""
        return np.unique(self.cascade.delta)

    def _members(self, layer: int) -> list[int]:
        return [i for i, component in enumerate(self.cascade.components) if component.layer == layer]

    def _choices(
        self,
        inside: list[int],
        members: list[list[int]],
        joint: dict[int, dict[tuple[int, ...], int]],
        before: dict[int, int],
        n_orbits: int,
    ) -> tuple[list[Unit], list[Maps]]:
        """Units that choose the maps of components by the letter and what those below were, and these maps."""
        cascade = self.cascade
        read = {j for i in inside for j in cascade.components[i].reads}
        layers = [layer for layer, there in enumerate(members) if read & set(there)]
        kinds, found = dict[Maps, int](), dict[tuple[int, tuple[int, ...]], int]()
        for a in self._letters:
            rows = [cascade.rows(i, a) for i in inside]
            maps = [cascade.components[i].maps[row] for i, row in zip(inside, rows, strict=True)]
            for j in self._after:
                seen = tuple(1 + joint[layer][tuple(cascade.states[j, members[layer]].tolist())] for layer in layers)
                chosen = tuple(tuple(part[j].tolist()) for part in maps)
                found[a, seen] = kinds.setdefault(chosen, len(kinds))
            starts = [cascade.components[i].start for i in inside]
            first = tuple((int(part[0, start]),) * part.shape[1] for part, start in zip(maps, starts, strict=True))
            found[a, (0,) * len(layers)] = kinds.setdefault(first, len(kinds))
        _check_size(len(found))
        units = [
            Unit(a, _marks(n_orbits, {before[layer]: mark for layer, mark in zip(layers, seen, strict=True)}), kind)
            for (a, seen), kind in found.items()
        ]
        return units, list(kinds)

    def _last(self, orbits: tuple[Orbit, ...], shown: dict[int, int], n_orbits: int) -> Stage:
        """The last components, and units for the machine's outputs."""
        cascade, machine = self.cascade, self.cascade.machine
        outputs = {output: i for i, output in enumerate(dict.fromkeys(machine.outputs))}
        reads = cascade.output_reads
        found = {
            tuple(cascade.states[j, list(reads)].tolist()): outputs[machine.outputs[cascade.image[j]]]
            for j in self._after
        }
        _check_size(len(found))
        units = [
            Unit(None, _marks(n_orbits, {shown[i]: q for i, q in zip(reads, row, strict=True)}), output)
            for row, output in found.items()
        ]
        return Stage(orbits, tuple(units), len(outputs))


def _head(maps: list[tuple[int, ...]], component: Component, is_first: bool) -> Orbit:
    """A head for a component whose map number a is symbol a's; its mark number q is state q.

    In the first layer the start is the zero that S is at first; in later ones a symbol has always been written.
    """
    m, rows = component.n_states, np.array(maps)
    identity, is_constant = np.arange(m), (rows == rows[:, :1]).all(axis=1)
    is_swap = ~is_constant & (rows != identity).any(axis=1)
    betas = np.where(is_swap, 2.0, np.where(is_constant, 1.0, 0.0))
    if is_swap.any() and not is_first:  # two states, as one number of either sign
        of_state = np.array([[-_SMALL], [_SMALL]])
        values = np.where(is_constant[:, None], of_state[rows[:, 0]], 0.0)
    elif is_swap.any():
        of_state = np.where(identity == component.start, 0.0, UNIT)[:, None]
        values = np.where(is_constant[:, None], of_state[rows[:, 0]], np.where(is_swap, UNIT / 2, 0.0)[:, None])
    else:
        others = identity[identity != component.start] if is_first else identity
        of_state = UNIT * (identity[:, None] == others)
        values = np.where(is_constant[:, None], of_state[rows[:, 0]], 0.0)
    n, d_v = values.shape
    head = Head(np.ones((n, 1)), values, np.ones(n), betas, np.ones(1), np.ones(d_v))
    states = tuple(row[None] for row in of_state)
    return Orbit(head, states, rows, np.stack([head.mark(S) for S in states]))


def _letter_map(component: Component, a: int) -> tuple[int, ...]:
    """What letter number a does in a component that reads no other."""
    return tuple(component.maps[int(np.flatnonzero(component.keys[:, 0] == a)[0])].tolist())


def _marks(n_orbits: int, known: dict[int, int]) -> tuple[int | None, ...]:
    return tuple(known.get(i) for i in range(n_orbits))


def _check_size(n_units: int) -> None:
    if n_units > MAX_STATES:
        raise BudgetExceeded(f"a layer of this cascade needs {n_units:,} units, and {MAX_STATES:,} are written at most")
