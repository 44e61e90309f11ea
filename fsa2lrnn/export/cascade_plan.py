"""Plan a machine as a cascade through the layers of a model, whose components are registers or move by transpositions.

At each letter, component i moves by a map that the letter and the previous states of the components below determine.
Therefore a layer of components is followed by a layer that holds their states one letter ago; its units read these
states and the letter, and write the symbols that the next components follow. By Krohn & Rhodes every machine without
groups is a cascade of registers; if a layer has reflections, `counters` makes transpositions of other groups too.

If the norm of the stream depends on its content, the values of later layers are not exact. There each reset writes a
register anew, and between resets the register does not change, so that errors do not accumulate. At the first letter
the earlier components show zero, by which units recognise it and write every register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cascade.bound import prime_bound
from fsa2lrnn.cascade.cascade import Cascade, Component
from fsa2lrnn.cascade.coordinates import assemble
from fsa2lrnn.cascade.decomposition import decompose
from fsa2lrnn.cascade.holonomy import holonomy
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.export.plan import UNIT, Orbit, Stage, StageHead, StagePlan, Unit, letter_ago
from fsa2lrnn.export.transpositions import MAX_POINTS, is_register, transposition_heads, with_transpositions


def cascaded(machine: MooreMachine, has_reflections: bool) -> StagePlan | None:
    """Return a plan that runs a machine as a cascade, or None if no cascade of supported components is found.

    Each layer of the cascade but the last takes two layers of the model. Raises `BudgetExceeded` if a layer would need
    more than `MAX_UNITS` units.

    >>> from fsa2lrnn.automata import zoo
    >>> cascaded(zoo.dyck(1, 2).minimise(), has_reflections=False).how
    'a cascade of 3 components, in 5 layers'
    """
    too_large: BudgetExceeded | None = None
    for cascade in _cascades(machine, has_reflections):
        try:
            return _Stages(cascade).plan()
        except BudgetExceeded as fault:
            too_large = too_large or fault
    if too_large is not None:
        raise too_large
    return None


def _cascades(machine: MooreMachine, has_reflections: bool) -> list[Cascade]:
    """Return cascades of supported components, those of fewest layers first.

    With reflections, components of at most `MAX_POINTS` states are replaced by covers that move by transpositions;
    without them every component must be a register (Krohn and Rhodes: exactly for machines without groups).
    """
    largest = max(2, prime_bound(machine).prime) if has_reflections else 2  # some component has as many states
    if largest > MAX_POINTS:
        return []
    cascades = list[Cascade]()
    for make in (
        lambda: decompose(machine, max_block=largest).cascade,
        lambda: assemble(machine, holonomy(machine.delta, machine.start)),
    ):
        try:
            cascade = with_transpositions(make()) if has_reflections else make()
        except (BudgetExceeded, NotExpressible):
            continue
        if cascade is not None and (has_reflections or all(map(is_register, cascade.components))):
            cascades.append(cascade)
    return sorted(cascades, key=lambda cascade: (cascade.n_layers, len(cascade.states)))


MAX_UNITS = 4_000  # the most units of one layer
Maps = tuple[tuple[int, ...], ...]  # the map of each component of a layer


@dataclass(frozen=True, eq=False)
class _Stages:
    cascade: Cascade

    def plan(self) -> StagePlan:
        """Return the plan of the cascade; raise `BudgetExceeded` if a layer would need more than `MAX_UNITS` units."""
        cascade, stages, n_orbits = self.cascade, list[Stage](), 0
        orbits_of = dict[int, range]()  # the orbits of each component
        before = dict[int, int]()  # the orbit of a cascade's layer one letter ago
        members = [self._members(layer) for layer in range(cascade.n_layers)]
        joint = dict[int, dict[tuple[int, ...], int]]()  # the joint states of the components of a layer, numbered
        symbols: list[Maps] = [tuple(_letter_map(cascade.components[i], a) for i in members[0]) for a in self._letters]
        for layer, inside in enumerate(members):
            orbits = list[Orbit]()
            for place, i in enumerate(inside):
                heads = _heads(np.array([maps[place] for maps in symbols]), cascade.components[i], layer == 0)
                orbits_of[i] = range(n_orbits, n_orbits := n_orbits + len(heads))
                orbits += heads
            if layer == len(members) - 1:
                stages.append(self._last(orbits, orbits_of, n_orbits))
                break
            joint[layer] = {row: j for j, row in enumerate(sorted(set(map(tuple, cascade.states[:, inside].tolist()))))}
            after = self._after
            rows = sorted({tuple(row) for row in cascade.states[after][:, inside].tolist()})
            units = [Unit(None, self._marks(n_orbits, orbits_of, inside, row), joint[layer][row]) for row in rows]
            stages.append(Stage(tuple(orbits), tuple(units), len(joint[layer])))
            before[layer] = n_orbits
            n_orbits += 1
            units, symbols = self._choices(members[layer + 1], members, joint, before, n_orbits)
            stages.append(Stage((letter_ago(len(joint[layer]), 1),), tuple(units), len(symbols)))
        how = f"a cascade of {len(cascade.components)} components, in {len(stages)} layers"
        return StagePlan(cascade.machine, tuple(stages), how)

    @property
    def _letters(self) -> range:
        return range(len(self.cascade.delta))

    @property
    def _after(self) -> np.ndarray:
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
        """Return the units that choose the maps of the components `inside`, and the distinct choices.

        A choice depends on the letter and on the states, one letter ago, of the layers that they read. `joint`
        numbers these states by layer, and `before` names the orbit that holds them. Mark 0 there is the first letter.
        """
        cascade = self.cascade
        read = {j for i in inside for j in cascade.components[i].reads}
        layers = [layer for layer, inside_layer in enumerate(members) if read & set(inside_layer)]
        kinds, kind_of = dict[Maps, int](), dict[tuple[int, tuple[int, ...]], int]()
        # States that agree in these layers choose the same maps, so the first state of each class represents it.
        columns = [i for layer in layers for i in members[layer]]
        firsts = np.sort(np.unique(cascade.states[self._after][:, columns], axis=0, return_index=True)[1])
        _check_size(len(firsts))
        after = self._after[firsts]
        for a in self._letters:
            rows = [cascade.rows(i, a) for i in inside]
            maps = [cascade.components[i].maps[row] for i, row in zip(inside, rows, strict=True)]
            for j in after:
                marks = tuple(1 + joint[layer][tuple(cascade.states[j, members[layer]].tolist())] for layer in layers)
                chosen = tuple(tuple(part[j].tolist()) for part in maps)
                kind_of[a, marks] = kinds.setdefault(chosen, len(kinds))
            # At the first letter the earlier components are in state 0 of the joint states, and a register is written
            # even where it would be kept.
            first = tuple(_first(part[0], cascade.components[i]) for i, part in zip(inside, maps, strict=True))
            kind_of[a, (0,) * len(layers)] = kinds.setdefault(first, len(kinds))
        _check_size(len(kind_of))
        units = [
            Unit(a, _marks(n_orbits, {before[layer]: mark for layer, mark in zip(layers, marks, strict=True)}), kind)
            for (a, marks), kind in kind_of.items()
        ]
        return units, list(kinds)

    def _marks(
        self, n_orbits: int, orbits_of: dict[int, range], components: Sequence[int], states: tuple[int, ...]
    ) -> tuple[int | None, ...]:
        """Return the marks of `n_orbits` orbits at which `components` have `states`, None for other orbits."""
        marks = dict[int, int]()
        for i, q in zip(components, states, strict=True):
            component = self.cascade.components[i]
            if is_register(component):
                marks[orbits_of[i][0]] = q
            else:
                # One head per point but the start; at the start all of them show mark 0.
                others = (t for t in range(component.n_states) if t != component.start)
                marks |= {o: int(t == q) for o, t in zip(orbits_of[i], others, strict=True)}
        return _marks(n_orbits, marks)

    def _last(self, orbits: list[Orbit], orbits_of: dict[int, range], n_orbits: int) -> Stage:
        """Return the last stage, whose units write the output for the states of the components that it reads."""
        cascade, machine = self.cascade, self.cascade.machine
        outputs = {output: i for i, output in enumerate(dict.fromkeys(machine.outputs))}
        reads = cascade.output_reads
        output_of = {
            tuple(cascade.states[j, list(reads)].tolist()): outputs[machine.outputs[cascade.image[j]]]
            for j in self._after
        }
        _check_size(len(output_of))
        units = [Unit(None, self._marks(n_orbits, orbits_of, reads, row), output) for row, output in output_of.items()]
        return Stage(tuple(orbits), tuple(units), len(outputs))


def _heads(maps: np.ndarray, component: Component, is_first: bool) -> tuple[Orbit, ...]:
    """Return the heads of a component, `maps` (n_symbols, n) holding the map of its states for each symbol.

    Mark number q of a register is state q. In the first layer S = 0 represents the start of a register; in later layers
    a symbol has always been written.
    """
    if not is_register(component):
        return transposition_heads(maps, component.start)
    identity, is_constant = np.arange(component.n_states), (maps == maps[:, :1]).all(axis=1)
    others = identity[identity != component.start] if is_first else identity
    of_state = UNIT * (identity[:, None] == others)
    values = np.where(is_constant[:, None], of_state[maps[:, 0]], 0.0)
    n, d_v = values.shape
    head = StageHead(np.ones((n, 1)), values, np.ones(n), np.where(is_constant, 1.0, 0.0), np.ones(1), np.ones(d_v))
    states = tuple(row[None] for row in of_state)
    return (Orbit(head, states, maps, np.stack([head.mark(S) for S in states])),)


def _first(row: np.ndarray, component: Component) -> tuple[int, ...]:
    return tuple((np.full_like(row, row[component.start]) if is_register(component) else row).tolist())


def _letter_map(component: Component, a: int) -> tuple[int, ...]:
    return tuple(component.maps[int(np.flatnonzero(component.keys[:, 0] == a)[0])].tolist())


def _marks(n_orbits: int, mark_of: dict[int, int]) -> tuple[int | None, ...]:
    return tuple(mark_of.get(i) for i in range(n_orbits))


def _check_size(n_units: int) -> None:
    if n_units > MAX_UNITS:
        raise BudgetExceeded(f"a layer of this cascade needs {n_units:,} units, and {MAX_UNITS:,} are written at most")
