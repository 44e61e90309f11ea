"""Compute which eigenvalues, norms and rates the linear-recurrent layers of a released model can take, per head.

One step multiplies the state of a head by diag(w) − k(c∘k)ᵀ, with decays w, coefficients c ≥ 0 and a key k. It has the
eigenvalues of diag(w) − uuᵀ with u = √c∘k, which are real. In Gated DeltaNet w = α and c = αβ: α(I − βkkᵀ); in Mamba-2
k = 0; RWKV-7 has a w and a c for each entry of the key.

Over tokens, gates are computed from the inputs that the model's own code gives to a layer. Over all inputs they are
enclosed in closed form: a layer reads x = g∘n with ‖n‖ ≤ √H, after a norm, so |Wx| ≤ √H·‖W∘g‖, row by row, and gates
are monotone in Wx. Enclosures hold over the reals; a dtype may exceed them by its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from fsa2lrnn.display import Brief
from fsa2lrnn.errors import CheckpointError, InvalidWord, UnsupportedFormat
from fsa2lrnn.export.packages import described, load_body, refusing, transformers
from fsa2lrnn.export.rwkv7 import RwkvGates
from fsa2lrnn.optional import require
from fsa2lrnn.reading import parse_json, read_text

Interval = tuple[float, float]
Transition = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # the arguments of `measure`
Ranges = dict[str, tuple[np.ndarray, np.ndarray]]  # the least and the largest values of each quantity, one per head


def measure(decay: np.ndarray, coefficient: np.ndarray, beta: np.ndarray, key: np.ndarray) -> Ranges:
    """Return the least and the largest value of each quantity of transitions, shapes (…, N or 1), (…, N) -> (…)."""
    least, largest, norm = spectrum(decay, coefficient, key)
    length = np.linalg.norm(key, axis=-1)
    gates = {name: (gate.min(axis=-1), gate.max(axis=-1)) for name, gate in (("decay", decay), ("beta", beta))}
    return {**gates, "key": (length, length), "eigenvalue": (least, largest), "norm": (norm, norm)}


def spectrum(w: np.ndarray, c: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the least and the largest eigenvalue and the norm of diag(w) − k(c∘k)ᵀ, shapes (…, N or 1), (…, N) -> (…).

    >>> [round(float(x), 6) for x in spectrum(np.array([0.75, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 0.0]))]
    [-0.25, 1.0, 1.0]
    """
    if w.shape[-1] == c.shape[-1] == 1:  # symmetric: w − c‖k‖² along the key, w across it
        along = w[..., 0] - c[..., 0] * np.square(k).sum(axis=-1)
        across = w[..., 0] if k.shape[-1] > 1 else along
        return along, across, np.maximum(abs(along), abs(across))
    w, c = np.broadcast_to(w, k.shape), np.broadcast_to(c, k.shape)
    squares, size = c * k**2, np.square(k).sum(axis=-1)

    # Haynsworth's inertia formula counts eigenvalues above λ: diag(w) − uuᵀ has as many as diag(w), or one fewer if
    # 1 − Σ u²/(w − λ) is negative.
    def above(value: np.ndarray) -> np.ndarray:
        rest = w - value[..., None]
        return (rest > 0).sum(axis=-1) - (_quotients(squares, rest) > 1)

    low, high = w.min(axis=-1) - squares.sum(axis=-1), w.max(axis=-1)
    least = _bisect(low, high, lambda value: above(value) == k.shape[-1])
    largest = _bisect(low, high, lambda value: above(value) > 0)

    # MᵀM = diag(w²) + UCUᵀ with U = [w∘k, c∘k] and C = [[0, −1], [−1, ‖k‖²]]. By the same formula it has as many
    # eigenvalues above μ as diag(w²), and n − 1 more, where n counts the positive eigenvalues of −S, and S is the 2 × 2
    # matrix C⁻¹ + Uᵀdiag(w² − μ)⁻¹U = [[p − ‖k‖², q − 1], [q − 1, r]].
    def exceeds(value: np.ndarray) -> np.ndarray:
        rest = w**2 - value[..., None]
        p, q, r = (_quotients(part, rest) for part in ((w * k) ** 2, w * squares, (c * k) ** 2))
        is_definite, trace = (p - size) * r > (q - 1) ** 2, size - p - r
        return (rest > 0).sum(axis=-1) + np.where(is_definite, np.where(trace > 0, 2, 0), 1) > 1

    most = (abs(w).max(axis=-1) + np.linalg.norm(c * k, axis=-1) * np.sqrt(size)) ** 2
    return least, largest, np.sqrt(_bisect(np.zeros_like(most), most, exceeds))


def _quotients(numerators: np.ndarray, rest: np.ndarray) -> np.ndarray:
    return np.where(numerators != 0, numerators / rest, 0).sum(axis=-1)


def _bisect(low: np.ndarray, high: np.ndarray, holds: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the value from `low` to `high` below which a condition holds and above which it does not."""
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):  # at a pole, which is the limit itself
            is_lower = holds(middle)
        low, high = np.where(is_lower, middle, low), np.where(is_lower, high, middle)
    return high


class Projections(NamedTuple):
    """The weights by which a layer reads its decay, β and key: (heads, H), (heads, H) and (key heads·d_k, H)."""

    decay: torch.Tensor
    beta: torch.Tensor | None = None
    key: torch.Tensor | None = None
    bias: torch.Tensor | None = None  # of the decay


@dataclass(frozen=True)
class Architecture:
    """A model of `transformers` with linear-recurrent layers, whose decay is exp(−exp(A_log)·softplus(Wx + dt_bias)).

    Args:
        kind: the folder in `transformers.models`.
        body: the class of the model without its head.
        mixer: the class of a linear-recurrent layer.
        place, norm: the attributes of a block that hold the mixer and the norm before it.
        projections: a function of the mixer that returns its weights.
        eigenvalues: the range over all weights.
        offset: what is added to the stored weights of the norm.
        model_type: the `model_type` of the configuration; "" for `kind`.
    """

    kind: str
    body: str
    mixer: str
    place: str
    norm: str
    projections: Callable[[Any], Projections]
    eigenvalues: tuple[float, float] = (0.0, 1.0)
    offset: float = 0.0
    model_type: str = ""

    def holds(self, folder: Path) -> bool:
        path = folder / "config.json"
        config = parse_json(read_text(path), str(path)) if path.is_file() else None
        return isinstance(config, dict) and config.get("model_type") == (self.model_type or self.kind)

    def owns(self, model: object) -> bool:
        return isinstance(model, torch.nn.Module) and bool(self._blocks(model))

    def load(self, folder: Path) -> Any:
        return load_body(folder, self.kind, self.body)

    def describe(self, model: Any) -> str:
        return f"{described(type(model).__name__)}, {next(model.parameters()).dtype}"

    def n_tokens(self, model: Any) -> int:
        return model.get_input_embeddings().num_embeddings

    def bounds(self, model: Any) -> dict[int, Ranges]:
        """Return ranges over all inputs, by layer."""
        found = dict[int, Ranges]()
        for number, block in self._blocks(model).items():
            mixer, scale = getattr(block, self.place), getattr(block, self.norm).weight.double() + self.offset
            weights = self.projections(mixer)
            # RMSNorm's output has a norm of at most √H, so W x lies within √H · ‖w ⊙ scale‖ of the bias (Cauchy and
            # Schwarz).
            radius = math.sqrt(len(scale)) * (weights.decay.double() * scale).norm(dim=1)
            centre = 0 if weights.bias is None else weights.bias.double()
            high, low = (_decay(mixer, centre + sign * radius).numpy() for sign in (-1, 1))
            weak = strong = np.zeros_like(low)
            if weights.beta is not None:
                radius = math.sqrt(len(scale)) * (weights.beta.double() * scale).norm(dim=1)
                weak, strong = ((_beta_factor(mixer) * torch.sigmoid(sign * radius)).numpy() for sign in (-1, 1))
            # α(1 − β‖k‖²) with ‖k‖ ≤ 1 is least for the largest β, and then for the largest α if that is negative.
            least = (1 - strong) * np.where(strong > 1, high, low)
            found[number] = {"decay": (low, high), "beta": (weak, strong), "eigenvalue": (least, high),
                             "norm": (np.zeros_like(low), np.maximum(abs(least), high))}  # fmt: skip
        return found

    def read(self, model: Any, tokens: torch.Tensor) -> Iterator[tuple[int, Transition]]:
        """Run the model without its head on tokens, int64 (T,), and return the transitions of each layer."""
        found, body = list[tuple[int, Transition]](), model.base_model
        with ExitStack() as stack:
            for number, block in self._blocks(model).items():

                def note(mixer: Any, given: Any, named: Any, number: int = number) -> None:
                    found.append((number, self.transition(mixer, given[0] if given else named["hidden_states"])))

                stack.callback(getattr(block, self.place).register_forward_pre_hook(note, with_kwargs=True).remove)
            stack.callback(body.train, body.training)
            stack.enter_context(transformers())
            body.eval()(input_ids=tokens[None], use_cache=False)
        return iter(found)

    def transition(self, mixer: Any, x: torch.Tensor) -> Transition:
        """Return the transitions of a mixer for its input (1, T, H), computed as its `forward` does."""
        weights = self.projections(mixer)
        alpha = _decay(mixer, functional.linear(x[0], weights.decay, weights.bias)).double().numpy()[..., None]
        if weights.beta is None or weights.key is None:
            return alpha, np.zeros_like(alpha), np.zeros_like(alpha), np.zeros_like(alpha)
        beta = functional.linear(x[0], weights.beta).sigmoid() * _beta_factor(mixer)
        channels = len(weights.key)
        taps = mixer.conv1d.weight[channels : 2 * channels]  # q, k and v are convolved together, in this order
        k = functional.linear(x, weights.key).transpose(1, 2)
        k = functional.conv1d(k, taps, padding=taps.shape[-1] - 1, groups=channels)[0, :, : x.shape[1]].T
        activation = require("transformers.activations", "hf", "a layer of others").ACT2FN[mixer.activation]
        k = activation(k).unflatten(1, (mixer.num_k_heads, -1)).float()
        k = k * torch.rsqrt(k.square().sum(dim=-1, keepdim=True) + 1e-6)
        k = k.repeat_interleave(mixer.num_v_heads // mixer.num_k_heads, dim=1).double().numpy()
        rate = beta.double().numpy()[..., None]
        return alpha, alpha * rate, rate, k

    def _blocks(self, model: Any) -> dict[int, Any]:
        blocks = [part for part in model.modules() if type(getattr(part, self.place, None)).__name__ == self.mixer]
        return {getattr(block, self.place).layer_idx: block for block in blocks}


def _decay(mixer: Any, logits: torch.Tensor) -> torch.Tensor:
    """Return exp(−exp(A_log)·Δ) with Δ = softplus(logits + dt_bias), in the dtypes in which the mixer computes it."""
    limit = getattr(mixer, "time_step_limit", None)  # of Mamba-2, which computes Δ in the dtype of the model
    logits = logits if limit or logits.dtype == torch.float64 else logits.float()
    delta = functional.softplus(logits + mixer.dt_bias.to(logits.dtype))
    delta = delta.clamp(*limit) if limit else delta
    return torch.exp(-mixer.A_log.float().exp() * delta.to(torch.promote_types(delta.dtype, torch.float32)))


def _beta_factor(mixer: Any) -> int:
    return 2 if getattr(mixer, "allow_neg_eigval", False) else 1


def _qwen3_next(mixer: Any) -> Projections:
    """Return the weights of a layer that stores the rows of q, k, v, z, and of β, α, side by side for each key head."""
    fused = mixer.in_proj_qkvz.weight.unflatten(0, (mixer.num_k_heads, -1))
    beta, alpha = mixer.in_proj_ba.weight.unflatten(0, (mixer.num_k_heads, -1)).chunk(2, dim=1)
    key = fused[:, mixer.head_k_dim : 2 * mixer.head_k_dim]
    return Projections(alpha.flatten(0, 1), beta.flatten(0, 1), key.flatten(0, 1))


def _qwen3_5(mixer: Any) -> Projections:
    key = mixer.in_proj_qkv.weight[mixer.key_dim : 2 * mixer.key_dim]
    return Projections(mixer.in_proj_a.weight, mixer.in_proj_b.weight, key)


def _mamba2(mixer: Any) -> Projections:
    n, bias = mixer.num_heads, mixer.in_proj.bias
    return Projections(mixer.in_proj.weight[-n:], bias=None if bias is None else bias[-n:])


def _falcon_h1(mixer: Any) -> Projections:
    """Return the weights of a layer whose input and whose projections are multiplied by constants."""
    plain, factor = _mamba2(mixer), mixer.mup_vector[0, 0, -1]
    bias = None if plain.bias is None else plain.bias * factor
    return Projections(plain.decay * (mixer.ssm_in_multiplier * factor), bias=bias)


_GATED_DELTA, _MAMBA = ("linear_attn", "input_layernorm"), ("mamba", "input_layernorm")
ARCHITECTURES: dict[str, Architecture | RwkvGates] = {
    "olmo-hybrid": Architecture(
        "olmo_hybrid", "OlmoHybridModel", "OlmoHybridGatedDeltaNet", *_GATED_DELTA,
        lambda mixer: Projections(mixer.a_proj.weight, mixer.b_proj.weight, mixer.k_proj.weight), (-1.0, 1.0),
    ),
    "qwen3-next": Architecture(
        "qwen3_next", "Qwen3NextModel", "Qwen3NextGatedDeltaNet", *_GATED_DELTA, _qwen3_next, offset=1.0
    ),
    "qwen3.5": Architecture(
        "qwen3_5", "Qwen3_5TextModel", "Qwen3_5GatedDeltaNet", *_GATED_DELTA, _qwen3_5, offset=1.0,
        model_type="qwen3_5_text",
    ),
    "qwen3.5-moe": Architecture(
        "qwen3_5_moe", "Qwen3_5MoeTextModel", "Qwen3_5MoeGatedDeltaNet", *_GATED_DELTA, _qwen3_5, offset=1.0,
        model_type="qwen3_5_moe_text",
    ),
    "mamba-2": Architecture("mamba2", "Mamba2Model", "Mamba2Mixer", "mixer", "norm", _mamba2),
    "bamba": Architecture("bamba", "BambaModel", "BambaMixer", *_MAMBA, _mamba2),
    "falcon-h1": Architecture("falcon_h1", "FalconH1Model", "FalconH1Mixer", *_MAMBA, _falcon_h1),
    "granite-moe-hybrid": Architecture(
        "granitemoehybrid", "GraniteMoeHybridModel", "GraniteMoeHybridMambaLayer", *_MAMBA, _mamba2
    ),
    "nemotron-h": Architecture("nemotron_h", "NemotronHModel", "NemotronHMamba2Mixer", "mixer", "norm", _mamba2),
    "zamba2": Architecture("zamba2", "Zamba2Model", "Zamba2MambaMixer", *_MAMBA, _mamba2),
    "rwkv-7": RwkvGates(),
}  # fmt: skip
"""The models whose layers are known, by the name of the layer."""


@dataclass(frozen=True)
class Head:
    """What the transitions of a head can be: enclosures over all inputs, and ranges over the tokens, by quantity.

    The quantities are "decay", "beta", "eigenvalue" and "norm", over tokens also "key", its norm. `negative` is the
    share of tokens at which an eigenvalue is negative. Layers and heads count from 0, layers as in the model.
    """

    layer: int
    head: int
    possible: Mapping[str, Interval]
    observed: Mapping[str, Interval]
    negative: float


@dataclass(frozen=True, eq=False)
class EigenvalueReport(Brief):
    """The heads of a model, a description of its code, and the number of tokens that were read, 0 for none."""

    layer: str
    model: str
    n_tokens: int
    heads: tuple[Head, ...]

    def explain(self) -> str:
        """Return a sentence that states how many heads may have negative eigenvalues, and how many have."""
        may = sum(head.possible["eigenvalue"][0] < 0 for head in self.heads)
        text = f"{may:,} of {len(self.heads):,} heads may have negative eigenvalues for some input"
        if not self.n_tokens:
            return text
        least = min(head.observed["eigenvalue"][0] for head in self.heads)
        using, share = sum(head.negative > 0 for head in self.heads), np.mean([head.negative for head in self.heads])
        return f"{text}; at these tokens {using:,} have, at {share:.2%} of tokens and heads; the least is {least:.4g}"


def eigenvalues(
    model: Path | str | Any, tokens: Sequence[int] | np.ndarray | None = None, window: int = 1_024
) -> EigenvalueReport:
    """Return the ranges of a model's transitions, per head, over all inputs and over the tokens if some are given.

    Args:
        model: a folder that `save_pretrained` or `fsa2lrnn export` wrote, or a loaded model on the CPU.
        tokens: a text, read in pieces of at most `window` tokens, each from the start state.
        window: the most tokens per piece.

    Raises:
        UnsupportedFormat: for another architecture, or gates that are not finite.
        CheckpointError: for a folder that holds no such model, or on whose configuration its code fails.
        InvalidWord: for a token outside the model's vocabulary, or no tokens at all.

    >>> from fsa2lrnn.export.packages import modeling
    >>> code = modeling("mamba2")
    >>> config = code.Mamba2Config(
    ...     vocab_size=9, hidden_size=16, num_heads=2, head_dim=16, state_size=8, n_groups=1, num_hidden_layers=1)
    >>> eigenvalues(code.Mamba2Model(config)).explain()
    '0 of 2 heads may have negative eigenvalues for some input'
    """
    folder = Path(model) if isinstance(model, Path | str) else None
    if folder is not None and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file: give a folder" if folder.exists() else f"no such folder: {folder}")
    fits = [name for name, row in ARCHITECTURES.items() if (row.owns(model) if folder is None else row.holds(folder))]
    if not fits:
        what = folder or f"a {type(model).__name__}"
        raise UnsupportedFormat(f"{what} holds no model of {', '.join(ARCHITECTURES)}: give one of these")
    known = ARCHITECTURES[fits[0]]
    found, negative = dict[int, Ranges](), dict[int, np.ndarray]()
    with torch.no_grad(), refusing(f"{folder or 'the model'}: its package's code fails"):
        loaded = model if folder is None else known.load(folder)
        text, n = np.asarray(() if tokens is None else tokens), known.n_tokens(loaded)
        if tokens is not None and (text.ndim != 1 or text.dtype.kind not in "iu" or window < 1 or not len(text)):
            raise InvalidWord(f"tokens of type {text.dtype}, {window} at a time: give a list of whole numbers")
        if (odd := text[(text < 0) | (text >= n)]).size:
            raise InvalidWord(f"token {odd[0]}, and the model knows 0 to {n - 1}: give a text in its tokens")
        bounds = known.bounds(loaded)
        for start in range(0, len(text), window):
            for i, transition in known.read(loaded, torch.from_numpy(text[start : start + window].astype(np.int64))):
                ranges, before = measure(*transition), found.setdefault(i, {})
                for name, (low, high) in ranges.items():
                    past = before.get(name, (np.inf, -np.inf))
                    before[name] = np.minimum(past[0], low.min(axis=0)), np.maximum(past[1], high.max(axis=0))
                negative[i] = negative.get(i, 0) + (ranges["eigenvalue"][0] < 0).sum(axis=0)
        description = known.describe(loaded)
    heads = list[Head]()
    for i, possible in sorted(bounds.items()):
        for j in range(len(possible["decay"][0])):
            share = float(negative[i][j]) / len(text) if found else 0.0
            heads.append(Head(i, j, _of_head(possible, i, j), _of_head(found.get(i, {}), i, j), share))
    return EigenvalueReport(fits[0], description, len(text), tuple(heads))


def _of_head(ranges: Ranges, layer: int, head: int) -> dict[str, Interval]:
    values = {name: (float(low[head]), float(high[head])) for name, (low, high) in ranges.items()}
    if odd := [name for name, ends in values.items() if not all(map(math.isfinite, ends))]:
        raise UnsupportedFormat(
            f"layer {layer}: {odd[0]} of head {head} is not finite: the model overflows or is damaged"
        )
    return values
