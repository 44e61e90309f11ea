from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, transitions


def test_a_row_a_state():
    found = transitions(DrawnMachine.of([[1, 0], [0, 0]], ["<", "y"], 1, ["a", "b"], ["first <one>", "second"]))
    assert found.count("<tr>") == 3
    assert "<td>first &lt;one&gt;</td><td>&lt;</td><td>2</td><td>1</td>" in found
    assert "2 (start)" in found
