"""Draw random words as inputs of operators, with letters whose products stay in a finite set of dyadic matrices.

Key coordinates 0–7 carry the Weyl group of E8: a key is a root and β = 1, so I − β k kᵀ is a reflection. The inner
product of two roots is 0, ±1 or ±2, hence every entry of the triangular inverse of a chunk is too. The other
coordinates are registers: writes, swaps, sign changes, resets and a bounded number of halvings between two writes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

ROOTS = 8  # the number of coordinates of the root system E8
KEYS = VALUES = 16
# exp(RESET) rounds to 0 in every float format up to float32, and sums of resets are exact. In base 2, or with half the
# gate, a decay is not 0, so that it shows wherever the correct result is 0. (Mamba divides by g: a power of two.)
RESET = -128.0
HALVINGS = 2  # the most halvings of a register between two writes
Letter = dict[str, list[float]]


@dataclass(frozen=True)
class Magnitudes:
    """Bounds on the integers that a word writes and reads.

    Args:
        value: the largest absolute value written into a register; half of it for root coordinates.
        query: the largest absolute entry of a query.
        columns: the number of value columns that may differ from 0.
        resets: whether gates may be `RESET`; otherwise all are 0.
    """

    value: int
    query: int = 1
    columns: int = VALUES
    resets: bool = True


class Source:
    """A seeded source of random letters, which counts the halvings of each register.

    Args:
        seed: the seed of the random generator.
        size: the bounds on the integers.
        state: the rows of the initial state; if None, the word begins with a write to every coordinate.
    """

    def __init__(self, seed: int, size: Magnitudes, state: list[list[float]] | None = None) -> None:
        self.rng = random.Random(seed)
        self.size = size
        self.state = state
        self.tokens = 0
        self.halvings = [0] * KEYS
        self.queue = list(range(KEYS)) if state is None else []
        self.pause = 0  # tokens that reflect the empty state after a reset, so that what was not cleared shows

    def integer(self, bound: int) -> float:
        return float(self.rng.choice((-1, 1)) * self.rng.randint(max(1, bound // 2), bound))

    def values(self, bound: int) -> list[float]:
        row = [self.integer(bound) if self.rng.random() < 0.8 else 0.0 for _ in range(self.size.columns)]
        return row + [0.0] * (VALUES - self.size.columns)

    def registers(self) -> tuple[int, int]:
        i, j = self.rng.sample(range(ROOTS, KEYS), 2)
        return i, j

    def root(self) -> list[float]:
        """Return one of the 240 roots of E8: ±e_i ± e_j, or (±½, …, ±½) with an even number of minus signs."""
        signs = [self.rng.choice((-1.0, 1.0)) for _ in range(ROOTS)]
        if self.rng.random() < 0.5:
            i, j = self.rng.sample(range(ROOTS), 2)
            return [signs[c] if c in (i, j) else 0.0 for c in range(KEYS)]
        signs[0] *= -1.0 if signs.count(-1.0) % 2 else 1.0
        return [s / 2 for s in signs] + [0.0] * (KEYS - ROOTS)

    def query(self) -> list[float]:
        """Return a query with one nonzero entry, or with two at registers."""
        row = unit(self.rng.randrange(KEYS), self.integer(self.size.query))
        if self.rng.random() < 0.3:
            i, j = self.registers()
            row = add(unit(i, self.integer(self.size.query)), unit(j, self.integer(self.size.query)))
        return row

    def write(self, i: int) -> Letter:
        self.halvings[i] = 0
        sign = self.rng.choice((-1.0, 1.0))
        bound = max(1, self.size.value // 2) if i < ROOTS else self.size.value
        return letter(unit(i, sign), self.values(bound), 1.0)

    def delta(self) -> Letter:
        """Return the next letter of the delta rule: key `k`, value `v` and `beta`."""
        if self.pause:
            self.pause -= 1
            return letter(self.root(), [0.0] * VALUES, 1.0)
        if self.queue:
            return self.write(self.queue.pop(0))
        i, j = self.registers()
        kind = self.rng.choices(("root", "write", "swap", "flip", "half", "turn", "idle"), (40, 20, 12, 8, 8, 5, 7))[0]
        if kind in ("half", "turn") and self.halvings[i] >= HALVINGS:
            kind = "write"
        if kind == "root":
            return letter(self.root(), [0.0] * VALUES, 1.0)
        if kind == "write":
            return self.write(i)
        if kind == "swap":
            h = self.halvings
            h[i], h[j] = h[j], h[i]
            # A key of norm √2 with β = 1 is the reflection that exchanges the two registers, with signs.
            return letter(add(unit(i), unit(j, self.rng.choice((-1.0, 1.0)))), [0.0] * VALUES, 1.0)
        if kind == "flip":
            return letter(unit(i), [0.0] * VALUES, 2.0)
        if kind == "idle":
            return letter(self.root(), self.values(self.size.value), 0.0)
        self.halvings[i] += 1
        # β = ½ leaves half of the register and β = 3/2 leaves minus a half.
        return letter(unit(i), [0.0] * VALUES, 0.5 if kind == "half" else 1.5)

    def reset_here(self) -> bool:
        """Return whether the next token resets, which is more likely at borders of chunks of 16 and 64 tokens."""
        self.tokens += 1
        if not self.size.resets:
            return False
        at_border = [self.tokens % c in (0, 1) for c in (64, 16)]
        return self.rng.random() < (0.3 if at_border[0] else 0.06 if at_border[1] else 0.015)

    def reset_now(self) -> bool:
        """Return whether the next letter clears the state, and if so, plan a write to every coordinate after it."""
        if not self.reset_here() or self.queue:
            return False
        self.halvings = [0] * KEYS
        self.queue = list(range(KEYS))
        self.rng.shuffle(self.queue)
        self.pause = self.rng.randint(0, 3)
        return True


def unit(i: int, value: float = 1.0, size: int = KEYS) -> list[float]:
    return [value if c == i else 0.0 for c in range(size)]


def add(x: list[float], y: list[float]) -> list[float]:
    return [a + b for a, b in zip(x, y, strict=True)]


def letter(k: list[float], v: list[float], beta: float) -> Letter:
    return {"k": k, "v": v, "beta": [beta]}


def delta_letters(source: Source) -> Iterator[Letter]:
    while True:
        yield {"q": source.query(), **source.delta()}


def gated_delta_letters(source: Source) -> Iterator[Letter]:
    while True:
        g = RESET if source.reset_now() else 0.0
        yield {"q": source.query(), "g": [g], **source.delta()}


def kda_letters(source: Source) -> Iterator[Letter]:
    """Yield letters of KDA, which also clear single registers through their own channel of the gate."""
    while True:
        g = [RESET if source.reset_now() else 0.0] * KEYS
        if source.size.resets and source.rng.random() < 0.05:
            i, _ = source.registers()
            g[i], source.halvings[i] = RESET, 0
        yield {"q": source.query(), "g": g, **source.delta()}


def delta_product_letters(source: Source, factors: int) -> Iterator[Letter]:
    while True:
        g = RESET if source.reset_now() else 0.0
        steps = [source.delta() for _ in range(factors)]
        yield {"q": source.query(), "g": [g], **{n: [e for s in steps for e in s[n]] for n in steps[0]}}


def simple_gla_letters(source: Source) -> Iterator[Letter]:
    """Yield letters that write differences: k = ±e_i and v = ±(new − old), so that row i holds `new` afterwards."""
    rows = source.state or [[0.0] * VALUES for _ in range(KEYS)]
    while True:
        if reset := source.reset_here():
            rows = [[0.0] * VALUES for _ in range(KEYS)]
        i, sign = source.rng.randrange(KEYS), source.rng.choice((-1.0, 1.0))
        new = source.values(source.size.value)
        k, v = unit(i, sign), [sign * (n - o) for n, o in zip(new, rows[i], strict=True)]
        if source.rng.random() < 0.1:
            k = [0.0] * KEYS
        else:
            rows[i] = new
        yield {"q": source.query(), "g": [RESET if reset else 0.0], "k": k, "v": v}


def rwkv7_letters(source: Source) -> Iterator[Letter]:
    """Yield letters of RWKV-7: those of the delta rule as a = −k, b = βk, and copies between registers.

    A copy is a = e_j − e_i, b = e_i, or a reset of channel i with a = e_j. A reset of channel i with a = −e_i negates
    row i, because a reads the state before the decay.
    """
    while True:
        reset = source.reset_now()
        w, x = [RESET if reset else 0.0] * KEYS, source.delta()
        a, b = [-e for e in x["k"]], [x["beta"][0] * e for e in x["k"]]
        if reset:
            a = [0.0] * KEYS
        k, v = b, x["v"] if any(b) else [0.0] * VALUES
        if not reset and not source.queue and source.rng.random() < 0.2:
            i, j = source.registers()
            a, b, k = unit(j), unit(i), [0.0] * KEYS
            how = source.rng.choice(("copy", "move", "flip")) if source.size.resets else "copy"
            if how == "copy":
                a = add(a, unit(i, -1.0))
            else:
                w[i] = RESET
            if how == "flip":
                a = unit(i, -1.0)
            else:
                source.halvings[i] = source.halvings[j]
        yield {"r": source.query(), "w": w, "k": k, "v": v, "a": a, "b": b}


def diagonal_letters(source: Source) -> Iterator[Letter]:
    """Yield letters that, per channel, keep, negate, write (a = 0), halve, or double after a halving."""
    scale, first = [0] * KEYS, source.state is None
    while True:
        a, v = [1.0] * KEYS, [0.0] * KEYS
        for c in range(KEYS):
            kind = (
                "write"
                if first
                else source.rng.choices(("keep", "flip", "write", "half", "double"), (5, 2, 1, 1, 1))[0]
            )
            if kind == "flip":
                a[c] = -1.0
            elif kind == "write":
                a[c], v[c], scale[c] = 0.0, source.integer(source.size.value), 0
            elif kind == "half" and scale[c] < HALVINGS:
                a[c], scale[c] = 0.5, scale[c] + 1
            elif kind == "double" and scale[c] > 0:
                a[c], scale[c] = 2.0, scale[c] - 1
        first = False
        yield {"a": a, "v": v}


def block_diagonal_letters(source: Source, size: int = 4) -> Iterator[Letter]:
    """Yield signed maps of coordinates, with writes to rows without an entry, or reflections of the root system F4.

    Both kinds are closed under products: rows have at most one ±1, or entries are 0, ±½ and ±1. A word has letters of
    one kind, chosen by its seed.
    """
    maps, first = source.rng.random() < 0.5, source.state is None
    while True:
        v = [0.0] * size
        if first or (maps and source.rng.random() < 0.1):
            A, v = [0.0] * size**2, [source.integer(source.size.value) for _ in range(size)]
        elif maps:
            images = [source.rng.choice((*range(size), None)) for _ in range(size)]
            A = [
                e
                for j in images
                for e in (unit(j, source.rng.choice((-1.0, 1.0)), size) if j is not None else [0.0] * size)
            ]
            v = [source.integer(source.size.value) if j is None else 0.0 for j in images]
        else:
            k = [source.rng.choice((-0.5, 0.5)) for _ in range(size)]
            k = unit(source.rng.randrange(size), 1.0, size) if source.rng.random() < 0.3 else k
            A = [float(i == j) - 2.0 * k[i] * k[j] for i in range(size) for j in range(size)]
        first = False
        yield {"A": A, "v": v}


def pd_ssm_letters(source: Source) -> Iterator[Letter]:
    """Yield maps p with signs d, one of which is nonzero per image, and writes to rows that are no images."""
    first = source.state is None
    while True:
        merge = source.rng.random() < 0.4
        p = [source.rng.randrange(KEYS) for _ in range(KEYS)] if merge else source.rng.sample(range(KEYS), KEYS)
        arrived = dict[int, int]()
        for j in source.rng.sample(range(KEYS), KEYS):
            # One source per image keeps its sign, chosen at random; all others are erased, so that no row adds two
            # numbers.
            arrived.setdefault(p[j], j)
        d = [source.rng.choice((-1.0, 1.0)) if arrived[p[j]] == j and not first else 0.0 for j in range(KEYS)]
        v = [source.integer(source.size.value) if first or i not in arrived else 0.0 for i in range(KEYS)]
        first = False
        yield {"p": [float(i) for i in p], "d": d, "v": v}


def conv_letters(source: Source) -> Iterator[Letter]:
    while True:
        yield {"x": [source.integer(source.size.value) for _ in range(KEYS)]}


def state_passing_letters(source: Source) -> Iterator[Letter]:
    """Yield letters with resets, and with the differences between successive states as `states`."""
    row = source.state[0] if source.state else [0.0] * VALUES
    while True:
        reset = source.size.resets and source.rng.random() < 0.1
        new, old = source.values(source.size.value), [0.0] * VALUES if reset else row
        row = new
        yield {"g": [RESET if reset else 0.0], "states": [n - o for n, o in zip(new, old, strict=True)]}


def draw(
    letters: Callable[[Source], Iterator[Letter]], seed: int, size: Magnitudes, T: int, state: Tensor | None
) -> dict[str, Tensor]:
    """Return one word of T letters as float64 tensors (T, ·), for the initial state `state` (rows, ·) or None."""
    source = letters(Source(seed, size, None if state is None else state.reshape(-1, state.shape[-1]).tolist()))
    rows = [next(source) for _ in range(T)]
    return {name: torch.tensor([row[name] for row in rows], dtype=torch.float64) for name in rows[0]}


def draw_state(shape: tuple[int, ...], seed: int, size: Magnitudes) -> Tensor:
    """Return a random initial state of integers, float64, within half of the bound in the first `ROOTS` rows."""
    source = Source(seed, size)
    rows = [
        [source.integer(max(1, size.value // 2) if i < ROOTS else size.value) for _ in range(shape[-1])]
        for i in range(shape[0] if len(shape) == 2 else 1)
    ]
    return torch.tensor(rows, dtype=torch.float64).reshape(shape)
