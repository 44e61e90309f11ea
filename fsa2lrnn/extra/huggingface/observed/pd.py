"""Observe PD-SSM of IBM's file: factors of coordinates, and the lengths and eigenvalues of the cycles of the map."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from fsa2lrnn.errors import CheckpointError, shortened
from fsa2lrnn.extra.huggingface.observed.loading import check_like
from fsa2lrnn.extra.huggingface.observed.observer import Take, replaced
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE
from fsa2lrnn.extra.huggingface.observed.values import Measure
from fsa2lrnn.extra.huggingface.packages import pdssm, pdssm_versions

_BYTES = 2**27  # memory for the matrices of the letters that are read together, about 40 bytes per entry
_FILE = "model.safetensors"


class PdSsmObserver:
    """The observer of PD-SSM's transitions D·P, by which coordinate m becomes D_m times coordinate f(m).

    The eigenvalues of a cycle of f of length L are the L-th roots of the product of its factors.
    """

    measures: ClassVar = (
        Measure("magnitude"),
        Measure("phase"),
        Measure("cycle", low=1, high=np.inf, marks=(1.0,)),
        Measure(EIGENVALUE, low=-1, marks=(-1.0, 0.0, 1.0)),
    )

    def is_in(self, folder: Path) -> bool:
        return (folder / _FILE).is_file() and not (folder / "config.json").exists()

    def open(self, folder: Path) -> Any:
        path = folder / _FILE
        try:
            weights = load_file(path)
            n_blocks = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
            N, _, K = weights["blocks.0.A_dict"].shape
            sizes = {
                "state_size": N,
                "dictionary_size": K,
                "embed_size": weights["embedding.weight"].shape[1],
                "input_size": len(weights["embedding.weight"]),
                "output_size": len(weights["readout.weight"]),
                "num_layers": n_blocks,
            }
        except (OSError, KeyError, ValueError, IndexError, SafetensorError) as fault:
            raise CheckpointError(f"{path} holds no model of pd-ssm ({shortened(str(fault))})") from None
        if n_blocks > len(weights):
            raise CheckpointError(f"{path}: {n_blocks:,} blocks of {len(weights):,} tensors: this is not a PD-SSM")
        if sizes["embed_size"] != N:
            raise CheckpointError(f"{path}: embeddings of {sizes['embed_size']:,}, states of {N:,}: PD has them alike")
        with torch.device("meta"):
            check_like(str(path), "PD", pdssm().PD(return_all_outputs=True, **sizes), weights)
        model = pdssm().PD(return_all_outputs=True, **sizes)
        model.load_state_dict(weights)
        return model.eval()

    def owns(self, model: Any) -> bool:
        return {type(block).__name__ for block in getattr(model, "blocks", ())} == {"PD_Block"}

    def describe(self, model: Any) -> dict[str, str]:
        dtype = str(model.embedding.weight.dtype).removeprefix("torch.")
        return {"class": type(model).__name__, "dtype": dtype, **pdssm_versions()}

    def n_tokens(self, model: Any) -> int:
        return model.embedding.num_embeddings

    def heads(self, model: Any) -> dict[int, int]:
        return dict.fromkeys(range(len(model.blocks)), 1)

    def reach(self, model: Any) -> tuple[float, float]:  # noqa: ARG002 - the same for all
        """Return −1 and 1, the range of the real parts of eigenvalues, whose phases reach every angle."""
        return -1.0, 1.0

    def pieces(self, model: Any, longest: int) -> tuple[int, int]:
        fits = max(1, _BYTES // (40 * max(block.hidden_size for block in model.blocks) ** 2))
        return fits, min(fits, longest)

    @torch.no_grad()
    def read(self, model: Any, tokens: torch.Tensor, take: Take) -> None:
        namespace, was_training = sys.modules[type(model.blocks[0]).__module__], model.training
        model.eval()
        try:
            x = model.embedding(tokens)
            for number, block in enumerate(model.blocks):
                with _watched(namespace, block) as seen:
                    x = block(x)
                take(number, _measured(seen))
        finally:
            model.train(was_training)


def _measured(seen: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    sources = torch.softmax(seen["M"], dim=-1).argmax(dim=-1).flatten(0, 1).numpy()  # (n, N)
    size, turn = (seen[name].flatten(0, 1).double().numpy() for name in ("magnitude", "phase"))
    found = [longest_and_least(f, r * np.exp(2j * np.pi * t)) for f, r, t in zip(sources, size, turn, strict=True)]
    cycle, least = np.array(found).T[:, :, None]
    return {"magnitude": size.reshape(-1, 1), "phase": turn.reshape(-1, 1), "cycle": cycle, EIGENVALUE: least}


def longest_and_least(sources: np.ndarray, factors: np.ndarray) -> tuple[float, float]:
    """Return the longest cycle and the least real part of an eigenvalue of the map h_m ← factors_m · h_sources(m).

    `sources` is int (N,), `factors` complex (N,). If any coordinate is on no cycle, 0 is an eigenvalue.

    >>> longest_and_least(np.array([1, 0]), np.array([1.0, 1.0]))
    (2.0, -1.0)
    """
    seen = np.zeros(len(sources), np.int64)  # for each coordinate the number of the walk that reached it, 0 for none
    longest, least, n_on = 0, np.inf, 0
    for start in range(len(sources)):
        m, walk = start, start + 1
        while not seen[m]:
            seen[m] = walk
            m = sources[m]
        if seen[m] != walk:
            continue
        cycle = [m]
        while (m := sources[m]) != cycle[0]:
            cycle.append(m)
        product, length = np.prod(factors[cycle]), len(cycle)
        angles = (np.angle(product) + 2 * np.pi * np.arange(length)) / length
        roots = abs(product) ** (1 / length) * np.cos(angles)
        longest, least = max(longest, length), min(least, roots.min())
        n_on += length
    return float(longest), float(least if n_on == len(sources) else min(least, 0.0))


@contextmanager
def _watched(namespace: Any, block: Any) -> Iterator[dict[str, torch.Tensor]]:
    """Record the intermediate values of a block inside the context: M, magnitudes, and phases in turns, (B, T, …)."""
    seen = dict[str, torch.Tensor]()
    product = namespace.einsum

    def kept(*given: Any) -> torch.Tensor:
        seen["M"] = product(*given)
        return seen["M"]

    def hook(name: str) -> Any:
        return lambda _module, _given, found: seen.__setitem__(name, found)

    hooks = [
        block.D_magnitude_generator.register_forward_hook(hook("magnitude")),
        block.D_phase_generator.register_forward_hook(hook("phase")),
    ]
    try:
        with replaced(namespace, einsum=kept):
            yield seen
    finally:
        for one in hooks:
            one.remove()
