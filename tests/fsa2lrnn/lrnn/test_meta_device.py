"""Modules made without numbers are those made with them, but for the numbers; and torch's compiler stays out."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fsa2lrnn import LRNN
from fsa2lrnn.lrnn.layers import LAYERS
from fsa2lrnn.lrnn.tensor_file import on_meta_device
from fsa2lrnn.training.settings import Settings

MODELS = Path(__file__).parents[3] / "experiments" / "models"


@pytest.mark.parametrize("layer", sorted(name for name in LAYERS if ":" not in name and name != "index"))
def test_shapes_types_and_settings_are_the_same(layer):
    config = Settings("task:parity", layer=layer).network(("0", "1"), (0, 1))
    filled = LRNN(config)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with on_meta_device():
        empty = LRNN(config)
    assert torch.equal(torch.get_rng_state(), before)
    wanted, found = ([*model.named_parameters(), *model.named_buffers()] for model in (filled, empty))
    for (name, x), (other, y) in zip(wanted, found, strict=True):
        assert (name, x.shape, x.dtype, x.requires_grad) == (other, y.shape, y.dtype, y.requires_grad)
    assert empty.embedding.weight.device.type == "meta"  # not so what layers compute by numpy


@pytest.mark.parametrize("end", [(5,), (2, 9), (9, 0, -2), (0,)])
def test_ranges_and_comparisons(end):
    wanted = torch.arange(*end)
    with on_meta_device():
        found = torch.arange(*end)
        less = found < torch.empty(4, 1)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert (less.shape, less.dtype) == ((4, len(wanted)), torch.bool)


def test_loading_a_model_imports_no_compiler():
    code = "import sys\nfrom fsa2lrnn import load\nload(sys.argv[1])\nprint('torch._dynamo' in sys.modules)"
    path = MODELS / "sum2" / "seed-0.safetensors"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
