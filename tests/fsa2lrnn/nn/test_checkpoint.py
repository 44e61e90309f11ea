"""Files: what comes back, and what each kind of broken file says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from safetensors.torch import save as tensor_bytes
from torch import nn

from fsa2lrnn import LRNN, MooreMachine, compile_machine, load, save, zoo
from fsa2lrnn.errors import CheckpointError, MissingFile, UnsupportedFormat
from fsa2lrnn.nn.checkpoint import (
    FORM,
    FileFormat,
    check_shapes,
    on_meta_device,
    open_tensors,
    state_shapes,
    write_tensors,
)
from fsa2lrnn.nn.layers import LAYERS
from fsa2lrnn.training.settings import Settings

TENSOR_FORM = FileFormat("a-format", 3)
TENSORS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.tensor(7), "c": torch.zeros(0, 4, dtype=torch.uint8)}


@pytest.fixture
def path(tmp_path):
    write_tensors(tmp_path / "t", TENSOR_FORM, TENSORS, {"note": "é"})
    return tmp_path / "t"


def read(path, form=TENSOR_FORM):
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
    write_tensors(tmp_path / "again", TENSOR_FORM, dict(reversed(TENSORS.items())), {"note": "é"})
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    both = torch.arange(4.0).reshape(2, 2)
    write_tensors(tmp_path / "t", TENSOR_FORM, {"x": both, "y": both.T, "z": both.clone().expand(3, 2, 2)}, {})
    assert torch.equal(read(tmp_path / "t")[2]["y"], both.T)


def header_with(path, change):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


@pytest.mark.parametrize("change", [
    lambda h: h["b"].update(shape=[2**62, 2**62]),
    lambda h: h["b"].update(shape=[10**11]),
    lambda h: h["b"].update(shape=[-1]),
    lambda h: h["b"].update(data_offsets=[0, 2**60]),
    lambda h: h["b"].update(dtype="F128"),
    lambda h: h.update(d={"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}),
    lambda h: h["__metadata__"].update(version=3),
])  # fmt: skip
def test_headers_that_say_more_than_there_is_are_refused(path, change):
    header_with(path, change)
    for content in (path.read_bytes(), b"", b"\x00" * 8, b"\xff" * 16, (1 << 40).to_bytes(8, "little") + b"{}"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="t is damaged or no safetensors file"):
            read(path)


def test_what_is_no_file_and_types_that_no_file_has_are_named(tmp_path):
    with pytest.raises(MissingFile, match="no such file"):
        read(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match=r"is a folder: give a file \(\.safetensors\)"):
        read(tmp_path)
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


@pytest.mark.long
def test_loading_a_model_imports_no_compiler():
    code = "import sys\nfrom fsa2lrnn import load\nload(sys.argv[1])\nprint('torch._dynamo' in sys.modules)"
    path = MODELS / "sum2" / "seed-0.safetensors"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def rewrite(path, change_metadata=None, change_tensors=None):
    """Write the file at `path` again with changed metadata or tensors, its checksum left as it was."""
    header_size = int.from_bytes(path.read_bytes()[:8], "little")
    metadata = json.loads(path.read_bytes()[8 : 8 + header_size])["__metadata__"]
    tensors = load_file(path)
    for change, target in [(change_metadata, metadata), (change_tensors, tensors)]:
        if change is not None:
            change(target)
    save_file(tensors, path, metadata)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.safetensors"
    save(compile_machine(zoo.mod_arith(5)), path)
    return path


@pytest.mark.parametrize("layout", ["dense", "index"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_round_trip(tmp_path, dtype, layout):
    machine = MooreMachine([[1, 0], [0, 0]], [("x", 1), None], alphabet=[0, ("long", True)])
    model = compile_machine(machine, dtype=dtype, layout=layout)
    save(model, tmp_path / "m.safetensors")
    back = load(tmp_path / "m.safetensors")
    assert back.config == model.config
    assert back.dtype == dtype
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), back.state_dict().values(), strict=True))
    word = [0, ("long", True), 0]
    assert back.transduce(word) == machine.transduce(word)


@pytest.mark.long
def test_equal_models_give_equal_bytes_in_every_process(saved, tmp_path):
    letters = [frozenset(f"letter {i}" for i in range(20)), "ü"]
    save(compile_machine(MooreMachine([[0], [0]], [0], alphabet=letters)), tmp_path / "sets.safetensors")
    code = "import sys\nfrom fsa2lrnn import load, save\nfor p in sys.argv[1:]: save(load(p), p + '.again.safetensors')"
    paths = [saved, tmp_path / "sets.safetensors"]
    subprocess.run([sys.executable, "-c", code, *paths], check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    for path in paths:
        content = path.read_bytes()
        assert content == path.with_name(f"{path.name}.again.safetensors").read_bytes()
        size = int.from_bytes(content[:8], "little")
        assert size % 8 == 0
        assert list(json.loads(content[8 : 8 + size])["__metadata__"]) == ["config", "format", "sha256", "version"]


def flipped(content):
    return content[:-5] + bytes([content[-5] ^ 4]) + content[-4:]


@pytest.mark.parametrize(("damage", "message"), [
    *((lambda content, n=n: content[:n], "is damaged or no safetensors file") for n in (0, 4, 100, -1)),
    (lambda _: os.urandom(2000), "is damaged or no safetensors file"),
    (flipped, "do not match their checksum"),
    (lambda _: tensor_bytes({"weight": torch.zeros(3)}), r"of another program \(format None, not"),
])  # fmt: skip
def test_damaged_and_foreign_files(saved, damage, message):
    saved.write_bytes(damage(saved.read_bytes()))
    with pytest.raises(CheckpointError, match=message):
        load(saved)
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nowhere"):
        load(saved.with_name("nowhere.safetensors"))


def test_a_folder_is_named_with_what_reads_it(saved, tmp_path):
    with pytest.raises(CheckpointError, match=rf"is a folder: give a file in it, such as .*{saved.name}"):
        load(saved.parent)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "fsa2lrnn.json").touch()
    with pytest.raises(
        CheckpointError, match=r"is a folder: `export` wrote it, and fsa2lrnn\.export\.folder\.load reads"
    ):
        load(tmp_path / "other")


def test_other_tensors_are_named(saved):
    rewrite(saved, change_tensors=lambda t: t.update(extra=t.pop("layers.0.x0")))
    with pytest.raises(CheckpointError, match=r"layers.0.x0 is missing; extra is unknown"):
        load(saved)


@pytest.mark.parametrize(("dtype", "reason"), [
    (torch.int64, r"layers.0.x0 is of torch.int64 in place of torch.float32"),
    (torch.float64, r"its floating-point types are \['torch.float32', 'torch.float64'\], not one"),
    (torch.float16, r"\['torch.float16', 'torch.float32'\], not one: convert all to one"),
    (torch.float8_e4m3fn, "'layers.0.x0' is of type F8_E4M3, which no file of ours has"),
    (torch.bool, "'layers.0.x0' is of type BOOL, which no file of ours has"),
])  # fmt: skip
def test_tensors_of_another_type_are_named(saved, dtype, reason):
    rewrite(saved, change_tensors=lambda t: t.update({"layers.0.x0": t["layers.0.x0"].to(dtype)}))
    with pytest.raises(CheckpointError, match=reason):
        load(saved)


def config_of(layer=None, **changes):
    """A change of metadata: fields of the configuration, and of its first layer."""

    def change(metadata):
        config = json.loads(metadata["config"]) | changes
        config["layers"][0] |= layer or {}
        metadata["config"] = json.dumps(config)

    return change


@pytest.mark.parametrize(("change", "reason"), [
    (config_of(embedding_dim=2.0), "config.embedding_dim = 2.0 must be a whole number"),
    (config_of(p=float("inf")), "config.p = inf must be a finite number"),
    (config_of(alphabet=[["a"]]), r"config.alphabet\[0\]: \['a'\] is not a symbol"),
    (config_of(colour="red"), "config.colour is not known: remove it"),
    (config_of({"kind": ["block"]}), r"config.layers\[0\]: layer kind \['block'\] is not known"),
    (config_of({"block_sizes": [51.0]}), r"config.layers\[0\].block_sizes\[0\] = 51.0 must be a whole number"),
    (config_of({"block_sizes": [10**11]}), "a state of 100,000,000,000 numbers: at most 65,536"),
    (lambda m: m.update(config="[" * 100_000), "the configuration: nested deeper than 100"),
    (lambda m: m.pop("config"), "it has none"),
    (lambda m: m.update(version="9" * 5_000), "of format version '9999.*', and this fsa2lrnn reads up to 1"),
    (lambda m: m.update(version="01"), "of format version '01'"),
    (lambda m: m.update(version="2"), "of format version '2', and this fsa2lrnn reads up to 1: update fsa2lrnn"),
    (config_of({"block_sizes": [7]}), r"layers.0.x0 has shape \(1, 51\) in place of \(1, 7\)"),
    *(
        (lambda m, config=config: m.update(config=config), "has a configuration that cannot be read")
        for config in ("{", "[]", "{}", '{"layers": [{"kind": "spiral"}]}', '{"layers": 3}')
    ),
])  # fmt: skip
def test_a_configuration_of_other_types_is_named(saved, change, reason):
    rewrite(saved, change)
    with pytest.raises(CheckpointError, match=reason):
        load(saved)


HUGE = [
    config_of(embedding_dim=400_000_000),
    config_of(readout_hidden=10**18),
    config_of({"transition_hidden": 10**9}),
    config_of({"block_sizes": [1] * 65_536}),
    config_of({"kind": "householder", "size": 1 << 8, "n_heads": 1 << 8, "n_factors": 10**9, "unit_keys": True}),
    config_of(embedding_dim=1 << 62, readout_hidden=1 << 62),
]


@pytest.mark.parametrize("change", HUGE)
def test_nothing_is_made_of_sizes_that_the_tensors_do_not_have(saved, change, monkeypatch):
    built = []

    def recorded(config):
        built.append(torch.empty(0).device.type)
        return LRNN(config)

    def without_what_is_not_its_own(metadata):
        change(metadata)
        config = json.loads(metadata["config"])
        layer = config["layers"][0]
        if layer["kind"] == "householder":
            for name in ("block_sizes", "gate", "temperature"):
                del layer[name]
        metadata["config"] = json.dumps(config)

    rewrite(saved, without_what_is_not_its_own)
    monkeypatch.setattr("fsa2lrnn.nn.checkpoint.LRNN", recorded)
    with pytest.raises(CheckpointError, match=r"weights that cannot be made|does not hold the weights its config"):
        load(saved)
    assert built == ["meta"]


def test_symbols_that_json_cannot_hold_are_refused_before_anything_is_written(tmp_path):
    model = compile_machine(MooreMachine([[0]], [b"bytes"]))
    with pytest.raises(UnsupportedFormat, match="of type bytes cannot be written to JSON"):
        save(model, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("entry", [-1, 51, 10**12])
@pytest.mark.parametrize("name", ["embedding.cell", "layers.0.next_state", "layers.0.start", "readout.output"])
def test_tables_that_lead_out_of_themselves_are_refused(tmp_path, name, entry):
    """Compiled loops follow them unchecked: such a file ended the process, or read what is none of its business."""
    model = compile_machine(zoo.mod_arith(5), layout="index")
    tensors = dict(model.state_dict())
    tensors[name] = tensors[name].clone()
    tensors[name].view(-1)[-1] = entry
    path = tmp_path / "m.safetensors"
    write_tensors(path, FORM, tensors, {"config": json.dumps(model.config.to_json())})
    with pytest.raises(CheckpointError, match=rf"weights that no model has .*{name} holds {entry}, but its entries"):
        load(path)
    with pytest.raises(RuntimeError, match=rf"{name} holds {entry}, but its entries run 0"):
        model.load_state_dict(tensors)
    assert model.transduce("1+2") == zoo.mod_arith(5).transduce("1+2")
