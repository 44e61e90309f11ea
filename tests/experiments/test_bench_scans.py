"""The benchmark measures what it says, at a size that takes no time."""

from experiments import bench_scans


def test_a_shape_is_measured():
    row = bench_scans.measure(1, 3, 2, 2)
    assert set(row["milliseconds"]) == {"sequential", "pscan"}
    assert row["pscan_over_sequential"] > 0


def test_actions_take_turns():
    order = []
    actions = {name: (lambda name=name: order.append(name)) for name in "ab"}
    times = bench_scans.interleaved(actions, turns=2)
    assert order == ["a", "b"] * 3
    assert set(times) == {"a", "b"}
