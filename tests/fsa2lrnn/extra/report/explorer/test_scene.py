import json

import numpy as np
import pytest
import torch

from experiments.studies.keep_models import MODELS
from fsa2lrnn import compile_machine, load, zoo
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.extra.report.explorer import SceneModel, scene
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig


@pytest.fixture(scope="module")
def hard():
    """Three one-hot heads over two letters, drawn at random."""
    torch.manual_seed(3)
    layer = BlockLayerConfig((4, 4, 3), 2, 2, gate="table")
    return LRNN(LRNNConfig(("a", "b"), (False, True), (layer,), embedding_dim=2, normalisation="onehot"))


def test_letters_and_outputs_are_matched_by_name():
    parity = MooreMachine([[0, 1], [1, 0]], [False, True], 0, ["x", "y"])
    turned = MooreMachine([[1, 0], [0, 1]], [False, True], 0, ["y", "x"])
    found = scene(parity, {"m": SceneModel(compile_machine(turned), failing=[("y", "x")])}).data
    letters = found["machine"]["alphabet"]
    assert [("y", "x").index(letter) for letter in letters] == found["models"][0]["letters"]
    assert found["words"] == [{"of": "m", "letters": [letters.index("y"), letters.index("x")]}]
    wanted = [found["models"][0]["outputs"][j] for j in found["models"][0]["wanted"]]
    assert wanted == found["machine"]["outputs"]
    json.dumps(found, allow_nan=False)
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        scene(zoo.sum_mod(3), {"m": SceneModel(compile_machine(parity))})


def test_outputs_that_a_model_lacks_do_not_count_where_so_asked():
    model = compile_machine(MooreMachine([[0]], [0], 0, ["a"]))
    machine = MooreMachine([[1, 0]], [0, "new"], 0, ["a"])
    found = scene(machine, {"m": SceneModel(model)}, "lacked").data["models"][0]
    assert sorted(zip(found["wanted"], found["counts"], strict=True)) == [(-1, False), (0, True)]


def test_one_hot_heads_are_automata_of_what_letters_reach(hard):
    found = scene(MooreMachine([[0, 1], [1, 0]], [False, True], 0, ["a", "b"]), {"m": SceneModel(hard)})
    layer = hard.recurrences[0]
    maps, start = layer.maps(hard.first_inputs()).numpy(), layer.initial_state(1)[0].argmax(-1).numpy()
    assert sorted(found.heads[0]) == [0, 1, 2]
    for h, states in found.data["models"][0]["heads"].items():
        reached, new = {int(start[int(h)])}, True
        while new:
            new = {int(maps[a, int(h), q]) for q in reached for a in (0, 1)} - reached
            reached |= new
        assert set(states) == reached
        assert found.heads[0][int(h)].count('class="node"') == len(states)


def test_a_machine_is_not_drawn_twice_and_learned_blocks_are_no_automata():
    machine = zoo.sum_mod(3)
    assert scene(machine, {"m": SceneModel(compile_machine(machine))}).heads == [{}]


def test_planes_part_states_and_the_second_lies_as_the_first():
    machine = zoo.sum_mod(5)
    models = {"a": SceneModel(load(MODELS / "sum5" / "seed-0.safetensors")), "b": SceneModel(compile_machine(machine))}
    centres = []
    for entry in scene(machine, models).data["models"]:
        points = np.array(entry["plane"]["points"])
        middle = np.stack([points[points[:, 2] == q, :2].mean(0) for q in range(5)])
        spread = max(np.linalg.norm(points[points[:, 2] == q, :2] - middle[q], axis=1).max() for q in range(5))
        apart = min(np.linalg.norm(middle[i] - middle[j]) for i in range(5) for j in range(i))
        assert spread < apart / 2
        centres.append(middle - middle.mean(0))
    assert np.abs(centres[0] - centres[1]).max() < 0.2
    index = scene(machine, {"t": SceneModel(compile_machine(machine, layout="index"))}).data["models"][0]
    assert index["plane"] is None


@pytest.mark.parametrize(
    ("letters", "typed"), [("ab", "characters"), (("up", "down"), "words"), (("a b", "c"), "list"), ((0, "0"), "list")]
)
def test_how_words_are_typed(letters, typed):
    machine = MooreMachine([[0], [0]], [0], 0, letters)
    assert scene(machine, {}).data["typed"] == typed
