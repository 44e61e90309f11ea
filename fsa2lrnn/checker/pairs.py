"""Check proofs for words of any length: pairs of model and machine states, closed under letters, if no step rounds.

A step rounds nothing if all products and sums of a row are multiples of a power of two, and none exceeds what the
mantissa can hold above it: then every order of summation gives the exact result (T26 of docs/theory.md).
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .claims import CountedAutomaton, Tables
from .errors import demand, require
from .files import SetCertificate, as_list, automaton, fields, opened, parsed, symbol
from .margins import ScaledReadout
from .proof import MOST_NUMBERS, NUMBERS_PER_WORD, SCANS, WORK
from .replay import ShortWords, least_margin
from .rounding import Ball, FloatFormat

_MOST_BYTES = 1 << 25
_COVERED = "the order of sums counts, this checker covers exact steps only: use the certificate of `fsa2lrnn certify`"


class Pairs(NamedTuple):
    """All N pairs of states that words reach, first that of the empty word, and the runs that the proof claims.

    `states` is uint8 (N, D), the bytes of (H, b) numbers per pair. The other arrays are int64: (N,), (N, |Σ|) and (N,).
    `successors` is −1 where no position that follows counts, `outputs` is −1 where no output that counts is read.
    """

    states: np.ndarray
    machine_states: np.ndarray
    successors: np.ndarray
    outputs: np.ndarray
    scans: tuple[str, ...]
    environment: tuple[str, ...]
    empty_word: bool


def read_pairs(path: Path) -> SetCertificate:
    """Return the certificate in a safetensors file. Raises `UnsupportedInput` for any other file."""
    size = path.stat().st_size if path.is_file() else 0
    require(size <= _MOST_BYTES, f"{path} has {size:,} bytes: certificates of up to {_MOST_BYTES:,} are read")
    arrays, metadata = opened(path, {"U8", "I64"})
    value = parsed(metadata.get("certificate", "null"), str(path))
    names = ("format", "version", "dtype", "sha256", "scans", "environment", "empty_word", "machine", "ignore")
    form, version, dtype, sha256, scans, environment, empty, machine, ignore = fields(value, str(path), *names)
    is_ours = form == "fsa2lrnn-equivalence-certificate" and version == 1 and type(version) is int
    require(is_ours, f"{path}: {form!r:.80}, version {version!r:.80}, cannot be read here")
    is_text = all(type(text) is str for text in (dtype, sha256, *as_list(scans), *as_list(environment)))
    require(is_text and type(empty) is bool, f"{path}: dtype, sha256, scans or environment is not text")
    names = ("states", "machine_states", "successors", "outputs")
    states, q, successors, outputs = parts = fields(arrays, str(path), *names)
    kinds = [(x.dtype.name, x.ndim, x.shape[:1]) for x in parts]
    expected = [(name, axes, q.shape) for name, axes in (("uint8", 2), ("int64", 1), ("int64", 2), ("int64", 1))]
    require(kinds == expected, f"{path}: the arrays have types, axes and lengths {kinds}, not {expected}")
    pairs = Pairs(states, q, successors, outputs, tuple(scans), tuple(environment), empty)
    ignored = tuple(symbol(output) for output in as_list(ignore))
    return SetCertificate(pairs, dtype, 0.0, sha256, automaton(machine, "the certificate's machine"), ignored)


def check_pairs(claim: Pairs, tables: Tables, target: CountedAutomaton) -> None:
    """Replay the proof that the tables give the outputs of the target after every word.

    Raises:
        InvalidCertificate: naming the step that fails.
        UnsupportedInput: for tables that round, or that the bounds on rounding do not cover.
    """
    weights, kind, q, successors = tables.weights, tables.format(), claim.machine_states, claim.successors
    A, v, x0, (m, n), N = weights["A"], weights["v"], weights["x0"], weights["W1"].shape, len(q)
    are_covered = set(claim.scans) <= set(SCANS) and len(claim.scans) == len(set(claim.scans)) > 0
    demand(are_covered, f"scans {claim.scans!r:.80}: exact steps are shown for {', '.join(SCANS)}")
    require(not claim.environment, f"the proof is for the environment {claim.environment!r:.200}: {_COVERED}")
    # The memory and work of the replay, counted as in `proof.demands`.
    rivals, numbers = len(tables.outputs) - 1, NUMBERS_PER_WORD * n * N
    work = N * (len(A) * n * (32 + 4 * x0.shape[1]) + 256 * n + 32 * rivals * (m + n) + (rivals + 2) * m * n // 2)
    demand(numbers <= MOST_NUMBERS, f"the check holds {numbers:,} numbers at a time, its bound is {MOST_NUMBERS:,}")
    demand(work <= WORK, f"the check takes {work:,} operations, its bound is {WORK:,}")
    of_dtype = np.dtype(tables.dtype).newbyteorder("<")
    shape = (N, n * of_dtype.itemsize)
    demand(N > 0 and claim.states.shape == shape, f"states of shape {claim.states.shape}, not {shape}")
    x = np.ascontiguousarray(claim.states).view(of_dtype).reshape(N, *x0.shape).astype(np.float64)
    demand(bool(((q >= 0) & (q < len(target.counts))).all()), "machine_states has numbers of no state")
    # T8: the pairs hold that of the empty word and are closed under letters, so they hold the pair after every word.
    demand(q[0] == target.start and bool((x[0] == x0).all()), "the first pair is not that of the empty word")
    # Only letters after which some output can still count need a successor.
    live = target.coaccessible[target.delta[:, q]].T  # (N, |Σ|)
    is_complete = successors.shape == live.shape and bool(((successors >= 0) == live).all())
    demand(is_complete and int(successors.max(initial=0)) < N, "successors lacks a letter, or has numbers of no pair")
    require(steps_exactly(A, v, x, kind), f"a step of these tables may round: {_COVERED}")
    for a in range(len(A)):
        some, to = live[:, a], successors[live[:, a], a]
        after = (A[a] @ x[some][..., None])[..., 0] + v[a]
        is_next = bool((after == x[to]).all() and (q[to] == target.delta[a, q[some]]).all())
        demand(is_next, f"letter {a} leads from some pair to another than the certificate names")
    # The output of the first pair is compared only if a letter leads back to it or the empty word counts.
    is_read = np.isin(np.arange(N), successors)
    is_read[0] |= claim.empty_word
    expected = np.where(is_read & target.counts[q], target.expected[q], -1)
    demand(bool((claim.outputs == expected).all()), "an output is not the machine's")
    # The states are exact, so their balls have radius 0 and the margins account for the read-out's rounding alone
    # (T28).
    words = ShortWords(q[is_read], np.zeros(int(is_read.sum()), np.int64), Ball.exact(x[is_read]))
    with np.errstate(all="ignore"):
        margin = least_margin(words, ScaledReadout(weights, kind), target)
    demand(margin > 0, f"an output may be wrong: the margin is bounded by {margin:.3g} only")


def steps_exactly(A: np.ndarray, v: np.ndarray, x: np.ndarray, kind: FloatFormat) -> bool:
    """Return whether A_a x + v_a is exact for all letters and states x (N, H, b), in any order of summation (T26)."""
    if not all(np.isfinite(part).all() for part in (A, v, x)):
        return False
    # Per letter and row: all terms are multiples of 2^unit, and no sum of absolute values exceeds `most`.
    unit = np.minimum((_lowest_bit(A) + _lowest_bit(x).min(0)[:, None]).min(-1), _lowest_bit(v))  # (|Σ|, H, b)
    most = np.stack([(np.abs(A_a) @ np.abs(x)[..., None])[..., 0].max(0) for A_a in A]) + np.abs(v)
    # T26: sums up to 2^unit / u are represented; the multiples of 2^unit must also be normal numbers.
    exponent = np.log2(np.where(most > 0, most, 1)) + 1e-9
    return bool(((most == 0) | ((exponent <= unit - np.log2(kind.u)) & (unit >= np.log2(kind.tiny)))).all())


def _lowest_bit(x: np.ndarray) -> np.ndarray:
    """Return the exponent of the largest power of two that divides each entry; a large number for zeros."""
    mantissa, exponent = np.frexp(x)
    # frexp's mantissa, in [1/2, 1), becomes an integer of 53 bits; `whole & -whole` is its lowest bit.
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = np.log2(np.where(x == 0, 1, whole & -whole)).astype(np.int64)
    return np.where(x == 0, 1 << 20, exponent - 53 + last)
