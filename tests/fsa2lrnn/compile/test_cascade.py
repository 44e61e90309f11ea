"""From cascades to stacks: every kind of component, reading before or now, proved in integers."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata.language import explore
from fsa2lrnn.compile.cascade import cells_of_cascade, stack_recurrence
from fsa2lrnn.decomposition.cascade import Cascade, Component
from fsa2lrnn.verification import Proved, prove_equivalent


def component(n_states, start, layer, letters, reads, step):
    """A component from a function step(state, letter number, *states read); `reads` are {number: size}."""
    keys = np.array(list(itertools.product(range(letters), *(range(size) for size in reads.values()))))
    maps = np.array([[step(s, *key) for s in range(n_states)] for key in keys.tolist()])
    return Component(n_states, start, tuple(reads), layer, keys, maps)


def cascade_of(letters, components, output, reads_now=False):
    """The cascade of components for the machine that they run, its outputs a function of the joint state."""

    def step(state, a):
        after = []
        for own, part in zip(state, components, strict=True):
            seen = [a, *((after if reads_now else state)[j] for j in part.reads)]
            after.append(int(part.maps[(part.keys == seen).all(1).argmax(), own]))
        return tuple(after)

    start = tuple(part.start for part in components)
    return Cascade(explore(range(letters), start, step, output), components, reads_now)


def proved(cascade):
    recurrence = stack_recurrence(cascade)
    verdict = prove_equivalent(recurrence, cascade.machine)
    assert isinstance(verdict, Proved)
    assert verdict.pairs == len(cascade.states)
    check_transitions(recurrence.tables)
    return recurrence


def check_transitions(tables):
    """In every state that is reached the channels have a ∈ {−1, 0, 1}, and all columns of larger blocks are one-hot."""
    states = {tables.initial().tobytes(): tables.initial()}
    pending = list(states.values())
    for x in pending:
        for after, cell in zip(tables.step(x[None])[0], tables.cell, strict=True):
            check_at(tables, x, after, cell)
            if after.tobytes() not in states:
                states[after.tobytes()] = after
                pending.append(after)


def check_at(tables, before, after, cell):
    below = 0
    for layer in tables.layers:
        token = np.eye(tables.n_cells, dtype=int)[cell]
        u = np.concatenate([token, after[:below]])
        if tables.token_shift:
            u = np.concatenate([u, 0 * token, before[:below]])
        b = layer.x0.shape[1]
        for size, A in zip(layer.block_sizes, layer.transition(u).reshape(-1, b, b), strict=True):
            assert set(np.unique(A)) <= {-1, 0, 1}
            assert size == 1 or (A[:, :size].sum(0) == 1).all()
            assert size == 1 or (A >= 0).all()
        below += layer.width


def test_letters_that_act_alike_share_a_cell():
    low = component(2, 0, 0, 4, {}, lambda s, a: s ^ (a % 2))
    high = component(2, 0, 1, 4, {0: 2}, lambda s, a, low: s ^ low if a == 3 else s)
    cascade = cascade_of(4, (low, high), lambda state: state)
    assert cells_of_cascade(cascade).tolist() == [0, 1, 0, 2]
    assert stack_recurrence(cascade).tables.n_cells == 3


@st.composite
def cascades(draw):
    """Cascades of 1 … 3 components in one to three layers, any maps, reading before or now."""
    reads_now, letters = draw(st.booleans()), draw(st.integers(1, 2))
    components: list[Component] = []
    for i in range(draw(st.integers(1, 3))):
        layer = draw(st.integers(0, components[-1].layer + 1)) if components else 0
        layer = max(layer, components[-1].layer) if components else 0
        lower = [j for j in range(i) if components[j].layer < layer]
        reads = draw(st.lists(st.sampled_from(lower), unique=True).map(sorted)) if lower else []
        m = draw(st.integers(1, 4))
        some = draw(st.lists(st.lists(st.integers(0, m - 1), min_size=m, max_size=m), min_size=1, max_size=3))
        sizes = {j: components[j].n_states for j in reads}
        count = letters * int(np.prod(list(sizes.values()), initial=1))
        chosen = draw(st.lists(st.sampled_from(some), min_size=count, max_size=count))
        keys = np.array(list(itertools.product(range(letters), *(range(size) for size in sizes.values()))))
        components.append(Component(m, draw(st.integers(0, m - 1)), tuple(reads), layer, keys, np.array(chosen)))
    return cascade_of(letters, tuple(components), lambda state: sum(state) % 3, reads_now)


@given(cascades())
def test_every_cascade_is_proved(cascade):
    recurrence = proved(cascade)
    assert recurrence.tables.block_sizes == tuple(size for layer in cascade.block_sizes for size in layer)
    assert recurrence.tables.token_shift == (cascade.has_reads and not cascade.reads_now)
