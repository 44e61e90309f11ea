"""Search for a cheap cascade: build several, by congruences and holonomy, and take the cheapest (`decompose`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from fsa2lrnn.automata.language import minimise, reachable_table, share_cells
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.cascade.bound import Bound, prime_bound
from fsa2lrnn.cascade.cascade import Cascade, Component, Cost
from fsa2lrnn.cascade.congruence import lattice, meet
from fsa2lrnn.cascade.coordinates import Cover, assemble
from fsa2lrnn.cascade.group_cover import group_cover, regular
from fsa2lrnn.cascade.holonomy import holonomy
from fsa2lrnn.cascade.layering import block_size, index, labels, layering, thin
from fsa2lrnn.cascade.refine import component_maps, fibre_code, refine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExact, NotExpressible, OutOfTime

LARGEST_BLOCK = 8  # that of the paper's settings; the default block size to which components are split
LAYERINGS_BUILT = 6  # the cheapest by an estimate; the others are not built

Layering = list[list[np.ndarray]]


@dataclass(frozen=True)
class CascadeCandidate:
    """A cascade that the search considered.

    Args:
        how: the method by which it is built.
        cost: its cost; None if it was not built or not costed.
        why_not: the limit or the condition that excluded it, "" if it has a cost.
    """

    how: str
    cost: Cost | None
    why_not: str = ""

    def explain(self) -> str:
        """Return the candidate in one line."""
        return f"{self.how}: {self.cost.explain() if self.cost else self.why_not}"


class NoCascade(NotExpressible):
    """The error that no cascade within the limits was found; `candidates` are those that were considered."""

    def __init__(self, limits: str, remedy: str, candidates: tuple[CascadeCandidate, ...]) -> None:
        super().__init__(f"no cascade {limits} was found ({explain_all(candidates)}): {remedy}")
        self.candidates = candidates


def explain_all(candidates: tuple[CascadeCandidate, ...]) -> str:
    """Return all candidates in one line, grouped by the reason that excludes them.

    >>> explain_all((CascadeCandidate("one", None, "too large"), CascadeCandidate("other", None, "too large")))
    'one and 1 more: too large'
    """
    groups: dict[str, list[CascadeCandidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.why_not or candidate.explain(), []).append(candidate)
    return "; ".join(
        replace(first, how=f"{first.how} and {len(rest)} more").explain() if rest else first.explain()
        for first, *rest in groups.values()
    )


@dataclass(frozen=True, eq=False)
class Decomposition(Brief):
    """A cascade for a machine, with the reasons for its selection.

    Args:
        cascade: a cascade of the minimal machine.
        cost: its cost.
        bound: a lower bound on the largest component of every cascade.
        candidates: all cascades that were considered, the selected one first.
    """

    cascade: Cascade
    cost: Cost
    bound: Bound
    candidates: tuple[CascadeCandidate, ...]

    @property
    def largest_permuted(self) -> int:
        """The number of states of the largest component that is not a reset, to which the bound applies; 1 if none."""
        return max((c.n_states for c in self.cascade.components if c.kind not in ("reset", "trivial")), default=1)

    @property
    def meets_bound(self) -> bool:
        """Whether `largest_permuted` equals the bound, so that it is minimal among all cascades."""
        return self.largest_permuted == self.bound.prime


def one_a_key(cascade: Cascade) -> int:
    """Return an estimate of the number of hidden units, without building gates: one per key of a component."""
    return sum(len(component.keys) for component in cascade.components)


class CascadeSearch:
    """A search that builds the cascades of a machine once, for all calls of `cheapest`.

    Args:
        machine, max_block, token_shift, units: as for `decompose`.
        deadline: the time limit, checked before each cascade is built (`OutOfTime`).

    >>> from fsa2lrnn.automata import zoo
    >>> search = CascadeSearch(zoo.even_pair(5))
    >>> search.cheapest().cost.units > 0
    True
    """

    def __init__(
        self,
        machine: MooreMachine,
        max_block: int | None = None,
        token_shift: bool = True,
        units: Callable[[Cascade], int] = one_a_key,
        deadline: Deadline = NEVER,
    ) -> None:
        self._minimal = minimise(machine)
        self._max_block, self._token_shift = max_block, token_shift
        self._largest = LARGEST_BLOCK if max_block is None else max_block
        self._units, self._counted, self._deadline = units, dict[int, int | NotExact](), deadline

    def cheapest(self, below: int | None = None) -> Decomposition:
        """Return the cheapest cascade; raise `NoCascade` if none qualifies, or none costs less than `below`."""
        candidates: list[CascadeCandidate] = []
        best: tuple[Cost, Cascade] | None = None
        for number, (how, cascade) in enumerate(self._built):
            if isinstance(cascade, str):
                candidates.append(CascadeCandidate(how, None, cascade))
                continue
            # Counting the units builds all gates; without them the cost is a lower bound, which may exclude a cascade
            # at once.
            least = Cost.of(cascade.block_sizes, units=0)
            limits = [*([best[0].total] if best else []), *([below] if below is not None else [])]
            if limits and least.total >= min(limits):
                candidates.append(CascadeCandidate(how, None, f"costs at least {least.explain()}"))
                continue
            units = self._count(number, cascade)
            if isinstance(units, NotExact):
                candidates.append(CascadeCandidate(how, None, str(units)))
                continue
            cost = Cost.of(cascade.block_sizes, units)
            candidates.append(CascadeCandidate(how, cost))
            if all(cost.total < limit for limit in limits):
                best = cost, cascade
        candidates.sort(key=lambda candidate: (candidate.cost is None, candidate.cost))
        if best is None:
            raise self._nothing(below, tuple(candidates))
        _, kind = self._reduced
        return Decomposition(_all_letters(best[1], self._minimal, kind), best[0], self._bound, tuple(candidates))

    def _nothing(self, below: int | None, candidates: tuple[CascadeCandidate, ...]) -> NoCascade:
        limits = f"with blocks of at most {self._largest} states"
        limits += "" if below is None else f" and a cost below {below:,}"
        shift = ("", "") if self._token_shift else (", without token shift,", " or token_shift=True")
        remedy = f"allow larger blocks, max_block=…{shift[1]}, or take form='onehot'"
        return NoCascade(f"{limits}{shift[0]}", remedy, candidates)

    def _count(self, number: int, cascade: Cascade) -> int | NotExact:
        if number not in self._counted:
            try:
                self._counted[number] = self._units(cascade)
            except NotExact as error:
                self._counted[number] = error
        return self._counted[number]

    @cached_property
    def _reduced(self) -> tuple[MooreMachine, np.ndarray]:
        return _distinct_letters(self._minimal)

    @cached_property
    def _bound(self) -> Bound:
        return prime_bound(self._minimal)

    @cached_property
    def _built(self) -> list[tuple[str, Cascade | str]]:
        """Return each attempt with its cascade, or with the reason why it fails."""
        built: list[tuple[str, Cascade | str]] = []
        machine, _ = self._reduced
        for how, cover in _covers(machine, self._largest, self._token_shift):
            self._deadline.check("looking for a cascade")
            try:
                built.append((how, _finish(machine, cover, self._largest, self._max_block, self._token_shift)))
            except OutOfTime as error:
                if not any(isinstance(cascade, Cascade) for _, cascade in built):
                    raise  # no cascade was found for lack of time, not of blocks
                built.append((how, str(error)))
            except (BudgetExceeded, NotExpressible) as error:
                built.append((how, str(error)))
        return built


def decompose(
    machine: MachineSource,
    max_block: int | None = None,
    token_shift: bool = True,
    units: Callable[[Cascade], int] = one_a_key,
    below: int | None = None,
) -> Decomposition:
    """Return the cheapest of several cascades for a machine.

    Layers of congruences split the machine into few layers of small components. A component that no congruence splits
    gets the holonomy decomposition, or, if it is a permutation group, the congruences of its regular representation.

    Args:
        machine: any Moore machine, or its source; its minimal machine is decomposed.
        max_block: the largest block allowed. If None, components are split down to 8 states, but a fibre code may take
            more.
        token_shift: whether components may read the states of others before the letter; if not, blocks contain the
            fibre code instead (`refine.fibre_code`).
        units: the function that gives the number of hidden units of a cascade's gates; by default one per key.
        below: an upper bound, exclusive, on the total cost; None for no bound.

    Raises `NoCascade`, a `NotExpressible` that lists the candidates, if none satisfies `max_block` and `below`.

    >>> from fsa2lrnn.automata import zoo
    >>> result = decompose(zoo.group("Z60"))
    >>> result.cascade.block_sizes, result.bound.prime, result.meets_bound
    (((5, 4, 3),), 5, True)
    """
    return CascadeSearch(as_machine(machine), max_block, token_shift, units).cheapest(below)


def _finish(
    machine: MooreMachine, cover: Callable[[], Cover], largest: int, limit: int | None, token_shift: bool
) -> Cascade:
    cascade = split_large(assemble(machine, cover()), largest)
    if not token_shift and cascade.has_reads:
        cascade = assemble(machine, fibre_code(cascade), reads_now=True)
        if limit is not None and cascade.max_block > limit:
            raise NotExpressible(f"the fibre code needs a block of {cascade.max_block} states")
    return cascade


def _covers(machine: MooreMachine, largest: int, token_shift: bool) -> Iterator[tuple[str, Callable[[], Cover]]]:
    """Yield the description and the construction of each cover to try, without repetitions, holonomy last.

    Without token shift, each layering is also tried with labels fixed first for the letters that forget most or least.
    """
    seen: set[bytes] = set()
    for how, layers in _layerings(machine, largest):
        # The gauge matters without token shift, as it changes which local maps are equal, and so the fibres of T18.
        for order in (0,) if token_shift else (0, 1, -1):
            values, levels = congruence_coordinates(machine.delta, layers, order)
            key = np.vstack([values, levels]).tobytes()
            if key not in seen:
                seen.add(key)
                gauge = f", forgetful letters first ({order:+})" if order else ""
                states = np.arange(machine.n_states)  # the start first, since the machine is minimal
                yield how + gauge, partial(Cover, machine.delta, states, values, levels)
    yield "holonomy", partial(holonomy, machine.delta, machine.start, max_chains=MAX_CHAINS)


def _layerings(machine: MooreMachine, largest: int) -> list[tuple[str, Layering]]:
    """Return the layerings worth building, the cheapest by estimate."""
    maps, plans = machine.delta, dict[bytes, tuple[str, Layering]]()
    if machine.n_states == 1:
        return [("one state", [[np.zeros(1, np.int64)]])]
    congruences, nothing = lattice(maps), np.zeros(machine.n_states, np.int64)
    for how, bounds in _bounds(largest):
        full = layering(maps, congruences, largest, bounds)
        thinned = [] if bounds else [(f"{how}, thinned", thin(maps, congruences, full, largest))]
        for title, layers in [(how, full), *thinned]:
            key = b"|".join(b"".join(congruence.tobytes() for congruence in layer) for layer in layers)
            # A machine without a useful congruence is left to holonomy.
            if len(layers) > 1 or all(block_size(maps, nothing, tau) <= largest for tau in layers[0]):
                plans.setdefault(key, (title, layers))
    return sorted(plans.values(), key=lambda plan: _estimate(maps, plan[1]))[:LAYERINGS_BUILT]


def _bounds(largest: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"congruences, blocks of {largest}", ()
    for small in range(1, largest):
        for layers in range(1, 6):
            first = "the first layer" if layers == 1 else f"the first {layers} layers"
            yield f"congruences, blocks of {small} in {first}, then of {largest}", (small,) * layers


def _estimate(maps: np.ndarray, layers: Layering) -> int:
    context, sizes = np.zeros(maps.shape[1], np.int64), list[tuple[int, ...]]()
    for layer in layers:
        sizes.append(tuple(block_size(maps, context, congruence) for congruence in layer))
        context = meet(context, *layer)
    return Cost.of(sizes, units=0).total


def _distinct_letters(machine: MooreMachine) -> tuple[MooreMachine, np.ndarray]:
    kind, kept = share_cells(machine.delta)
    letters = [machine.alphabet[a] for a in kept]
    return MooreMachine(machine.delta[kept], machine.outputs, machine.start, letters, machine.labels), kind


def _all_letters(cascade: Cascade, machine: MooreMachine, kind: np.ndarray) -> Cascade:
    """Return a cascade over one letter per class as one over all letters; `kind` (|Σ|,) is their class."""
    if len(kind) == len(cascade.delta):
        return cascade
    components: list[Component] = []
    for component in cascade.components:
        # Each letter gets a copy of the keys of its class, with its own number in column 0.
        rows = [np.flatnonzero(component.keys[:, 0] == k) for k in kind]
        keys = np.concatenate([component.keys[r] for r in rows])
        keys[:, 0] = np.repeat(np.arange(len(kind)), [len(r) for r in rows])
        components.append(replace(component, keys=keys, maps=component.maps[np.concatenate(rows)]))
    return Cascade(machine, tuple(components), cascade.reads_now)


MAX_CHAINS = 20_000  # of a holonomy decomposition; a cascade with more joint states is too expensive
GROUP_ORDER = 200  # of the largest group whose subgroups are enumerated


def split_large(cascade: Cascade, largest: int) -> Cascade:
    """Return a cascade of the same machine, with components split until no block is larger than `largest`.

    Raises:
        NotExpressible: if neither method splits some component.
        BudgetExceeded: if a holonomy decomposition or the cascade outgrows its limits.
    """
    while (i := _too_large(cascade, largest)) is not None:
        cover = _split(cascade, i, largest)
        cascade = assemble(cascade.machine, refine(cascade, i, cover))
    return cascade


def congruence_coordinates(
    maps: np.ndarray, layers: list[list[np.ndarray]], order: int = 0
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return layers of congruences as coordinates of the states: values (n, C), −1 where free, and levels (C,).

    Args:
        maps: the maps of the letters, int64 (k, n).
        layers: congruences by layer, as `layering` returns them.
        order: 0 for labels that many letters leave unchanged. With 1 or −1, the letters that merge blocks of the lower
            layers take precedence, those that merge most first or last, so that they need not read these layers.
    """
    context = np.zeros(maps.shape[1], np.int64)
    columns, levels = list[np.ndarray](), list[int]()
    for level, layer in enumerate(layers):
        # Letters that merge blocks of the lower layers, so that the old state of these cannot be inferred from the new
        # one.
        first = _forgetful(maps, context)[::order] if order else ()
        for congruence in layer:
            columns.append(labels(maps, context, congruence, first))
            levels.append(level)
        context = meet(context, *layer)
    return np.stack(columns, axis=1), tuple(levels)


def _forgetful(maps: np.ndarray, context: np.ndarray) -> tuple[int, ...]:
    n_blocks = int(context.max()) + 1
    lost = [n_blocks - len(np.unique(context[row])) for row in maps]
    return tuple(a for a in sorted(range(len(maps)), key=lambda a: (-lost[a], a)) if lost[a])


def _too_large(cascade: Cascade, largest: int) -> int | None:
    sizes = [max(component.block_sizes) for component in cascade.components]
    return next((i for i, size in enumerate(sizes) if size > largest), None)


def _split(cascade: Cascade, i: int, largest: int) -> Cover:
    """Return a cover of component i by components of at most `largest` states.

    It is split by its congruences if these suffice. Otherwise a general component is split by holonomy, and a
    permutation one through the regular action of its group, which has a congruence for every subgroup.
    """
    component = cascade.components[i]
    maps, _ = component_maps(cascade, i)
    layers = layering(maps, lattice(maps), largest)
    if _fits(maps, layers, largest):
        values, levels = congruence_coordinates(maps, layers)
        states, delta = reachable_table(maps, component.start)
        return Cover(delta, states, values[states], levels)
    # Holonomy does not split permutations and constants: their only image sets are the whole set and the singletons.
    if component.kind == "general":
        return holonomy(maps, component.start, max_chains=MAX_CHAINS)
    try:
        # T16: acting on itself from the left, the group has a congruence per subgroup, even if the component has none.
        elements, left = regular(maps, GROUP_ORDER)
    except BudgetExceeded as error:
        raise NotExpressible(
            f"a component of {component.n_states} states has no congruence with components of at most {largest} "
            f"states, and {error}"
        ) from None
    layers = layering(left, lattice(left), largest)
    if not _fits(left, layers, largest):
        raise NotExpressible(
            f"a component's group of order {len(elements)} on {component.n_states} states needs a block of more than "
            f"max_block={largest} states"
        )
    values, levels = congruence_coordinates(left, layers)
    return group_cover(maps, component.start, elements, values, levels)


def _fits(maps: np.ndarray, layers: list[list[np.ndarray]], largest: int) -> bool:
    context = np.zeros(maps.shape[1], np.int64)
    for layer in layers:
        if any(index(context, congruence) > largest for congruence in layer):
            return False
        context = meet(context, *layer)
    return True
