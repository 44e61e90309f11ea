"""Compile weighted automata into networks, read them out of networks, prove networks equal, and bound their rounding.

A layer x ← A x + v with logits W x + b is a weighted automaton with one more state, whose vector is always 1 (T64 of
docs/theory.md). That state is added when a network is read, and becomes v and b again when it is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from flint import fmpq, fmpq_mat  # pyright: ignore[reportMissingTypeStubs]
from torch import Tensor

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import bounded
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn.affine import Readout, SwitchedAffine
from fsa2lrnn.nn.layers.base import MAX_WIDTH
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import Undecided
from fsa2lrnn.weighted.automaton import MAX_ENTRIES, WeightedAutomaton
from fsa2lrnn.weighted.spaces import EqualFunctions, SeparatingWord, compare

DTYPES = (torch.float64, torch.float32)
_SLACK = 1 + 2.0**-40  # above the rounding of sums of up to 2¹² numbers in float64
Source = WeightedAutomaton | MooreMachine | LRNN | SwitchedAffine


def compile_machine(w: WeightedAutomaton, dtype: torch.dtype = torch.float64) -> LRNN:
    """Return a network of the class that is trained whose logits are the values of an automaton, one per output.

    Its transitions are block diagonal, with a block for the states that letters connect. Weights are rounded to the
    nearest number of `dtype`, so that the network in real arithmetic is equal to the automaton iff all weights are such
    numbers (`prove_equivalent` decides it); `rounding_bound` bounds what rounding changes. Logits of words are those
    after each letter, and `initial_logits` that of the empty word.

    Raises:
        UnsupportedFormat: for another dtype than float64 and float32.
        NotExact: for a weight beyond the largest number of `dtype`.

    >>> w = WeightedAutomaton("ab", [1], [[["1/2"]], [["1/4"]]], [1])
    >>> compile_machine(w)(torch.tensor([[0, 1]])).flatten().tolist()
    [0.5, 0.125]
    """
    form = _affine(w)
    A, v, x0, W, b = (part.rounded(dtype) for part in form)
    blocks = _blocks((A != 0).any(0).numpy())
    size = max(map(len, blocks), default=1)
    tables = A.new_zeros(len(A), max(len(blocks), 1), size, size)
    shifts, start = tables.new_zeros(tables.shape[:3]), tables.new_zeros(tables.shape[1:3])
    readout = W.new_zeros(len(W), *start.shape)
    for h, states in enumerate(blocks):
        places = torch.arange(len(states))
        tables[:, h, : len(states), : len(states)] = A[:, states][:, :, states]
        shifts[:, h, places], start[h, places], readout[:, h, places] = v[:, states], x0[states], W[:, states]
    outputs = (0,) if w.outputs is None else w.outputs
    linear = Readout.linear(readout.flatten(1), b)
    return LRNN.from_tables(tables, shifts, start, linear, w.alphabet, outputs)


def from_model(model: LRNN | SwitchedAffine) -> WeightedAutomaton:
    """Return the weighted automaton of a model of one layer with tables and a linear read-out, exactly.

    Its weights are the numbers of the tables that the model looks up (`nn.switched.switched`), and its function is that
    of the model in real arithmetic: one output per logit, without names if the only output is 0.

    Raises:
        UnsupportedFormat: for other models, naming what they have.
        NotExpressible: for a read-out that is not linear: with LayerNorm, or a hidden unit without its negative.
    """
    tables = model if isinstance(model, SwitchedAffine) else switched(model)
    W, b = linear_readout(tables.readout)
    n_letters, heads, size = tables.v.shape
    n = heads * size
    bounded(n_letters * (n + 1) ** 2, MAX_ENTRIES, f"{n:,} dimensions over {n_letters:,} letters")
    A = np.zeros((n_letters, n + 1, n + 1))
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        A[:, part, part] = tables.A[:, h].double().cpu().numpy()
    A[:, :n, n], A[:, n, n] = tables.v.flatten(1).double().cpu().numpy(), 1
    x0 = np.append(tables.x0.flatten().double().cpu().numpy(), 1)
    beta = np.hstack([W, b[:, None]])
    # Without shifts and a bias no state needs to be 1.
    used = slice(None) if A[:, :n, n].any() or b.any() else slice(n)
    is_one = tables.outputs == (0,)
    final = beta[:, used]
    return WeightedAutomaton(
        tables.alphabet, x0[used], A[:, used, used], final[0] if is_one else final, None if is_one else tables.outputs
    )


def linear_readout(readout: Readout) -> tuple[np.ndarray, np.ndarray]:
    """Return W (|Γ|, d) and b (|Γ|,) of a read-out whose hidden units are pairs z, −z with opposite weights.

    relu(z) − relu(−z) = z. Raises `NotExpressible` for a read-out that is not of this form.
    """
    if readout.norm_weight is not None:
        raise NotExpressible("the read-out has a LayerNorm, which is not linear: train a model without it")
    W1, b1, W2, b2 = (part.detach().double().cpu().numpy() + 0.0 for part in list(vars(readout).values())[:4])
    W, b = np.zeros((len(b2), W1.shape[1])), b2.copy()
    unpaired = dict[bytes, list[int]]()
    for i, (row, bias) in enumerate(zip(W1, b1, strict=True)):
        of_unit = np.concatenate([row, [bias], W2[:, i]])
        if not W2[:, i].any():
            continue
        if not row.any():
            b += max(bias, 0.0) * W2[:, i]
        elif partners := unpaired.get((0.0 - of_unit).tobytes()):
            partners.pop()
            W, b = W + np.outer(W2[:, i], row), b + bias * W2[:, i]
        else:
            unpaired.setdefault(of_unit.tobytes(), []).append(i)
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

    It covers words that are read letter by letter, by the scans "sequential" and "letters" too, with sums in any order.

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
    """Return a bound on what rounding changes in `compile_machine(w, dtype)`, or in the tables of a model (T64).

    It holds for all lengths if each letter contracts in a norm (the 1-norm or the largest entry, with weights), else up
    to `length`. For a model, `dtype` is ignored, and its tables are exact.

    Raises `NotExact` if no such norm is found and `length` is None, or if numbers may leave the range of the dtype.
    """
    if isinstance(w, LRNN):
        w, dtype = from_model(w), w.dtype
    form, rounded = _affine(w), [part.rounded(dtype) for part in _affine(w)]
    errors = [part.error(tensor) for part, tensor in zip(form, rounded, strict=True)]
    sizes = [tensor.double().abs().numpy() for tensor in rounded]
    n = sizes[0].shape[-1]
    options = [
        _bound(sizes, errors, kind, scale, dtype, length)
        for kind in (1, np.inf)
        for scale in (np.ones(n), _perron(sizes[0].max(0), kind))
    ]
    best = min(options, key=lambda found: (math.isinf(found.bound), found.bound))
    if not best.bound < torch.finfo(dtype).max / 4:
        raise NotExact(
            f"no bound: a letter changes differences up to {best.rate:.4g} times: give a length, or a shorter one"
        )
    return best


def _bound(
    sizes: Sequence[np.ndarray],
    errors: Sequence[np.ndarray],
    kind: float,
    scale: np.ndarray,
    dtype: torch.dtype,
    length: int | None,
) -> RoundingBound:
    """Return the bound of T64 in the norm ‖scale · x‖ with the 1-norm or the largest entry; infinite if it fails."""
    info = torch.finfo(dtype)
    k = len(scale) + 2
    unit, tiny = info.eps / 2, k * info.smallest_normal
    gamma = k * unit / (1 - k * unit)  # of a sum of k products in any order, with or without fused steps

    def largest(x: np.ndarray, order: float, axis: int | tuple[int, int] = -1) -> float:
        return _SLACK * float(np.linalg.norm(x, order, axis=axis).max(initial=0)) if x.size else 0.0

    def of_maps(A: np.ndarray) -> float:
        return largest(A * scale[:, None] / scale, kind, (-2, -1))

    def of_vectors(x: np.ndarray) -> float:
        return largest(x * scale, kind)

    def of_rows(W: np.ndarray) -> float:
        return largest(W / scale, np.inf if kind == 1 else 1)

    A, V, x, W, b = (f(size) for f, size in zip((of_maps, of_vectors, of_vectors, of_rows, np.max), sizes, strict=True))
    dA, dV, e, dW, db = (f(d) for f, d in zip((of_maps, of_vectors, of_vectors, of_rows, np.max), errors, strict=True))
    rate = A + dA  # of the exact matrices, and of the rounded ones
    per_size = dA + gamma * rate
    constant = dV + gamma * V + of_vectors(np.full(len(scale), tiny))
    x += e
    V += dV
    if length is None:
        if rate + per_size >= 1:
            return RoundingBound(math.inf, None, rate, "")
        x = max(x, V / (1 - rate))
        e = max(e, (per_size * x + constant) / (1 - rate - per_size)) * _SLACK
    worst = (x, e)
    for _ in range(length or 0):
        e = (rate * e + per_size * (x + e) + constant) * _SLACK
        x = (rate * x + V) * _SLACK
        worst = max(worst[0], x), max(worst[1], e)
        if not e < info.max:
            return RoundingBound(math.inf, length, rate, "")
    x, e = worst
    read = W + dW
    logits = read * e + (dW + 2 * gamma * read) * (x + e) + db + 2 * gamma * (b + db)
    logits += 2 * unit * (read * (x + e) + b + db) + 2 * tiny
    is_safe = (x + e) * max(rate, read, 1.0) + V + b < info.max / 4
    name = str(dtype).removeprefix("torch.")
    return RoundingBound(float(logits * _SLACK) if is_safe else math.inf, length, rate, name)


def _perron(A: np.ndarray, kind: float) -> np.ndarray:
    """Return weights of states under which no letter's norm exceeds the spectral radius of a matrix (n, n) by much."""
    A = A if kind == np.inf else A.T
    x = np.ones(len(A))
    for _ in range(200):
        x = A @ x + 1e-6 * x.sum()
        x /= x.max(initial=1e-300)
    return 1 / x if kind == np.inf else x


class _Exact(NamedTuple):
    """Exact numbers in an array of a shape."""

    numbers: list[fmpq]
    shape: tuple[int, ...]

    def rounded(self, dtype: torch.dtype) -> Tensor:
        if dtype not in DTYPES:
            raise UnsupportedFormat(f"dtype {dtype} is not offered: choose one of {', '.join(map(str, DTYPES))}")
        try:
            rounded = torch.tensor([int(x.p) / int(x.q) for x in self.numbers], dtype=torch.float64).to(dtype)
        except OverflowError:
            rounded = torch.tensor([math.inf])
        if not rounded.isfinite().all():
            raise NotExact(f"a weight is beyond the largest number of {dtype}: scale the automaton")
        return rounded.reshape(self.shape)

    def error(self, rounded: Tensor) -> np.ndarray:
        """Return bounds on what rounding has changed."""
        pairs = zip(self.numbers, rounded.double().flatten().tolist(), strict=True)
        exact = (abs(x - fmpq(*y.as_integer_ratio())) for x, y in pairs)
        return np.array([_SLACK * (int(d.p) / int(d.q)) for d in exact]).reshape(self.shape)


def _affine(w: WeightedAutomaton) -> tuple[_Exact, _Exact, _Exact, _Exact, _Exact]:
    """Return A, v, x₀, W and b of a layer with the function of a weighted automaton.

    A state whose vector is always 1 becomes v and b.
    """
    n, maps, alpha, beta = w.n_states, w._transitions, w._initial, w._final
    ones = [s for s in range(n) if alpha[s, 0] == 1 and all(_is_kept(A, s) for A in maps)]
    one = ones[-1:]
    rest = [q for q in range(n) if q not in one] or [n]  # an index beyond stands for a state that is always 0
    bounded(len(rest), MAX_WIDTH, f"{n:,} states")

    def entry(matrix: fmpq_mat, i: int, j: int) -> fmpq:
        return matrix[i, j] if i < matrix.nrows() and j < matrix.ncols() else fmpq(0)

    m, letters, outputs = len(rest), len(maps), beta.nrows()
    return (
        _Exact([entry(A, i, j) for A in maps for i in rest for j in rest], (letters, m, m)),
        _Exact([sum((entry(A, i, s) for s in one), fmpq(0)) for A in maps for i in rest], (letters, m)),
        _Exact([entry(alpha, i, 0) for i in rest], (m,)),
        _Exact([entry(beta, y, i) for y in range(outputs) for i in rest], (outputs, m)),
        _Exact([sum((beta[y, s] for s in one), fmpq(0)) for y in range(outputs)], (outputs,)),
    )


def _is_kept(A: fmpq_mat, s: int) -> bool:
    return all(A[s, q] == int(q == s) for q in range(A.ncols()))


def _blocks(connected: np.ndarray) -> list[list[int]]:
    """Return states in blocks: the largest set of states that letters connect, and others packed into its size."""
    parts = sorted(map(sorted, nx.connected_components(nx.from_numpy_array(connected | connected.T))), key=len)[::-1]
    blocks = list[list[int]]()
    for part in parts:
        block = next((block for block in blocks if len(block) + len(part) <= len(parts[0])), None)
        if block is None:
            blocks.append(list(part))
        else:
            block += part
    return blocks
