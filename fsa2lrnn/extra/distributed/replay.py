"""A step of training recorded as a CUDA graph, and replayed: a thousand small launches become one.

On a GPU a step of a small network takes as long as Python needs to launch its operations. A graph launches them all at
once, and runs that each have their own, on a stream of its own, share the GPU.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat

_WARM_UP = 3  # steps that are taken before one is recorded: libraries prepare themselves meanwhile


class GraphReplay:
    """Calls of a step on a GPU, after some recorded and then replayed.

    Args:
        step: launches one step, and never waits for the GPU: gives a tensor on the device.
        generator: that the step draws from.
    """

    def __init__(self, step: Callable[[], Tensor], generator: torch.Generator) -> None:
        self._step, self._generator = step, generator
        self._stream = torch.cuda.Stream(generator.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._taken = 0
        self._found: Tensor

    def __call__(self) -> Tensor:
        """One step; what it gave, once `wait` was called.

        Raises:
            UnsupportedFormat: for a step that can't be recorded.
        """
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            if self._taken < _WARM_UP:
                self._taken += 1
                return self._step()
            graph = self._recorded() if self._graph is None else self._graph
            graph.replay()
            return self._found.clone()

    def wait(self) -> None:
        """Let what is launched from now on come after the steps that were."""
        torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def _recorded(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        try:
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                self._found = self._step()
        except RuntimeError as error:
            raise UnsupportedFormat(
                f"a step of this network can't be recorded as a CUDA graph ({str(error).partition(chr(10))[0]}): set "
                "cuda_graph=False"
            ) from error
        self._graph = graph
        return graph
