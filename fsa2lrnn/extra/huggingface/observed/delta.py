"""Gated DeltaNets: α, β and the key as their recurrence is given them, and the eigenvalue along the key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.huggingface.observed.observer import replaced
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE
from fsa2lrnn.extra.huggingface.observed.transformers_models import Architecture
from fsa2lrnn.extra.huggingface.observed.values import Measure

_CHUNK = 64  # letters that their prefill multiplies together


@dataclass(frozen=True)
class GatedDeltaObserver(Architecture):
    """α(I − βkkᵀ): α (d − 1 times) and α(1 − β‖k‖²) are its eigenvalues, the latter the least."""

    measures: ClassVar = (
        Measure("alpha"),
        Measure("beta", high=2, marks=(0.0, 1.0, 2.0)),
        Measure("key"),
        Measure(EIGENVALUE, low=-1, marks=(-1.0, 0.0, 1.0)),
    )

    def reach(self, model: Any) -> tuple[float, float]:
        """From −1 where the configuration doubles β."""
        return (-1.0 if getattr(model.config, "linear_allow_neg_eigval", False) else 0.0), 1.0

    def _n_heads(self, mixer: Any) -> int:
        return mixer.num_v_heads

    def _floats(self, mixer: Any) -> int:
        return mixer.num_v_heads * (6 * (mixer.head_k_dim + mixer.head_v_dim) + 4 * _CHUNK)

    @contextmanager
    def _watched(self, file: Any, taken: Any) -> Iterator[None]:
        recurrence, norm, units = file.torch_chunk_gated_delta_rule, file.l2norm, list[torch.Tensor]()

        def kept(x: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
            units.append(norm(x, *given, **named))
            return units[-1]

        def watched(query: Any, key: Any, value: Any, *, g: torch.Tensor, beta: torch.Tensor, **more: Any) -> Any:
            units.clear()
            if key.shape[1] == 1:
                more["chunk_size"] = 1  # else 63 letters of zeros come along
            found = recurrence(query, key, value, g=g, beta=beta, **more)
            if len(units) != 2 or units[1].shape[:3] != (g.shape[0], g.shape[2], g.shape[1]):
                raise UnsupportedFormat(
                    f"{file.__name__} does not divide the key by its norm where this reader looks: install "
                    "transformers 5.23, for which it was written, and import it where fla is not installed"
                )
            alpha, beta = g.float().exp().double(), beta.double()
            squared = units[1].double().square().sum(dim=-1).transpose(1, 2)  # (B, T, heads)
            along = alpha * (1 - beta * squared)
            taken({"alpha": alpha, "beta": beta, "key": squared.sqrt(), EIGENVALUE: along})
            return found

        with replaced(file, torch_chunk_gated_delta_rule=watched, l2norm=kept):
            yield
