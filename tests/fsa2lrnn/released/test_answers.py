"""Yes, no, unknown: never yes and no at once."""

import pytest

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.released import LAYERS, layer_file
from fsa2lrnn.released.answers import answer
from fsa2lrnn.released.refuse import refuse


@pytest.mark.parametrize(
    ("task", "layer", "kind"),
    [
        ("parity", "olmo-hybrid", "yes"),
        ("parity", "qwen3-next", "no"),
        ("sum_mod(5)", "qwen3-next", "no"),
        ("flip_flop", "qwen3-next", "yes"),
        ("tomita(3)", "olmo-hybrid", "unknown"),
    ],
)
def test_kinds(task, layer, kind):
    found = answer(zoo.from_task(task), layer)
    assert found.kind == kind
    assert ("certificate" in found.to_json()) == (kind == "no")


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("seed", range(20))
def test_no_construction_where_there_is_a_refusal(layer, seed):
    machine = zoo.random_dfa(3, 2, seed, minimal=True)
    if refuse(machine, layer) is not None:
        with pytest.raises(NotExpressible):
            layer_file(layer).plan(machine)


def test_another_layer():
    with pytest.raises(UnsupportedFormat, match="layer 'gpt' is not known"):
        answer(zoo.parity(), "gpt")
