"""Balls about the states of short words, against what every scan computes."""

import itertools

import numpy as np
import torch
from hypothesis import given, settings

from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.rounding import Slack, StepError
from fsa2lrnn.checker.short_words import all_words, least_margin
from fsa2lrnn.lrnn.scans import scan_tokens
from fsa2lrnn.verification.plain import plain

from .conftest import walks

ROUNDED = 1e-15


@settings(max_examples=20)
@given(walks())
def test_every_scan_stays_in_the_balls_and_above_the_margin(walk):
    _, tables, goal, tube = walk
    named, kind, k, length = plain(tables).weights, plain(tables).format(), len(tables.alphabet), 4
    error = StepError(named["A"], named["v"], Slack(), kind)
    words = np.array(list(itertools.product(range(k), repeat=length)))
    states = goal.path(words)
    readout = ScaledReadout(named, kind)
    balls = all_words(named["A"], named["v"], named["x0"], goal.target, error, tube.memory)
    for method in ("sequential", "fused", "letters"):
        x = scan_tokens(torch.from_numpy(words), tables.A, tables.v, tables.x0, method)
        z = tables.logits(x).double().numpy()
        for at, found in zip(range(length), itertools.islice(balls, 1, None), strict=False):
            if len(found.state) < k ** (at + 1):
                continue  # words after which nothing counts were left out
            rows = np.repeat(np.arange(k ** (at + 1)), k ** (length - at - 1))
            assert (found.state[rows] == states[:, at]).all()
            off = np.abs(x[:, at].double().numpy() - found.x.mid[rows])
            assert (off <= found.x.rad[rows] + ROUNDED).all()
            wanted = goal.wanted[states[:, at]]
            kept = goal.counts[states[:, at]]
            if kept.any() and z.shape[-1] > 1 and (bound := least_margin(found, readout, goal.target)) > 0:
                own = z[np.arange(len(z)), at, wanted][kept]
                rest = z[:, at].copy()
                rest[np.arange(len(z)), wanted] = -np.inf
                assert (own - rest.max(-1)[kept] >= bound * (1 - 1e-6)).all()
        balls = all_words(named["A"], named["v"], named["x0"], goal.target, error, tube.memory)
