"""Plan a machine as a cascade through the layers of a model, whose components are registers or move by transpositions.

At each letter, component i moves by a map that the letter and the previous states of the components below determine.
If the letter and their next states determine it too, as below permutations, the units of their layer write the symbols
that the next components follow. Otherwise a layer is added that holds their states one letter ago; its units read
these states and the letter. By Krohn & Rhodes every machine without groups is a cascade of registers; if a layer has
reflections, `counters` makes transpositions of other groups too.

If the norm of the stream depends on its content, the values of later layers are not exact. There each reset writes a
register anew, and between resets the register does not change, so that errors do not accumulate. A register above next
states has a further state, its start, in which it has not been written and is exactly zero. One above previous states
is written at the first letter, at which these show zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cascade.bound import prime_bound
from fsa2lrnn.cascade.cascade import Cascade, Component
from fsa2lrnn.cascade.coordinates import assemble
from fsa2lrnn.cascade.decomposition import decompose
from fsa2lrnn.cascade.holonomy import holonomy
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, OutOfTime
from fsa2lrnn.export.plan import UNIT, Orbit, Stage, StageHead, StagePlan, Unit, letter_ago
from fsa2lrnn.export.transpositions import MAX_POINTS, is_register, transposition_heads, with_transpositions


def cascaded(machine: MooreMachine, has_reflections: bool) -> StagePlan | None:
    """Return a plan that runs a machine as a cascade, or None if no cascade of supported components is found.

    Each layer of the cascade takes one layer of the model, or two. Raises `BudgetExceeded` if a layer would need more
    than `MAX_UNITS` units.

    >>> from fsa2lrnn.automata import zoo
    >>> cascaded(zoo.dyck(1, 2).minimise(), has_reflections=False).how
    'a cascade of 3 components, in 5 layers'
    """
    too_large: BudgetExceeded | None = None
    for cascade in _cascades(machine, has_reflections):
        for make in (_reading_now, lambda cascade: cascade):  # the second has more layers, but may need fewer units
            try:
                return _Stages(make(cascade)).plan()
            except OutOfTime:
                raise
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


def _reading_now(cascade: Cascade) -> Cascade:
    """Return a cascade of the same machine whose layers read next states of lower components where these suffice.

    Registers there have a further state, their start: not written.
    """
    components, sizes = list[Component](), [component.n_states for component in cascade.components]
    for layer in range(cascade.n_layers):
        inside = [i for i, component in enumerate(cascade.components) if component.layer == layer]
        reads, tables = list[int](), list[tuple[np.ndarray, np.ndarray] | None]([None] * len(inside))
        below = [i for i, component in enumerate(cascade.components) if component.layer < layer]
        for reads in (sorted({j for i in inside for j in cascade.components[i].reads}), below):
            if layer and None not in (found := [_table_now(cascade, i, reads) for i in inside]):
                tables = found
                break
        for i, table in zip(inside, tables, strict=True):
            component = cascade.components[i]
            if table is not None:
                component = replace(component, reads=tuple(reads), keys=table[0], maps=table[1], reads_now=True)
            keys, maps, n = component.keys, component.maps, component.n_states
            for place, j in enumerate(component.reads, start=1):
                if components[j].n_states > sizes[j]:  # not written is as good as the start
                    copies = keys[:, place] == cascade.components[j].start
                    more = keys[copies].copy()
                    more[:, place] = sizes[j]
                    keys, maps = np.concatenate([keys, more]), np.concatenate([maps, maps[copies]])
            component = replace(component, keys=keys, maps=maps)
            if table is not None and is_register(component):
                maps = np.column_stack([maps, np.where((maps == np.arange(n)).all(axis=1), n, maps[:, 0])])
                component = replace(component, n_states=n + 1, start=n, maps=maps)
            components.append(component)
    return Cascade(cascade.machine, tuple(components))


def _table_now(cascade: Cascade, i: int, read: list[int]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return keys of the letter and next states of `read`, and maps of component i for them, or None if none will do.

    A register has the identity and resets to choose from, another component its own maps.
    """
    component, n = cascade.components[i], cascade.components[i].n_states
    rows = list[np.ndarray]()
    for a, targets in enumerate(cascade.delta):
        after = cascade.states[targets]
        letter = np.full((len(after), 1), a)
        rows.append(np.concatenate([letter, after[:, read], cascade.states[:, [i]], after[:, [i]]], axis=1))
    moves = np.unique(np.concatenate(rows), axis=0)
    keys, numbers = np.unique(moves[:, :-2], axis=0, return_inverse=True)
    required = np.full((len(keys), n), -1)
    required[numbers.reshape(-1), moves[:, -2]] = moves[:, -1]
    if (required[numbers.reshape(-1), moves[:, -2]] != moves[:, -1]).any():
        return None
    constants = np.repeat(np.arange(n)[:, None], n, axis=1)
    choices = np.concatenate([np.arange(n)[None], constants]) if is_register(component) else component.maps
    choices = np.unique(choices, axis=0)
    # Whether each choice agrees with the required entries of each key.
    fits = np.stack([((required == row) | (required < 0)).all(axis=1) for row in choices])
    return (keys, choices[fits.argmax(axis=0)]) if fits.any(axis=0).all() else None


@dataclass(frozen=True, eq=False)
class _Stages:
    cascade: Cascade

    def plan(self) -> StagePlan:
        """Return the plan of the cascade; raise `BudgetExceeded` if a layer would need more than `MAX_UNITS` units."""
        cascade, stages, n_orbits = self.cascade, list[Stage](), 0
        orbits_of = dict[int, range]()  # the orbits of each component
        before = dict[tuple[int, ...], int]()  # the orbit that holds components one letter ago
        members = [self._members(layer) for layer in range(cascade.n_layers)]
        symbols: list[Maps] = [tuple(_letter_map(cascade.components[i], a) for i in members[0]) for a in self._letters]
        for layer, inside in enumerate(members):
            orbits, is_first = list[Orbit](), layer == 0 or cascade.components[inside[0]].reads_now
            for place, i in enumerate(inside):
                heads = _heads(np.array([maps[place] for maps in symbols]), cascade.components[i], is_first)
                orbits_of[i] = range(n_orbits, n_orbits := n_orbits + len(heads))
                orbits += heads
            if layer == len(members) - 1:
                stages.append(self._last(orbits, orbits_of, n_orbits))
                break
            above = members[layer + 1]
            if cascade.components[above[0]].reads_now:
                units, symbols = self._choices_now(above, orbits_of, n_orbits)
                stages.append(Stage(tuple(orbits), tuple(units), len(symbols)))
                continue
            # A layer that holds the components one letter ago that are read, and that no earlier one holds.
            read = {j for i in above for j in cascade.components[i].reads}
            held = tuple(sorted(read.difference(*before)))
            numbers = self._numbers(held)
            rows = sorted({tuple(row) for row in cascade.states[self._after][:, held].tolist()})
            _check_size(len(rows))
            units = [Unit(None, self._marks(n_orbits, orbits_of, held, row), numbers[row]) for row in rows]
            stages.append(Stage(tuple(orbits), tuple(units), len(numbers)))
            before[held] = n_orbits
            n_orbits += 1
            units, symbols = self._choices(above, {held: at for held, at in before.items() if read & {*held}}, n_orbits)
            stages.append(Stage((letter_ago(len(numbers), 1),), tuple(units), len(symbols)))
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

    def _numbers(self, components: tuple[int, ...]) -> dict[tuple[int, ...], int]:
        """Return the joint states of components, numbered."""
        rows = {tuple(row) for row in self.cascade.states[:, components].tolist()}
        return {row: number for number, row in enumerate(sorted(rows))}

    def _choices_now(
        self, above: list[int], orbits_of: dict[int, range], n_orbits: int
    ) -> tuple[list[Unit], list[Maps]]:
        """Return the units that choose the maps of `above` by the letter and next states, and the distinct choices."""
        cascade, kinds, units = self.cascade, dict[Maps, int](), list[Unit]()
        read = cascade.components[above[0]].reads
        for a in self._letters:
            after, first = np.unique(cascade.states[cascade.delta[a]][:, read], axis=0, return_index=True)
            _check_size(len(units) + len(after))
            chosen = [cascade.components[i].maps[cascade.rows(i, a)[first]].tolist() for i in above]
            for row, *maps in zip(after.tolist(), *chosen, strict=True):
                kind = kinds.setdefault(tuple(map(tuple, maps)), len(kinds))
                units.append(Unit(a, self._marks(n_orbits, orbits_of, read, tuple(row)), kind))
        return units, list(kinds)

    def _choices(
        self, inside: list[int], before: dict[tuple[int, ...], int], n_orbits: int
    ) -> tuple[list[Unit], list[Maps]]:
        """Return the units that choose the maps of the components `inside`, and the distinct choices.

        A choice depends on the letter and on the states, one letter ago, of the components that `before` has by the
        orbit that holds them. Mark 0 there is the first letter.
        """
        cascade, kinds, kind_of = self.cascade, dict[Maps, int](), dict[tuple[int, tuple[int, ...]], int]()
        numbers = {held: self._numbers(held) for held in before}
        # States that agree in these components choose the same maps, so the first of each class represents it.
        columns = [i for held in before for i in held]
        firsts = np.sort(np.unique(cascade.states[self._after][:, columns], axis=0, return_index=True)[1])
        _check_size(len(firsts))
        after = self._after[firsts]
        for a in self._letters:
            rows = [cascade.rows(i, a) for i in inside]
            maps = [cascade.components[i].maps[row] for i, row in zip(inside, rows, strict=True)]
            for j in after:
                marks = tuple(1 + numbers[held][tuple(cascade.states[j, held].tolist())] for held in before)
                chosen = tuple(tuple(part[j].tolist()) for part in maps)
                kind_of[a, marks] = kinds.setdefault(chosen, len(kinds))
            # At the first letter the earlier components are in state 0 of the joint states, and a register is written
            # even where it would be kept.
            first = tuple(_first(part[0], cascade.components[i]) for i, part in zip(inside, maps, strict=True))
            kind_of[a, (0,) * len(before)] = kinds.setdefault(first, len(kinds))
        _check_size(len(kind_of))
        units = [
            Unit(a, _marks(n_orbits, dict(zip(before.values(), marks, strict=True))), kind)
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
