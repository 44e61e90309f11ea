"""Streams of events, and networks that leave Python: torch.export and ONNX."""

import pytest
import torch

from fsa2lrnn import LRNN, Stream, compile_machine, load, zoo
from fsa2lrnn.errors import CheckpointError, InvalidWord, UnsupportedFormat
from fsa2lrnn.nn.compiled import is_exporting
from fsa2lrnn.training.settings import Settings

EVENTS = ["1", "+", "2", "*", "3", "-", "4"]


def trained(layer, **more):
    settings = Settings("task:parity", layer=layer, layers=2, embedding_dim=8, block=4, heads=2, **more)
    return LRNN(settings.network(("a", "b"), (False, True)))


@pytest.mark.parametrize("layout", ["dense", "index"])
def test_outputs_come_event_by_event_and_states_are_kept(tmp_path, layout):
    model = compile_machine("task:mod_arith(5)", layout=layout)
    stream, expected = Stream(model), model.transduce(EVENTS)
    assert [stream.push(event) for event in EVENTS[:4]] == expected[:4]
    stream.save(tmp_path / "state.safetensors")
    begun = stream.state
    rest = [stream.push(event) for event in EVENTS[4:]]
    again = Stream(model)
    again.load(tmp_path / "state.safetensors")
    assert (again.read, [again.push(event) for event in EVENTS[4:]]) == (4, rest)
    assert rest == expected[4:]
    stream.state = begun
    assert (stream.read, stream.push(EVENTS[4]), stream.read) == (4, expected[4], 5)
    with pytest.raises(CheckpointError, match=r"holds the state of a stream: fsa2lrnn\.Stream\(model\)\.load reads it"):
        load(tmp_path / "state.safetensors")
    with pytest.raises(CheckpointError, match="holds the state of another model"):
        Stream(compile_machine("task:parity")).load(tmp_path / "state.safetensors")
    with pytest.raises(CheckpointError, match=r"0.x has shape"):
        Stream(model, batch=2).load(tmp_path / "state.safetensors")
    with pytest.raises(FileNotFoundError, match="no such file"):
        again.load(tmp_path / "nowhere.safetensors")


def test_streams_of_a_batch_advance_together():
    model = trained("block", token_shift=True)
    words = ["abba", "bbab", "aaba"]
    stream = Stream(model, batch=3)
    found = [stream.push_each(events) for events in zip(*words, strict=True)]
    assert [list(outputs) for outputs in zip(*found, strict=True)] == [model.transduce(word) for word in words]
    with pytest.raises(InvalidWord, match="2 events for 3 streams: give one for each"):
        stream.push_each("ab")
    with pytest.raises(InvalidWord, match="letter 'c' at position 2 is not in the alphabet"):
        stream.push_each("acb")
    assert stream.read == 4
    with pytest.raises(UnsupportedFormat, match="not causal"):
        Stream(trained("liquid_s4", options={"kernel": "polyb"}, connection="full-residual"))


def test_a_layer_without_onnx_warns_while_it_is_exported(monkeypatch):
    tokens = torch.zeros(1, 2, dtype=torch.int64)
    monkeypatch.setattr("torch.onnx.is_in_onnx_export", lambda: True)
    monkeypatch.setattr("fsa2lrnn.nn.model.is_exporting", lambda: True)
    trained("lru")(tokens)
    with pytest.warns(UserWarning, match=r"layer s5 computes with complex numbers, .* or train one of block, .*, lru,"):
        trained("s5")(tokens)


@pytest.mark.long
@pytest.mark.parametrize("name", ["onehot", "cascade", "index", "block", "mamba2", "lru"])
def test_a_network_is_exported_for_one_shape_of_tokens(name, tmp_path):
    models = {
        "onehot": lambda: compile_machine(zoo.ab_star()),
        "cascade": lambda: compile_machine("task:dyck(1,4)", form="cascade"),
        "index": lambda: compile_machine(zoo.ab_star(), layout="index"),
    }
    model = models[name]() if name in models else trained(name)
    # Of onehot so many that its repeated rows would be numbered.
    shape = (64, 64) if name == "onehot" else (2, 10)
    tokens = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(0))
    expected = model(tokens).detach()
    assert not is_exporting()
    found = torch.export.export(model, (tokens,)).module()(tokens)
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.equal(found, expected) or name not in models
    runtime, _ = pytest.importorskip("onnxruntime"), pytest.importorskip("onnxscript")
    torch.onnx.export(model, (tokens,), dynamo=True).save(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    (given,) = session.get_inputs()
    (found,) = session.run(None, {given.name: tokens.numpy()})
    assert torch.allclose(torch.from_numpy(found), expected, atol=1e-5)
