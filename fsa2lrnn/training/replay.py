"""Training steps recorded as CUDA graphs and replayed: one launch replaces about a thousand small ones.

On a GPU a step of a small network takes as long as Python needs to launch its operations. A graph launches them all at
once, and several runs with their own graphs and streams share the GPU.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat

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
            return self._result.clone()

    def wait(self) -> None:
        """Make all later launches on the device's current stream wait for the steps taken so far."""
        torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def _recorded(self) -> torch.cuda.CUDAGraph:
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
