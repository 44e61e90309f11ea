"""Tensors on disk: what a header says is known before anything is read; modules made without numbers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from fsa2lrnn import LRNN
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.lrnn.layers import LAYERS
from fsa2lrnn.lrnn.tensor_file import (
    FileFormat,
    check_shapes,
    on_meta_device,
    open_tensors,
    state_shapes,
    write_tensors,
)
from fsa2lrnn.training.settings import Settings

FORM = FileFormat("a-format", 3)
TENSORS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.tensor(7), "c": torch.zeros(0, 4, dtype=torch.uint8)}


@pytest.fixture
def path(tmp_path):
    write_tensors(tmp_path / "t", FORM, TENSORS, {"note": "é"})
    return tmp_path / "t"


def read(path, form=FORM):
    with open_tensors(path, form) as file:
        return file.metadata, file.shapes, file.tensors()


def test_what_is_written_comes_back_in_equal_bytes(path, tmp_path):
    metadata, shapes, tensors = read(path)
    assert {name: metadata[name] for name in ("format", "version", "note")} == {
        "format": "a-format", "version": "3", "note": "é",
    }  # fmt: skip
    assert shapes == {
        "a": ((), torch.int64), "b": ((2, 3), torch.float32), "c": ((0, 4), torch.uint8),
    }  # fmt: skip
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    write_tensors(tmp_path / "again", FORM, dict(reversed(TENSORS.items())), {"note": "é"})
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    both = torch.arange(4.0).reshape(2, 2)
    write_tensors(tmp_path / "t", FORM, {"x": both, "y": both.T, "z": both.clone().expand(3, 2, 2)}, {})
    assert torch.equal(read(tmp_path / "t")[2]["y"], both.T)


def header_with(path, change):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["b"].update(shape=[2**62, 2**62]),
        lambda h: h["b"].update(shape=[10**11]),
        lambda h: h["b"].update(shape=[-1]),
        lambda h: h["b"].update(data_offsets=[0, 2**60]),
        lambda h: h["b"].update(dtype="F128"),
        lambda h: h.update(d={"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}),
        lambda h: h["__metadata__"].update(version=3),
    ],
)
def test_headers_that_say_more_than_there_is_are_refused(path, change):
    header_with(path, change)
    for content in (path.read_bytes(), b"", b"\x00" * 8, b"\xff" * 16, (1 << 40).to_bytes(8, "little") + b"{}"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="t is damaged or no safetensors file"):
            read(path)


def test_what_is_no_file_and_types_that_no_file_has_are_named(tmp_path):
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(CheckpointError, match="no such file"):
            read(path)
    save_file({"x": torch.zeros(2, dtype=torch.complex64)}, tmp_path / "t", {"format": "a-format", "version": "3"})
    with pytest.raises(CheckpointError, match="t: 'x' is of type C64, which no file of ours has"):
        read(tmp_path / "t")


def test_shapes_are_known_without_weights_and_compared_by_name():
    shapes = state_shapes(lambda: nn.Linear(1 << 31, 1 << 20))
    assert shapes == {"weight": ((1 << 20, 1 << 31), torch.float32), "bias": ((1 << 20,), torch.float32)}
    with pytest.raises(CheckpointError, match="has weights that cannot be made"):
        state_shapes(lambda: nn.Linear(1 << 62, 1 << 62))
    wanted = {"a": ((2,), torch.float32), "b": ((3,), torch.int64), "c": ((), torch.float32)}
    check_shapes("t", wanted, wanted)
    found = {"a": ((4,), torch.float64), "b": ((3,), torch.float64), "d": ((), torch.float32)}
    with pytest.raises(CheckpointError) as caught:
        check_shapes("t", wanted, found)
    for fault in (
        "c is missing",
        "d is unknown",
        "a has shape (4,) in place of (2,)",
        "b is of torch.float64 in place",
    ):
        assert fault in str(caught.value)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_do_not_pass_for_those_that_are_wanted(kind):
    """Its numbers are others, so that nothing proved or resumed would be of that model: the remedy is the user's."""
    wanted = {"a": ((2,), torch.float32), "b": ((3,), torch.int64)}
    with pytest.raises(CheckpointError, match=rf"a is of {kind} .*, convert it \(tensor\.to\(torch\.float32\)"):
        check_shapes("t", wanted, {**wanted, "a": ((2,), kind)})


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


def test_loading_a_model_imports_no_compiler():
    code = "import sys\nfrom fsa2lrnn import load\nload(sys.argv[1])\nprint('torch._dynamo' in sys.modules)"
    path = MODELS / "sum2" / "seed-0.safetensors"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
