"""Compile weighted automata into networks, read them out of networks, prove networks equal, and bound their rounding.

A layer x ← A x + v with logits W x + b is a weighted automaton with one more state, whose vector is always 1 (T65 of
docs/theory.md). That state is added when a network is read, and becomes v and b again when it is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from flint import fmpq  # pyright: ignore[reportMissingTypeStubs]
from torch import Tensor

from fsa2lrnn.automata.machine import MachineSource, MooreMachine
from fsa2lrnn.deadline import bounded
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat, check_type
from fsa2lrnn.nn.affine import Readout, SwitchedAffine
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.reading import shown
from fsa2lrnn.verdicts import Undecided
from fsa2lrnn.weighted.finest_blocks import affine, assembled, block_form, connected
from fsa2lrnn.weighted.spaces import EqualFunctions, SeparatingWord, compare
from fsa2lrnn.weighted.weighted_automaton import MAX_ENTRIES, WeightedAutomaton

DTYPES = (torch.float64, torch.float32)
_SLACK = 1 + 2.0**-40  # above the rounding of sums of up to 2¹² numbers in float64
Source = WeightedAutomaton | MachineSource | LRNN | SwitchedAffine


def compile_machine(
    w: WeightedAutomaton, dtype: torch.dtype = torch.float64, blocks: Literal["connected", "finest"] = "connected"
) -> LRNN:
    """Return a network of the class that is trained whose logits are the values of an automaton, one per output.

    Its transitions are block diagonal, one block per set of states that letters connect; with `blocks="finest"`, after
    the change of basis of `finest_blocks.block_form`, which may lengthen the weights. Weights are rounded to the
    nearest number of `dtype`, so that the network in real arithmetic is equal to the automaton iff all weights are such
    numbers (`prove_equivalent` decides it); `rounding_bound` bounds what rounding changes. Logits are those after each
    letter; `initial_logits` has that of the empty word.

    Raises `UnsupportedFormat` for another dtype than float64 and float32, or other blocks, and `NotExact` for a weight
    beyond the numbers of the dtype.

    >>> w = WeightedAutomaton("ab", [1], [[["1/2"]], [["1/4"]]], [1])
    >>> compile_machine(w)(torch.tensor([[0, 1]])).flatten().tolist()
    [0.5, 0.125]
    """
    if blocks not in ("connected", "finest"):
        raise UnsupportedFormat(f"blocks = {shown(blocks)}: choose connected or finest")
    A, v, x0, W, b = (_rounded(part, dtype) for part in affine(block_form(w).automaton if blocks == "finest" else w))
    parts = connected(A.numpy())
    heads, size = len(parts), max(map(len, parts))
    tables, shifts = A.new_zeros(len(A), heads, size, size), A.new_zeros(len(A), heads, size)
    start, readout = A.new_zeros(heads, size), A.new_zeros(len(W), heads, size)
    for h, states in enumerate(parts):
        k = len(states)
        tables[:, h, :k, :k], shifts[:, h, :k] = A[:, states][:, :, states], v[:, states]
        start[h, :k], readout[:, h, :k] = x0[states], W[:, states]
    linear = Readout.linear(readout.flatten(1), b)
    return LRNN.from_tables(tables, shifts, start, linear, w.alphabet, w.outputs or (0,))


def from_model(model: LRNN | SwitchedAffine) -> WeightedAutomaton:
    """Return the weighted automaton of a model of one layer with tables and a linear read-out, exactly.

    Its weights are the numbers of the tables that the model looks up (`nn.switched.switched`), and its function is that
    of the model in real arithmetic: one output per logit, without names if the only output is 0.

    Raises `UnsupportedFormat` for other models, `NotExpressible` for a read-out that is not linear.
    """
    check_type(model, (LRNN, SwitchedAffine), "model", "an LRNN, as `compile_machine` and `load` return")
    tables = model if isinstance(model, SwitchedAffine) else switched(model)
    W, b = linear_readout(tables.readout)
    n_letters, heads, size = tables.v.shape
    n = heads * size
    bounded(n_letters * (n + 1) ** 2, MAX_ENTRIES, f"{n:,} dimensions over {n_letters:,} letters")
    blocks, v, x0 = (part.double().cpu().numpy() for part in (tables.A, tables.v.flatten(1), tables.x0.flatten()))
    A = np.zeros((n_letters, n, n))
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        A[:, part, part] = blocks[:, h]
    return assembled(tables.alphabet, tables.outputs if tables.outputs != (0,) else None, A, v, x0, W, b)


def linear_readout(readout: Readout) -> tuple[np.ndarray, np.ndarray]:
    """Return W (|Γ|, d) and b (|Γ|,) of a read-out whose hidden units are pairs z, −z with opposite weights.

    relu(z) − relu(−z) = z. Raises `NotExpressible` for a read-out that is not of this form.
    """
    check_type(readout, Readout, "readout", "a Readout, as `Readout.linear` makes")
    if readout.norm_weight is not None:
        raise NotExpressible("the read-out has a LayerNorm, which is not linear: train a model without it")
    parts = (readout.W1, readout.b1, readout.W2, readout.b2)
    W1, b1, W2, b2 = (part.detach().double().cpu().numpy() + 0.0 for part in parts)  # −0 becomes 0
    W, b, unpaired = np.zeros((len(b2), W1.shape[1])), b2, dict[bytes, list[int]]()
    for i, (row, bias, weights) in enumerate(zip(W1, b1, W2.T, strict=True)):
        unit = np.concatenate([row, [bias], weights])
        if not row.any() or not weights.any():
            b = b + max(bias, 0.0) * weights
        elif partners := unpaired.get((0.0 - unit).tobytes()):
            partners.pop()
            W, b = W + np.outer(weights, row), b + bias * weights
        else:
            unpaired.setdefault(unit.tobytes(), []).append(i)
    if left := [i for units in unpaired.values() for i in units]:
        raise NotExpressible(
            f"the read-out is not linear: hidden unit {left[0]} is a ReLU without its negative; `Readout.linear` makes "
            "one that is"
        )
    return W, b


def prove_equivalent(
    first: Source, second: Source, seconds: float | None = 60.0
) -> EqualFunctions | SeparatingWord | Undecided:
    """Decide whether two models or automata have the same logits on all words, over the reals (`spaces.compare`).

    A Moore machine stands for the indicators of its outputs.

    >>> w = WeightedAutomaton("ab", [1], [[["1/2"]], [["1/3"]]], [1])
    >>> prove_equivalent(compile_machine(w), w).word
    ('b',)
    """
    return compare(_weighted(first), _weighted(second), seconds)


def _weighted(source: Source) -> WeightedAutomaton:
    if isinstance(source, MooreMachine | str | Path):
        return WeightedAutomaton.from_machine(source)
    return source if isinstance(source, WeightedAutomaton) else from_model(source)


@dataclass(frozen=True)
class RoundingBound(Brief):
    """A bound on the difference of the logits of a compiled network from the values of its automaton.

    It covers words that are read letter by letter, and by the scans "sequential" and "letters", with sums in any order.

    Args:
        bound: the largest difference.
        length: the length of words up to which it holds, None for all lengths.
        rate: a factor by which each letter changes the norm of differences of states at most; below 1 for all lengths.
        arithmetic: the dtype.
    """

    bound: float
    length: int | None
    rate: float
    arithmetic: str

    def __str__(self) -> str:
        """Return the bound as one line of text."""
        words = "on every word of every length" if self.length is None else f"on words of up to {self.length:,} letters"
        how = f"in {self.arithmetic}, letter by letter; each letter changes differences at most {self.rate:.4g} times"
        return f"within {self.bound:.3g} of the exact value {words} ({how})"


def rounding_bound(
    w: WeightedAutomaton | LRNN, dtype: torch.dtype = torch.float64, length: int | None = None
) -> RoundingBound:
    """Return a bound on what rounding changes in `compile_machine(w, dtype)`, or in the tables of a model (T65).

    It holds for all lengths if, in each set of states that letters connect, each letter contracts in a norm (the 1-norm
    or the largest entry, with weights), or no number is ever rounded: A consists of integers, there are no shifts, and
    the norm of each letter is at most 1, as for indicators of outputs. Else it holds up to `length`.
    For a model, `dtype` is ignored, and its tables are exact.

    Raises `NotExact` if no such norm is found and `length` is None, or if numbers may leave the range of the dtype, and
    `UnsupportedFormat` for a negative length.
    """
    if isinstance(w, LRNN):
        w, dtype = from_model(w), w.dtype
    if length is not None and (type(length) is not int or length < 0):
        raise UnsupportedFormat(f"length {length!r}: give the largest number of letters, or None for all lengths")
    exact = affine(w)
    rounded = [_rounded(part, dtype).double().numpy() for part in exact]
    off = [_distance(part, y) for part, y in zip(exact, rounded, strict=True)]
    sizes, info, k = [np.abs(y) for y in rounded], torch.finfo(dtype), len(rounded[2]) + 2
    gamma = k * info.eps / (2 - k * info.eps)  # of a sum of k products in any order, with or without fused steps
    tiny = k * info.smallest_normal  # of underflow
    bounds, limits = list[_StateBound](), (gamma, tiny, info.eps, info.max)
    for states in connected((exact[0] != 0) | (rounded[0] != 0)):  # each set in the norm that suits it best
        at = np.ix_(range(len(w.alphabet)), states, states), np.s_[:, states], states, np.s_[:, states]
        here, errors = ([part[index] for part, index in zip(parts, at, strict=False)] for parts in (sizes, off))
        found, ones = list[_StateBound](), np.ones(len(states))
        for kind in (1, np.inf):
            for scale in (ones, _perron(here[0].max(0), kind)):
                norms = _norms(here, kind, scale), _norms(errors, kind, scale)
                one = _norms([here[0], ones], kind, scale)[1]
                unit = _unit(here, errors) if scale is ones else 0.0
                found.append(_state_bound(*norms, one, unit, limits, length))
        bounds.append(min(found, key=lambda bound: (not math.isfinite(bound.error), bound.error, bound.size)))
    # The read-out computes z and −z, and adds them: two errors of sums, and one of the addition.
    size = sum(bound.size for bound in bounds) + float(sizes[4].max())
    total = sum(bound.error for bound in bounds) + float(off[4].max())
    least = min(_power_of_two(sizes[4]), _power_of_two(sizes[3]) * min(bound.unit for bound in bounds))
    if total != 0 or size * info.eps > least or least < info.smallest_normal:
        total = (total + (2 * gamma + info.eps) * size + 2 * tiny) * _SLACK
    rate = max(bound.rate for bound in bounds)
    if not (math.isfinite(total) and size < info.max / 4):
        why = f"a letter changes differences up to {rate:.4g} times"
        raise NotExact(f"no bound: {why}: give a length, or a shorter one")
    return RoundingBound(total, length, rate, str(dtype).removeprefix("torch."))


def _norms(parts: list[np.ndarray], kind: float, scale: np.ndarray) -> list[float]:
    """Return upper bounds on the norms of A, v, x₀, W and b in the norm ‖scale · x‖, the 1-norm or largest entry."""
    kinds = ((kind, (-2, -1)), (kind, -1), (kind, -1), (np.inf if kind == 1 else 1, -1), (np.inf, -1))
    factors = (scale[:, None] / scale, scale, scale, 1 / scale, 1)
    norms = (np.linalg.norm(x * s, *k) for x, s, k in zip(parts, factors, kinds, strict=False))
    return [_SLACK * float(np.max(norm)) for norm in norms]


class _StateBound(NamedTuple):
    """Bounds, for all lengths considered, on what a row of a read-out adds up of states, and of their errors."""

    size: float
    error: float
    rate: float
    unit: float  # a power of two of which all numbers are multiples, computed without rounding; 0 if they may round


def _state_bound(
    sizes: list[float], errors: list[float], one: float, unit: float, limits: Sequence[float], length: int | None
) -> _StateBound:
    """Return the bounds of T65 from norms of rounded weights and of their errors; infinite if it fails.

    `one` is the norm of the vector of ones, `unit` is that of `_unit`, and `limits` are those of the arithmetic: of
    sums, of underflow, the distance of 1 from the next number, and the largest number.
    """
    (A, V, x, W), (dA, dV, e, dW), (gamma, tiny, eps, largest) = sizes, errors, limits
    rate, x, V, W = A + dA, x + e, V + dV, W + dW  # x bounds the exact states, e the errors of the computed ones
    per_size, constant = (0.0, 0.0) if unit else (dA + gamma * rate, dV + gamma * V + tiny * one)
    if length is None and rate + per_size < 1:
        x = max(x, V / (1 - rate))
        e = max(e, (per_size * x + constant) / (1 - rate - per_size)) * _SLACK
    elif length is None and not (unit and rate <= _SLACK and V == 0):  # else x does not grow, and e is 0
        x = e = math.inf
    most_x, most_e = x, e
    for _ in range(length or 0):
        e = (rate * e + per_size * (x + e) + constant) * _SLACK
        x = (rate * x + V) * _SLACK
        most_x, most_e = max(most_x, x), max(most_e, e)
        if not x + e < largest:
            break
    x, e = most_x, most_e
    is_safe = (x + e) * max(rate, W, 1.0) + V < largest / 4
    if unit and not (is_safe and (rate * x + V) * eps <= unit):
        # More units than 2⁵³ (2²⁴ in float32), up to which multiples of the unit are added without rounding.
        return _state_bound(sizes, errors, one, 0.0, limits, length)
    return _StateBound(W * (x + e), W * e + dW * (x + e) if is_safe else math.inf, rate, unit)


def _unit(sizes: list[np.ndarray], errors: list[np.ndarray]) -> float:
    """Return a power of two that divides all states unless sums round: that of x₀ and v if A is of integers, else 0."""
    A, v, x0 = sizes[:3]
    if any(part.any() for part in errors[:3]) or (np.rint(A) != A).any():
        return 0.0
    return min(_power_of_two(v), _power_of_two(x0))


def _power_of_two(numbers: np.ndarray) -> float:
    """Return the largest power of two, at most 1, that divides all numbers."""
    ratios = (x.as_integer_ratio() for x in numbers.flatten().tolist() if x)
    return min(((p & -p) / q for p, q in ratios), default=1.0)


def _perron(A: np.ndarray, kind: float) -> np.ndarray:
    """Return weights of states under which no letter's norm exceeds the spectral radius of a matrix (n, n) by much."""
    A, x = A if kind == np.inf else A.T, np.ones(len(A))
    for _ in range(200):
        x = A @ x + 1e-6 * x.sum()
        x /= max(x.max(), 1e-300)
    return 1 / x if kind == np.inf else x


def _rounded(numbers: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Return fractions rounded to a dtype."""
    if dtype not in DTYPES:
        raise UnsupportedFormat(f"dtype {dtype} is not offered: choose one of {', '.join(map(str, DTYPES))}")
    try:
        rounded = torch.tensor([int(x.p) / int(x.q) for x in numbers.flat], dtype=torch.float64).to(dtype)
    except OverflowError:
        rounded = torch.tensor([math.inf])
    if not rounded.isfinite().all():
        raise NotExact(f"a weight is beyond the largest number of {dtype}: scale the automaton")
    return rounded.reshape(numbers.shape)


def _distance(numbers: np.ndarray, rounded: np.ndarray) -> np.ndarray:
    """Return upper bounds on the distances of floats from fractions."""
    pairs = zip(numbers.flat, rounded.flatten().tolist(), strict=True)
    found = [abs(x - fmpq(*y.as_integer_ratio())) for x, y in pairs]
    above = [math.nextafter(int(d.p) / int(d.q), math.inf) if d else 0.0 for d in found]
    return np.array(above).reshape(numbers.shape)
