"""Languages that count letters modulo a number: the sum of the letters' weights modulo p decides.

All weights are tried on some words, as long as their number is small; else only the weights 0 and 1.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine

_MODULI = (2, 3, 4, 5, 6, 7)
_MOST = 1 << 18  # weightings
_FEW, _CHUNK = 96, 4096  # words that all weightings are tried on, weightings at a time


def counter(tokens: np.ndarray, lengths: np.ndarray, labels: np.ndarray, n_letters: int) -> MooreMachine | None:
    """Return the acceptor with the least modulus that is right on all words, None if there is none."""
    in_word = np.arange(tokens.shape[1]) < lengths[:, None]
    counts = np.stack([((tokens == a) & in_word).sum(1) for a in range(n_letters)], 1)
    for p in _MODULI:
        for weights in _weightings(n_letters, p):
            for w in weights[_is_pure(weights @ counts[:_FEW].T % p, labels[:_FEW], p)]:
                residues = counts @ w % p
                of = np.stack([np.bincount(residues[labels == y], minlength=p) for y in (0, 1)])
                if not (of.min(0) > 0).any():
                    delta = (np.arange(p) + w[:, None]) % p
                    outputs = (of[1] > of[0]).astype(int).tolist()
                    return MooreMachine(delta=delta, outputs=outputs, alphabet=range(n_letters)).minimise()
    return None


def _weightings(n_letters: int, p: int):
    """Yield chunks of weightings of the letters, int64 (chunk, |Σ|)."""
    values = p if p**n_letters <= _MOST else 2
    if values**n_letters > _MOST:
        return
    powers = values ** np.arange(n_letters)
    for first in range(0, values**n_letters, _CHUNK):
        yield np.arange(first, min(first + _CHUNK, values**n_letters))[:, None] // powers % values


def _is_pure(residues: np.ndarray, labels: np.ndarray, p: int) -> np.ndarray:
    """Return for which weightings no residue has words of both labels: int64 (W, n) -> bool (W,)."""
    pure = np.ones(len(residues), bool)
    for r in range(p):
        at = residues == r
        pure &= ~(at[:, labels == 1].any(1) & at[:, labels == 0].any(1))
    return pure
