"""Build exact blocks, over the rationals or a number field, from submodules of functions of the state (T30)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import acb, arb, ctx, fmpq, fmpq_mat, fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.families import linear
from fsa2lrnn.families.block_sizes.chain import number_to_json
from fsa2lrnn.families.block_sizes.constituents import Polynomial, complex_roots, real_roots, why_irreducible
from fsa2lrnn.families.function_modules import Module

RATIONAL: Polynomial = (0, 1)
_BITS = 200  # precision of the roots of h in `rounded`
Number = tuple[object, ...]  # k coefficients of 1, t, t² …, exact rationals


@dataclass(frozen=True)
class StateBlock:
    """A block x_q = (f_1(q) … f_b(q)) with f_i(δ(q, a)) = Σ_j A_a[i, j] f_j(q) + v_a[i], in numbers of Q[t]/(h).

    A number of Q[t]/(h) is the tuple of its k = deg h rational coefficients.

    Args:
        polynomial: h, irreducible; `RATIONAL` for rational numbers.
        functions: the values f_i(q), shape (b, n); 0 at state 0.
        matrices: A_a, shape (|Σ|, b, b).
        shifts: v_a, shape (|Σ|, b).
    """

    polynomial: Polynomial
    functions: tuple[tuple[Number, ...], ...]
    matrices: tuple[tuple[tuple[Number, ...], ...], ...]
    shifts: tuple[tuple[Number, ...], ...]

    @property
    def size(self) -> int:
        """The size b of the block over the field of its numbers."""
        return len(self.functions)

    @property
    def real_size(self) -> int:
        """The size of the block over the reals.

        If h has no real root, each function with a value that is not rational counts twice, for its real and imaginary
        parts.
        """
        return sum(len(parts) for parts in self._parts)

    @property
    def _parts(self) -> list[tuple[str, ...]]:
        if real_roots(self.polynomial):
            return [("real",)] * self.size
        # `number[1:]` holds the coefficients of t, t² …, which are zero for a rational number.
        are_rational = [not any(c != 0 for number in row for c in number[1:]) for row in self.functions]
        return [("real",) if is_rational else ("real", "imag") for is_rational in are_rational]

    @property
    def is_rational(self) -> bool:
        """Whether h has degree 1; the blocks of this module then have integer entries."""
        return len(self.polynomial) == 2

    @cached_property
    def _powers(self) -> list[acb]:
        with ctx.workprec(_BITS):
            roots = complex_roots(self.polynomial)
            real = [root for root in roots if root.imag == 0]
            t = max(real, key=lambda root: float(root.real.mid())) if real else roots[0]
            return [t**m for m in range(len(self.polynomial) - 1)]

    def _nearest(self, number: Iterable[Any]) -> tuple[float, float]:
        with ctx.workprec(_BITS):
            total = sum((power * arb(fmpq(c)) for c, power in zip(number, self._powers, strict=True)), acb(0))
            return float(total.real.mid()), float(total.imag.mid())

    def rounded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return functions (b, n), A (|Σ|, b, b) and v (|Σ|, b) in float64, where b is the real size.

        t is the largest real root of h. If h has no real root, t is one of its roots, and functions are replaced by
        their real and imaginary parts. Each number is the float nearest to the true one, or next to it.
        """

        def value(numbers: object) -> tuple[np.ndarray, np.ndarray]:
            coefficients = np.array(numbers, dtype=object)
            shape = coefficients.shape[:-1]
            found = [self._nearest(number) for number in coefficients.reshape(-1, coefficients.shape[-1])]
            real, imag = np.array(found).reshape(-1, 2).T
            return real.reshape(shape), imag.reshape(shape)

        # Coordinate 2i is the real part of function i and 2i + 1 its imaginary part, which is dropped if it is always
        # zero.
        kept = [2 * i + (part == "imag") for i, parts in enumerate(self._parts) for part in parts]
        (A, A_i), v, f = value(self.matrices), value(self.shifts), value(self.functions)
        # A complex number as the real matrix of the product with it.
        turned = np.stack([np.stack([A, -A_i], -1), np.stack([A_i, A], -1)], -3)  # (|Σ|, b, 2, b, 2)
        matrices = turned.reshape(len(A), 2 * self.size, 2 * self.size)
        functions, shifts = np.stack(f, 1).reshape(2 * self.size, -1), np.stack(v, -1).reshape(len(A), -1)
        return functions[kept], matrices[:, kept][:, :, kept], shifts[:, kept]

    def to_json(self) -> dict[str, Any]:
        """Return the block as JSON for `recheck`."""
        return {
            "polynomial": list(self.polynomial),
            "irreducible": list(why_irreducible(self.polynomial) or ()),
            "functions": _rows(self.functions),
            "matrices": [_rows(matrix) for matrix in self.matrices],
            "shifts": _rows(self.shifts),
        }


def _rows(table: Sequence[Sequence[Number]]) -> list[list[list[int | str]]]:
    return [[[number_to_json(c) for c in number] for number in row] for row in table]


def rational_block(module: Module, rows: fmpq_mat, delta: Sequence[Sequence[int]]) -> StateBlock:
    """Return the block of the submodule of V that rows (b, n−1) span, in a basis with integer entries only."""
    return field_block(module, [_lattice(module, rows)], RATIONAL, delta)


def field_block(
    module: Module, coefficients: list[fmpq_mat], polynomial: Polynomial, delta: Sequence[Sequence[int]]
) -> StateBlock:
    """Return the block of b functions Σ_m t^m f_m over Q[t]/(h), which span a submodule of V.

    Args:
        module: V.
        coefficients: f_m for m = 0 … k−1, each of shape (b, n−1): the values at states 1 … n−1.
        polynomial: h.
        delta: the transition table (|Σ|, n) of the machine.

    Raises:
        ArithmeticError: if the functions do not span a submodule of dimension b.
    """
    k, (b, d) = len(polynomial) - 1, (coefficients[0].nrows(), coefficients[0].ncols())
    # Row m·b + i is t^m f_i, its k rational parts side by side: a rational basis of the block, shape (k·b, k·d).
    wide = linear.stack(map(side_by_side, multiples(coefficients, polynomial)), k * d)
    chosen = linear.pivots(linear.row_space(wide))
    if len(chosen) != b * k:
        raise ArithmeticError(f"{b} functions over a field of degree {k} span {len(chosen)} dimensions")
    inverse = linear.columns_of(wide, chosen).inv()
    matrices = []
    for letter in module.letters:
        # Column m·b + j of `solved` is the coefficient of t^m f_j in the image of a function.
        image = side_by_side([part * letter for part in coefficients])
        solved = linear.columns_of(image, chosen) * inverse
        if solved * wide != image:
            raise ArithmeticError("the functions of a block are not closed under the letters")
        matrices.append(tuple(tuple(tuple(solved[i, m * b + j] for m in range(k)) for j in range(b)) for i in range(b)))
    zero = tuple(coefficients[0][0, 0] * 0 for _ in range(k))
    functions = tuple((zero, *(tuple(part[i, q] for part in coefficients) for q in range(d))) for i in range(b))
    # At state 0 all functions are 0, so f_i(δ(0, a)) = v_a[i].
    shifts = tuple(tuple(function[step[0]] for function in functions) for step in delta)
    return StateBlock(polynomial, functions, tuple(matrices), shifts)


def multiples(parts: list[fmpq_mat], polynomial: Polynomial) -> list[list[fmpq_mat]]:
    """Return the coefficients of f, t f, …, t^(k−1) f for functions f = Σ_m t^m f_m over Q[t]/(h), `parts[m]` = f_m."""
    products = [parts]
    for _ in range(len(polynomial) - 2):
        *rest, top = products[-1]
        # Multiplication by t shifts the coefficients; h is monic, so t^k is replaced by −Σ_m h_m t^m.
        products.append([part - top * c for part, c in zip([top * 0, *rest], polynomial, strict=False)])
    return products


def side_by_side(parts: list[fmpq_mat]) -> fmpq_mat:
    """Return matrices of the same shape stacked horizontally."""
    rows = [[entry for row in rows for entry in row] for rows in zip(*(part.tolist() for part in parts), strict=True)]
    return linear.matrix(rows, sum(part.ncols() for part in parts))


def _lattice(module: Module, rows: fmpq_mat) -> fmpq_mat:
    """Return short rows of the same span whose integer combinations all letters map to such combinations.

    Images are added to the lattice until its Hermite normal form stays; it exists, since the letters of a finite monoid
    generate finitely many images. LLL then shortens the basis.
    """
    r, d = rows.nrows(), rows.ncols()
    lattice = linear.primitive(linear.row_space(rows)).numer_denom()[0]
    # The letters of V have integer entries, so that integer rows have integer images.
    letters = [letter.numer_denom()[0] for letter in module.letters]
    while True:
        images = [entry for letter in letters for entry in (lattice * letter).entries()]
        wider = fmpz_mat(r * (1 + len(letters)), d, [*lattice.entries(), *images]).hnf()
        # The images lie in the same span, so that the Hermite form has rank r and zero rows after the first r.
        wider = fmpz_mat(r, d, wider.entries()[: r * d])
        if wider == lattice.hnf():
            return fmpq_mat(lattice.lll())
        lattice = wider


def whole_block(delta: Sequence[Sequence[int]]) -> StateBlock:
    """Return the block of all n − 1 functions: the indicators of states 1 … n−1, for a table (|Σ|, n)."""
    n = len(delta[0])
    functions = tuple(tuple((int(q == i),) for q in range(n)) for i in range(1, n))
    # [δ(q, a) = i] is affine in the indicators of q: the value at state 0 is the shift, the differences are the matrix.
    matrices = tuple(
        tuple(tuple((int(step[q] == i) - int(step[0] == i),) for q in range(1, n)) for i in range(1, n))
        for step in delta
    )
    shifts = tuple(tuple((int(step[0] == i),) for i in range(1, n)) for step in delta)
    return StateBlock(RATIONAL, functions, matrices, shifts)
