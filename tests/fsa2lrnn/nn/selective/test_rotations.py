"""A layer of Mamba-3 whose states turn: its certified length is below its first error."""

import itertools
import json
import math

import pytest
import torch

from fsa2lrnn import MooreMachine, certify, check, save
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.checker.program import proved
from fsa2lrnn.errors import Fsa2LrnnError
from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layers import Shape, layer_named
from fsa2lrnn.nn.switched import as_tables, switched

LONGEST, RANDOM_WORDS = 12_000, 8  # of the words that the model runs


def rotations(n: int, decay: float = 0.01) -> LRNN:
    """Return a model of sum_mod(n) in one layer of Mamba-3: letter a turns a pair by 2πa/n. Δ is 1.25 for every letter,
    so that all states of a length decay alike, by exp(−1.25·decay) per letter."""
    machine, step = MooreMachine.from_source(f"task:sum_mod({n})"), 1.25
    layer = layer_named("mamba3").Config.of_shape(Shape(1, 2), {"reads": "state", "expand_v": 0.5})
    shape = {"embedding_dim": n, "readout_hidden": 4, "connection": "chain", "layer_norm": False}
    model = LRNN(LRNNConfig(machine.alphabet, tuple(range(n)), (layer,), normalisation="none", **shape))
    turns = [2 * ((a + n // 2) % n - n // 2) / n for a in range(n)]  # in units of π
    angles = [2 * math.pi * j / n for j in range(n)]
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.embedding.get_parameter("weight").copy_(torch.eye(n))
        mamba, readout = model.recurrences[0], model.readout.weights
        mamba.get_parameter("x0")[0, 0] = 1
        projected = mamba.get_submodule("in_proj").get_parameter("weight")
        _, _, dt, rate, _, angle = projected.split([1, 2, 1, 1, 1, 1])  # x, B, Δ, A, λ, angle
        dt.fill_(math.log(math.expm1(step)))
        rate.fill_(1 - 1 / decay)
        angle.copy_(torch.tensor([[math.atanh(turn / step) for turn in turns]]))
        readout.W1[:, :2] = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
        readout.W2.copy_(torch.tensor([[math.cos(t), -math.cos(t), -math.sin(t), math.sin(t)] for t in angles]))
    return model


def first_error(model: LRNN, machine: MooreMachine) -> int | None:
    """Return the length of the shortest wrong prefix of long test words: each letter repeated, and random letters."""
    n = len(machine.alphabet)
    drawn = torch.randint(n, (RANDOM_WORDS, LONGEST), generator=torch.Generator().manual_seed(0))
    words = torch.cat([torch.arange(n)[:, None].expand(-1, LONGEST), drawn])
    with torch.no_grad():
        given = model(words, "sequential").argmax(-1)
    lengths = []
    for word, row in zip(words.tolist(), given.tolist(), strict=True):
        expected = machine.transduce([machine.alphabet[a] for a in word])
        wrong = (k for k, (x, y) in enumerate(zip(row, expected, strict=True), 1) if model.outputs[x] != y)
        lengths += list(itertools.islice(wrong, 1))
    return min(lengths, default=None)


@pytest.mark.parametrize("n", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_a_rotation_of_mamba_3_is_certified_up_to_a_length_below_its_first_error(n, tmp_path):
    """The decay of exp(−1.25) per letter ends all logits in zeros, so that the certified length is finite."""
    machine, model = MooreMachine.from_source(f"task:sum_mod({n})"), rotations(n, decay=1.0)
    tokens = torch.randint(n, (8, 60), generator=torch.Generator().manual_seed(0))
    assert (model(tokens).argmax(-1) == tokens.cumsum(1) % n).all()
    certificate = certify(model, machine, work=3e8)
    check(certificate, model)
    assert certificate.horizon >= 10
    assert certificate.horizon < first_error(model, machine) <= 100
    # The independent checker takes the tables.
    tables = as_tables(model)
    of_tables = certify(tables, machine, work=3e8)
    paths = [tmp_path / name for name in ("certificate.json", "model.safetensors", "machine.json")]
    of_tables.save(paths[0])
    save(tables, paths[1])
    paths[2].write_text(json_file.to_json(machine))
    assert f"at most {of_tables.horizon:,} letters" in proved(*paths)
    assert of_tables.horizon >= certificate.horizon
    claims = json.loads(paths[0].read_text())
    assert claims["sha256"] == switched(model).sha256
    with torch.no_grad():  # a mutant: one letter turns by a hundredth more
        model.recurrences[0].in_proj.weight[-1, 1] *= 1.1
    with pytest.raises(Fsa2LrnnError, match="model"):
        check(certificate, model)
