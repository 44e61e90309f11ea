"""The real-valued network of a model, evaluated word by word in ball arithmetic (Arb), from its weights alone.

This is written from the definitions (docs/theory.md, §1 and the docstrings of the layers). It shares no code with the
library: neither its layers and column rules, nor the searches, the bounds on rounding or the checkers.
"""

# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from flint import arb, arb_mat, ctx  # pyright: ignore[reportMissingTypeStubs]
from torch import Tensor

BITS = 320  # products and sums of a few numbers of any format are exact, or off by this precision
_STEEPEST = 2.0**100

Vector = list[Any]  # of arb


class Undecided(Exception):
    """The exact value is not defined (0/0), or an arg max of numbers that are not known exactly is open."""


class State(NamedTuple):
    """The states of all layers, (H, b) each, and the inputs that they read last, for the token shift."""

    x: tuple[list[Vector], ...]
    u: tuple[Vector, ...]


class ExactNetwork:
    """A stack of block or Householder layers in real numbers.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> network = ExactNetwork(compile_machine(zoo.parity()))
    >>> start = network.start()
    >>> [float(z) for z in network.step(start, 1)[1]]
    [0.0, 1.0]
    """

    def __init__(self, model: Any) -> None:
        ctx.prec = BITS
        self.config = config = model.config
        self._weights: dict[str, Tensor] = {name: x.detach().double() for name, x in model.state_dict().items()}
        self._gates: dict[str, tuple[Any, ...]] = {}
        self._first: dict[int, Any] = {}
        self.n_letters, self.n_layers = len(config.alphabet), len(config.layers)
        normed = {True: range(self.n_layers + 1), "readout": (self.n_layers,), False: ()}[config.layer_norm]
        self._norms = {at: f"norms.{i}" for i, at in enumerate(normed)}
        self._embedding = [_vector(row) for row in self._weights["embedding.weight"]]

    def start(self) -> State:
        """Return the state before the first letter."""
        stream: Vector = [arb(0)] * self.config.embedding_dim
        x, u = list[list[Vector]](), list[Vector]()
        for i, layer in enumerate(self.config.layers):
            numbers = [_vector(row) for row in self._weights[f"layers.{i}.x0"]]
            sizes = layer.block_sizes
            numbers = [
                [z if j < size else arb(0) for j, z in enumerate(row)] for row, size in zip(numbers, sizes, strict=True)
            ]
            if self._is_onehot(i):
                numbers = [_one_hot(row[:size], len(row)) for row, size in zip(numbers, sizes, strict=True)]
            x.append(numbers)
            if self.config.token_shift:
                u.append(self._norm(i, stream))
            stream = self._connect(i, stream, list(chain.from_iterable(numbers)))
        return State(tuple(x), tuple(u))

    def step(self, state: State, letter: int) -> tuple[State, Vector]:
        """Return the state after a letter, and the logits."""
        stream, after, read = self._embedding[letter], list[list[Vector]](), list[Vector]()
        for i in range(self.n_layers):
            if i == 0 and not state.u:
                if letter not in self._first:
                    self._first[letter] = self.tables(0, self._norm(0, stream))
                A, v = self._first[letter]
            else:
                u = self._norm(i, stream)
                if state.u:
                    read.append(u)
                    u = u + state.u[i]
                A, v = self.tables(i, u)
            x = [_affine(*each) for each in zip(A, state.x[i], v, strict=True)]
            after.append(x)
            stream = self._connect(i, stream, list(chain.from_iterable(x)))
        return State(tuple(after), tuple(read)), self._gate("readout", self._norm(self.n_layers, stream))

    def letter_tables(self, letter: int) -> tuple[list[Any], list[Vector]]:
        """Return A and v of the first layer for a letter, without token shift."""
        return self.tables(0, self._norm(0, self._embedding[letter]))

    def tables(self, i: int, u: Vector) -> tuple[list[Any], list[Vector]]:
        """Return A, one matrix per head, and v, of layer i for an input."""
        layer, name = self.config.layers[i], f"layers.{i}"
        H, b = self._weights[f"{name}.x0"].shape
        if f"{name}.rate.0.weight" in self._weights:
            A = self._products(name, layer, u, H, b)
        else:
            numbers = self._gate(f"{name}.transition", u)
            A = [self._block(numbers[h * b * b : (h + 1) * b * b], b, layer.block_sizes[h]) for h in range(H)]
        v = [arb(0)] * (H * b) if self._is_onehot(i) else self._gate(f"{name}.value", u)
        keep = [
            [z if j < layer.block_sizes[h] else arb(0) for j, z in enumerate(v[h * b : h * b + b])] for h in range(H)
        ]
        return A, keep

    def _block(self, numbers: Vector, b: int, size: int) -> Any:
        """Return one block with the column rule applied: columns are lists of b numbers."""
        columns = [[numbers[i * b + j] if max(i, j) < size else arb(0) for i in range(b)] for j in range(b)]
        rule, p = self.config.normalisation, min(self.config.p, _STEEPEST)
        if rule == "clip":
            columns = [_divided(c, _at_least_one(_norm_of(c, p))) for c in columns]
        elif rule == "paper":
            columns = [[z - sum(c, arb(0)) / b for z in c] for c in columns]
            largest = arb(0)
            for c in columns:
                largest = _larger(largest, _norm_of(c, p))
            columns = [_divided(c, largest) for c in columns]
        elif rule == "onehot":
            columns = [_one_hot([numbers[i * b + j] for i in range(size)], b) for j in range(b)]
        return arb_mat(b, b, [columns[j][i] for i in range(b) for j in range(b)])

    def _products(self, name: str, layer: Any, u: Vector, H: int, b: int) -> list[Any]:
        """Return (I − β_m k_m k_mᵀ) ⋯ (I − β_1 k_1 k_1ᵀ) for each head."""
        keys, rates, m = self._gate(f"{name}.transition", u), self._gate(f"{name}.rate", u), layer.n_factors
        products = list[Any]()
        for h in range(H):
            A = arb_mat(b, b, [arb(int(i == j)) for i in range(b) for j in range(b)])
            for f in range(m):
                key, beta = keys[(h * m + f) * b :][:b], rates[h * m + f]
                if layer.unit_keys:
                    size = _norm_of(key, 2)
                    key = _divided(key, _larger(size, arb(1e-12)))
                    beta = 2 / (1 + (-beta).exp())
                k = arb_mat(b, 1, key)
                A = A - k * (k.transpose() * A) * beta
            products.append(A)
        return products

    def _gate(self, name: str, z: Vector) -> Vector:
        """Return W2 relu(W1 z + b1) + b2, or W relu(z) of a table."""
        if name not in self._gates:
            self._gates[name] = tuple(
                _matrix(self._weights[f"{name}.{part}"])
                for part in (("table",) if f"{name}.table" in self._weights else _PARTS)
            )
        parts = self._gates[name]
        if len(parts) == 1:
            return list((parts[0] * arb_mat(len(z), 1, [_relu(y) for y in z])).entries())
        W1, b1, W2, b2 = parts
        hidden = W1 * arb_mat(len(z), 1, z) + b1
        return list((W2 * arb_mat(hidden.nrows(), 1, [_relu(y) for y in hidden.entries()]) + b2).entries())

    def _norm(self, at: int, z: Vector) -> Vector:
        if at not in self._norms:
            return z
        w, c = (_vector(self._weights[f"{self._norms[at]}.{part}"]) for part in ("weight", "bias"))
        mean = sum(z, arb(0)) / len(z)
        centred = [y - mean for y in z]
        sigma = (sum((y * y for y in centred), arb(0)) / len(z) + arb(1e-5)).sqrt()
        return [y / sigma * a + b for y, a, b in zip(centred, w, c, strict=True)]

    def _connect(self, i: int, stream: Vector, x: Vector) -> Vector:
        connection, is_last = self.config.connection, i + 1 == self.n_layers
        if connection == "concat":
            return (stream + x)[self.config.embedding_dim if is_last else 0 :]
        is_added = connection == "full-residual" or (connection == "residual" and not is_last)
        return [y + z for y, z in zip(stream, x, strict=True)] if is_added else x

    def _is_onehot(self, i: int) -> bool:
        return self.config.normalisation == "onehot" and f"layers.{i}.rate.0.weight" not in self._weights


_PARTS = ("0.weight", "0.bias", "2.weight", "2.bias")


def _vector(x: Tensor) -> Vector:
    return [arb(z) for z in x.tolist()]


def _matrix(x: Tensor) -> Any:
    x = x if x.ndim == 2 else x[:, None]
    return arb_mat(*x.shape, _vector(x.flatten()))  # pyright: ignore


def _affine(A: Any, x: Vector, v: Vector) -> Vector:
    return [y + z for y, z in zip((A * arb_mat(len(x), 1, x)).entries(), v, strict=True)]


def _relu(x: Any) -> Any:
    return x if x >= 0 else arb(0) if x <= 0 else (x + abs(x)) / 2


def _larger(x: Any, y: Any) -> Any:
    return x if x >= y else y if y >= x else (x + y + abs(x - y)) / 2


def _at_least_one(x: Any) -> Any:
    return _larger(x, arb(1))


def _norm_of(column: Sequence[Any], p: float) -> Any:
    """Return the p-norm, from the sizes relative to the largest, so that no power leaves the range."""
    sizes = [abs(z) for z in column]
    largest = arb(0)
    for z in sizes:
        largest = _larger(largest, z)
    if largest <= 0:
        return arb(0)
    if not largest > 0:
        raise Undecided("a norm may be zero")
    total = arb(0)
    for z in sizes:
        share = z / largest
        total += arb(0) if z <= 0 else share ** arb(p) if share > 0 else _power_near_zero(share, p)
    return largest * total ** (1 / arb(p))


def _power_near_zero(x: Any, p: float) -> Any:
    upper = x.abs_upper() ** arb(p)
    return (upper / 2).union(arb(0)).union(upper)


def _divided(column: Vector, by: Any) -> Vector:
    if not by > 0:
        raise Undecided("0/0")
    return [z / by for z in column]


def _one_hot(numbers: Vector, b: int) -> Vector:
    """Return the unit vector of the first largest number."""
    for i, z in enumerate(numbers):
        if all(z > y for y in numbers[:i]) and all(z >= y for y in numbers[i + 1 :]):
            return [arb(int(j == i)) for j in range(b)]
    raise Undecided("an arg max")
