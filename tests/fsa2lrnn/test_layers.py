"""Every name of a layer, in every spelling, wherever a layer is named."""

import json
import re

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.export.in_use import say
from fsa2lrnn.families import represent
from fsa2lrnn.layers import EXPORTED, LAYERS, is_layer, of_name, released_model, trained_name
from fsa2lrnn.nn.layers import layer_named
from fsa2lrnn.training.grid import Sweep, read_sweep
from fsa2lrnn.training.settings import Settings, preset


@pytest.mark.parametrize("row", LAYERS.values(), ids=LAYERS)
def test_every_spelling_is_taken_everywhere_or_told_what_can_be_done(row, tmp_path):
    names = [row.name, *row.spellings, *row.exported_to]
    names += [spelled for name in names for spelled in (name.replace("-", "_"), name.replace("-", "").upper())]
    assert {of_name(name).name for name in names} == {row.name}
    assert all(map(is_layer, names))
    other = names[-1]
    told = re.escape(f"{row.name} ")  # what the message then lists
    if row.trained_by and not row.setting:
        trained = row.trained_by
        assert {trained_name(name) for name in names} == {trained}
        assert layer_named(other) is layer_named(trained)
        assert (
            Settings("task:parity", layer=other).layer == preset("quick", "task:parity", layer=other).layer == trained
        )
        file = tmp_path / "sweep.json"
        file.write_text(json.dumps({"tasks": ["task:parity"], "settings": {"named": {"layer": other}}}))
        (trial,) = Sweep.from_dict(read_sweep(file)).trials
        assert trial.settings.layer == trained
    else:
        for refuse in (trained_name, layer_named, lambda name: Settings("task:parity", layer=name)):
            with pytest.raises(UnsupportedFormat, match=told):
                refuse(other)
    if row.exported_to:
        assert {released_model(name) for name in names} == set(row.exported_to)
    else:
        with pytest.raises(UnsupportedFormat, match=f"{told}.*no released model with it .* {EXPORTED[0]}, "):
            released_model(other)
    if row.family:
        assert say(zoo.parity(), other).name == row.name
        assert represent(zoo.parity(), other).answer in ("yes", "no", "unknown")
    else:
        with pytest.raises(UnsupportedFormat, match=told):
            represent(zoo.parity(), other)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "--layer", "olmo-hybrid"), "--set neg_eigval=true"),
        (("train", "--layer", "mamba"), "mamba is decided (`explain --layer`)"),
        (("train", "--layer", "lstm"), "lstm"),
        (("export", "--layer", "mamba-3"), "mamba-3 trains (`train --layer mamba3`), is decided"),
        (("explain", "--layer", "deltanet"), "stacks of deltanet are not decided: deltanet is a special case"),
        (("explain", "--family", "rwkv7"), "rwkv7 is described by no family: rwkv-7 trains"),
    ],
)
def test_what_cannot_be_done_says_what_can(call, arguments, said):
    command, *options = arguments
    output = [] if command == "explain" else ["-o", "out"]
    code, _, err = call(command, "task:parity", *options, *output)
    assert (code, said in " ".join(err.split())) == (2, True), err
