"""Vector instructions for kernels that numba compiles: rows of an array as LLVM's vectors, and a fence.

numba's own vectoriser leaves loops over few numbers scalar, which is several times slower. A kernel calls an
`instruction` with a constant width and with arrays and offsets; a Python function defines the instruction by
operations on `Rows`.

numba reuses a kernel's machine code from disk until the kernel's own file changes; it ignores changes of operations in
other files, such as this one. `kernel` adds a digest of these sources to the name of the cached file.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

WIDEST = 16  # entries of a row; wider ones take long to compile


class Rows:
    """Operations on vectors of `n` consecutive entries of flat arrays, all of one type."""

    def __init__(self, context: Any, builder: Any, array: Any, width: Any) -> None:
        self._context, self._builder, self._array = context, builder, array
        self.n = width.literal_value
        self._number = context.get_value_type(array.dtype)
        self._vector = ir.VectorType(self._number, self.n)
        self._size = array.dtype.bitwidth // 8

    def load(self, array: Any, offset: Any, row: int = 0) -> Any:
        """Load the n entries of `array` from offset + row·n on."""
        return self._builder.load(self._address(array, offset, row), align=self._size)

    def store(self, vector: Any, array: Any, offset: Any, row: int = 0) -> None:
        """Write a vector to the n entries of `array` from offset + row·n on."""
        self._builder.store(vector, self._address(array, offset, row), align=self._size)

    def stream(self, vector: Any, array: Any, offset: Any, row: int = 0) -> None:
        """Store a vector without loading its cache lines, for results that are not read again soon.

        The array must be aligned to 64 bytes, offset be a multiple of n, and the kernel end with a `fence`. Rows that
        don't fill vector registers are stored as usual.
        """
        size = self.n * self._size
        if size % 16 or size & (size - 1):
            return self.store(vector, array, offset, row)
        store = self._builder.store(vector, self._address(array, offset, row), align=min(size, 64))
        once = self._builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        return store.set_metadata("nontemporal", once)

    def times(self, x: Any, y: Any) -> Any:
        """Return x·y, entry by entry."""
        return self._builder.fmul(x, y, flags=("contract",))

    def plus(self, x: Any, y: Any) -> Any:
        """Return x + y; where x or y is a product, the compiler may fuse the two operations and round once."""
        return self._builder.fadd(x, y, flags=("contract",))

    def minus(self, x: Any, y: Any) -> Any:
        """Return x − y; as in `plus`, the compiler may fuse it with a product."""
        return self._builder.fsub(x, y, flags=("contract",))

    def constant(self, value: float) -> Any:
        """Return a vector whose entries are all `value`."""
        return ir.Constant(self._vector, [value] * self.n)

    def repeat(self, x: Any, i: int) -> Any:
        """Return a vector whose entries are all x_i."""
        return self._pick(x, x, [i] * self.n)

    def sums(self, rows: list[Any]) -> Any:
        """Return the vector whose entry i is the sum of the n entries of rows[i]; the order of addition is a tree."""
        places = 1 << (self.n - 1).bit_length()
        padding = ir.Constant(ir.VectorType(self._number, places), None)
        zero = ir.Constant(self._vector, None)
        within = [min(i, self.n) for i in range(places)]
        rows = [self._pick(row, zero, within) for row in rows] + [padding] * (places - self.n)
        while len(rows) > 1:
            even, odd = list(range(0, 2 * places, 2)), list(range(1, 2 * places, 2))
            pairs = zip(rows[::2], rows[1::2], strict=True)
            rows = [self.plus(self._pick(u, w, even), self._pick(u, w, odd)) for u, w in pairs]
        return self._pick(rows[0], rows[0], list(range(self.n)))

    def _pick(self, x: Any, y: Any, places: list[int]) -> Any:
        indices = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self._builder.shuffle_vector(x, y, indices)

    def _address(self, array: Any, offset: Any, row: int) -> Any:
        data = self._context.make_array(self._array)(self._context, self._builder, array).data
        place = self._builder.add(offset, ir.Constant(offset.type, row * self.n))
        return self._builder.bitcast(self._builder.gep(data, [place]), self._vector.as_pointer())


def instruction(write: Callable[..., None], rows: type[Rows] = Rows) -> Any:
    """Return the intrinsic (width, (array, offset, array, offset, …)) -> None that performs the operations of `write`.

    `write` is called at compile time with an instance of `rows` for vectors of `width` entries of the first array's
    type, then with the operands.
    """

    @intrinsic(prefer_literal=True)
    def written(_typing: Any, width: Any, operands: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            write(rows(context, builder, operands[0], width), *cgutils.unpack_tuple(builder, values[1]))
            return context.get_dummy_value()

        return types.void(width, operands), generate

    return written


def kernel(rows: type[Rows] = Rows) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that compiles a function of the operations of `rows` and caches its machine code on disk.

    The name of the cached file contains a digest of the sources of `rows` and its bases, so that editing any of them
    recompiles the kernel.
    """

    def compiled(function: Callable[..., None]) -> Any:
        function.__qualname__ += f"-{_digest(rows)}"
        return njit(cache=True, nogil=True)(function)

    return compiled


@cache
def _digest(rows: type[Rows]) -> str:
    modules = sorted({each.__module__ for each in inspect.getmro(rows)} - {"builtins"})
    sources = [inspect.getsource(sys.modules[name]) for name in modules]
    return hashlib.sha256("".join(sources).encode()).hexdigest()[:16]


def _fence(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


# () -> None: makes streamed stores visible to other threads before anything that follows.
fence: Any = intrinsic(_fence)
