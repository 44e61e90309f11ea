"""The compiled kernels on partitions against their definitions in plain Python."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata.monoid.map_kernels import components
from fsa2lrnn.decomposition import partition_kernels
from fsa2lrnn.decomposition.congruence import canonical


@st.composite
def partitions(draw, n: int) -> np.ndarray:
    return canonical(draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)))


@given(st.data(), st.integers(1, 9))
def test_joins_and_meets_by_definition(data, n):
    p, q = data.draw(partitions(n)), data.draw(partitions(n))
    linked = (p[:, None] == p) | (q[:, None] == q)
    together = np.linalg.matrix_power(linked.astype(int), n) > 0
    join = partition_kernels.join(p, q)
    assert np.array_equal(join, canonical(join))
    assert np.array_equal(join[:, None] == join, together)
    rows, blocks, index = partition_kernels.meets(p, np.stack([q, p]))
    assert np.array_equal(rows, np.stack([canonical(p * n + q), p]))
    assert blocks.tolist() == [len({*zip(p, q, strict=True)}), p.max() + 1]
    assert index.tolist() == [max(len(set(q[p == b])) for b in p), 1]


@given(st.data(), st.integers(2, 6))
def test_the_graph_of_pairs(data, n):
    row = st.lists(st.integers(0, n - 1), min_size=n, max_size=n)
    maps = np.array([data.draw(row) for _ in range(2)])
    pairs = list(itertools.combinations(range(n), 2))
    for (p, q), successors in zip(pairs, partition_kernels.pair_graph(maps).tolist(), strict=True):
        images = [tuple(sorted((int(f[p]), int(f[q])))) for f in maps]
        assert successors == [pairs.index(pair) if pair[0] != pair[1] else -1 for pair in images]


def test_searches_say_where_they_stop():
    maps = np.arange(6)[None]
    pairs, graph = np.stack(np.triu_indices(6, 1), axis=1), partition_kernels.pair_graph(maps)
    arguments = maps, pairs, graph, components(graph)
    rows, source, whole = partition_kernels.principals(*arguments, 100, 1_000)
    assert len(rows) == len(source) == 15
    assert whole
    for room, budget in ((14, 1_000), (100, 20)):
        fewer, _, whole = partition_kernels.principals(*arguments, room, budget)
        assert not whole
        assert 0 < len(fewer) < 15
        assert np.array_equal(fewer, rows[: len(fewer)])
    everything, whole = partition_kernels.joins(rows, source, 202, 10**6)
    assert whole
    assert len({row.tobytes() for row in everything}) == len(everything) == 202  # Bell(6) − 1
    for room, budget in ((201, 10**6), (202, 1_000)):
        some, whole = partition_kernels.joins(rows, source, room, budget)
        assert not whole
        assert 0 < len(some) < 202
    assert len(partition_kernels.separators(rows, source, np.arange(15), 10**6)) == 15
    assert len(partition_kernels.separators(rows, source, np.arange(15), 100)) < 15


def test_local_maps_of_each_kind():
    # Blocks {0, 1, 2}, {3, 4, 5}, {6} of the context, each state for itself.
    context = np.array([0, 0, 0, 1, 1, 1, 2])
    f = np.array([[3, 3, 3, 1, 2, 0, 0], [4, 4, 5, 6, 6, 6, 6]])
    block, first, images, kind = partition_kernels.local_maps(f, context, np.arange(7))
    assert block.tolist() == list(range(7))
    assert first.tolist() == [0, 3, 6, 7]
    assert np.array_equal(images, f)
    assert kind.tolist() == [
        [partition_kernels.CONSTANT, partition_kernels.INJECTIVE, partition_kernels.FREE],
        [partition_kernels.OTHER, partition_kernels.FREE, partition_kernels.FREE],
    ]
    classes, apart = partition_kernels.identified(np.arange(7), block, first, images, kind)
    assert classes.tolist() == [0, 1, 2, 1, 2, 0, 3]
    assert apart
    turned = np.array([[3, 4, 5, 1, 2, 0, 0]])
    block, first, images, kind = partition_kernels.local_maps(turned, context, np.arange(7))
    assert not partition_kernels.identified(np.arange(7), block, first, images, kind)[1]
