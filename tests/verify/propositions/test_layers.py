"""What the propositions on other layers rest on: the table is the paper's, and layers are what they are called."""

from fsa2lrnn.lrnn.layers import LAYERS, name_of
from verify.propositions import FAST, layers


def test_the_layers_are_those_that_the_paper_names():
    assert {name: name_of(config) for name, config in layers.FIXED.items()} == {
        name: name.lower() for name in ("S4", "S4D", "S5", "LRU")
    }
    assert all(isinstance(layers.new_layer(config), LAYERS[name.lower()]) for name, config in layers.FIXED.items())


def test_chance_is_computed_at_the_lengths_of_the_paper():
    found = layers.levels(FAST, list(layers.TABLE_2))
    assert {task: round(level.best_of_looks, 3) for task, level in found.items()} == {
        "task:sum_mod(5)": 0.279,
        "task:even_pair(5)": 0.873,
        "task:mod_arith(5)": 0.279,
    }
