from fsa2lrnn.extra.report.drawing.machine import DrawnMachine


def test_names_are_labels_where_these_are_short_and_tell_states_apart():
    def named(*labels):
        return DrawnMachine.of([[0] * len(labels)], labels, 0, "a", labels).names

    assert named("p", "q") == ["p", "q"]
    assert named("p", "much too long") == ["1", "2"]
    assert named(1, "1") == ["1", "2"]


def test_acceptors_and_arrows():
    machine = DrawnMachine.of([[1, 1], [1, 0]], [False, True], 0, [("x", 1), "b"])
    assert machine.accepting == [False, True]
    assert machine.alphabet == ["x, 1", "b"]
    assert machine.arrows == {(0, 1): [0, 1], (1, 1): [0], (1, 0): [1]}
    assert DrawnMachine.of([[1, -1], [-1, -1]], [0, 1], 0, "ab").arrows == {(0, 1): [0]}
    assert DrawnMachine.of([[0]], ["True enough"], 0, "a").accepting is None
