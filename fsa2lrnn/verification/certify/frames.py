"""Coordinates that separate the slow part of a state from the contracting part.

Per head, the slow part is a functional G(q, ·) for each machine state with G(δ(q,a)) A_a ≈ G(q), which letters hardly
change. These are the leading eigenvectors of G ↦ mean over a of G(δ(q,a)) A_a; or, for a model with exact invariants,
such as a repaired one, the null vectors of G ↦ G(δ(q,a)) A_a − G(q). Their dual vectors R satisfy G R = 1. Coordinates
along R are slow, and intervals bound them. The rest contracts, in a norm for each machine state that minimises the
worst letter's norm (a semidefinite program), and a ball bounds it. Soundness does not depend on this choice: the
checker encloses the effect of the letters in whatever coordinates it is given.

Sets are bounded in further directions too: gradients of margins, and fans in planes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any, cast

import networkx as nx
import numpy as np

from fsa2lrnn.checker.claims import CountedAutomaton, Nodes, Tables, Tube, nodes
from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.rounding import NORM_EPS
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.optional import require

_MOST_SLOW = 4  # slow coordinates per head
_WORST_CONDITION = 1e3
_EXACT = 1e-4  # the largest change per letter of an invariant of size 1
_ROUNDS = 40
_LARGEST_PROGRAM = 400  # linear matrix inequalities; for more, the summed norm is used
_STRETCHED = 1e4  # the largest ratio between the axes of a ball
_BISECTIONS = 9
_COMPILED = 1.0  # seconds to compile a program, before the solver checks the time


def components(target: CountedAutomaton) -> np.ndarray:
    """Return the strongly connected component of each machine state, −1 for states on no cycle: int64 (|Q|,)."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from((q, int(to)) for q in range(target.delta.shape[1]) for to in target.delta[:, q])
    label = np.full(target.delta.shape[1], -1)
    cyclic = [c for c in nx.strongly_connected_components(graph) if len(c) > 1 or graph.has_edge(*(list(c) * 2))]
    for i, component in enumerate(sorted(map(sorted, cyclic))):
        label[component] = i
    return label


class Frames:
    """Coordinates that separate slow from contracting parts, for the nodes of one model and target.

    Args:
        A: float64 (|Σ|, H, b, b).
        target: the machine that the model should compute.
        deadline: the time limit of the semidefinite programs; without them, norms are somewhat worse.
    """

    def __init__(self, A: np.ndarray, target: CountedAutomaton, deadline: Deadline = NEVER) -> None:
        self._A, self._target, self._label, self._deadline = A, target, components(target), deadline
        self._short = nodes(target, 1, 1)
        self._heads: dict[tuple[int, bool, bytes], _Head] = {}

    @cached_property
    def keep_exactly(self) -> bool:
        """Whether some head has a functional that every letter leaves invariant, up to rounding."""
        parts = self._target, self._label, None, self._deadline
        return any(_slow_functionals(self._A[:, h], *parts)[1].any() for h in range(self._A.shape[1]))

    def of(self, of_nodes: Nodes, threshold: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Return a basis per node and head, slow vectors first, and the mask of these: (F, H, b, b), bool (F, H, b).

        A functional is slow if the modulus of its eigenvalue exceeds `threshold`, or, with None, if it is invariant.
        """
        _, H, b, _ = self._A.shape
        basis, slow = np.empty((len(of_nodes.state), H, b, b)), np.zeros((len(of_nodes.state), H, b), bool)
        for h in range(H):
            head = self._head(h, threshold)
            basis[:, h] = _bases(head, of_nodes, _dual_vectors(self._A[:, h], of_nodes, head))
            slow[:, h] = np.arange(b) < head.rank[of_nodes.state][:, None]
        return basis.astype(np.float32).astype(np.float64), slow

    def _head(self, h: int, threshold: float | None) -> _Head:
        A = self._A[:, h]
        G, rank = _slow_functionals(A, self._target, self._label, threshold, self._deadline)
        key = h, threshold is None, rank.tobytes()
        if key not in self._heads:
            kernel = {int(q): _kernel(G[q, : rank[q]], A.shape[-1]) for q in np.unique(self._short.state)}
            R = _dual_vectors(A, self._short, head := _Head(G, rank, kernel, {}))
            self._heads[key] = replace(head, norm=_norms(A, self._target, self._short, head, R, self._deadline))
        return self._heads[key]


_MULTIPLICATION, _EIGENVALUES = 5e-10, 25  # seconds; multiplications per entry cubed for eigenvectors


@dataclass(frozen=True, eq=False)
class _Head:
    """The slow functionals of one head and the norms of the rest.

    Args:
        G: the slow functionals of each machine state, as rows, padded with zeros: (|Q|, b, b).
        rank: int64 (|Q|,), the number of slow functionals.
        kernel: for each state a basis of their common kernel, (b, b − rank).
        norm: for each state W, where zᵀWz is the square of the norm, z in that basis.
    """

    G: np.ndarray
    rank: np.ndarray
    kernel: dict[int, np.ndarray]
    norm: dict[int, np.ndarray]


def _slow_functionals(
    A: np.ndarray, target: CountedAutomaton, label: np.ndarray, threshold: float | None, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray]:
    """Return G as rows, (|Q|, b, b) padded with zeros, and the number of rows of each state, (|Q|,).

    Components whose matrices cannot be decomposed in the time that is left have no rows.
    """
    n, b = len(label), A.shape[-1]
    G, rank = np.zeros((n, b, b)), np.zeros(n, np.int64)
    for i in range(label.max() + 1):
        states = np.flatnonzero(label == i)
        factor = len(A) if threshold is None else _EIGENVALUES
        if factor * (len(states) * b) ** 3 * _MULTIPLICATION > deadline.left():
            continue
        place = np.full(n, -1)
        place[states] = np.arange(len(states))
        inside = place[target.delta[:, states]] >= 0  # (|Σ|, K)
        # Axes: letter, state k and entry of the new functional, then state and entry of the old: block (k, δ(k, a)) is
        # A_aᵀ.
        steps = np.zeros((len(A), len(states), b, len(states), b))  # G ↦ G(δ(q,a)) A_a, for each letter
        for a, k in np.argwhere(inside):
            steps[a, k, :, place[target.delta[a, states[k]]]] = A[a].T
        if threshold is None:
            rows = _null(steps, inside)
        else:
            mean = (steps / inside.sum(0)[:, None, None, None]).sum(0)
            rows = _leading(mean.reshape(len(states) * b, -1), len(states), b, threshold)
        rank[states] = rows.shape[1]
        G[states, : rows.shape[1]] = rows
    return G, rank


def _null(steps: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return a basis of the functionals that every letter leaves invariant (numerical null space): (K, rank, b)."""
    n_states, b = steps.shape[1:3]
    change = steps.copy()
    for a, k in np.argwhere(inside):
        # An invariant functional is one with G(δ(q,a)) A_a − G(q) = 0, for every letter that stays in the component.
        change[a, k, :, k] -= np.eye(b)
    _, sizes, vectors = np.linalg.svd(change.reshape(-1, n_states * b), full_matrices=False)
    rank = min(int((sizes < _EXACT).sum()), b)
    rows = vectors[::-1][:rank].reshape(rank, n_states, b).swapaxes(0, 1) * np.sqrt(n_states)
    if rank and np.linalg.cond(rows).max() < _WORST_CONDITION:
        return rows
    return np.zeros((n_states, 0, b))


def _leading(operator: np.ndarray, n_states: int, b: int, threshold: float) -> np.ndarray:
    """Return a real basis of the eigenspace of the eigenvalues above the threshold, or of fewer: (K, rank, b)."""
    values, vectors = np.linalg.eig(operator)
    order = np.argsort(-np.abs(values))
    values, vectors = values[order], vectors[:, order]
    rank = min(int((np.abs(values) > threshold).sum()), _MOST_SLOW, b)
    while rank:
        splits_a_pair = rank < len(values) and abs(values[rank - 1].imag) > 1e-9
        splits_a_pair = splits_a_pair and abs(values[rank - 1] - values[rank].conj()) < 1e-9
        real = np.concatenate([np.real(vectors[:, :rank]), np.imag(vectors[:, :rank])], axis=1)
        rows = np.linalg.svd(real, full_matrices=False)[0][:, :rank]
        rows = rows.reshape(n_states, b, rank).swapaxes(-1, -2) * np.sqrt(n_states)
        if not splits_a_pair and np.linalg.cond(rows).max() < _WORST_CONDITION:
            return rows
        rank -= 1
    return np.zeros((n_states, 0, b))


def _dual_vectors(A: np.ndarray, of_nodes: Nodes, head: _Head) -> np.ndarray:
    """Return R with G R = 1 at each node, as columns (F, b, b), zero beyond the rank."""
    G, rank = head.G[of_nodes.state], head.rank[of_nodes.state]
    b = A.shape[-1]
    eye = np.eye(b)
    in_rank = np.tril(np.ones((b + 1, b), bool), -1)[rank]  # the first `rank` of b
    # The pseudo-inverse has G R = 1 to begin with.
    duals = np.linalg.pinv(G)
    # Iterate R ↦ the sum over letters of A_a R, with G R = 1 restored: R converges to the slow directions.
    for _ in range(_ROUNDS):
        moved = np.zeros_like(duals)
        for a, to in enumerate(of_nodes.delta):
            source = np.flatnonzero((to >= 0) & (rank == rank[to]))
            np.add.at(moved, to[source], A[a] @ duals[source])
        overlap = np.where(in_rank[:, :, None] & in_rank[:, None, :], G @ moved, eye)
        # Where the overlap is nearly singular, the last R with G R = 1 is kept.
        sound = np.less(np.linalg.cond(overlap), _WORST_CONDITION)
        better = moved @ np.linalg.inv(np.where(sound[:, None, None], overlap, eye))
        duals = np.where(sound[:, None, None], better, duals)
    return duals * in_rank[:, None, :]


def _bases(head: _Head, of_nodes: Nodes, R: np.ndarray) -> np.ndarray:
    """Return [R, N] with N a basis of the kernel of G, orthonormal in the machine state's norm: (F, b, b)."""
    b = R.shape[-1]
    basis = np.empty((len(of_nodes.state), b, b))
    for f, state in enumerate(of_nodes.state.tolist()):
        # With W = C Cᵀ, z = C⁻ᵀ y has zᵀWz = |y|²: the norm is Euclidean in the coordinates y.
        upright = np.linalg.inv(np.linalg.cholesky(head.norm[state])).T
        columns = np.concatenate([R[f, :, : head.rank[state]], head.kernel[state] @ upright], axis=1)
        usable = np.isfinite(columns).all() and np.linalg.cond(columns) < _WORST_CONDITION**2
        # Any invertible basis is sound; an ill-conditioned one would only make the enclosures wide.
        basis[f] = columns if usable else np.eye(b)
    return basis


def _kernel(rows: np.ndarray, b: int) -> np.ndarray:
    return np.linalg.svd(rows)[2][len(rows) :].T if len(rows) else np.eye(b)


def _norms(
    A: np.ndarray, target: CountedAutomaton, of_nodes: Nodes, head: _Head, R: np.ndarray, deadline: Deadline
) -> dict[int, np.ndarray]:
    """Return W for each machine state, with zᵀWz the squared norm in coordinates of the kernel of G."""
    G, kernel = head.G, head.kernel
    mean = {q: R[of_nodes.state == q].mean(0) for q in kernel}
    maps: list[tuple[int, int, np.ndarray]] = []
    for q in kernel:
        for a in range(len(A)):
            to = int(target.delta[a, q])
            if to in kernel:
                # I − R G projects onto the kernel of G along the slow vectors.
                rest = np.eye(A.shape[-1]) - mean[to] @ G[to]
                maps.append((q, to, kernel[to].T @ rest @ A[a] @ kernel[q]))
    easy = _summed_norms(maps, kernel)
    worst = max((_stretch(Z, easy[q], easy[to]) for q, to, Z in maps), default=0.0)
    # A contraction this strong leaves nothing to gain, and large programs take too long.
    if worst < 0.4 or len(maps) > _LARGEST_PROGRAM:
        return easy
    return _extremal_norms(maps, kernel, worst, deadline) or easy


def _stretch(Z: np.ndarray, W_from: np.ndarray, W_to: np.ndarray) -> float:
    if 0 in Z.shape:
        return 0.0
    # The operator norm between two ellipsoidal norms is the spectral norm of Dᵀ Z C⁻ᵀ.
    C, D = np.linalg.cholesky(W_from), np.linalg.cholesky(W_to)
    return float(np.linalg.norm(D.T @ Z @ np.linalg.inv(C).T, 2))


def _summed_norms(maps: list[tuple[int, int, np.ndarray]], kernel: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Return W(q) = 1 + c · mean over letters of ZᵀW(δ(q,a))Z, for the largest of a few c with bounded W."""
    start = {q: np.eye(K.shape[1]) for q, K in kernel.items()}
    # A larger c gives a norm in which letters contract more, but the sum may diverge.
    for c in (8.0, 4.0, 2.0, 1.0, 0.5):
        norms = start
        for _ in range(_ROUNDS):
            summed = dict(start)
            for q, to, Z in maps:
                summed[q] = summed[q] + c / (len(maps) / len(kernel)) * Z.T @ norms[to] @ Z
            norms = summed
            if max(W.max(initial=0) for W in norms.values()) > _STRETCHED:
                break
        else:
            return norms
    return start


def _extremal_norms(
    maps: list[tuple[int, int, np.ndarray]], kernel: dict[int, np.ndarray], worst: float, deadline: Deadline
) -> dict[int, np.ndarray] | None:
    """Return W with ZᵀW(δ(q,a))Z ≤ γ² W(q) for every letter, with the least γ that is found, or None."""
    if deadline.left() < _COMPILED:
        return None
    cp = require("cvxpy", "repair", "a certificate of a model that forgets slowly")
    live = {q: K.shape[1] for q, K in kernel.items() if K.shape[1]}
    variables: dict[int, Any] = {q: cp.Variable((d, d), symmetric=True) for q, d in live.items()}
    square, longest = cp.Parameter(nonneg=True), cp.Variable()
    # W ⪰ 1 fixes the scale; `longest` then bounds the ratio of the axes of the ball.
    constraints: list[Any] = [w >> np.eye(live[q]) for q, w in variables.items()]
    constraints += [w << longest * np.eye(live[q]) for q, w in variables.items()]
    constraints += [
        square * variables[q] - Z.T @ variables[to] @ Z >> 0 for q, to, Z in maps if q in live and to in live
    ]
    problem = cp.Problem(cp.Minimize(longest), constraints)
    best, low, high = None, worst / 4, worst
    # For a fixed γ the constraints are linear in W, so that the least γ is found by bisection.
    for _ in range(_BISECTIONS):
        if deadline.left() <= 0:
            break
        # γ is a factor, so the bisection is geometric.
        middle = float(np.sqrt(low * high))
        square.value = middle * middle
        if _is_solved(cp, problem, deadline) and float(cast("np.ndarray", longest.value)) < _STRETCHED:
            best, high = {q: (w.value + w.value.T) / 2 for q, w in variables.items()}, middle
        else:
            low = middle
    if best is None:
        return None
    return {q: best[q] if q in live else np.zeros((0, 0)) for q in kernel}


def _is_solved(cp: ModuleType, problem: Any, deadline: Deadline) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an inaccurate solution still gives a valid norm
        try:
            problem.solve(solver="CLARABEL", time_limit=max(deadline.left(), 0.0))
        except cp.SolverError:
            return False
    return problem.status in ("optimal", "optimal_inaccurate")


_SAMPLES = 4_000
_FAN = 8  # directions per half-turn: with twice as many, sets are hardly smaller


def gradients(tables: Tables, target: CountedAutomaton, nodes: Nodes, tube: Tube) -> np.ndarray:
    """Return the gradients of the margins in slow coordinates, float64 (parts, D, H, b), padded with zeros.

    They are those of (expected − wrong logit) · σ, without LayerNorm's σ, at the mean states of random words.
    """
    _, H, b = tube.slow.shape
    weights = tables.weights
    readout = ScaledReadout(weights, tables.format())
    B, beta, W2, b2 = readout.B.mid, readout.beta.mid, readout.W2, readout.b2
    x = _typical(weights, target, nodes, tube.start)  # (F, n)
    n = x.shape[1]
    centred = x - x.mean(-1, keepdims=True)
    sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + NORM_EPS) if readout.has_norm else np.ones((len(x), 1))
    turn = centred / (n * sigma) if readout.has_norm else np.zeros_like(x)
    # Near a typical state the read-out is linear: relu is the identity on the units that are on.
    is_on = x @ B.T + beta * sigma > 0
    rows_of_part: list[list[np.ndarray]] = [[] for _ in tube.directions]
    for q in np.unique(nodes.state[target.answerable[nodes.state]]):
        at_state, y = nodes.state == q, target.expected[q]
        for j in np.flatnonzero(np.arange(len(b2)) != y):
            v = (W2[y] - W2[j]) * is_on[at_state]
            g = v @ B + (v @ beta + b2[y] - b2[j])[:, None] * turn[at_state]
            g = np.einsum("fhi,fhij->fhj", g.reshape(-1, H, b), tube.basis[at_state]) * tube.slow[at_state]
            rows_of_part[tube.part[q]].append(g.mean(0))
    result = np.zeros((len(rows_of_part), max(map(len, rows_of_part)), H, b))
    for part, rows in enumerate(rows_of_part):
        result[part, : len(rows)] = np.reshape(rows, (-1, H, b))
    return result.astype(np.float32).astype(np.float64)


def fans(tube: Tube) -> np.ndarray:
    """Return evenly spaced directions in the plane of each head's first two coordinates, float64 (parts, D, H, b).

    Both coordinates must be slow. A letter rotates and stretches such a plane, and intervals grow at every rotation.
    """
    parts, _, H, b = tube.directions.shape
    rows: list[np.ndarray] = []
    for h in np.flatnonzero((tube.slow.sum(-1) >= 2).any(0)):
        for angle in np.arange(_FAN) * np.pi / _FAN:
            row = np.zeros((parts, H, b))
            row[:, h, :2] = np.round([np.cos(angle), np.sin(angle)], 6)  # includes the coordinate axes
            rows.append(row)
    stacked = np.stack(rows, 1) if rows else np.zeros((parts, 0, H, b))
    return stacked.astype(np.float32).astype(np.float64)


def _typical(weights: dict[str, np.ndarray], target: CountedAutomaton, nodes: Nodes, length: int) -> np.ndarray:
    """Return the mean state (F, n) of random words in each node, zero for nodes that no word reaches."""
    A, v = weights["A"], weights["v"]
    rng, n_memories = np.random.default_rng(0), nodes.n_letters**nodes.memory
    state, letters = np.full(_SAMPLES, target.start), np.zeros(_SAMPLES, np.int64)
    x = np.broadcast_to(weights["x0"], (_SAMPLES, *weights["x0"].shape))
    for _ in range(length):
        a = rng.integers(nodes.n_letters, size=_SAMPLES)
        x = (A[a] @ x[..., None])[..., 0] + v[a]
        state, letters = target.delta[a, state], (letters * nodes.n_letters + a) % n_memories
    f, _ = nodes.numbers(state, letters)
    here = f >= 0
    total = np.zeros((len(nodes.state), x[0].size))
    np.add.at(total, f[here], x[here].reshape(-1, x[0].size))
    return total / np.maximum(np.bincount(f[here], minlength=len(total)), 1)[:, None]
