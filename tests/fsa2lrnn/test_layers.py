"""Every name of a layer, in every spelling, wherever a layer is named."""

import re

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.export.named import say
from fsa2lrnn.families import represent
from fsa2lrnn.layers import EXPORTED, LAYERS, is_layer, of_name, released_model, trained_name
from fsa2lrnn.nn.layers import layer_named
from fsa2lrnn.training.grid import Sweep
from fsa2lrnn.training.settings import Settings, preset

NAMES = sorted(
    {
        (spelling, row.name)
        for row in LAYERS.values()
        for name in (row.name, *row.spellings, *row.exported_to)
        for spelling in (name, name.replace("-", "_"), name.replace("-", "").upper())
    }
)


@pytest.mark.parametrize(("name", "canonical"), NAMES)
def test_every_spelling_is_taken_everywhere_or_told_what_can_be_done(name, canonical):
    row = of_name(name)
    assert (row.name, is_layer(name)) == (canonical, True)
    told = re.escape(f"{canonical} ")  # what the message then lists
    if row.trained_by and (not row.setting or name.replace("-", "_") == row.trained_by):
        trained = trained_name(name)
        assert layer_named(name) is layer_named(trained)
        assert Settings("task:parity", layer=name).layer == trained
        assert preset("quick", "task:parity", layer=name).layer == trained
        swept = {"tasks": ["task:parity"], "settings": {"named": {"layer": name}}, "seeds": [0]}
        (trial,) = Sweep.from_dict(swept).trials
        assert trial.settings.layer == trained
    else:
        for refuse in (trained_name, layer_named, lambda name: Settings("task:parity", layer=name)):
            with pytest.raises(UnsupportedFormat, match=told):
                refuse(name)
    if row.exported_to:
        assert released_model(name) in row.exported_to
    else:
        with pytest.raises(UnsupportedFormat, match=f"{told}.*no released model with it .* {EXPORTED[0]}, "):
            released_model(name)
    assert say(zoo.parity(), name).name == canonical
    if row.family:
        represent(zoo.parity(), name)
    else:
        with pytest.raises(UnsupportedFormat, match=told):
            represent(zoo.parity(), name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "--layer", "olmo-hybrid"), "--set neg_eigval=true"),
        (("train", "--layer", "mamba"), "mamba is decided (`explain`)"),
        (("train", "--layer", "lstm"), "lstm"),
        (("export", "--layer", "mamba-3"), "mamba-3 trains (`train --layer mamba3`), is decided"),
        (("explain", "--layer", "deltanet"), "stacks of deltanet are not decided: deltanet is a special case"),
        (("explain", "--family", "rwkv7"), "rwkv-7 is described by no family: rwkv-7 trains"),
    ],
)
def test_what_cannot_be_done_says_what_can(call, arguments, said):
    command, *options = arguments
    output = [] if command == "explain" else ["-o", "out"]
    code, _, err = call(command, "task:parity", *options, *output)
    assert (code, said in " ".join(err.split())) == (2, True), err
