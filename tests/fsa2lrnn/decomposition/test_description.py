import numpy as np
import pydot
import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.decomposition.cascade import Cascade, Component
from fsa2lrnn.decomposition.description import describe, to_dot
from fsa2lrnn.decomposition.search import decompose

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pydot's own, of pyparsing's old names


def test_the_rooms_of_mod_arith_in_words():
    cascade = decompose(zoo.mod_arith(5, "register")).cascade
    assert describe(cascade)[-1] == (
        "layer 2, sum",
        "5 states, permutation: a one-hot block of 5; reads the letter, and the states before it of component 1 and "
        "term",
    )
    now = decompose(zoo.mod_arith(5, "register"), token_shift=False).cascade
    assert describe(now)[-1][1].endswith("reads the letter, and the states after it of component 1 and term")


def test_the_drawing_has_a_box_for_each_component_a_row_for_each_layer_and_an_arrow_for_each_read():
    cascade = decompose(zoo.mod_arith(5, "eager")).cascade
    (graph,) = pydot.graph_from_dot_data(to_dot(cascade))
    arrows = {
        (edge.get_source(), edge.get_destination())
        for edge in graph.get_edges()
        if "style" not in edge.obj_dict["attributes"]
    }
    assert arrows == {(f"c{j}", f"c{i}") for i, component in enumerate(cascade.components) for j in component.reads}
    boxes = {node.get_name(): node for node in graph.get_nodes()}
    shaded = {name for name, node in boxes.items() if node.get("fillcolor")}
    assert shaded == {f"c{i}" for i in cascade.output_reads}
    assert {f"c{i}" for i in range(4)} | {f"layer{i}" for i in range(3)} <= set(boxes)
    rows = [{node.get_source() for node in row.get_edges()} for row in graph.get_subgraphs()]
    assert len(rows) == cascade.n_layers


def test_who_reads_all_of_many_says_so_in_its_box_and_when():
    cascade = decompose(zoo.dyck(2, 5)).cascade
    text = to_dot(cascade)
    assert "reads all 4 below" in text
    assert "-> c4" not in text.replace("layer4 -> c4", "")
    assert describe(cascade)[4][1].endswith("reads the letter, and the states before it of all 4 components below")
    assert describe(cascade)[3][1].endswith("of tile at height 6, tile at height 5 and tile at height 4")
    now = decompose(zoo.mod_arith(5, "register"), token_shift=False).cascade
    assert "arrow: its state after the letter is read too" in to_dot(now)
    assert "arrow" not in to_dot(decompose(zoo.group("S5")).cascade).split("label=")[1]


def test_quotes_in_names_are_escaped():
    flip = Component(2, 0, (), 0, np.array([[0], [1]]), np.array([[0, 1], [1, 0]]), name='the "bit"')
    (graph,) = pydot.graph_from_dot_data(to_dot(Cascade(zoo.parity(), (flip,))))
    assert graph.get_node("c0")[0].get("label").startswith('"the \\"bit\\"')


def test_one_state_and_many_of_more():
    still = MooreMachine([[0]], [True])
    assert describe(decompose(still).cascade) == [
        ("layer 1, component 1", "1 state, trivial: a lane that stays 0; reads the letter")
    ]
    cascade = decompose(zoo.random_dfa(12, 3, seed=2, minimal=True), units=lambda _: 0).cascade
    assert any(" of the 9 components below" in what for _, what in describe(cascade))
