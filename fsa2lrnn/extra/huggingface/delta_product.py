"""Plan DeltaProduct layers, whose several delta steps per letter make any permutation, by exchanges of neighbours.

The published layers run on GPUs only. All claims here are about the published recurrence, run in float32, not about a
module, and a whole model cannot be exported. With one step per letter it is the recurrence of `olmo-hybrid`.

What one step executes: S ← αS, and then n times S ← S + β_j k_j(v_j − Sᵀk_j)ᵀ; y = Sᵀq. Transition: α·Π(I − β_j k_j
k_jᵀ) with α in [0, 1], β_j in [0, 2], ‖k_j‖ = 1: with factors enough any rotation. A word starts from S = 0; convolved:
q, k, v, over 4 letters, in their layer; nothing here. Saturated, hence exact, gates: β = 0, 1, 2 and α = 0, 1, as for
olmo-hybrid. Classes: GatedDeltaProduct.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.decomposition.congruence import lattice
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.plan import UNIT, OneLayerPlan, outputs_of_states
from fsa2lrnn.extra.huggingface.reflections import roots

LAYER = ExternalLayer("delta-product", tried="the published recurrence in float32, no module")
CODE = None  # no whole model runs on a CPU
_MOST_POINTS = 8  # the most states that words of reflections permute
_MOST_STATES = 64  # the most states that words of exchanges and erasures move
_CONGRUENCES = 300  # the most congruences whose quotients are tried
_ORDERS = 200  # the number of orders of the points that are tried for short words

Factor = tuple[np.ndarray, np.ndarray, float]  # key, value, β


@dataclass(frozen=True, eq=False)
class Product(OneLayerPlan):
    """A plan of one layer of heads with several delta steps per letter.

    Args:
        machine: the minimal machine.
        alphas: α of each head and letter, shape (n_heads, |Σ|).
        factors: `factors[h][a]` are the delta steps of head h at letter a, in order of application.
        how: a description of the construction, in one line.
    """

    machine: MooreMachine
    alphas: np.ndarray
    factors: tuple[tuple[tuple[Factor, ...], ...], ...]
    how: str

    @property
    def n_factors(self) -> int:
        """The largest number of delta steps of a letter."""
        return max(len(word) for head in self.factors for word in head)

    def start(self) -> tuple[np.ndarray, ...]:
        """Return the start state S = 0 of each head: float32 (d_k, d_v)."""
        shapes = [next((len(k), len(v)) for word in head for k, v, _ in word) for head in self.factors]
        return tuple(np.zeros(shape, np.float32) for shape in shapes)

    def step(self, states: tuple[np.ndarray, ...], a: int) -> tuple[np.ndarray, ...]:
        """Return the states of the heads after letter number a, by the recurrence in float32, factor by factor."""
        following = list[np.ndarray]()
        for S, alphas, head in zip(states, self.alphas, self.factors, strict=True):
            S = np.float32(alphas[a]) * S
            for k, v, beta in head[a]:
                key = k.astype(np.float32)
                S = S + np.float32(beta) * np.outer(key, v.astype(np.float32) - S.T @ key)
            following.append(S + np.float32(0))
        return tuple(following)

    def closed(self) -> int:
        """Return the number of joint states of heads (compared bit for bit) and machine, after enumerating them all.

        Raises:
            NotExpressible: if one state of the heads would need two different outputs.
            BudgetExceeded: for more than `MAX_STATES` joint states.
        """
        return outputs_of_states(self.machine, self.start(), self.step, lambda states: b"".join(map(bytes, states)))[1]


def plan(machine: MooreMachine) -> Product:
    """Return a plan of one DeltaProduct layer that implements the minimal machine.

    If one layer of `olmo-hybrid` suffices, the plan has its heads. Otherwise each letter is a product of reflections,
    or of steps that exchange and erase states.

    Raises:
        NotExpressible: if no construction applies. This does not prove that no such layer exists.
        BudgetExceeded: for a machine with too many states.

    >>> from fsa2lrnn.automata import zoo
    >>> product = plan(zoo.sum_mod(5))
    >>> product.how, product.n_factors, product.closed()
    ('words of at most 6 reflections, of 5 points', 6, 5)
    """
    minimal = minimise(machine)
    try:
        stages = construct(minimal, has_reflections=True)
    except NotExpressible:
        stages = None
    if stages is not None and stages.n_layers == 1:
        heads = [orbit.head for orbit in stages.stages[0].orbits]
        alphas = np.stack([head.alphas for head in heads])
        factors = tuple(
            tuple(((k, v, float(beta)),) for k, v, beta in zip(head.keys, head.values, head.betas, strict=True))
            for head in heads
        )
        return Product(minimal, alphas, factors, stages.how)
    for delta, start in _actions(minimal):
        product = _words(minimal, delta, start)
        if product is not None:
            return product
    for sink in _sinks(minimal):
        if (product := _injections(minimal, sink)) is not None:
            return product
    raise NotExpressible(
        f"letters of these {minimal.n_states} states are not all resets, permutations of at most {_MOST_POINTS} points "
        f"that tell its states, or one to one among {_MOST_STATES} but for those that they lead to a state for good: "
        "no other words of reflections are written here"
    )


def _actions(minimal: MooreMachine) -> Iterator[tuple[np.ndarray, int]]:
    """Yield the quotients by congruences, few blocks first: maps (|Σ|, n) and the block of the start."""
    partitions = list(lattice(np.unique(minimal.delta, axis=0), _CONGRUENCES).partitions[1:])
    partitions.append(np.arange(minimal.n_states))
    for partition in sorted(partitions, key=lambda blocks: int(blocks.max())):
        if 0 < partition.max() < _MOST_POINTS:
            first = np.unique(partition, return_index=True)[1]
            yield partition[minimal.delta[:, first]], int(partition[minimal.start])


def _words(minimal: MooreMachine, delta: np.ndarray, start: int) -> Product | None:
    """Return a plan whose letters are products of exchanges of neighbours or resets, for a quotient; None if not."""
    n, maps, resets = delta.shape[1], list[np.ndarray](), list[bool]()
    for row in delta:
        is_reset = bool((row == row[0]).all())
        if not is_reset and len(set(row.tolist())) < n:
            return None
        moved = np.arange(n)
        if is_reset:
            moved[[start, row[0]]] = row[0], start
        maps.append(moved if is_reset else row)
        resets.append(is_reset)
    keys = next(roots((np.eye(n - 1, k=1) + np.eye(n - 1, k=-1)) / 2), None)
    if keys is None:
        return None
    # Numberings of the points, for which the longest word of exchanges of neighbours is short.
    rng, best = np.random.default_rng(0), None
    for order in [np.arange(n), *(rng.permutation(n) for _ in range(_ORDERS))]:
        place = np.argsort(order)
        bubbled = [_bubbled(place[row[order]]) for row in maps]
        if best is None or max(map(len, bubbled)) < max(map(len, best)):
            best = bubbled
    assert best is not None
    idle: Factor = (keys[0], UNIT * keys[0], 0.0)
    factors = tuple(tuple((keys[i], UNIT * keys[i], 2.0) for i in word) or (idle,) for word in best)
    how = f"words of at most {max(map(len, best))} reflections, of {n} points"
    product = Product(minimal, np.where(resets, 0.0, 1.0)[None], (factors,), how)
    try:
        product.closed()
    except NotExpressible:
        return None
    return product


def _sinks(minimal: MooreMachine) -> list[int | None]:
    return [*np.flatnonzero((minimal.delta == np.arange(minimal.n_states)).all(axis=0)).tolist(), None]


def _injections(minimal: MooreMachine, sink: int | None) -> Product | None:
    """Return a plan for letters that are resets or one-to-one except into the sink, or None for other letters.

    C − S represents a state as 64 on two entries of its own and the sink as 0; C is the matrix of the start. A letter
    erases the entries (β = 1) of the states that it leads to the sink. A key of ½ on four entries exchanges two states
    and changes the sign of their entries; four more steps change the signs back.
    """
    places = {q: i for i, q in enumerate(q for q in range(minimal.n_states) if q != sink)}
    if sink == minimal.start or not 2 <= len(places) <= _MOST_STATES:
        return None
    d, home = 2 * len(places), places[minimal.start]
    C = np.zeros((d, 1))
    C[[2 * home, 2 * home + 1]] = UNIT

    def factor(entries: list[int], size: float, beta: float) -> Factor:
        key = np.zeros(d)
        key[entries] = size
        return key, C.T @ key, beta

    alphas, factors = list[float](), list[tuple[Factor, ...]]()
    for row in minimal.delta:
        is_reset = bool((row == row[0]).all())
        moves = {home: places.get(int(row[0]))} if is_reset else {i: places.get(int(row[q])) for q, i in places.items()}
        # Erase what leads to the sink, then exchange states pair by pair.
        staying = {i: j for i, j in moves.items() if j is not None}
        if len(set(staying.values())) < len(staying):
            return None
        word = [factor([2 * i + side], 1.0, 1.0) for i in moves if i not in staying for side in (0, 1)]
        for i, j in _exchanges(staying):
            four = [2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
            word += [factor(four, 0.5, 2.0), *(factor([entry], 1.0, 2.0) for entry in four)]
        alphas.append(0.0 if is_reset else 1.0)
        factors.append(tuple(word) or (factor([0], 1.0, 0.0),))
    how = f"words of at most {max(map(len, factors))} steps that exchange or erase {len(places)} states"
    return Product(minimal, np.array([alphas]), (tuple(factors),), how)


def _exchanges(moves: dict[int, int]) -> list[tuple[int, int]]:
    at, word = {i: i for i in moves}, list[tuple[int, int]]()
    for i, j in moves.items():
        if (now := at[i]) != j:
            word.append((now, j))
            at = {k: j if place == now else now if place == j else place for k, place in at.items()}
    return word


def _bubbled(row: np.ndarray) -> list[int]:
    left, word = row.tolist(), list[int]()
    for _ in range(len(left)):
        for i in range(len(left) - 1):
            if left[i] > left[i + 1]:
                left[i], left[i + 1] = left[i + 1], left[i]
                word.append(i)
    return word
