"""Observe the gates of transformers models with any weights, from the arguments of their recurrences at run time."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.extra.huggingface.observed import loading
from fsa2lrnn.extra.huggingface.observed.observer import Take, replaced
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE
from fsa2lrnn.extra.huggingface.observed.values import Measure
from fsa2lrnn.extra.huggingface.packages import transformers, versions

FLOATS = 2**26  # the most numbers that one call may need in addition to the weights: 256 MiB


@dataclass(frozen=True)
class Architecture(ABC):
    """The observer of one model architecture of the `transformers` package; subclasses define its recurrence.

    Args:
        kind: the name of the architecture's folder in `transformers.models`.
        prefix: the prefix of its class names, such as "OlmoHybrid".
        mixer: the name of the class of its recurrent layers.
        body: the name of the class of the model without its head, after the prefix.
        model_type: the `model_type` in the configuration of a text model; "" if it is `kind`.
    """

    kind: str
    prefix: str
    mixer: str
    body: str = "Model"
    model_type: str = ""
    measures: ClassVar[tuple[Measure, ...]]

    def is_in(self, folder: Path) -> bool:
        path = folder / "config.json"
        return path.is_file() and loading.configuration(path).get("model_type") == (self.model_type or self.kind)

    def open(self, folder: Path) -> Any:
        return loading.of_folder(folder, self.kind, f"{self.prefix}{self.body}")

    def made(self, config: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> Any:
        """Return the model of a configuration and weights; raise `CheckpointError` if they do not match."""
        return loading.of_weights(config, weights, self.kind, f"{self.prefix}{self.body}")

    def owns(self, model: Any) -> bool:
        return isinstance(model, torch.nn.Module) and any(True for _ in self._mixers(model))

    def describe(self, model: Any) -> dict[str, str]:
        known, dtype = versions(), str(next(model.parameters()).dtype).removeprefix("torch.")
        return {
            "class": type(model).__name__,
            "dtype": dtype,
            **{name: known[name] for name in ("transformers", "torch")},
        }

    def n_tokens(self, model: Any) -> int:
        return model.get_input_embeddings().num_embeddings

    def heads(self, model: Any) -> dict[int, int]:
        return {number: self._n_heads(mixer) for number, mixer in self._mixers(model)}

    def pieces(self, model: Any, longest: int) -> tuple[int, int]:
        config = model.config
        wide = max(config.hidden_size, getattr(config, "intermediate_size", 0) or 0)
        attending = getattr(config, "num_attention_heads", 0) or 0
        floats = 6 * wide + max(self._floats(mixer) for _, mixer in self._mixers(model))
        fits = max(1, FLOATS // floats)
        square = int((FLOATS // attending) ** 0.5) if attending else longest
        return min(fits, 4_096), max(1, min(fits, square, longest))

    @torch.no_grad()
    def read(self, model: Any, tokens: torch.Tensor, take: Take) -> None:
        """Run the whole model without its head, and observe the arguments that each mixer passes to its recurrence.

        Raises `CheckpointError` if the package's code fails on the model's configuration.
        """
        body, was_training = model.base_model, model.training
        with transformers(), self._numbered(model) as number:
            (namespace,) = {type(mixer).__module__ for _, mixer in self._mixers(model)}

            def taken(values: Mapping[str, torch.Tensor]) -> None:
                take(number[0], {name: part.flatten(0, 1).double().numpy() for name, part in values.items()})

            with self._watched(sys.modules[namespace], taken):
                try:
                    body.eval()(input_ids=tokens, use_cache=False)
                except Fsa2LrnnError:
                    raise
                except Exception as fault:  # the package does not validate a configuration before using it
                    raise CheckpointError(
                        f"the code of {type(body).__name__} does not run as its configuration says "
                        f"({type(fault).__name__}: {loading.said(fault)}): correct the configuration"
                    ) from None
                finally:
                    body.train(was_training)

    def _mixers(self, model: Any) -> Iterator[tuple[int, Any]]:
        for module in model.modules():
            if type(module).__name__ == self.mixer:
                yield module.layer_idx, module

    @contextmanager
    def _numbered(self, model: Any) -> Iterator[list[int]]:
        current, hooks = [-1], list[Any]()
        for number, mixer in self._mixers(model):

            def note(_module: Any, _given: Any, number: int = number) -> None:
                current[0] = number

            hooks.append(mixer.register_forward_pre_hook(note))
        try:
            yield current
        finally:
            for hook in hooks:
                hook.remove()

    @abstractmethod
    def reach(self, model: Any) -> tuple[float, float]:
        """Return the least and the largest eigenvalue that a transition of the model's layers can have."""

    @abstractmethod
    def _n_heads(self, mixer: Any) -> int: ...

    @abstractmethod
    def _floats(self, mixer: Any) -> int:
        """Return how many numbers the mixer's recurrence computes per token."""

    @abstractmethod
    def _watched(self, file: Any, taken: Any) -> AbstractContextManager[None]:
        """Replace the recurrence in `file` by one that also passes measures, each (B, T, heads), to `taken`."""


_CHUNK = 64  # tokens per chunk of the package's recurrence


@dataclass(frozen=True)
class GatedDeltaObserver(Architecture):
    """The observer of gated delta layers, whose transition α(I − βkkᵀ) has the least eigenvalue α(1 − β‖k‖²)."""

    measures: ClassVar = (
        Measure("alpha"),
        Measure("beta", high=2, marks=(0.0, 1.0, 2.0)),
        Measure("key"),
        Measure(EIGENVALUE, low=-1, marks=(-1.0, 0.0, 1.0)),
    )

    def reach(self, model: Any) -> tuple[float, float]:
        """Return the range of eigenvalues: from −1 if the configuration doubles β, otherwise from 0."""
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
                more["chunk_size"] = 1  # otherwise the package pads with 63 tokens of zeros
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


_MAMBA_CHUNK = 256  # the most tokens per chunk of the package's recurrence


@dataclass(frozen=True)
class Mamba2Observer(Architecture):
    """The observer of Mamba-2, where the transition of a head is exp(−Δ·exp(A_log)) times the identity."""

    measures: ClassVar = (Measure("delta", high=math.inf, marks=(0.0,)), Measure(EIGENVALUE))

    def reach(self, model: Any) -> tuple[float, float]:  # noqa: ARG002 - the same for all
        """Return 0 and 1, the least and the largest eigenvalue for all weights."""
        return 0.0, 1.0

    def _n_heads(self, mixer: Any) -> int:
        return mixer.num_heads

    def _floats(self, mixer: Any) -> int:
        chunk = min(mixer.chunk_size, _MAMBA_CHUNK)
        return mixer.num_heads * (3 * (mixer.head_dim + 2 * mixer.ssm_state_size) + 6 * chunk)

    @contextmanager
    def _watched(self, file: Any, taken: Any) -> Iterator[None]:
        recurrence = file.mamba2_chunk_scan

        def watched(
            x: torch.Tensor, dt: torch.Tensor, A: torch.Tensor, B: Any, C: Any, *, dt_bias: torch.Tensor, **more: Any
        ) -> Any:
            length = x.shape[1]
            more["chunk_size"] = min(more["chunk_size"], _MAMBA_CHUNK if length > 1 else 1)
            delta = torch.nn.functional.softplus(dt + dt_bias.to(dt.dtype)).clamp(*more["dt_limit"]).float()
            taken({"delta": delta, EIGENVALUE: torch.exp(A.float() * delta)})
            return recurrence(x, dt, A, B, C, dt_bias=dt_bias, **more)

        with replaced(file, mamba2_chunk_scan=watched):
            yield
