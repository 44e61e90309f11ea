"""Every layer says what it executes."""

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.huggingface import LAYERS, layer_file


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_declares_itself(name):
    file = layer_file(name)
    assert file.LAYER.name == name
    assert "What one step executes:" in " ".join(file.__doc__.split())


def test_another_is_refused():
    with pytest.raises(UnsupportedFormat, match="layer 'gpt' is not known: choose one of olmo-hybrid"):
        layer_file("gpt")
