"""What the verbs are given: automata, models and number types by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsa2lrnn.cli.options import MODEL_SUFFIX, Completion, Dtype
from fsa2lrnn.errors import UnsupportedFormat

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.lrnn.model import LRNN


def check_output(path: Path | None) -> None:
    """Raises `UnsupportedFormat` for a file that no model can be written to."""
    if path is not None and path.suffix != MODEL_SUFFIX:
        raise UnsupportedFormat(f"output {path}: a model is written to a file ending in {MODEL_SUFFIX}")


def read_machine(source: str, completion: Completion | None = None) -> MooreMachine:
    """The automaton that a source names."""
    from fsa2lrnn.automata.machine import MooreMachine

    return MooreMachine.from_source(source, completion=completion)


def model_of(source: str, dtype: Dtype, completion: Completion | None) -> LRNN:
    """The model in a file, or one compiled from the automaton that a source names."""
    from fsa2lrnn.lower import compile_machine
    from fsa2lrnn.lrnn.checkpoint import load

    if source.endswith(MODEL_SUFFIX):
        return load(source)
    return compile_machine(read_machine(source, completion), dtype=torch_dtype(dtype))


def torch_dtype(name: Dtype) -> torch.dtype:
    """torch's type of that name."""
    import torch

    return getattr(torch, name)
