"""The scans over other rings than the reals: free words prove them for every matrix, depths count their steps.

A scan only adds, multiplies and moves entries, so the code that runs on torch tensors runs on a `RingTensor` of any
objects that add and multiply. Equations between 1×1 blocks over the free ring ℤ⟨A₁, A₂, …, v₁, …⟩ hold over every ring,
by substitution, and so for b×b blocks of reals in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad


class Word:
    """An element of the free ring: integer multiples of words, which do not commute.

    >>> A1, A2, v1 = Word.letter("A", 1), Word.letter("A", 2), Word.letter("v", 1)
    >>> A2 * (A1 + v1), A1 * A2 == A2 * A1
    (A2A1 + A2v1, False)
    """

    __slots__ = ("terms",)

    def __init__(self, terms: dict[str, int]) -> None:
        self.terms = terms

    @classmethod
    def letter(cls, name: str, index: int) -> Word:
        """Return the letter `name` with a subscript as one character, so that words are strings and multiply fast."""
        return cls({chr(0x4000 * (1 + "Avx".index(name)) + index): 1})

    def __add__(self, other: Word | int) -> Word:
        if isinstance(other, int):
            return self if other == 0 else NotImplemented
        large, small = (self, other) if len(self.terms) >= len(other.terms) else (other, self)
        terms = dict(large.terms)
        for word, n in small.terms.items():
            terms[word] = terms.get(word, 0) + n
        return Word({word: n for word, n in terms.items() if n})

    def __mul__(self, other: Word | int) -> Word:
        if isinstance(other, int):
            return _ZERO if other == 0 else NotImplemented
        total = _ZERO
        for left, n in self.terms.items():
            total = total + Word({left + right: n * m for right, m in other.terms.items()})
        return total

    def __rmul__(self, other: int) -> Word:
        return self * other

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return " + ".join(f"{n if n != 1 else ''}{_spell(word)}" for word, n in self.terms.items()) or "0"


_ZERO = Word({})


def _spell(word: str) -> str:
    return "".join(f"{'Avx'[ord(c) // 0x4000 - 1]}{ord(c) % 0x4000}" for c in word)


class Depth(int):
    """The length of the longest chain of multiplications behind a value; those of one matrix product count once.

    >>> Depth(2) * Depth(0) + Depth(1)
    3
    """

    def __mul__(self, other: int) -> Depth:
        return Depth(max(int(self), int(other)) + 1)

    def __add__(self, other: int) -> Depth:
        return Depth(max(int(self), int(other)))

    __rmul__, __radd__ = __mul__, __add__


class RingTensor:
    """An array of ring elements with the part of torch's interface that the scans use.

    `torch.cat`, `torch.stack` and `pad` are dispatched to it by torch. Padding is the integer 0.
    """

    def __init__(self, entries: np.ndarray) -> None:
        self.entries = entries

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, as in torch."""
        return self.entries.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions, as in torch."""
        return self.entries.ndim

    def __getitem__(self, index: Any) -> RingTensor:
        return RingTensor(self.entries[index])

    def __matmul__(self, other: RingTensor) -> RingTensor:
        return RingTensor(np.matmul(self.entries, other.entries))

    def __add__(self, other: RingTensor) -> RingTensor:
        return RingTensor(self.entries + other.entries)

    def reshape(self, *shape: int) -> RingTensor:
        """Return the tensor in another shape, as torch does."""
        return RingTensor(self.entries.reshape(shape))

    def expand(self, *shape: int) -> RingTensor:
        """Return the tensor broadcast to a shape, as torch does."""
        return RingTensor(np.broadcast_to(self.entries, shape))

    def unsqueeze(self, dim: int) -> RingTensor:
        """Return the tensor with a new dimension, as torch does."""
        return RingTensor(np.expand_dims(self.entries, dim))

    def squeeze(self, dim: int) -> RingTensor:
        """Return the tensor without a dimension, as torch does."""
        return RingTensor(self.entries.squeeze(dim))

    def unbind(self, dim: int = 0) -> tuple[RingTensor, ...]:
        """Return the slices along a dimension, as torch does."""
        return tuple(RingTensor(part) for part in np.moveaxis(self.entries, dim, 0))

    def clone(self) -> RingTensor:
        """Return a copy, as torch does."""
        return RingTensor(self.entries.copy())

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func not in _TORCH:
            raise TypeError(f"{getattr(func, '__name__', func)} is not known to RingTensor: add it to verify.free")
        return _TORCH[func](*args, **(kwargs or {}))


def _cat(parts: Iterable[RingTensor], dim: int = 0) -> RingTensor:
    return RingTensor(np.concatenate([part.entries for part in parts], axis=dim))


def _stack(parts: Iterable[RingTensor], dim: int = 0) -> RingTensor:
    return RingTensor(np.stack([part.entries for part in parts], axis=dim))


def _pad(tensor: RingTensor, widths: tuple[int, ...], mode: str = "constant", value: float | None = None) -> RingTensor:
    if mode != "constant" or value:
        raise TypeError(f"padding of mode {mode!r} with {value}: a ring has no constant but 0")
    last_first = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)]
    every = [(0, 0)] * (tensor.ndim - len(last_first)) + last_first[::-1]
    return RingTensor(np.pad(tensor.entries, every, constant_values=0))


_TORCH: dict[Callable[..., Any], Callable[..., Any]] = {torch.cat: _cat, torch.stack: _stack, pad: _pad}


def words_of(length: int) -> tuple[RingTensor, RingTensor, RingTensor]:
    """Return A (1,T,1,1,1), v (1,T,1,1) and x₀ (1,1,1) of distinct letters, the generic input of a scan.

    >>> from fsa2lrnn.nn.scans import pscan
    >>> pscan(*words_of(2)).entries.flatten().tolist()
    [v1 + A1x0, A2v1 + A2A1x0 + v2]
    """
    A = [Word.letter("A", k) for k in range(1, length + 1)]
    v = [Word.letter("v", k) for k in range(1, length + 1)]
    return _tensor(A, 1, length, 1, 1, 1), _tensor(v, 1, length, 1, 1), _tensor([Word.letter("x", 0)], 1, 1, 1)


def depths_of(length: int) -> tuple[RingTensor, RingTensor, RingTensor]:
    """Return inputs of the shapes of `words_of` with depth 0."""
    zeros = [Depth(0)] * length
    return _tensor(zeros, 1, length, 1, 1, 1), _tensor(zeros, 1, length, 1, 1), _tensor([Depth(0)], 1, 1, 1)


def _tensor(values: list[Any], *shape: int) -> RingTensor:
    entries = np.empty(len(values), object)
    entries[:] = values
    return RingTensor(entries.reshape(shape))
