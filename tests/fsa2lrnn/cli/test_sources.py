"""Automata, models and number types by name."""

from pathlib import Path

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.cli import sources
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.checkpoint import save


def test_a_model_comes_from_a_file_or_is_compiled_on_the_spot(tmp_path):
    save(compile_machine(zoo.parity(), dtype=torch.float64), tmp_path / "m.safetensors")
    assert sources.model_of(str(tmp_path / "m.safetensors"), "float16", None).dtype == torch.float64
    assert sources.model_of("task:parity", "float16", None).dtype == torch.float16


def test_outputs_end_as_models_do():
    sources.check_output(None)
    sources.check_output(Path("m.safetensors"))
    with pytest.raises(UnsupportedFormat, match=r"output m\.pt: a model is written"):
        sources.check_output(Path("m.pt"))
