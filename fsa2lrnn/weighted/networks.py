"""Compile weighted automata into networks, read them out of networks, prove networks equal, and bound their rounding.

A layer x ← A x + v with logits W x + b is a weighted automaton with one more state, whose vector is always 1 (T65 of
docs/theory.md). That state is added when a network is read, and becomes v and b again when it is compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import networkx as nx
import numpy as np
import torch
from flint import fmpq  # pyright: ignore[reportMissingTypeStubs]
from torch import Tensor

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import bounded
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn.affine import Readout, SwitchedAffine
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import Undecided
from fsa2lrnn.weighted.spaces import EqualFunctions, SeparatingWord, compare
from fsa2lrnn.weighted.weighted_automaton import MAX_ENTRIES, WeightedAutomaton

DTYPES = (torch.float64, torch.float32)
_SLACK = 1 + 2.0**-40  # above the rounding of sums of up to 2¹² numbers in float64
Source = WeightedAutomaton | MooreMachine | LRNN | SwitchedAffine


def compile_machine(w: WeightedAutomaton, dtype: torch.dtype = torch.float64) -> LRNN:
    """Return a network of the class that is trained whose logits are the values of an automaton, one per output.

    Its transitions are block diagonal, one block per set of states that letters connect. Weights are rounded to the
    nearest number of `dtype`, so that the network in real arithmetic is equal to the automaton iff all weights are such
    numbers (`prove_equivalent` decides it); `rounding_bound` bounds what rounding changes. Logits are those after each
    letter; `initial_logits` has that of the empty word.

    Raises `UnsupportedFormat` for another dtype than float64 and float32, `NotExact` for a weight beyond its numbers.

    >>> w = WeightedAutomaton("ab", [1], [[["1/2"]], [["1/4"]]], [1])
    >>> compile_machine(w)(torch.tensor([[0, 1]])).flatten().tolist()
    [0.5, 0.125]
    """
    A, v, x0, W, b = (_rounded(part, dtype) for part in _affine(w))
    connected = nx.from_numpy_array((A != 0).any(0).numpy())
    blocks = [sorted(states) for states in nx.connected_components(connected.to_undirected())] or [[]]
    heads, size = len(blocks), max(1, *map(len, blocks))
    tables, shifts = A.new_zeros(len(A), heads, size, size), A.new_zeros(len(A), heads, size)
    start, readout = A.new_zeros(heads, size), A.new_zeros(len(W), heads, size)
    for h, states in enumerate(blocks):
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
    tables = model if isinstance(model, SwitchedAffine) else switched(model)
    W, b = linear_readout(tables.readout)
    n_letters, heads, size = tables.v.shape
    n = heads * size
    bounded(n_letters * (n + 1) ** 2, MAX_ENTRIES, f"{n:,} dimensions over {n_letters:,} letters")
    blocks, v, x0 = (part.double().cpu().numpy() for part in (tables.A, tables.v.flatten(1), tables.x0.flatten()))
    A = np.zeros((n_letters, n + 1, n + 1))
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        A[:, part, part] = blocks[:, h]
    A[:, :n, n], A[:, n, n] = v, 1
    used = n + 1 if v.any() or b.any() else n  # without shifts and a bias no state needs to be 1
    final, outputs = np.hstack([W, b[:, None]])[:, :used], tables.outputs if tables.outputs != (0,) else None
    initial = np.append(x0, 1)[:used]
    return WeightedAutomaton(tables.alphabet, initial, A[:, :used, :used], final if outputs else final[0], outputs)


def linear_readout(readout: Readout) -> tuple[np.ndarray, np.ndarray]:
    """Return W (|Γ|, d) and b (|Γ|,) of a read-out whose hidden units are pairs z, −z with opposite weights.

    relu(z) − relu(−z) = z. Raises `NotExpressible` for a read-out that is not of this form.
    """
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
    if isinstance(source, MooreMachine):
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

    It holds for all lengths if each letter contracts in a norm (the 1-norm or the largest entry, with weights), else up
    to `length`. For a model, `dtype` is ignored, and its tables are exact.

    Raises `NotExact` if no such norm is found and `length` is None, or if numbers may leave the range of the dtype, and
    `UnsupportedFormat` for a negative length.
    """
    if isinstance(w, LRNN):
        w, dtype = from_model(w), w.dtype
    if length is not None and (type(length) is not int or length < 0):
        raise UnsupportedFormat(f"length {length!r}: give the largest number of letters, or None for all lengths")
    exact = _affine(w)
    rounded = [_rounded(part, dtype).double().numpy() for part in exact]
    errors = [_distance(part, y) for part, y in zip(exact, rounded, strict=True)]
    sizes, n = [np.abs(y) for y in rounded], rounded[0].shape[-1]
    found = list[RoundingBound]()
    for kind in (1, np.inf):
        for scale in (np.ones(n), _perron(sizes[0].max(0), kind)):
            _, one = _norms([sizes[0], np.ones(n)], kind, scale)
            found.append(_bound(_norms(sizes, kind, scale), _norms(errors, kind, scale), n, one, dtype, length))
    best = min(found, key=lambda option: (not math.isfinite(option.bound), option.bound))
    if not math.isfinite(best.bound):
        raise NotExact(
            f"no bound: a letter changes differences up to {best.rate:.4g} times: give a length, or a shorter one"
        )
    return best


def _norms(parts: list[np.ndarray], kind: float, scale: np.ndarray) -> list[float]:
    """Return upper bounds on the norms of A, v, x₀, W and b in the norm ‖scale · x‖, the 1-norm or largest entry."""
    kinds = ((kind, (-2, -1)), (kind, -1), (kind, -1), (np.inf if kind == 1 else 1, -1), (np.inf, -1))
    factors = (scale[:, None] / scale, scale, scale, 1 / scale, 1)
    norms = (np.linalg.norm(x * s, *k) for x, s, k in zip(parts, factors, kinds, strict=False))
    return [_SLACK * float(np.max(norm)) for norm in norms]


def _bound(
    sizes: list[float], errors: list[float], n: int, one: float, dtype: torch.dtype, length: int | None
) -> RoundingBound:
    """Return the bound of T65 from norms of rounded weights and of their errors; infinite if it fails.

    `one` is the norm of the vector of ones. x bounds the exact states, e the errors of the computed ones.
    """
    info, k = torch.finfo(dtype), n + 2
    gamma = k * info.eps / (2 - k * info.eps)  # of a sum of k products in any order, with or without fused steps
    tiny = k * info.smallest_normal  # of underflow
    (A, V, x, W, b), (dA, dV, e, dW, db) = sizes, errors
    rate, x, V, W, b = A + dA, x + e, V + dV, W + dW, b + db
    per_size, constant = dA + gamma * rate, dV + gamma * V + tiny * one
    if length is None and rate + per_size < 1:
        x = max(x, V / (1 - rate))
        e = max(e, (per_size * x + constant) / (1 - rate - per_size)) * _SLACK
    elif length is None:
        x = e = math.inf
    most_x, most_e = x, e
    for _ in range(length or 0):
        e = (rate * e + per_size * (x + e) + constant) * _SLACK
        x = (rate * x + V) * _SLACK
        most_x, most_e = max(most_x, x), max(most_e, e)
        if not x + e < info.max:
            break
    x, e = most_x, most_e
    # The read-out computes z and −z, and adds them: two errors of sums, and one of the addition.
    logits = W * e + dW * (x + e) + db + (2 * gamma + info.eps) * (W * (x + e) + b) + 2 * tiny
    is_safe = (x + e) * max(rate, W, 1.0) + V + b < info.max / 4
    return RoundingBound(logits * _SLACK if is_safe else math.inf, length, rate, str(dtype).removeprefix("torch."))


def _perron(A: np.ndarray, kind: float) -> np.ndarray:
    """Return weights of states under which no letter's norm exceeds the spectral radius of a matrix (n, n) by much."""
    A, x = A if kind == np.inf else A.T, np.ones(len(A))
    for _ in range(200):
        x = A @ x + 1e-6 * x.sum()
        x /= max(x.max(), 1e-300)
    return 1 / x if kind == np.inf else x


def _affine(w: WeightedAutomaton) -> list[np.ndarray]:
    """Return A, v, x₀, W and b of a layer with the function of a weighted automaton, arrays of fractions.

    A state whose vector is always 1 becomes v and b.
    """
    n, zero = w.n_states, fmpq(0)
    # A state that is always 0 is added, so that a layer without others has a state.
    A = np.full((len(w.alphabet), n + 1, n + 1), zero)
    x0, W = np.full(n + 1, zero), np.full((w._final.nrows(), n + 1), zero)
    for a, matrix in enumerate(w._transitions):
        A[a, :n, :n] = np.array(matrix.tolist(), object).reshape(n, n)
    x0[:n], W[:, :n] = w._initial.entries(), np.array(w._final.tolist(), object).reshape(len(W), n)
    ones = [s for s in range(n) if x0[s] == 1 and all((A[:, s] == (np.arange(n + 1) == s).astype(int)).flat)]
    one = ones[-1] if ones else n
    rest = [q for q in range(n) if q != one] or [n]
    return [A[:, rest][:, :, rest], A[:, rest, one], x0[rest], W[:, rest], W[:, one]]


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
