import pydot
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.decomposition.drawing import describe, to_dot
from fsa2lrnn.decomposition.search import decompose


def test_the_rooms_of_mod_arith_in_words():
    cascade = decompose(zoo.mod_arith(5, "register")).cascade
    assert describe(cascade)[-1] == (
        "layer 2, sum",
        "5 states, permutation: a one-hot block of 5; reads the letter and component 1 and term",
    )
    now = decompose(zoo.mod_arith(5, "register"), token_shift=False).cascade
    assert describe(now)[-1][1].endswith("reads the letter and component 1 and term after it")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pydot's own, of pyparsing's old names
def test_the_drawing_has_a_box_for_each_component_and_an_arrow_for_each_read():
    cascade = decompose(zoo.mod_arith(5, "eager")).cascade
    (graph,) = pydot.graph_from_dot_data(to_dot(cascade))
    arrows = {(edge.get_source(), edge.get_destination()) for edge in graph.get_edges()}
    for i, component in enumerate(cascade.components):
        assert ("letter", f"c{i}") in arrows
        assert {f"c{j}" for j in component.reads} == {s for s, t in arrows if t == f"c{i}"} - {"letter"}
    assert {s for s, t in arrows if t == "output"} == {f"c{i}" for i in cascade.output_reads}
    layers = {sub.get_name(): sub for sub in graph.get_subgraphs()}
    assert list(layers) == [f"cluster_{layer}" for layer in range(cascade.n_layers)]


def test_the_output_reads_what_it_needs():
    cascade = decompose(zoo.mod_arith(5, "register")).cascade
    assert [cascade.components[i].name for i in cascade.output_reads] == ["", "term", "sum"]
    parity = decompose(zoo.parity()).cascade
    assert parity.output_reads == (0,)
