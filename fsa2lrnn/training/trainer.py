"""The trainer of every run: a model and its optimiser, one step, and the tensors from which a step can be resumed.

On a GPU a step of a small network takes as long as Python needs to launch its operations. `GraphReplay` records a step
as a CUDA graph, which launches all at once, and several runs with their own graphs and streams share the GPU.

`Stop` holds the signals of a run, `use_threads` its threads.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numba
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.nn.checkpoint import Shapes

_AVERAGES = ("exp_avg", "exp_avg_sq")  # of Adam


class Trainer:
    """A model with its optimiser. The tensors of a checkpoint hold both, and the random generators of the run."""

    def __init__(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        self.model, self.optimiser = model, optimiser

    def backward(self, loss: Tensor) -> Tensor:
        """Replace the gradients by those of a loss (); return the detached loss."""
        self.optimiser.zero_grad()
        loss.backward()
        return loss.detach()

    def clip(self, most: float | None) -> Tensor:
        """Scale the gradients to a norm of at most `most`, None for no limit; return the norm before, ()."""
        return clip_grad_norm_(self.model.parameters(), math.inf if most is None else most)

    def update(self, rates: Iterable[float]) -> None:
        """Apply the gradients, with one learning rate per parameter group."""
        for rate, group in zip(rates, self.optimiser.param_groups, strict=True):
            group["lr"] = rate
        self.optimiser.step()

    def tensors(self, **generators: torch.Generator) -> dict[str, Tensor]:
        """Return all tensors: "model.NAME", "optimiser.WEIGHT.NAME", and a state for each generator."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for i, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{i}.{name}": tensor for name, tensor in state.items()}
        return tensors | {name: generator.get_state() for name, generator in generators.items()}

    def shapes(self, **generators: torch.Generator) -> Shapes:
        """Return the shapes and dtypes of `tensors` after the first step, when Adam has averages of each weight."""
        tensors = self.tensors(**generators)
        weights = [weight for group in self.optimiser.param_groups for weight in group["params"]]
        for i, weight in enumerate(weights):
            tensors |= {f"optimiser.{i}.step": torch.zeros(())}
            tensors |= {f"optimiser.{i}.{name}": weight for name in _AVERAGES}
        return {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}

    def restore(self, tensors: Mapping[str, Tensor], **generators: torch.Generator) -> None:
        """Load the tensors that `tensors` returned. Raises `CheckpointError` for an invalid generator state."""
        own: dict[str, dict[str, Tensor]] = {"model": {}, "optimiser": {}}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            if kind in own:
                own[kind][rest] = tensor
        self.model.load_state_dict(own["model"])
        states: dict[int, dict[str, Any]] = {}
        for name, tensor in own["optimiser"].items():
            i, _, part = name.partition(".")
            states.setdefault(int(i), {})[part] = tensor
        self.optimiser.load_state_dict({"state": states, "param_groups": self.optimiser.state_dict()["param_groups"]})
        try:
            for name, generator in generators.items():
                generator.set_state(tensors[name])
        except RuntimeError as error:
            raise CheckpointError(f"its random numbers cannot be resumed ({error}): start afresh") from error


_WARM_UP = 3  # steps before one is recorded, in which libraries initialise


class GraphReplay:
    """A training step on a GPU, which is recorded as a CUDA graph after three calls and replayed from then on.

    Args:
        step: launches one step without waiting for the GPU and returns a tensor on the device.
        generator: the random generator that the step draws from.
    """

    def __init__(self, step: Callable[[], Tensor], generator: torch.Generator) -> None:
        self._step, self._generator = step, generator
        self._stream = torch.cuda.Stream(generator.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._taken = 0
        self._result: Tensor

    def __call__(self) -> Tensor:
        """Take one step and return its result, which is valid after `wait`.

        Raises:
            UnsupportedFormat: for a step that cannot be recorded.
        """
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            if self._taken < _WARM_UP:
                self._taken += 1
                return self._step()
            graph = self._recorded() if self._graph is None else self._graph
            graph.replay()
            # Each replay writes to the same memory, so that the result is copied.
            return self._result.clone()

    def wait(self) -> None:
        """Make all later launches on the device's current stream wait for the steps taken so far."""
        torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def _recorded(self) -> torch.cuda.CUDAGraph:
        """Record a step as a CUDA graph that draws from the run's generator; return the graph."""
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        try:
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                self._result = self._step()
        except RuntimeError as error:
            raise UnsupportedFormat(
                f"a step of this network cannot be recorded as a CUDA graph ({str(error).partition(chr(10))[0]}): set "
                "cuda_graph=False"
            ) from error
        self._graph = graph
        return graph


class Stop:
    """A signal handler: the first signal sets `asked`, which ends the run after the step; the second interrupts it."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # only there can Python handle signals
            self._before = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for s, handler in self._before.items():
            signal.signal(s, handler)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def use_threads(n: int) -> Iterator[None]:
    """Let torch and numba use `n` threads within the context."""
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(n)
    numba.set_num_threads(min(n, before[1]))
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
