"""Write plans into RWKV-7 of the package `rwkv`, whose heads can erase and rewrite a key completely.

LayerNorm and GroupNorm subtract the mean, so every value is written twice, the second time with the opposite sign:
the entries of a stream sum to 0 except for rounding. The FFN's relu(kx)² implements units, of which one fires.

What one step executes: each branch reads x + μ(x₋₁ − x); w = exp(−0.606531·σ(w₀ + lora)); a = σ(a₀ + lora); κ =
k·k_k/‖k·k_k‖; S ← S·diag(w) − (Sκ)(κ∘a)ᵀ + v(k(1 + (a − 1)k_a))ᵀ; out = W_o(GroupNorm(S r)·g). Transition: diag(w) −
κ(a∘κ)ᵀ with w in [0.5452, 1], a in [0, 1], ‖κ‖ ≤ 1: similar to a symmetric matrix, eigenvalues in [−0.4548, 1]. A
word starts from S = 0; convolved: every branch, over two letters (token shift). Saturated, hence exact, gates:
σ(−512) = 0 makes w = 1 and keeps; a = σ(±512) erases a one-hot key whole or leaves it. Classes: RWKV_x070_TMix,
RWKV_x070.

The package's file of weights is a `.pth`; each call takes and returns the states. It reads RWKV_V7_ON on import and
prints while it loads a model. The state of a layer is S and the previous inputs of its two halves, restricted to the
coordinates that a branch mixes in.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from fsa2lrnn.errors import CheckpointError, MissingPackage, NotExpressible, UnsupportedFormat, shortened
from fsa2lrnn.export.constructions import construct
from fsa2lrnn.export.packages import Code, State, Target
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.export.stream import FIRES, LETTER, SATURATED, gates, layout, length, stage_parts
from fsa2lrnn.optional import is_installed, require

_HELD = 2.0**14  # an entry of S, so large that GroupNorm's 64e-5 is less than half an ulp of the mean square
_BRANCHES = "rwkvag"
_FILE = "model"  # the name of the weights file, to which the package adds .pth
STRATEGIES = {torch.float32: "cpu fp32", torch.bfloat16: "cpu bf16"}
_SQUARE = ("receptance.weight", "key.weight", "value.weight", "output.weight")
_VECTORS = ("x_r", "x_w", "x_k", "x_v", "x_a", "x_g", "w0", "a0", "k_k", "k_a", "r_k", "ln_x.weight", "ln_x.bias")
_SWITCHES = {"RWKV_V7_ON": "1", "RWKV_CUDA_ON": "0"}


class RwkvPackage(Code):
    """The interface to write, load and run models of the class `RWKV_x070`; a cache is the package's list of states."""

    def save(self, model: Any, _alphabet: Sequence[Hashable], _outputs: Sequence[Hashable], folder: Path) -> None:
        torch.save(model, folder / f"{_FILE}.pth")

    def weights(self, folder: Path) -> dict[str, torch.Tensor]:
        return read_weights(folder / f"{_FILE}.pth")

    def load(self, folder: Path) -> Any:
        return load_model(folder / f"{_FILE}.pth")

    def versions(self) -> dict[str, str]:
        package()
        return {name: version(name) for name in ("rwkv", "torch")}

    def describe(self, model: object) -> str:  # noqa: ARG002 - the same for all
        packages = self.versions()
        return f"RWKV_x070 of rwkv {packages['rwkv']} on torch {packages['torch']}, one token per call with its state"

    def dtype(self, model: Any) -> str:
        return str(model.z["emb.weight"].dtype).removeprefix("torch.")

    def n_parameters(self, model: Any) -> int:
        return sum(part.numel() for part in model.z.values())

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        state = zeros(model) if cache is None else list(cache)
        with quietly():
            logits, after = model.forward(tokens.tolist(), state, full_output=True)
        return logits.reshape(len(tokens), -1).argmax(dim=1), after

    def state(self, model: Any, cache: Any) -> State:
        parts = list[torch.Tensor]()
        for i in range(model.n_layer):
            mixed = torch.stack([model.z[f"blocks.{i}.att.x_{branch}"] for branch in "rwkvag"]).ne(0).any(dim=0)
            read_again = mixed, model.z[f"blocks.{i}.ffn.x_k"].ne(0)
            letters = (torch.where(m, cache[3 * i + j], 0) + 0.0 for m, j in zip(read_again, (0, 2), strict=True))
            parts += [next(letters), cache[3 * i + 1] + 0.0, next(letters)]
        return tuple(parts)

    def cache(self, model: Any, state: State) -> Any:
        return [part.to(like.dtype) for part, like in zip(state, zeros(model), strict=True)]


def zeros(model: Any) -> list[torch.Tensor]:
    """Return the state before a word, in this model's dtype (the package's function uses that of the last loaded)."""
    H, dtype = model.n_embd, model.z["emb.weight"].dtype
    heads = H // model.head_size, model.head_size, model.head_size
    sizes = [((H,), dtype), (heads, torch.float32), ((H,), dtype)] * model.n_layer
    return [torch.zeros(size, dtype=kind) for size, kind in sizes]


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a file by name; raise `CheckpointError` for a file that is not a model of RWKV-7."""
    try:
        weights = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except (OSError, KeyError, RuntimeError, ValueError, EOFError, UnpicklingError) as fault:
        raise CheckpointError(f"{path} is damaged or holds no model of rwkv-7 ({str(fault)[:200]})") from None
    _check_weights(path, weights)
    if (dtype := weights["emb.weight"].dtype) not in STRATEGIES:
        raise CheckpointError(f"{path}: weights in {dtype}; convert them to float32 or bfloat16, which CPUs compute")
    return weights


def load_model(path: Path) -> Any:
    """Return the package's model of a file; raise `CheckpointError` for a file that is not a model of RWKV-7."""
    dtype = read_weights(path)["emb.weight"].dtype
    try:
        with quietly():
            return package().RWKV_x070(str(path.with_suffix("")), STRATEGIES[dtype])
    except (OSError, KeyError, RuntimeError, ValueError) as fault:
        raise CheckpointError(f"{path} holds no model of rwkv-7 ({str(fault)[:200]})") from None


def _check_weights(path: Path, weights: Any) -> None:
    """Raise `CheckpointError` unless a file holds all weights of RWKV-7 in shapes that need no broadcasting."""
    if not isinstance(weights, dict) or not all(isinstance(part, torch.Tensor) for part in weights.values()):
        raise CheckpointError(f"{path} is not a table of tensors: give the .pth file of an RWKV-7 model")
    held = sum(part.numel() * part.element_size() for part in weights.values())
    if held > (size := path.stat().st_size):
        raise CheckpointError(f"{path} has {size:,} bytes, and its tensors are {held:,}: download it again")
    faults = list[str]()

    def want(name: str, *shape: int | None) -> tuple[int, ...]:
        """Return the shape of a tensor without axes of 1; None in `shape` allows any length."""
        there = tuple(n for n in weights[name].shape if n != 1) if name in weights else None
        if there is None or len(there) != len(shape) or any(shape[j] not in (None, n) for j, n in enumerate(there)):
            faults.append(f"{name} is missing" if there is None else f"{name} has shape {there}")
            return (0,) * len(shape)
        return there

    n_tokens, H = want("emb.weight", None, None)
    want("head.weight", n_tokens, H)
    for name in ("ln_out.weight", "ln_out.bias", "blocks.0.ln0.weight", "blocks.0.ln0.bias"):
        want(name, H)
    r_k = weights.get("blocks.0.att.r_k")
    if faults:
        raise CheckpointError(f"{path} is not a model of RWKV-7: {'; '.join(faults)}")
    if r_k is None or r_k.ndim != 2 or r_k.numel() != H or 1 in r_k.shape:
        raise CheckpointError(f"{path} has no blocks.0.att.r_k of heads times their size: it is not a model of RWKV-7")
    numbers = {name.split(".")[1] for name in weights if name.startswith("blocks.")}
    if numbers != set(map(str, range(len(numbers)))):
        raise CheckpointError(f"{path}: blocks {shortened(', '.join(sorted(numbers)))} are not numbered from 0 on")
    for i in range(len(numbers)):
        for name in ("ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias", "ffn.x_k"):
            want(f"blocks.{i}.{name}", H)
        for name in _VECTORS if i == 0 else (*_VECTORS, "v0"):
            if name == "r_k":
                want(f"blocks.{i}.att.r_k", *r_k.shape)
            else:
                want(f"blocks.{i}.att.{name}", H)
        for name in _SQUARE:
            want(f"blocks.{i}.att.{name}", H, H)
        for name in "wag" if i == 0 else "wavg":
            _, rank = want(f"blocks.{i}.att.{name}1", H, None)
            want(f"blocks.{i}.att.{name}2", rank, H)
        width, _ = want(f"blocks.{i}.ffn.key.weight", None, H)
        want(f"blocks.{i}.ffn.value.weight", H, width)
    if faults:
        raise CheckpointError(f"{path} is not a model of RWKV-7: {'; '.join(faults[:5])}")


def package() -> Any:
    """Import `rwkv` with RWKV-7 enabled; raise `MissingPackage`, or `UnsupportedFormat` if imported without RWKV-7."""
    if "rwkv.model" not in sys.modules and not is_installed("rwkv"):
        raise MissingPackage("the layer rwkv-7 needs rwkv, which is not installed: pip install rwkv==0.8.32")
    before = {name: os.environ.get(name) for name in _SWITCHES}
    os.environ.update(_SWITCHES)
    try:
        with quietly():
            found = require("rwkv.model", None, "the layer rwkv-7")
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    if not hasattr(found, "RWKV_x070"):
        raise UnsupportedFormat("rwkv was imported without RWKV-7: set RWKV_V7_ON=1 before it is imported")
    return found


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress the package's prints and torch's warnings about torch.jit."""
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class RwkvGates:
    """The gates of RWKV-7 with any weights: w = exp(−0.606531·σ(w₀ + tanh(x_w W₁)W₂)), a = σ(a₀ + x_a A₁A₂), the key κ.

    A step multiplies the state by diag(w) − κ(a∘κ)ᵀ with ‖κ‖ ≤ 1.
    """

    eigenvalues = (math.exp(-0.606531) - 1, 1.0)

    def holds(self, folder: Path) -> bool:
        return len(list(folder.glob("*.pth"))) == 1 and not (folder / "config.json").exists()

    def owns(self, model: object) -> bool:
        weights = getattr(model, "z", None)
        return isinstance(weights, Mapping) and "blocks.0.att.k_k" in weights

    def load(self, folder: Path) -> Any:
        return load_model(next(folder.glob("*.pth")))

    def describe(self, model: Any) -> str:
        return f"{RwkvPackage().describe(model)}, {model.z['emb.weight'].dtype}"

    def n_tokens(self, model: Any) -> int:
        return len(model.z["emb.weight"])

    def bounds(self, model: Any) -> dict[int, dict[str, tuple[np.ndarray, np.ndarray]]]:
        """Return ranges over all inputs, by layer and quantity, one value per head."""
        found = dict[int, dict[str, tuple[np.ndarray, np.ndarray]]]()
        for i in range(model.n_layer):
            z = {name: part.double() for name, part in model.z.items() if name.startswith(f"blocks.{i}.")}
            w0, w2, a0, a1, a2, mix = (z[f"blocks.{i}.att.{name}"] for name in ("w0", "w2", "a0", "a1", "a2", "x_a"))
            scale, shift = z[f"blocks.{i}.ln1.weight"], z[f"blocks.{i}.ln1.bias"]
            reach = w2.abs().sum(dim=0)  # |tanh| ≤ 1
            least, most = (torch.exp(-0.606531 * torch.sigmoid(w0 + sign * reach)) for sign in (1, -1))
            # x_a = (1 − m)∘x + m∘x₋₁, where both are g∘n + b with ‖n‖ ≤ √H, or x₋₁ = 0 at the first token.
            now, past = ((a1 @ a2).T * share for share in (1 - mix, mix))
            # By Cauchy and Schwarz: a linear form of n with ‖n‖ ≤ √H ranges over centre ± √H · the norm of its
            # weights.
            centre, radius = a0 + now @ shift, math.sqrt(model.n_embd) * (now * scale).norm(dim=1)
            later, wider = centre + past @ shift, radius + math.sqrt(model.n_embd) * (past * scale).norm(dim=1)
            weakest = torch.minimum(centre - radius, later - wider).sigmoid()
            strongest = torch.maximum(centre + radius, later + wider).sigmoid()
            low, weak = (part.unflatten(0, (model.n_head, -1)).amin(dim=1).numpy() for part in (least, weakest))
            high, strong = (part.unflatten(0, (model.n_head, -1)).amax(dim=1).numpy() for part in (most, strongest))
            # diag(w) − uuᵀ has ‖u‖² ≤ max a, and κ(a∘κ)ᵀ has a norm of at most max a.
            found[i] = {"decay": (low, high), "beta": (weak, strong), "eigenvalue": (low - strong, high),
                        "norm": (np.zeros_like(low), high + strong)}  # fmt: skip
        return found

    def read(self, model: Any, tokens: torch.Tensor) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
        """Run a model on tokens, int64 (T,), and yield w, a, a and κ of each layer, (T, heads, N) each.

        The package's step is compiled, so its intermediate values cannot be read. But its state contains the last input
        of each layer, and the gates follow from two of these inputs and the weights by the same operations.
        """
        steps: list[list[tuple[torch.Tensor, ...]]] = [[] for _ in range(model.n_layer)]
        state = zeros(model)
        for token in tokens.tolist():
            # Each layer has three entries of the state: the time mixing's last input, S, and the channel mixing's
            # last input.
            before = [state[3 * i] for i in range(model.n_layer)]
            with quietly():
                _, state = model.forward([token], state)
            for i, x_prev in enumerate(before):
                steps[i].append(step_gates(model.z, i, state[3 * i], x_prev, model.n_head))
        for i, of_layer in enumerate(steps):
            w, a, key = (torch.stack(part).double().numpy() for part in zip(*of_layer, strict=True))
            yield i, (w, a, a, key)


def step_gates(
    z: Mapping[str, torch.Tensor], layer: int, x: torch.Tensor, x_prev: torch.Tensor, n_heads: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return w, a and κ of one step, (heads, N) each, from the layer's current and previous input, (H,) each."""
    part = {name: z[f"blocks.{layer}.att.{name}"] for name in
            ("x_w", "x_k", "x_a", "w0", "w1", "w2", "a0", "a1", "a2", "k_k", "key.weight")}  # fmt: skip
    xx = x_prev - x
    xw, xk, xa = x + xx * part["x_w"], x + xx * part["x_k"], x + xx * part["x_a"]
    w = torch.tanh(xw @ part["w1"]) @ part["w2"]
    a = torch.sigmoid(part["a0"] + (xa @ part["a1"]) @ part["a2"])
    key = normalize((xk @ part["key.weight"] * part["k_k"]).view(n_heads, -1), dim=-1, p=2.0)
    w = torch.exp(-0.606531 * torch.sigmoid((part["w0"] + w).float()))
    return w.view(n_heads, -1), a.view(n_heads, -1), key


@dataclass(frozen=True)
class _Sizes:
    H: int
    N: int
    turned: int


def build(plan: StagePlan, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Return the weights of `RWKV_x070` by name, one layer per stage. Raises `NotExpressible` for unsuitable heads."""
    where, size = layout(plan), _sizes(plan)
    H, n_tokens = size.H, where.n_letters + len(plan.outputs)
    z: dict[str, np.ndarray] = {f"ln_out.{part}": np.full(H, float(part == "weight")) for part in ("weight", "bias")}
    z["emb.weight"], z["head.weight"] = np.zeros((n_tokens, H)), np.zeros((n_tokens, H))
    letters = np.arange(where.n_letters)
    z["emb.weight"][letters, letters] = LETTER
    z["emb.weight"][letters, size.turned] = -LETTER
    z["blocks.0.ln0.weight"] = np.full(H, LETTER / np.sqrt(H / 2))  # letters are that long again after it
    z["blocks.0.ln0.bias"] = np.zeros(H)
    for j in range(len(plan.outputs)):
        z["head.weight"][where.n_letters + j, where.symbols[-1] + j] = 1
    for number in range(len(plan.stages)):
        block = {**_time_mix(plan, number, size), **_channel_mix(plan, number, size)}
        z |= {f"blocks.{number}.{name}": values for name, values in block.items()}
    return {name: torch.from_numpy(values).to(dtype) for name, values in z.items()}


def _sizes(plan: StagePlan) -> _Sizes:
    where, N = layout(plan), 8
    while plan.d_v + 1 > N:
        N *= 4
    H = 2 * where.width
    while max(plan.n_heads, 2) * N > H:  # the package squeezes tensors, so that one head would remove an axis
        H *= 4
    items = 1 + sum(len(stage.orbits) + 1 for stage in plan.stages)
    return _Sizes(H, N, H - items)


def _time_mix(plan: StagePlan, number: int, size: _Sizes) -> dict[str, np.ndarray]:
    """Return the weights of a time mixer that runs the heads of stage `number`, by their names in a checkpoint.

    The decay is saturated, so that only `a` forgets: with a of 0 or 1 a symbol keeps a row of the state or replaces it
    (keys are e_0). A token shift of `v` gives lags of one letter.
    """
    where, stage, H, N = layout(plan), plan.stages[number], size.H, size.N
    heads, letters = H // N, slice(0, where.n_letters)
    r = length(plan, number) * np.sqrt(H / (2 * where.width))
    lags = {int(lag) for orbit in stage.orbits if orbit.head.lags is not None for lag in orbit.head.lags}
    if lags and lags != {1}:
        raise NotExpressible(f"rwkv-7 looks one letter back, and not {sorted(lags)}: give another plan")
    if lags and any(orbit.head.lags is None for orbit in stage.orbits):
        raise NotExpressible("a layer of rwkv-7 shifts all its heads or none: give another plan")
    key, value, out = np.zeros((heads, N, H)), np.zeros((heads, N, H)), np.zeros((H, heads, N))
    first_a, spread = np.zeros((H, heads)), np.repeat(np.eye(heads), N, axis=1)
    symbols, first = stage_parts(plan, number)
    for i, orbit in enumerate(stage.orbits):
        head, width = orbit.head, orbit.head.values.shape[1]
        at = symbols[: len(head.alphas)]
        keeps, writes = head.keeps(), head.writes()
        key[i, 0, letters] = 1 / r
        written = np.where(writes[:, None], head.values, 0) / head.values.max() * _HELD / r
        value[i, :width, at] = written
        value[i, -1, at] = -written.sum(axis=1)  # GroupNorm subtracts the mean, which this entry makes 0
        first_a[at, i] = np.where(keeps, -SATURATED, SATURATED)
        entries = np.arange(width)
        out[where.marks[first + i] + entries, i, entries] = out[size.turned + 1 + first + i, i, -1] = LETTER / np.sqrt(
            N / 2
        )
    zeros = np.zeros((1, 1, H))
    return {
        **{f"ln1.{part}": np.full(H, float(part == "weight")) for part in ("weight", "bias")},
        **{f"att.x_{branch}": np.full((1, 1, H), float(bool(lags) and branch == "v")) for branch in _BRANCHES},
        "att.w0": zeros - SATURATED, "att.w1": np.zeros((H, 2)), "att.w2": np.zeros((2, H)),
        "att.a0": zeros, "att.a1": first_a, "att.a2": spread,
        "att.v0": zeros - SATURATED, "att.v1": np.zeros((H, 2)), "att.v2": np.zeros((2, H)),
        "att.g1": np.zeros((H, 2)), "att.g2": np.ones((2, H)),
        "att.k_k": zeros + 1, "att.k_a": zeros + 1, "att.r_k": np.zeros((heads, N)),
        "att.key.weight": key.reshape(H, H), "att.receptance.weight": key.reshape(H, H),
        "att.value.weight": value.reshape(H, H), "att.output.weight": out.reshape(H, H),
        "att.ln_x.weight": np.ones(H), "att.ln_x.bias": np.zeros(H),
    }  # fmt: skip


def _channel_mix(plan: StagePlan, number: int, size: _Sizes) -> dict[str, np.ndarray]:
    """Return the weights of a channel mixer that runs the units of stage `number`, by their names in a checkpoint.

    ReLU² of a unit that fires is (FIRES/2)², by which its writes are divided; the second write keeps the stream's mean
    at 0.
    """
    where, stage, H = layout(plan), plan.stages[number], size.H
    n = max(len(stage.units), 2)
    key, value = np.zeros((n, H)), np.zeros((H, n))
    key[: len(stage.units), : where.width] = gates(plan, number) / np.sqrt(H / (2 * where.width))
    turned = size.turned + 1 + sum(len(s.orbits) for s in plan.stages) + number
    for i, unit in enumerate(stage.units):
        value[where.symbols[number] + unit.target, i] = LETTER / (FIRES / 2) ** 2
        value[turned, i] = -LETTER / (FIRES / 2) ** 2
    return {
        **{f"ln2.{part}": np.full(H, float(part == "weight")) for part in ("weight", "bias")},
        "ffn.x_k": np.zeros((1, 1, H)), "ffn.key.weight": key, "ffn.value.weight": value,
    }  # fmt: skip


RWKV_7 = Target("rwkv-7", "rwkv 0.8.32", RwkvPackage(), partial(construct, has_reflections=False, longest_lag=1), build)
