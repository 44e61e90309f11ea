"""Bounds on the margins of a model of several layers, on boxes of joint states that are carried on letter by letter.

The nodes of a *partition*, an automaton that refines the specification, part the words. For each length, the states of
all layers after the words of one node are enclosed in a box. A letter maps it to zonotopes (`fsa2lrnn.nn.zonotopes`),
layer by layer: what is unknown of the state below enters the gates above together with what they multiply. The boxes
about the images that meet at a node are those of the next length (docs/theory.md, T60).

`certify` searches for a partition, and `check` replays the bounds; both compute them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.config import adds
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layer_checks import user_layers
from fsa2lrnn.nn.layers.block import AffineLayer, BlockLayer
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, largest_moment
from fsa2lrnn.nn.zonotopes import Zonotopes
from fsa2lrnn.verification.certificate import CertificateRefused
from fsa2lrnn.verification.specification import Specification

MOST_NODES = 1 << 14
MOST_LENGTHS = 1 << 14
_AT_ONCE = 1 << 22  # coefficients of one gate's output that are held at a time
_MOST_COEFFICIENTS = 1 << 26  # of one gate's output for one state
_MOST_NUMBERS = 1 << 24  # of the states at all nodes
_WIDEST = 1 << 12  # terms of a sum, up to which coefficients are summed in float64 without further bounds
_CALLS = 1.5e7  # operations that the calls of one length cost however small the arrays
_NONE = -1  # instead of a letter, before the first


class JointSets:
    """The boxes of a model's joint states along a partition, int64 (|Σ|, n); node 0 is the start.

    Raises:
        CertificateRefused: for a partition that does not refine the specification, or too large a one.
        UnsupportedFormat: for a model whose rounding is not bounded in these terms.
    """

    def __init__(self, model: LRNN, goal: Specification, partition: np.ndarray) -> None:
        check_bounded(model)
        self._model, self._goal, self._kind = model, goal, FloatFormat.of(model.dtype)
        state, last = refined(partition, goal, model.config.token_shift)
        node, letter = np.nonzero((state >= 0)[:, None] & goal.live[:, state].T)
        self._node, self._letter, self._last = node, letter, last
        self._to, self._state = partition[letter, node], state
        self._n_nodes = partition.shape[1]
        start = [layer.initial_state(1)[0] for layer in model.recurrences]
        self._start = torch.cat([x.detach().cpu().double().flatten() for x in start])
        self._sizes = [x.numel() for x in start]
        weights = [part for part in model.parameters() if part.ndim > 1]
        coefficients = max(len(part) for part in weights) * len(self._start)
        is_narrow = coefficients <= _MOST_COEFFICIENTS and max(part.shape[1] for part in weights) <= _WIDEST
        if not is_narrow or self._n_nodes * len(self._start) > _MOST_NUMBERS:
            raise UnsupportedFormat(
                f"gates of {max(max(part.shape) for part in weights):,} rows or columns and states of "
                f"{len(self._start):,} numbers are too wide for sets of joint states at {self._n_nodes:,} nodes"
            )
        self._rows = max(1, _AT_ONCE // coefficients)
        numbers = sum(part.numel() for part in weights)
        self.work = _CALLS + 10.0 * len(node) * numbers * len(self._start)  # operations of one length, of about 1 ns

    @torch.no_grad()
    def margins(self) -> Iterator[float]:
        """Yield lower bounds of the margin at lengths 1, 2, …, up to one that is not positive; ∞ where nothing counts.

        The iterator also ends after words of which no continuation counts. It raises `UnsupportedFormat` if an
        operation on the first letter has no bound, naming the operation, the size of its operands, and the ranges.
        """
        n, W = self._n_nodes, len(self._start)
        # An empty box has low = ∞ and high = −∞, the neutral elements of the minimum and the maximum.
        low = torch.full((n, W), torch.inf, dtype=torch.float64)
        high = -low
        low[0] = high[0] = self._start
        is_first = True
        while True:
            alive = low[:, 0] < torch.inf
            edges = np.flatnonzero(alive.numpy()[self._node])
            if not len(edges):
                return
            centre = torch.where(alive[:, None], (low + high) / 2, 0)
            # Widened by more than the rounding of float64, so that the box contains [low, high].
            radius = torch.maximum(high - centre, centre - low).clamp(min=0) * (1 + 2.0**-30)
            radius = torch.where((high > low) & alive[:, None], radius + 2.0**-50 * centre.abs(), 0)
            low, high, least = torch.full_like(low, torch.inf), torch.full_like(low, -torch.inf), float("inf")
            for begin in range(0, len(edges), self._rows):
                some = edges[begin : begin + self._rows]
                margin, reached = self._step(some, centre, radius, is_first)
                least = min(least, margin)
                to = torch.from_numpy(self._to[some])[:, None].expand(-1, W)
                down, up = reached.mid - reached.off, reached.mid + reached.off
                # A point stays a point; other boxes are widened by the rounding of the two subtractions.
                wide = 2.0**-50 * reached.mid.abs() * (reached.off > 0)
                low.scatter_reduce_(0, to, down - wide, "amin")
                high.scatter_reduce_(0, to, up + wide, "amax")
            if not (low.isfinite() | (low == torch.inf) & (high == -torch.inf)).all():
                least = -float("inf")
            yield least
            if not least > 0:
                return
            is_first = False

    def _step(self, edges: np.ndarray, centre: Tensor, radius: Tensor, is_first: bool) -> tuple[float, Zonotopes]:
        """Return a bound of the margin and the states after the letters of some edges.

        Before the first letter the states are points: an infinite bound then means that an operation leaves its range.
        """
        model, node = self._model, self._node[edges]
        x = Zonotopes.boxes(centre[node], radius[node], self._kind)
        embedding = model.embedding.get_parameter("weight").detach().cpu().double()
        last = self._last[node]
        before = torch.where(torch.from_numpy(last)[:, None] == _NONE, 0, embedding[np.maximum(last, 0)])
        stream, stream_before = (
            x.like(RoundedNumbers.exact(part, self._kind)) for part in (embedding[self._letter[edges]], before)
        )
        after, offset = [], 0
        for i, (layer, size) in enumerate(zip(model.recurrences, self._sizes, strict=True)):
            own, read = x[:, offset : offset + size], [stream]
            u = self._normed(i, stream)
            if model.config.token_shift:
                u = Zonotopes.joined([u, self._normed(i, stream_before)])
                read.append(stream_before)
            A, v = layer.rounded_tables(u)
            shape = (layer.n_heads, size // layer.n_heads)
            state = own.unflatten(shape)[..., None]
            # A x + v is one product of [A, v] with [x, 1], so that both share the same ε (T60).
            one = x.like(RoundedNumbers.exact(torch.ones_like(state.mid[..., :1, :]), self._kind))
            table = Zonotopes.joined([x.like(A), x.like(v)[..., None]])
            moved = (table @ Zonotopes.joined([state, one], -2))[..., 0].flatten()
            if is_first:
                names = f"LayerNorm before layers.{i}", f"the tables of layers.{i}", f"A x + v of layers.{i}"
                self._require_bounds(zip(names, (read, [u], [table, own]), (u, table, moved), strict=True))
            after.append(moved)
            stream = self._connected(i, stream, moved)
            if model.config.token_shift:
                stream_before = self._connected(i, stream_before, own)
            offset += size
        return self._margin(edges, stream, is_first), Zonotopes.joined(after)

    def _normed(self, i: int, stream: Zonotopes) -> Zonotopes:
        norms = self._model.norms
        at = i - len(self._model.layers) - 1 + len(norms)
        return stream.layer_norm(cast("nn.LayerNorm", norms[at])) if at >= 0 else stream

    def _connected(self, i: int, stream: Zonotopes, x: Zonotopes) -> Zonotopes:
        """Return the stream after layer i, as `nn.config.connect` does."""
        config = self._model.config
        is_last = i + 1 == len(self._model.layers)
        if config.connection == "concat":
            whole = Zonotopes.joined([stream, x])
            return whole[..., config.embedding_dim :] if is_last else whole
        return stream + x if adds(config.connection, is_last) else x

    def _require_bounds(self, steps: Iterable[tuple[str, Sequence[RoundedNumbers], RoundedNumbers]]) -> None:
        """Raise `UnsupportedFormat` for the first of the named steps, from operands to a result, that has no bound."""
        for name, operands, result in steps:
            if not result.off.isfinite().all():
                size = max(float(each.size.max()) for each in operands)
                raise UnsupportedFormat(
                    f"{name}: rounding is not bounded for numbers up to {size:.3g} in {self._model.dtype}; the bounds "
                    f"hold for results, and sums of the terms' sizes, up to {self._kind.largest / 4:.3g}, for n "
                    f"numbers up to M that LayerNorm reads if 4 n M² ≤ {largest_moment(self._kind):.3g}, and for "
                    "divisors that cannot be 0; scale the weights"
                )

    def _margin(self, edges: np.ndarray, stream: Zonotopes, is_first: bool) -> float:
        """Return a lower bound of the expected logit less the others where outputs count."""
        state = self._state[self._to[edges]]
        counts = np.flatnonzero(self._goal.counts[state])
        if not len(counts):
            return float("inf")
        numbers = self._goal.wanted[state[counts]]
        if (numbers >= self._goal.known).any():  # the model lacks an output that counts
            return -float("inf")
        read = self._normed(len(self._model.layers), stream)
        logits = stream.like(cast("Gate", self._model.readout).rounded(read))[counts]
        if is_first:
            names = "LayerNorm before the read-out", "the read-out"
            self._require_bounds(zip(names, ([stream], [read]), (read[counts], logits), strict=True))
        expected = logits[np.arange(len(counts)), numbers][:, None]
        # T60: the shared ε cancel in a difference of logits, but the own radii of both add up.
        spread = (expected.shared - logits.shared).abs().sum(-1) + expected.own + logits.own
        slip = 2.0**-40 * (expected.size + logits.size)
        least = expected.mid - logits.mid - spread * (1 + 2.0**-30) - slip
        least[torch.arange(len(counts)), numbers] = torch.inf
        least[~expected.size[:, 0].isfinite()] = -torch.inf  # a single logit has no rival but NaN
        return float(least.nan_to_num(nan=-torch.inf, posinf=torch.inf).min())


def refined(partition: np.ndarray, goal: Specification, needs_letter: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the machine state of each node, −1 for those never reached, and the letter that leads to it: int64 (n,).

    Raises `CertificateRefused` unless every node stands for one state and, if asked, for one last letter.
    """
    if partition.dtype != np.int64 or partition.ndim != 2 or len(partition) != len(goal.delta):
        raise CertificateRefused(f"a partition of shape {partition.shape}: one row is needed for each letter")
    n = partition.shape[1]
    if not 1 <= n <= MOST_NODES:
        raise CertificateRefused(f"a partition of {n:,} nodes: 1 to {MOST_NODES:,} are read")
    state, last = np.full(n, -1), np.full(n, _NONE)
    # A partition refines the specification if every node stands for one state; it is walked from the start.
    state[0], pending = goal.start, [0]
    while pending:
        node = pending.pop()
        for letter in np.flatnonzero(goal.live[:, state[node]]).tolist():
            to, after = int(partition[letter, node]), int(goal.delta[letter, state[node]])
            if not 0 <= to < n:
                raise CertificateRefused(f"letter {letter} leads from node {node} to {to}: there are {n} nodes")
            if state[to] < 0:
                state[to], last[to] = after, letter
                pending.append(to)
            elif state[to] != after or (needs_letter and last[to] != letter):
                raise CertificateRefused(f"node {to} stands for several states of the machine, or last letters")
    return state, last


def check_bounded(model: LRNN) -> None:
    """Raise `UnsupportedFormat` for a model that is not a stack of layers x_k = A x_{k−1} + v with bounded rounding."""
    if not model.has_plain_ends:
        raise UnsupportedFormat("the embedding or the read-out is a layer's own: its rounding is not bounded")
    if layers := user_layers(model):
        raise UnsupportedFormat(f"{', '.join(layers)}: bounds of user-defined layers are tested for exact inputs only")
    for i, layer in enumerate(model.recurrences):
        kind = type(layer)
        is_plain = isinstance(layer, AffineLayer) and kind.emit is AffineLayer.emit
        if not is_plain or kind.forward not in (AffineLayer.forward, BlockLayer.forward):
            raise UnsupportedFormat(f"layers.{i}: {kind.__name__} is more than states A x + v: they are not bounded")
