"""Products of small matrices as vector instructions, for kernels whose operands never leave the cache.

A tile of the result stays in registers while its sums run: four rows of four vectors, and where less is left, single
rows and single vectors. For large matrices on their own, torch's products are faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils

from fsa2lrnn.lrnn.compiled.vectors import Rows, instruction

_TILE = 4


class Matrix(NamedTuple):
    """Where numbers of an array make a matrix: entry (i, j) lies at start + i·row + j·column."""

    array: Any
    start: Any
    row: Any
    column: Any


class Products(Rows):
    """Instructions on rows of numbers, and products of matrices."""

    def product(self, a: Matrix, b: Matrix, c: Matrix, m: Any, k: Any, g: Any, adds: bool) -> None:
        """c = a b, or c += a b if it `adds`: a (m, k), b (k, g), c (m, g); the columns of b and c are neighbours, and g
        is a multiple of the vectors' width."""
        width = ir.Constant(g.type, self.n)
        vectors = self._builder.sdiv(g, width)
        for i, rows in self._tiles(m):
            for j, columns in self._tiles(vectors):
                with i() as r, j() as v:
                    self._tile(a, b, c, r, self._builder.mul(v, width), k, rows, columns, adds)

    def _tiles(self, total: Any) -> list[tuple[Any, int]]:
        """Loops over 0 … total − 1 in steps of `_TILE`, then over what is left in steps of 1, and the steps."""
        build, size = self._builder, ir.Constant(total.type, _TILE)
        whole = build.sdiv(total, size)
        done = build.mul(whole, size)

        @contextmanager
        def stepping(first: Any, count: Any, step: int) -> Iterator[Any]:
            with cgutils.for_range(build, count, intp=total.type) as loop:
                yield build.add(first, build.mul(loop.index, ir.Constant(total.type, step)))

        zero = ir.Constant(total.type, 0)
        rest = build.sub(total, done)
        return [(partial(stepping, zero, whole, _TILE), _TILE), (partial(stepping, done, rest, 1), 1)]

    def _tile(
        self, a: Matrix, b: Matrix, c: Matrix, i: Any, j: Any, k: Any, rows: int, columns: int, adds: bool
    ) -> None:
        build = self._builder
        sums = [[cgutils.alloca_once(build, self._vector) for _ in range(columns)] for _ in range(rows)]
        ends = [self._at(c, self._plus(i, r), j) for r in range(rows)]
        for r in range(rows):
            for v in range(columns):
                start = self.load(c.array, ends[r], v) if adds else self.constant(0.0)
                build.store(start, sums[r][v])
        with cgutils.for_range(build, k, intp=k.type) as loop:
            right = [self.load(b.array, self._at(b, loop.index, j), v) for v in range(columns)]
            for r in range(rows):
                left = self.spread(a.array, self._at(a, self._plus(i, r), loop.index))
                for v in range(columns):
                    build.store(self.plus(build.load(sums[r][v]), self.times(left, right[v])), sums[r][v])
        for r in range(rows):
            for v in range(columns):
                self.store(build.load(sums[r][v]), c.array, ends[r], v)

    def spread(self, array: Any, offset: Any) -> Any:
        """A vector whose entries are all the number at an offset."""
        data = self._context.make_array(self._array)(self._context, self._builder, array).data
        number = self._builder.load(self._builder.gep(data, [offset]))
        one = self._builder.insert_element(
            ir.Constant(self._vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
        )
        return self.repeat(one, 0)

    def _at(self, matrix: Matrix, i: Any, j: Any) -> Any:
        build = self._builder
        return build.add(build.add(matrix.start, build.mul(i, matrix.row)), build.mul(j, matrix.column))

    def _plus(self, i: Any, r: int) -> Any:
        return self._builder.add(i, ir.Constant(i.type, r))


def _write_product(
    rows: Products, a: Any, i: Any, ra: Any, ca: Any, b: Any, j: Any, rb: Any, one: Any, c: Any, k: Any, rc: Any,
    m: Any, n: Any, p: Any, adds: bool,
) -> None:  # fmt: skip
    rows.product(Matrix(a, i, ra, ca), Matrix(b, j, rb, one), Matrix(c, k, rc, one), m, n, p, adds)


multiply, add_product = (instruction(partial(_write_product, adds=adds), Products) for adds in (False, True))
