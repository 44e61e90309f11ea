"""Mamba-2: Δ after its softplus and limits, and the number that multiplies a head's state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fsa2lrnn.extra.huggingface.observed.observer import replaced
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE
from fsa2lrnn.extra.huggingface.observed.transformers_models import Architecture
from fsa2lrnn.extra.huggingface.observed.values import Measure

_CHUNK = 256  # letters that their prefill multiplies together at most here


@dataclass(frozen=True)
class Mamba2Observer(Architecture):
    """exp(−Δ·exp(A_log)) times the identity, a head."""

    measures: ClassVar = (Measure("delta", high=math.inf, marks=(0.0,)), Measure(EIGENVALUE))

    def reach(self, model: Any) -> tuple[float, float]:  # noqa: ARG002 - the same for all
        """0 to 1, whatever the weights."""
        return 0.0, 1.0

    def _n_heads(self, mixer: Any) -> int:
        return mixer.num_heads

    def _floats(self, mixer: Any) -> int:
        chunk = min(mixer.chunk_size, _CHUNK)
        return mixer.num_heads * (3 * (mixer.head_dim + 2 * mixer.ssm_state_size) + 6 * chunk)

    @contextmanager
    def _watched(self, file: Any, taken: Any) -> Iterator[None]:
        recurrence = file.mamba2_chunk_scan

        def watched(
            x: torch.Tensor, dt: torch.Tensor, A: torch.Tensor, B: Any, C: Any, *, dt_bias: torch.Tensor, **more: Any
        ) -> Any:
            length = x.shape[1]
            more["chunk_size"] = min(more["chunk_size"], _CHUNK if length > 1 else 1)
            delta = torch.nn.functional.softplus(dt + dt_bias.to(dt.dtype)).clamp(*more["dt_limit"]).float()
            taken({"delta": delta, EIGENVALUE: torch.exp(A.float() * delta)})
            return recurrence(x, dt, A, B, C, dt_bias=dt_bias, **more)

        with replaced(file, mamba2_chunk_scan=watched):
            yield
