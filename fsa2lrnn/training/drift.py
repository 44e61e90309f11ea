"""A penalty on the drift of a layer's states: how far one letter moves them from an exact image of the automaton.

Let c(q) be the mean state over all prefixes in a batch that lead the automaton to q. An exact image has A(a) c(q) +
v(a) = c(δ(q, a)). `certify` bounds how such residuals add up, so that smaller ones give longer certified lengths.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.symbols import align

_FIRST = 3  # states after fewer letters do not count, since they depend on the first state
_SMALL = 1e-6  # added to the spread, which is 0 if all means are equal


class DriftPenalty:
    """The penalty of a model of one layer over letters, for the minimal automaton of a machine.

    Raises `UnsupportedFormat` for a model without tables (`fsa2lrnn.nn.switched.switched`).
    """

    def __init__(self, model: LRNN, machine: MooreMachine) -> None:
        if not model.is_switched:
            raise UnsupportedFormat(
                "drift_penalty is for one layer over letters whose states alone are read out: set layers = 1, "
                'connection = "chain", token_shift = False and a layer with tables, or drift_penalty = 0'
            )
        minimal = minimise(machine)
        self._model, self._start = model, minimal.start
        self._delta = torch.from_numpy(minimal.delta[align(model.alphabet, minimal.alphabet)]).long()

    def __call__(self, tokens: Tensor) -> Tensor:
        """Return the penalty at the mean states of words: int64 (B, T) -> ().

        It is the mean of ‖A(a) c(q) + v(a) − c(δ(q, a))‖² divided by the mean of ‖c(q) − mean c‖², plus the mean of
        max(0, ‖A(a)‖₂ − 1)² over the blocks. States that no word reaches do not count.
        """
        layer, delta = self._model.recurrences[0], self._delta.to(tokens.device)
        A, v = layer.tables(self._model.first_inputs())
        x = layer.initial_state(len(tokens)).to(A)
        q = torch.full((len(tokens),), self._start, device=tokens.device)
        n = delta.shape[1]
        sums, counts = x.new_zeros(n, *x.shape[1:]), x.new_zeros(n)
        for k, letters in enumerate(tokens.T):
            x, q = torch.einsum("nhij,nhj->nhi", A[letters], x) + v[letters], delta[letters, q]
            if k >= _FIRST:
                member = one_hot(q, n).to(x.dtype)
                sums, counts = sums + torch.einsum("nq,nhi->qhi", member, x), counts + member.sum(0)
        reached = counts > 0
        c = sums / counts.clamp(min=1)[:, None, None]
        residual = torch.einsum("ahij,qhj->aqhi", A, c) + v[:, None] - c[delta]
        spread = (c[reached] - c[reached].mean(0)).square().sum((1, 2)).mean() + _SMALL
        drift = residual[reached[None] & reached[delta]].square().sum((1, 2)).mean() / spread
        return drift + (torch.linalg.matrix_norm(A, 2) - 1).clamp(min=0).square().mean()
