"""Change the coordinates of a cascade: split one component into several, or remove the need for a token shift.

Both functions return a `Cover` of the cascade's machine, from which `coordinates.assemble` makes the new cascade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fsa2lrnn.automata.language import enumerate_states
from fsa2lrnn.cascade.cascade import MAX_JOINT_STATES, Cascade
from fsa2lrnn.cascade.coordinates import Cover
from fsa2lrnn.cascade.rows import distinct_rows
from fsa2lrnn.errors import BudgetExceeded


def component_maps(cascade: Cascade, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct maps of component i, int (L, m), and the number of each row of `maps` among them, (R,)."""
    maps, number = np.unique(cascade.components[i].maps, axis=0, return_inverse=True)
    return maps, number.reshape(-1)


def refine(cascade: Cascade, i: int, cover: Cover) -> Cover:
    """Return a cover of the cascade's machine with the coordinates of `cover` in place of component i.

    Args:
        cascade: a cascade without `reads_now`.
        i: the number of the component to split.
        cover: coordinates for the machine whose letters are `component_maps(cascade, i)[0]` and whose start is the
            component's.

    The states of the result are pairs of a joint state and a state of `cover` that represents its component i. Raises
    `BudgetExceeded` if there are more than 200,000.
    """
    letter = component_maps(cascade, i)[1]
    selected = np.stack([letter[cascade.rows(i, a)] for a in range(len(cascade.delta))])  # (|Σ|, N)

    def step(pair: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        j, c = pair
        for a, targets in enumerate(cascade.delta):
            yield int(targets[j]), int(cover.delta[selected[a, j], c])

    # State 0 of the cascade's table and of the cover are their starts; only pairs that words reach become states.
    pairs, delta = _explore((0, 0), step)
    joint, sub = np.array(pairs).T
    others = [j for j in range(len(cascade.components)) if j != i]
    # The new coordinates take the levels of the old component, spread out so that other components stay above or below
    # all of them.
    span = 1 + max(cover.levels)
    layers = [component.layer for component in cascade.components]
    return Cover(
        delta,
        cascade.image[joint],
        np.concatenate([cascade.states[joint][:, others], cover.values[sub]], axis=1),
        (*(layers[j] * span for j in others), *(layers[i] * span + level for level in cover.levels)),
    )


def fibre_code(cascade: Cascade) -> Cover:
    """Return a cover for `assemble(…, reads_now=True)`: a cascade of it needs no token shift.

    A reader of component j at k needs s_j(k−1). The map f of component j at k takes s_j(k−1) to s_j(k), so s_j(k−1) is
    in the fibre f⁻¹(s_j(k)). States of a fibre are in one class if all readers move alike for them. Each coordinate
    becomes the pair of s_j(k) and the number of the class of s_j(k−1) in the fibre, from which readers at k select
    their maps. The number is always 0, and the component does not grow, if the maps that readers do not distinguish
    are one-to-one on the occurring states, or if the readers do not depend on the state.

    `cascade` must not have `reads_now`. Raises `BudgetExceeded` if the cover has more than 200,000 states.
    """
    n_components = len(cascade.components)
    classes = _classes(cascade)
    # T18: before the first letter all ranks are 0, and no component reads them.
    start = (0, *(0 for _ in range(n_components)))
    rank = [_fibre_ranks(cascade, j, classes) for j in range(n_components)]

    def step(state: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        joint = state[0]
        for a, targets in enumerate(cascade.delta):
            yield (int(targets[joint]), *(int(rank[j][a, joint]) for j in range(n_components)))

    found, delta = _explore(start, step)
    table = np.array(found)
    joint, ranks = table[:, 0], table[:, 1:]
    values = np.empty((len(table), n_components), np.int64)
    for j in range(n_components):
        both = np.stack([cascade.states[joint, j], ranks[:, j]], axis=1)
        values[:, j] = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return Cover(
        delta,
        cascade.image[joint],
        values,
        tuple(component.layer for component in cascade.components),
    )


def _fibre_ranks(cascade: Cascade, j: int, classes: list[np.ndarray]) -> np.ndarray:
    """Return the class number of s_j in its fibre for each letter and joint state before it: int (|Σ|, N).

    Maps of component j that its readers cannot distinguish share their fibres.
    """
    component = cascade.components[j]
    used, letters = cascade.used(j), component.keys[:, 0]
    _, group = distinct_rows(_class_keys(cascade, j, classes))
    fibres: dict[tuple[int, int], set[int]] = {}
    for r, p in np.argwhere(used).tolist():
        # The fibre over t under κ (a group of keys) has the classes of the states that the map leads to t.
        fibres.setdefault((int(group[r]), int(component.maps[r, p])), set()).add(int(classes[j][letters[r], p]))
    rank = np.zeros(component.maps.shape, np.int64)
    for r, p in np.argwhere(used).tolist():
        fibre = sorted(fibres[int(group[r]), int(component.maps[r, p])])
        # The rank tells the readers which class of the fibre the old state was in.
        rank[r, p] = fibre.index(int(classes[j][letters[r], p]))
    before = cascade.states[:, j]
    return np.stack([rank[cascade.rows(j, a), before] for a in range(len(cascade.delta))])


def _classes(cascade: Cascade) -> list[np.ndarray]:
    """Return for each component its classes of states per letter, (|Σ|, m), that its readers do not distinguish.

    Classes of several components may be compatible with a reader one by one, but not together: where a key of classes
    then requires two moves, the classes of its letter are split into single states.
    """
    classes = [_reader_classes(cascade, j) for j in range(len(cascade.components))]
    for i, component in enumerate(cascade.components):
        keys = _class_keys(cascade, i, classes)
        _, group = distinct_rows(keys)
        used = cascade.used(i)
        for p in range(component.n_states):
            # Property (P) of T18: a key of classes and a state p that occurs with it determine the next state.
            moves, _ = distinct_rows(np.column_stack([group, component.maps[:, p]])[used[:, p]])
            _, count = np.unique(moves[:, 0], return_counts=True)
            if count.max(initial=1) > 1:
                torn = moves[np.isin(moves[:, 0], np.unique(moves[:, 0])[count > 1])][:, 0]
                for a in np.unique(keys[np.isin(group, torn), 0]).tolist():
                    for j in component.reads:
                        # With a class for each state the key of classes is the key itself, which restores (P).
                        classes[j][a] = np.arange(cascade.components[j].n_states)
    return classes


def _class_keys(cascade: Cascade, i: int, classes: list[np.ndarray]) -> np.ndarray:
    component = cascade.components[i]
    keys = component.keys.copy()
    for column, j in enumerate(component.reads, start=1):
        keys[:, column] = classes[j][keys[:, 0], keys[:, column]]
    return keys


def _reader_classes(cascade: Cascade, j: int) -> np.ndarray:
    """Return classes of component j's states that each reader treats alike if the other reads are kept, (|Σ|, m).

    States are alike if no used entry of a map differs. This is not transitive, as unused entries are alike to all, so
    classes are formed greedily.
    """
    n_letters, m = len(cascade.delta), cascade.components[j].n_states
    differ = np.zeros((n_letters, m, m), bool)
    for i, component in enumerate(cascade.components):
        if j in component.reads:
            column = 1 + component.reads.index(j)
            # Entries that no reachable joint state uses are −1 and make no difference.
            maps = np.where(cascade.used(i), component.maps, -1)
            _mark_different(differ, component.keys, maps, column)
    classes = np.zeros((n_letters, m), np.int64)
    for a in range(n_letters):
        members: list[list[int]] = []
        for p in range(m):
            home = next((c for c, alike in enumerate(members) if not differ[a, p, alike].any()), len(members))
            if home == len(members):
                members.append([])
            members[home].append(p)
            classes[a, p] = home
    return classes


def _mark_different(differ: np.ndarray, keys: np.ndarray, maps: np.ndarray, column: int) -> None:
    _, group = np.unique(np.delete(keys, column, axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    for g in range(int(group.max()) + 1):
        rows = np.flatnonzero(group == g)
        # These rows differ in the state of component j alone: `against` compares their maps pairwise, where both are
        # used.
        f = maps[rows]
        against = ((f[:, None] != f[None]) & (f[:, None] >= 0) & (f[None] >= 0)).any(2)
        p, q = keys[rows][np.argwhere(against).T, column]
        differ[keys[rows[0], 0], p, q] = True


def _explore(
    start: tuple[int, ...], step: Callable[[tuple[int, ...]], Iterator[tuple[int, ...]]]
) -> tuple[list[tuple[int, ...]], np.ndarray]:
    try:
        return enumerate_states(start, step, MAX_JOINT_STATES)
    except BudgetExceeded:
        raise BudgetExceeded(f"the cascade's cover has more than {MAX_JOINT_STATES:,} states") from None
