"""Align a learned layer with a machine: find which functions of the machine's state each head represents.

The method follows T23 and T24 of docs/theory.md. A head carries a function φ of the machine's state if φ(q) = U x + c
for the head's states x along random words. Such functions are computed per head as canonical variates (Hotelling 1936)
of x and the machine's state. The letters act on them, φ(δ(q, a)) = B_a φ(q) + u_a, and an exact head satisfies U A_a =
B_a U on the states that it reaches.

Before the first letter the machine is treated as being in an extra state, to which no letter returns, because a learned
x₀ need not agree with the later states of q₀. A function that only separates this extra state from the others does not
count as carried, because it is not a function of the machine's state; it helps if the first letter sets a register.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx
import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import NotExact
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, switched
from fsa2lrnn.verification.specification import Specification, specification_of

WORDS, LENGTH = 600, 40
CARRIED = 0.8  # the least share of a function's variance that a head must explain to carry it
_OWN = 0.5  # the least variance after the first letter of a function of the machine's state
_CYCLIC = 0.9  # the least share of the power of the centres at one frequency of a cyclic head
_NEGLIGIBLE = 1e-9  # singular values below this part of the largest count as zero
_WEIGHT = 0.3  # the weight of the intertwining equations relative to the fit of φ in the least squares for U


@dataclass(frozen=True)
class AffineProbe:
    """The best affine map from network states to one-hot machine states: R², largest error, accuracy of the argmax."""

    r2: float
    worst_error: float
    accuracy: float


@dataclass(frozen=True)
class Cycle:
    """A frequency of a head along the cycles of `length` states that letter number `letter` has.

    The means of the head's states per machine state have `share` of their power at `frequency` rotations per cycle.
    """

    letter: int
    length: int
    frequency: int
    share: float


@dataclass(frozen=True)
class AlignedHead:
    """The alignment of one block of the layer.

    Args:
        r2: for each carried function, the share of its variance that the head explains.
        functions: the value of each carried function in each state of the minimal machine, variance 1, by falling r2.
        kind: "unused"; "cyclic", its centres rotate at one frequency along a letter's cycles; "register", each letter
            either leaves its functions unchanged or sets them; "full", it carries all functions; else "mixed".
        cycle: the frequency with the largest share, None if no letter has cycles or the head carries no function.
        closure: the size of the part of the functions' images under letters outside their span, relative to them.
        residual: the largest ‖U A_a − B_a U‖ / ‖U‖ over letters, spectral norms, on the directions of reached states.
        step_error: the error of φ after one step, relative to φ, weighted by the distribution of the states.
        variance: the head's share of the variance of all states.
        changed: the share of outputs that change if the head's state is replaced by its mean.
        eigenvalues: the eigenvalues [real, imaginary] of A_a for each letter, by falling modulus.
        beyond_circle: the largest |λ| − 1; negative if all eigenvalues lie inside the unit circle.
        columns: the smallest p-norm of a column, the quartiles, and the largest.
    """

    r2: list[float]
    functions: list[list[float]]
    kind: str
    cycle: Cycle | None
    closure: float
    residual: float
    step_error: float
    variance: float
    changed: float
    eigenvalues: list[list[list[float]]]
    beyond_circle: float
    columns: list[float]


@dataclass(frozen=True)
class Alignment:
    """The result of `align`; `to_json` returns it as a JSON object.

    Args:
        n_states: the number of states of the minimal machine.
        probe: the affine probe on the states of all heads together.
        heads: the alignment of each block.
        p: the order of the column norms.
        changed_without_rest: the share of outputs that change if all heads that carry nothing are replaced by their
            means.
    """

    n_states: int
    probe: AffineProbe
    heads: tuple[AlignedHead, ...]
    p: float
    changed_without_rest: float

    @property
    def carrying(self) -> list[int]:
        """The numbers of the heads that carry a function of the machine's state."""
        return [h for h, head in enumerate(self.heads) if head.r2]

    @property
    def needed(self) -> list[int]:
        """The numbers of the heads whose replacement by their mean changes at least 1 % of the outputs."""
        return [h for h, head in enumerate(self.heads) if head.changed >= 0.01]

    def to_json(self) -> dict[str, Any]:
        """Return the alignment as a JSON object."""
        found = {**asdict(self), "heads": [asdict(head) for head in self.heads]}
        return {**found, "carrying": self.carrying, "needed": self.needed}


@dataclass(frozen=True)
class _Walks:
    """States along words; position 0 is before the first letter.

    Args:
        x: the states of the heads, (B, T+1, H, b).
        q: the states of the machine, (B, T+1), the number n before the first letter.
        given: the numbers of the model's outputs after the letters, (B, T).
    """

    x: np.ndarray
    q: np.ndarray
    given: np.ndarray


def align(
    model: LRNN | SwitchedAffine,
    machine: MooreMachine,
    n_words: int = WORDS,
    length: int = LENGTH,
    seed: int = 0,
    ignore: Ignore = (),
) -> Alignment:
    """Return the alignment of a model of one layer over letters with the minimal machine of `machine`.

    It is computed in float64 along `n_words` words of `length` uniformly random letters. Outputs of the machine that
    `ignore` names do not count in the shares of outputs that change.

    Raises:
        UnsupportedFormat: for a model that is not a switched affine system (`switched`).
        InvalidMachine: if model and machine have different alphabets.
        NotExact: if the model's states overflow along the words.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> found = align(compile_machine(zoo.sum_mod(3)), zoo.sum_mod(3))
    >>> found.probe.r2, found.heads[0].kind, found.heads[0].cycle
    (1.0, 'cyclic', Cycle(letter=1, length=3, frequency=1, share=1.0))
    """
    tables = (switched(model) if isinstance(model, LRNN) else model).to(torch.float64)
    p = model.config.p if isinstance(model, LRNN) else 1.2
    goal = specification_of(tables, machine, ignore)
    walks = _walks(tables, goal, n_words, length, seed)
    spread = walks.x.reshape(-1, *walks.x.shape[2:]).var(0).sum(-1)
    heads = tuple(_head(tables, goal, walks, h, spread, p) for h in range(len(tables.x0)))
    rest = [h for h, head in enumerate(heads) if not head.r2]
    return Alignment(goal.delta.shape[1], _probe(goal, walks), heads, p, _changed(tables, goal, walks, rest))


def _walks(tables: SwitchedAffine, goal: Specification, n_words: int, length: int, seed: int) -> _Walks:
    tokens = np.random.default_rng(seed).integers(0, len(tables.alphabet), (n_words, length))
    states = tables.run(torch.from_numpy(tokens))
    x = states.numpy()
    if not np.isfinite(x).all():
        raise NotExact(
            f"the model's states are not finite along words of {length} letters, so there is nothing to align: its "
            "transitions grow too fast, or its weights are no numbers; train it anew, or align along shorter words"
        )
    x = np.concatenate([np.broadcast_to(tables.x0.numpy(), (n_words, 1, *x.shape[2:])), x], axis=1)
    q = np.concatenate([np.full((n_words, 1), goal.delta.shape[1]), goal.path(tokens)], axis=1)
    return _Walks(x, q, tables.logits(states).argmax(-1).numpy())


def _probe(goal: Specification, walks: _Walks) -> AffineProbe:
    x, q = walks.x[:, 1:].reshape(walks.q[:, 1:].size, -1), walks.q[:, 1:].ravel()
    wanted = np.eye(goal.delta.shape[1])[q]
    centred = wanted - wanted.mean(0)
    mean = x.mean(0)
    found = (x - mean) @ (np.linalg.pinv(x - mean, rcond=_NEGLIGIBLE) @ centred)
    error, total = found - centred, (centred**2).sum()
    right = (found + wanted.mean(0)).argmax(1) == q
    r2 = 1 - (error**2).sum() / total if total else 1.0
    return AffineProbe(float(r2), float(np.abs(error).max()), float(right.mean()))


def _changed(tables: SwitchedAffine, goal: Specification, walks: _Walks, held: list[int]) -> float:
    x = torch.from_numpy(walks.x[:, 1:])
    counts = goal.counts[walks.q[:, 1:]]
    still = x.clone()
    still[:, :, held] = x[:, :, held].mean((0, 1))
    after = tables.logits(still).argmax(-1).numpy()
    return float((walks.given != after)[counts].mean()) if counts.any() else 0.0


def _head(
    tables: SwitchedAffine, goal: Specification, walks: _Walks, h: int, spread: np.ndarray, p: float
) -> AlignedHead:
    A, v = tables.A[:, h].numpy(), tables.v[:, h].numpy()
    x, q = walks.x[:, :, h], walks.q
    phi, r2 = _carried(x.reshape(-1, x.shape[-1]), q.ravel(), goal.delta.shape[1] + 1)
    moves = np.concatenate([goal.delta, goal.delta[:, [goal.start]]], axis=1)  # from the time before the first letter
    own = phi[:, q[:, 1:]].var((1, 2)) >= _OWN
    functions = phi[own, :-1]
    cycle = _clearest_cycle(x, q, goal) if len(functions) else None
    values = np.linalg.eigvals(A)
    values = np.take_along_axis(values, np.argsort(-np.abs(values), axis=1, kind="stable"), 1)
    norms = (np.abs(A) ** p).sum(1) ** (1 / p)
    return AlignedHead(
        r2=r2[own].tolist(),
        functions=functions.tolist(),
        kind=_kind(functions, cycle, goal),
        cycle=cycle,
        **_intertwined(A, v, x, q, phi, own, moves),
        variance=float(spread[h] / spread.sum()) if spread.sum() else 0.0,
        changed=_changed(tables, goal, walks, [h]),
        eigenvalues=np.stack([values.real, values.imag], -1).tolist(),
        beyond_circle=float(np.abs(values).max() - 1),
        columns=np.quantile(norms, [0, 0.25, 0.5, 0.75, 1]).tolist(),
    )


def _carried(x: np.ndarray, q: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the functions of the state that a head carries, with their r²: x (N, b), q (N,) -> (r, n), (r,).

    They are the canonical variates of x with the indicators of the n states: directions of x whose variance is mostly
    between states. The functions have mean 0 and variance 1 over the words.
    """
    centred = x - x.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    left = left[:, sizes > _NEGLIGIBLE * max(sizes.max(initial=0.0), _NEGLIGIBLE)]  # (N, rank), orthonormal
    counts = np.bincount(q, minlength=n)
    sums = np.zeros((n, left.shape[1]))
    np.add.at(sums, q, left)
    occurring = counts > 0
    between = sums[occurring] / np.sqrt(counts[occurring])[:, None]
    _, correlations, directions = np.linalg.svd(between, full_matrices=False)
    keep = correlations**2 >= CARRIED
    phi = np.zeros((int(keep.sum()), n))
    centres = sums[occurring] / counts[occurring][:, None]
    phi[:, occurring] = (centres @ directions[keep].T).T
    scale = np.sqrt((phi**2 * counts).sum(1, keepdims=True) / counts.sum())
    return phi / scale, np.minimum(correlations[keep] ** 2, 1.0)


def _intertwined(
    A: np.ndarray, v: np.ndarray, x: np.ndarray, q: np.ndarray, phi: np.ndarray, own: np.ndarray, moves: np.ndarray
) -> dict[str, float]:
    """Return the fields `closure`, `residual` and `step_error` of a head: the errors of the equations of T24.

    The equations are U A_a = B_a U and U v_a + c = B_a c + u_a. With x̄ = (x, 1), Ū = (U, c), Ā_a = [[A_a, v_a], [0, 1]]
    and B̄_a likewise, both are Ū Ā_a = B̄_a Ū, for reached x. `own` (r,) selects the rows of φ (r, n) to measure.
    """
    if not own.any():
        return {"closure": 0.0, "residual": 0.0, "step_error": 0.0}
    weights = np.sqrt(np.bincount(q.ravel(), minlength=phi.shape[1]) / q.size)
    phi1 = np.concatenate([phi, np.ones((1, phi.shape[1]))])
    inverse = np.linalg.pinv(phi1 * weights, rcond=_NEGLIGIBLE)
    B = np.stack([phi[:, move] * weights @ inverse for move in moves])  # (|Σ|, r, r+1): B_a and u_a
    leaves = np.stack([phi[:, move] - B_a @ phi1 for move, B_a in zip(moves, B, strict=True)])[:, own]

    reached = np.concatenate([x.reshape(-1, x.shape[-1]), np.ones((q.size, 1))], axis=1)
    _, sizes, rows = np.linalg.svd(reached, full_matrices=False)
    basis = rows[sizes > _NEGLIGIBLE * sizes[0]].T  # (b+1, rank)
    spread = rows.T * (sizes / np.sqrt(len(reached)))  # spread spreadᵀ is the second moment of x̄
    lifted = np.concatenate([np.concatenate([A, v[:, :, None]], 2), np.zeros((len(A), 1, A.shape[1] + 1))], 1)
    lifted[:, -1, -1] = 1
    U = _probe_of(reached, phi[:, q.ravel()].T, lifted, B, basis)
    U1 = np.concatenate([U, np.eye(1, U.shape[1], U.shape[1] - 1)])
    gaps = (U @ lifted - B @ U1)[:, own]  # (|Σ|, r, b+1)
    return {
        "closure": float(np.sqrt(((leaves * weights) ** 2).sum((1, 2)).max() / own.sum())),
        "residual": float(np.linalg.norm(gaps @ basis, 2, (1, 2)).max() / np.linalg.norm(U[own] @ basis, 2)),
        "step_error": float(np.sqrt(((gaps @ spread) ** 2).sum((1, 2)).max() / own.sum())),
    }


def _probe_of(
    reached: np.ndarray, targets: np.ndarray, lifted: np.ndarray, B: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    r, k = targets.shape[1], basis.shape[1]
    gram = np.linalg.qr(np.concatenate([reached @ basis, targets], 1), mode="r") / np.sqrt(len(reached))
    fit, goal = gram[:, :k], gram[:, k:]  # the QR factor has the same least-squares solution in few rows
    rows = [np.kron(np.eye(r), fit)]
    sides = [goal.T.ravel()]
    inner = basis.T @ lifted @ basis  # (|Σ|, k, k): reached states stay in their span
    last = basis[-1]
    for inner_a, B_a in zip(inner, B, strict=True):
        rows.append(_WEIGHT * (np.kron(np.eye(r), inner_a.T) - np.kron(B_a[:, :r], np.eye(k))))
        sides.append(_WEIGHT * np.outer(B_a[:, r], last).ravel())
    solution = np.linalg.lstsq(np.concatenate(rows), np.concatenate(sides), rcond=None)[0]
    return solution.reshape(r, k) @ basis.T


def _clearest_cycle(x: np.ndarray, q: np.ndarray, goal: Specification) -> Cycle | None:
    n = goal.delta.shape[1]
    counts = np.bincount(q.ravel(), minlength=n + 1)[:n]
    centres = np.zeros((n + 1, x.shape[-1]))
    np.add.at(centres, q.ravel(), x.reshape(-1, x.shape[-1]))
    centres = centres[:n] / np.maximum(counts, 1)[:, None]
    total = float(((centres - centres[counts > 0].mean(0))[counts > 0] ** 2).sum())
    ranked: list[Cycle] = []
    for letter, move in enumerate(goal.delta):
        power: dict[tuple[int, int], float] = {}
        for cycle in cycles(move):
            spectrum = (np.abs(np.fft.rfft(centres[cycle], axis=0)) ** 2).sum(1) / len(cycle)
            for k in range(1, len(spectrum) if counts[cycle].all() else 1):
                both = 1 if 2 * k == len(cycle) else 2  # for the frequencies k and −k
                power[len(cycle), k] = power.get((len(cycle), k), 0.0) + both * float(spectrum[k])
        ranked += [Cycle(letter, length, k, min(amount / total, 1.0)) for (length, k), amount in power.items() if total]
    # Among letters with the same share, the longest cycles are most informative.
    return max(ranked, key=lambda cycle: (round(cycle.share, 2), cycle.length), default=None)


def cycles(move: np.ndarray) -> list[list[int]]:
    """Return the cycles of at least two states of a map of states, int (n,), each from its smallest state.

    >>> cycles(np.array([1, 2, 0, 3, 0]))
    [[0, 1, 2]]
    """
    found = []
    for cycle in nx.simple_cycles(nx.DiGraph(enumerate(move.tolist()))):
        first = cycle.index(min(cycle))
        found.append(cycle[first:] + cycle[:first])
    return sorted(cycle for cycle in found if len(cycle) > 1)


def _kind(functions: np.ndarray, cycle: Cycle | None, goal: Specification) -> str:
    n = goal.delta.shape[1]
    if not len(functions):
        return "unused"
    if cycle is not None and cycle.share >= _CYCLIC:
        return "cyclic"
    later = np.unique(goal.delta)  # without the start, in which a register may have no value yet
    near = np.ptp(functions[:, later], axis=1).max() / 4
    moved = functions[:, goal.delta[:, later]]  # (r, |Σ|, states)
    is_fixed = np.abs(moved - functions[:, None, later]).max(-1) < near
    is_set = np.ptp(moved, axis=-1) < near
    if (is_fixed | is_set).all():
        return "register"
    return "full" if len(functions) >= n - 1 else "mixed"
