"""Gates, which compute A(u) and v(u) from an input and logits from a state: Linear–ReLU–Linear, or a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, integers

GATES = ("relu", "table")
"""The kinds of gates: Linear–ReLU–Linear (`Gate`), and a trainable table of columns (`TableGate`)."""
_TABLE_SCALE = 0.3  # deviation of a new table's numbers


class GateWeights(NamedTuple):
    """The weights of the map z ↦ W2 relu(W1 z + b1) + b2: W1 (m, d), b1 (m,), W2 (n, m), b2 (n,)."""

    W1: Tensor
    b1: Tensor
    W2: Tensor
    b2: Tensor


Values = Mapping[str, Tensor]  # W1, b1, W2 and b2 of a gate; those that are omitted are zero


class Gate(nn.Sequential):
    """A network Linear–ReLU–Linear, (…, d) -> (…, n), with `hidden` units; parameters are named as in `nn.Sequential`.

    >>> gate = Gate(2, 2, 3)
    >>> gate.set(look_up(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])))
    >>> gate(torch.tensor([0.0, 1.0])).tolist(), gate.is_lookup(torch.eye(2)), gate.n_hidden
    ([4.0, 5.0, 6.0], True, 2)
    """

    def __init__(self, width_in: int, hidden: int, width_out: int) -> None:
        super().__init__(nn.Linear(width_in, hidden), nn.ReLU(), nn.Linear(hidden, width_out))

    @property
    def weights(self) -> GateWeights:
        """The parameters, not copies."""
        first, _, second = cast("tuple[nn.Linear, nn.Module, nn.Linear]", tuple(self.children()))
        return GateWeights(first.weight, first.bias, second.weight, second.bias)

    @property
    def n_hidden(self) -> int:
        """m, the number of hidden units."""
        return len(self.weights.b1)

    def set(self, values: Values) -> None:
        """Write W1, b1, W2 and b2, with zero for those omitted; raise `ValueError` for other names or shapes."""
        parameters = self.weights._asdict()
        if unknown := values.keys() - parameters.keys():
            raise ValueError(f"{', '.join(sorted(unknown))}: a gate has {', '.join(parameters)}")
        with torch.no_grad():
            for name, parameter in parameters.items():
                if name not in values:
                    parameter.zero_()
                elif values[name].shape != parameter.shape:
                    raise ValueError(
                        f"{name} has shape {tuple(values[name].shape)}, but this gate's is {tuple(parameter.shape)}"
                    )
                else:
                    parameter.copy_(values[name])

    def hidden(self, z: Tensor) -> Tensor:
        """Compute the hidden units relu(W1 z + b1): (…, d) -> (…, m)."""
        first, relu, _ = self.children()
        return relu(first(z))

    def rounded(self, z: RoundedNumbers) -> RoundedNumbers:
        """Return bounds on the gate's outputs for every order of its sums: (…, d) -> (…, n)."""
        W1, b1, W2, b2 = self.weights
        if z.is_exact:
            inputs = z.mid.to(W1)
            if self.is_lookup(inputs) or self.is_exact(inputs, integers(z.kind)):
                # Every evaluation gives these bits, so that one evaluation in the format is enough (T1, T26).
                return RoundedNumbers.exact(self.forward(inputs))  # without hooks: a hook may be the caller
        return z.linear(W1, b1).relu().linear(W2, b2)

    def is_lookup(self, z: Tensor) -> bool:
        """Return whether each sum in the gate has at most one non-zero term for these inputs (N, d)."""
        _, b1, _, b2 = self.weights
        # A bias would be a second term of a sum.
        if b1.any() or b2.any():
            return False
        with torch.no_grad():
            # One non-zero input, and one non-zero hidden unit, leave one non-zero term in every sum of both matrices.
            return all(bool(((x != 0).sum(-1) <= 1).all()) for x in (z, self.hidden(z)))

    def is_exact(self, z: Tensor, limit: float) -> bool:
        """Return whether the gate adds only integers whose absolute values sum to at most `limit`, for inputs (N, d).

        If the dtype represents all integers up to `limit`, the gate then computes without rounding.
        """
        W1, b1, W2, b2 = (part.detach().double() for part in self.weights)
        z = z.double()
        hidden = (z @ W1.T + b1).relu()
        # T26 with g = 0: the absolute values of the terms bound every partial sum, in any order.
        sizes = z.abs() @ W1.abs().T + b1.abs(), hidden @ W2.abs().T + b2.abs()
        is_integer = all(bool((part == part.round()).all()) for part in (W1, b1, W2, b2, z))
        return is_integer and all(bool((size <= limit).all()) for size in sizes)


class TableGate(Gate):
    """A gate whose second matrix W (n, d) is its only parameter: u ↦ W relu(u), (…, d) -> (…, n).

    It equals a `Gate` with W1 the identity and no biases. For one-hot letters it holds free numbers per letter.

    >>> gate = TableGate(2, 3)
    >>> gate.set(look_up(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])))
    >>> gate(torch.tensor([0.0, 1.0])).tolist(), gate.is_lookup(torch.eye(2)), gate.n_hidden
    ([4.0, 5.0, 6.0], True, 2)
    """

    def __init__(self, width_in: int, width_out: int, scale: float = 1.0) -> None:
        nn.Sequential.__init__(self)
        self.table = nn.Parameter(scale * torch.randn(width_out, width_in))

    def forward(self, z: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride] - `Sequential` says input
        """Compute W relu(z), which is column i of the parameter `table` for the unit vector e_i: (…, d) -> (…, n)."""
        return z.relu() @ self.table.T

    @property
    def weights(self) -> GateWeights:
        """The weights of the equal `Gate`; W2 is the parameter itself."""
        n, d = self.table.shape
        zeros = self.table.new_zeros
        return GateWeights(
            torch.eye(d, dtype=self.table.dtype, device=self.table.device), zeros(d), self.table, zeros(n)
        )

    def set(self, values: Values) -> None:
        """Write W2, or zero if it is omitted; raise `ValueError` for a W1 that is not the identity and for biases."""
        now = self.weights._asdict()
        for name in values.keys() & now.keys() - {"W2"}:
            if not torch.equal(values[name].to(now["W2"]), now[name]):
                raise ValueError(f"{name} cannot be written: a table gate is W2 alone, W1 = 1 and no biases")
        super().set(values)  # of which the table alone is a parameter

    def hidden(self, z: Tensor) -> Tensor:
        """Compute relu(z), the vector that the table multiplies: (…, d) -> (…, d)."""
        return z.relu()


def look_up(table: Tensor) -> Values:
    """Return weights of a gate that maps the unit vector e_i to row i of a table (N, …) without rounding."""
    # With the identity first, hidden unit i is 1 for e_i alone, and column i of W2 is row i of the table.
    return {"W1": torch.eye(len(table), dtype=table.dtype), "W2": table.flatten(1).T}


def new_gate(kind: str, width_in: int, hidden: int, width_out: int) -> Gate:
    """Return a gate of a kind in `GATES` with random weights; `hidden` applies to "relu" only.

    >>> new_gate("table", 3, 1, 5).weights.W2.shape
    torch.Size([5, 3])
    """
    if kind == "table":
        return TableGate(width_in, width_out, _TABLE_SCALE)
    return Gate(width_in, hidden, width_out)


def check_kind(kind: str) -> None:
    """Raise `UnsupportedFormat` for a kind that is not in `GATES`."""
    if kind not in GATES:
        raise UnsupportedFormat(f"gate {kind!r} is not known: one of {', '.join(GATES)}")


def one_hot_letters(n_letters: int, dim: int) -> nn.Embedding:
    """Return the fixed one-hot embedding that a table gate reads; raise `UnsupportedFormat` unless dim = n_letters."""
    if dim != n_letters:
        raise UnsupportedFormat(
            f"embedding_dim = {dim}: a table gate reads {n_letters} letters one-hot, set it to {n_letters}"
        )
    return nn.Embedding.from_pretrained(torch.eye(n_letters))  # pyright: ignore[reportUnknownMemberType]
