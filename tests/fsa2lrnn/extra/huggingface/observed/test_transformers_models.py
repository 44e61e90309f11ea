"""Which models an architecture owns, and how much of a text it reads at once."""

import pytest

pytest.importorskip("transformers")

from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.observed.transformers_models import FLOATS

OBSERVERS = {kind: layer_file(name).OBSERVER for kind, name in
             [("olmo_hybrid", "olmo-hybrid"), ("qwen3_next", "qwen3-next"), ("mamba2", "mamba-2")]}  # fmt: skip


@pytest.mark.parametrize("kind", OBSERVERS)
def test_it_knows_its_own(random_model, saved, kind):
    model, folder = random_model(kind), saved(kind)
    assert [name for name, observer in OBSERVERS.items() if observer.owns(model)] == [kind]
    assert [name for name, observer in OBSERVERS.items() if observer.is_in(folder)] == [kind]
    assert OBSERVERS[kind].n_tokens(model) == OBSERVERS[kind].n_tokens(model.base_model) == 60
    assert OBSERVERS[kind].describe(model)["dtype"] == "float32"


def test_heads_by_the_numbers_of_their_layers(random_model):
    assert OBSERVERS["olmo_hybrid"].heads(random_model("olmo_hybrid")) == {0: 3, 1: 3, 2: 3}
    assert OBSERVERS["qwen3_next"].heads(random_model("qwen3_next")) == {0: 4, 1: 4, 2: 4}
    assert OBSERVERS["mamba2"].heads(random_model("mamba2")) == {0: 4, 1: 4}


@pytest.mark.parametrize("kind", OBSERVERS)
def test_pieces_fit(random_model, kind):
    together, piece = OBSERVERS[kind].pieces(random_model(kind), 1_024)
    assert 0 < together <= 4_096
    assert 0 < piece <= 1_024
    assert OBSERVERS[kind].pieces(random_model(kind), 5)[1] == 5
    attending = getattr(random_model(kind).config, "num_attention_heads", 0) or 0
    assert attending * OBSERVERS[kind].pieces(random_model(kind), 10**9)[1] ** 2 <= FLOATS
