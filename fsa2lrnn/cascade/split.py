"""Split the components of a cascade that are too large."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.language import reachable_table
from fsa2lrnn.cascade.cascade import Cascade
from fsa2lrnn.cascade.congruence import lattice, meet
from fsa2lrnn.cascade.coordinates import Cover, assemble
from fsa2lrnn.cascade.group_cover import group_cover, regular
from fsa2lrnn.cascade.holonomy import holonomy
from fsa2lrnn.cascade.labels import index, labels
from fsa2lrnn.cascade.layering import layering
from fsa2lrnn.cascade.refine import component_maps, refine
from fsa2lrnn.errors import BudgetExceeded, NotExpressible

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
    if component.kind == "general":
        return holonomy(maps, component.start, max_chains=MAX_CHAINS)
    try:
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
            f"max_block = {largest} states"
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
