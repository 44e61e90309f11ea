"""Run a model on streams of events: one output per event, all streams of a batch at once, states saved and loaded."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import torch

from fsa2lrnn.errors import CheckpointError, InvalidWord, UnsupportedFormat, check_type
from fsa2lrnn.nn.checkpoint import FileFormat, check_shapes, digest, open_tensors, write_tensors
from fsa2lrnn.nn.model import LRNN, decode
from fsa2lrnn.nn.network import LayerState
from fsa2lrnn.symbols import encode

FORM = FileFormat("fsa2lrnn-stream", 1)


class StreamState(NamedTuple):
    """What streams have come to: the number of events that each has read, and the state of each layer, (B, …)."""

    read: int
    layers: tuple[LayerState, ...]


class Stream:
    """The runs of a model on streams of events, which advance together by one event each.

    Attributes:
        model: the model; any that is causal, on its own device.
        state: the state after the events so far, with their number; assign it to go back to it.

    Raises `UnsupportedFormat` for a model that is not causal.

    >>> from fsa2lrnn import compile_machine
    >>> stream = Stream(compile_machine("regex:(ab)*"))
    >>> [stream.push(letter) for letter in "aba"]
    [False, True, False]
    >>> several = Stream(compile_machine("regex:(ab)*"), batch=2)
    >>> several.push_each("ab"), several.push_each("ba")
    ([False, False], [True, False])
    """

    def __init__(self, model: LRNN, batch: int = 1) -> None:
        if not isinstance(model, LRNN):
            raise UnsupportedFormat(f"{type(model).__name__}: give a network, of load(…) or compile_machine(…)")
        if (reason := model.not_causal) is not None:
            raise UnsupportedFormat(reason)
        check_type(batch, Integral, "batch", "the number of streams, at least 1")
        self.model, self.batch = model, batch
        self.state = StreamState(0, model.initial_state(batch))

    @property
    def read(self) -> int:
        """The number of events that each stream has read."""
        return self.state.read

    def push(self, event: Hashable) -> Hashable:
        """Return the output of the one stream after its next event; raise `InvalidWord` for an unknown event."""
        return self.push_each([event])[0]

    def push_each(self, events: Sequence[Hashable]) -> list[Hashable]:
        """Return the output of each stream after its next event; raise `InvalidWord` for an unknown event.

        Raises `NotExact` if a logit is NaN, so that no output can be read.
        """
        if len(events) != self.batch:
            raise InvalidWord(f"{len(events)} events for {self.batch} streams: give one for each")
        tokens = torch.from_numpy(encode(list(events), self.model.alphabet)).to(self.model.device)
        with torch.no_grad():
            logits, layers = self.model.advance(tokens[:, None], self.state.layers)
            numbers = decode(logits[:, 0], self.read)
        self.state = StreamState(self.read + 1, layers)
        return [self.model.outputs[j] for j in numbers.tolist()]

    def save(self, path: str | Path) -> None:
        """Write the states to one file, atomically, with the digest of the model that they belong to."""
        write_tensors(Path(path), FORM, self._tensors(), {"model": digest(self.model.state_dict())})

    def load(self, path: str | Path) -> None:
        """Continue from the states in a file; raise `CheckpointError` for those of another model or batch."""
        path, own = Path(path), self._tensors()
        with open_tensors(path, FORM) as file:
            if file.metadata.get("model") != digest(self.model.state_dict()):
                raise CheckpointError(f"{path} holds the state of another model: load the model that wrote it")
            check_shapes(str(path), {name: (tuple(t.shape), t.dtype) for name, t in own.items()}, file.shapes)
            tensors = {name: t.to(self.model.device) for name, t in file.tensors().items()}
        layers = (LayerState(tensors[f"{i}.x"], tensors.get(f"{i}.u")) for i in range(len(self.state.layers)))
        self.state = StreamState(int(tensors["read"]), tuple(layers))

    def _tensors(self) -> dict[str, torch.Tensor]:
        layers = enumerate(self.state.layers)
        parts = {f"{i}.{name}": part for i, layer in layers for name, part in layer._asdict().items()}
        tensors = {name: part for name, part in parts.items() if part is not None}
        return {**tensors, "read": torch.tensor(self.read)}
