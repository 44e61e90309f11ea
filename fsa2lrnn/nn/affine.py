"""Switched affine systems x_k = A[a_k] x_{k-1} + v[a_k] with a read-out: the tables of a model with one layer.

The tables, one A and one v per letter, determine all outputs of such a model; the gates that computed them are not
stored. `falsify`, `certify` and `repair` work on these numbers (§8 of docs/theory.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.scans import scan_tokens

EPS = 1e-5
"""The number that LayerNorm adds to the variance."""


@dataclass(frozen=True, eq=False)
class Readout:
    """A read-out from a state x (d,) to logits (|Γ|,): W2 relu(W1 y + b1) + b2, with y = x or LayerNorm(x), ε = 10⁻⁵.

    Args:
        W1, b1: (m, d), (m,); W2, b2: (|Γ|, m), (|Γ|,).
        norm_weight, norm_bias: (d,) each, or None for y = x.

    Raises `UnsupportedFormat` for shapes that do not fit each other, or for only one of the two norm parameters.
    """

    W1: Tensor
    b1: Tensor
    W2: Tensor
    b2: Tensor
    norm_weight: Tensor | None = None
    norm_bias: Tensor | None = None

    def __post_init__(self) -> None:
        if self.W1.ndim != 2 or self.b2.ndim != 1:
            shapes = tuple(self.W1.shape), tuple(self.b2.shape)
            raise UnsupportedFormat(
                f"read-out: W1 and b2 have shapes {shapes[0]} and {shapes[1]}, not (m, d) and (|Γ|,)"
            )
        (m, d), n = self.W1.shape, len(self.b2)
        expected = {"b1": (m,), "W2": (n, m), "norm_weight": (d,), "norm_bias": (d,)}
        for name, shape in expected.items():
            part = getattr(self, name)
            if part is not None and part.shape != shape:
                raise UnsupportedFormat(f"read-out: {name} has shape {tuple(part.shape)}, W1 {(m, d)} asks for {shape}")
        if (self.norm_weight is None) != (self.norm_bias is None):
            raise UnsupportedFormat("read-out: give norm_weight and norm_bias, or neither")

    @classmethod
    def linear(cls, W: Tensor, b: Tensor) -> Readout:
        """Return a read-out with the logits z = W x + b, W (|Γ|, d) and b (|Γ|,), computed as relu(z) − relu(−z)."""
        eye = torch.eye(len(W), dtype=W.dtype, device=W.device)
        # z = relu(z) − relu(−z): a linear map in the form of the read-out, with twice as many hidden units as logits.
        return cls(torch.cat([W, -W]), torch.cat([b, -b]), torch.cat([eye, -eye], dim=1), torch.zeros_like(b))

    def __call__(self, x: Tensor) -> Tensor:
        """Compute the logits: (…, d) -> (…, |Γ|)."""
        if self.norm_weight is not None:
            x = layer_norm(x, x.shape[-1:], self.norm_weight, self.norm_bias, EPS)
        return (x @ self.W1.T + self.b1).relu() @ self.W2.T + self.b2


@dataclass(frozen=True, eq=False)
class SwitchedAffine:
    """A recurrence x_k = A[a_k] x_{k-1} + v[a_k] that outputs the symbol of the largest logit of readout(x_k).

    Args:
        A, v, x0: (|Σ|, H, b, b), (|Σ|, H, b), (H, b), in one dtype.
        readout: of states flattened to (H·b,).
        alphabet, outputs: Σ and Γ; letter i has the tables A[i], v[i], logit j stands for outputs[j].

    Raises `UnsupportedFormat` for shapes or dtypes that do not fit each other.
    """

    A: Tensor
    v: Tensor
    x0: Tensor
    readout: Readout
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if self.x0.ndim != 2:
            raise UnsupportedFormat(f"x0 has shape {tuple(self.x0.shape)}, but a state is (H, b): reshape it")
        n, heads, b = len(self.alphabet), *self.x0.shape
        expected = {"A": (n, heads, b, b), "v": (n, heads, b)}
        faults = [
            f"{name} has shape {tuple(getattr(self, name).shape)}, but {n} letters and x0 {(heads, b)} ask for {shape}"
            for name, shape in expected.items()
            if getattr(self, name).shape != shape
        ]
        if self.readout.W1.shape[1] != heads * b:
            faults.append(f"the read-out takes {self.readout.W1.shape[1]} numbers, a state has {heads * b}")
        if len(self.readout.b2) != len(self.outputs):
            faults.append(f"the read-out gives {len(self.readout.b2)} logits for {len(self.outputs)} outputs")
        if len({t.dtype for t in self._tensors().values()}) > 1:
            faults.append("tables and read-out are of several dtypes: convert them to one")
        if faults:
            raise UnsupportedFormat("; ".join(faults))

    @classmethod
    def of(
        cls,
        A: Tensor,
        v: Tensor,
        x0: Tensor,
        readout: Readout,
        alphabet: Sequence[Hashable] | None = None,
        outputs: Sequence[Hashable] | None = None,
    ) -> SwitchedAffine:
        """Return the system with these tables and this read-out; letters and outputs are 0, 1, 2, … by default.

        >>> sign = SwitchedAffine.of(
        ...     torch.tensor([1.0, -1.0]).reshape(2, 1, 1, 1), torch.zeros(2, 1, 1), torch.ones(1, 1),
        ...     Readout.linear(torch.tensor([[1.0], [-1.0]]), torch.zeros(2)),
        ... )
        >>> sign.alphabet, sign.run(torch.tensor([[1, 0, 1]])).flatten().tolist()
        ((0, 1), [-1.0, -1.0, 1.0])
        """
        letters = tuple(alphabet) if alphabet is not None else tuple(range(len(A)))
        symbols = tuple(outputs) if outputs is not None else tuple(range(len(readout.b2)))
        return cls(A, v, x0, readout, letters, symbols)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of all tensors."""
        return self.A.dtype

    @property
    def sha256(self) -> str:
        """The SHA-256 of all tensors with their shapes and dtypes, in hexadecimal. It ignores signs of zeros."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self._tensors().items()):
            # Name, dtype and shape precede the bytes, so that equal bytes of other tensors give another hash.
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            unsigned_zeros = tensor.detach().cpu().contiguous() + 0  # −0 and 0 are one number
            digest.update(unsigned_zeros.view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def step(self, x: Tensor) -> Tensor:
        """Return the states after each letter: (N, H, b) -> (N, |Σ|, H, b)."""
        # a: letter, n: state, h: block, i and j: row and column of a block.
        return torch.einsum("ahij,nhj->nahi", self.A, x) + self.v

    def run(self, tokens: Tensor) -> Tensor:
        """Return the states along words, computed by `scan_tokens`: int64 (B, T) -> (B, T, H, b)."""
        return scan_tokens(tokens, self.A, self.v, self.x0)

    def logits(self, x: Tensor) -> Tensor:
        """Compute the logits of states: (…, H, b) -> (…, |Γ|)."""
        return self.readout(x.flatten(-2))

    def to(self, dtype: torch.dtype) -> SwitchedAffine:
        """Return the same system with its numbers converted to another dtype."""
        moved = {name: tensor.to(dtype) for name, tensor in vars(self.readout).items() if tensor is not None}
        return replace(
            self, A=self.A.to(dtype), v=self.v.to(dtype), x0=self.x0.to(dtype), readout=replace(self.readout, **moved)
        )

    def _tensors(self) -> dict[str, Tensor]:
        own = {"A": self.A, "v": self.v, "x0": self.x0}
        read = {field.name: getattr(self.readout, field.name) for field in fields(self.readout)}
        return own | {name: tensor for name, tensor in read.items() if tensor is not None}
