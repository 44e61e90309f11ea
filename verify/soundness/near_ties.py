"""Models whose choices are near ties: equal logits, exact zeros beside sums near zero, signed zeros, small margins.

Each kind of layer with a proof is drawn with each gate and dtype, with one layer or two. The machine of a model is read
off its own outputs: all states if they close, else all short words. Where a verdict says that the model computes this
machine, the model is run in every way that the verdict covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.errors import BudgetExceeded, NotExact, UnsupportedFormat
from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.gate import Gate, TableGate
from fsa2lrnn.nn.layers import Shape, layer_named
from fsa2lrnn.verdicts import EVERY, Coverage, Proved
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.extraction import extract, output_numbers
from verify.soundness import run as runs

# A layer, the column rule, and options of the layer. These have finitely many states:
FINITE: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("hard_slice", "none", {}), ("hard_deltaproduct", "none", {"writes": True}),
    ("hard_deltaproduct", "none", {"writes": False}), ("hard_pd_ssm", "none", {"signs": True}),
    ("hard_pd_ssm", "none", {}), ("hard_channels", "none", {}), ("hard_reflections", "none", {"factors": 2}),
    ("block", "onehot", {}),
)  # fmt: skip
_STATE: dict[str, object] = {"reads": "state"}
_KEYS = _STATE | {"conv": 0}
OTHERS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("block", "none", {}), ("block", "clip", {}), ("block", "paper", {}), ("householder", "none", {"factors": 2}),
    ("gated_deltanet", "none", _KEYS), ("deltaproduct", "none", _KEYS), ("gated_deltaproduct", "none", _KEYS),
    ("kda", "none", _KEYS), ("gdn2", "none", _KEYS), ("mamba2", "none", _KEYS), ("mamba3", "none", _STATE),
    ("rwkv7", "none", _STATE | {"rank": 2}), ("pd_ssm", "none", _STATE), ("slice", "none", {}), ("mingru", "none", {}),
)  # fmt: skip
KINDS = (
    *FINITE,
    *FINITE,
    *FINITE[:3],
    *FINITE[:3],
    *FINITE[:3],
    *OTHERS,
)  # fmt: skip - most often what compares all pairs of numbers
DTYPES = (*[torch.float32] * 5, torch.float64, torch.float16, torch.bfloat16)
WAYS = ((1, 1), (2, 1), (3, 2), (64, 2))  # words at once, and threads
_NOISE = 24  # hidden units that cancel
_STATES, _DEPTH, _LONGEST = 300, 4, 12
_SEARCHES = (("auto", 1e5), ("joint sets", 3e7))  # methods of `certify`, and their work


def drawn(seed: int) -> LRNN:
    """Return the model of a seed."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    name, rule, options = KINDS[seed % len(KINDS)]
    letters, outputs = (int(rng.choice([1, 2, 3], p=[0.1, 0.4, 0.5])) for _ in range(2))
    shape, kind = Shape(int(rng.integers(1, 3)), int(rng.integers(2, 4))), layer_named(name).Config
    if name in ("block", "hard_channels") or name.startswith("hard_"):
        options = options | {"gate": str(rng.choice(["relu", "relu", "relu", "table"]))}
    if "hidden" in kind.options():
        options = options | {"hidden": 3 * shape.width + _NOISE}
    layers = (kind.of_shape(shape, options),) * (1 + int(rng.random() < 0.2))
    config = LRNNConfig(
        tuple("abc"[:letters]), tuple(range(outputs)), layers, letters, 96, rule,
        layer_norm="readout" if rng.random() < 0.15 else False, token_shift=bool(rng.random() < 0.1),
    )  # fmt: skip
    model, dtype = LRNN(config).double(), DTYPES[int(rng.integers(len(DTYPES)))]
    with torch.no_grad():
        model.embedding.get_parameter("weight").copy_(torch.eye(letters))
        for gate in [module for module in model.modules() if isinstance(module, Gate)]:
            if gate is model.readout or seed % len(KINDS) < len(KINDS) - len(OTHERS):
                _write(gate, rng, dtype, 0.6 if gate is model.readout else 0.2)
    return model.to(dtype)


def _write(gate: Gate, rng: np.random.Generator, kind: torch.dtype, plain: float) -> None:
    """Write outputs for unit vectors that are equal or near each other: some are sums that cancel, some exact zeros.

    With the probability `plain` all are looked up.
    """
    (m, d), n = gate.weights.W1.shape, len(gate.weights.W2)
    is_table = isinstance(gate, TableGate) or rng.random() < plain
    if m < (d if is_table else 2 * d):
        return
    table = rng.permuted(np.tile(np.arange(n), (d, 1)), axis=1) - float(rng.choice([n - 1, n // 2]))
    if rng.random() < 0.3:  # many ties
        table = rng.integers(-2, 2, (d, n)).astype(np.float64)
    size = 10 ** rng.uniform(-1, 3)  # of the terms that cancel
    apart = FloatFormat.of(kind).u * size * 10 ** rng.uniform(-4, 1.5, (d, n))
    table += apart * rng.choice([-1, 0, 1]) * rng.choice([0, 1, 1], (d, n))
    first, second = np.eye(m, d), np.zeros((n, m))
    if is_table:
        second[:, :d] = table.T
    else:
        zeros = rng.random(n) < 0.4
        first[d : 2 * d], first[2 * d :] = np.eye(d), rng.normal(size=(m - 2 * d, d))
        second[:, 2 * d :] = size * rng.normal(size=(n, m - 2 * d))
        first, second, table = (
            x.round() if rng.random() < 0.1 else x for x in (_rounded(first, kind), _rounded(second, kind), table)
        )
        for copy in (0, d):  # the second holds what rounding the first leaves over
            second[:, copy : copy + d] = _rounded(table.T - second @ np.maximum(first, 0), kind)
        second[zeros] = 0
    second = np.where(second == 0, np.copysign(0, rng.normal(size=second.shape)), second)
    values = {"W2": second} if isinstance(gate, TableGate) else {"W1": first, "W2": second}
    gate.set({name: torch.tensor(x, dtype=gate.weights.W2.dtype) for name, x in values.items()})


def _rounded(x: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    return torch.tensor(x).to(dtype).double().numpy()


@torch.no_grad()
def machine_of(model: LRNN) -> MooreMachine:
    """Return the machine that a model computes, or on words of up to four letters; raise `NotExact` for NaN logits."""
    try:
        return extract(model, _STATES)
    except BudgetExceeded:
        pass
    n = len(model.alphabet)
    first = np.cumsum([0, *(n**k for k in range(_DEPTH + 1))])  # the state of the first word of each length
    words = np.arange(n**_DEPTH)[:, None] // n ** np.arange(_DEPTH - 1, -1, -1)
    read = output_numbers(model(torch.tensor(words % n), "sequential", empty_word=True))
    if (read < 0).any():
        raise NotExact("a logit is NaN")
    outputs = [int(read[i * n ** (_DEPTH - k), k]) for k in range(_DEPTH + 1) for i in range(n**k)]
    delta = np.full((n, first[-1] + 1), first[-1])
    for k in range(_DEPTH):
        for a in range(n):
            delta[a, first[k] : first[k + 1]] = first[k + 1] + n * np.arange(n**k) + a
    return minimise(MooreMachine(delta, [*outputs, 0], 0, model.alphabet))


@torch.no_grad()
def examine(seed: int, draw: Callable[[int], LRNN] = drawn, what: str = "near ties") -> Counter[str]:
    """Verify and run one model; return counts, of which those of "wrong …" must be zero."""
    counts = Counter[str](models=1)
    model = draw(seed)
    kind = f"{KINDS[seed % len(KINDS)][0]}, {str(model.dtype).removeprefix('torch.')}"
    try:
        machine = machine_of(model)
        verdict = prove_equivalent(model, machine, _STATES)
    except (NotExact, UnsupportedFormat) as error:
        return counts + Counter({f"refused: {type(error).__name__}": 1})
    claims = list[tuple[int, Coverage]]()
    if isinstance(verdict, Proved):
        counts[f"proved for calls: {verdict.covers.shapes}"] += 1
        counts[f"proved, {kind}"] += 1
        claims.append((_LONGEST, verdict.covers))
    if not isinstance(verdict, Proved) or verdict.covers.shapes != EVERY:
        claims += _certified(model, machine, seed, kind, counts)
    lengths = dict[tuple[str, int, int], int]()
    for length, covers in claims:
        for way in _ways(covers, seed):
            lengths[way] = max(length, lengths.get(way, 0))
    for length in set(lengths.values()):
        ways = iter([way for way, longest in lengths.items() if longest == length])
        runs.run_words(model, machine, length, ways, what, counts)
    return counts


def _certified(
    model: LRNN, machine: MooreMachine, seed: int, kind: str, counts: Counter[str]
) -> Iterator[tuple[int, Coverage]]:
    """Yield the length and the coverage of a certificate, if one is found."""
    is_finite = seed % len(KINDS) < len(KINDS) - len(OTHERS)  # tables of these take long to search
    method, work = _SEARCHES[is_finite or seed // len(KINDS) % 2]
    try:
        certificate = certify(model, machine, work=work, method=method)
        accepted = check(certificate, model)
    except UnsupportedFormat:
        counts["refused by certify"] += 1
        return
    if certificate.horizon == 0:
        counts["certified for no letter"] += 1
        return
    counts[f"certified by {certificate.method}"] += 1
    counts[f"certified, {kind}"] += 1
    yield _LONGEST if accepted.horizon is None else min(accepted.horizon, _LONGEST), accepted.covers


def _ways(covers: Coverage, seed: int) -> Iterator[tuple[str, int, int]]:
    if covers.shapes != EVERY:
        yield runs.SINGLY, 1, covers.threads or 1
        return
    for batch, threads in (WAYS[0], WAYS[1 + seed % 3]):
        for scan in ("auto", *covers.scans, runs.SINGLY, runs.IN_PIECES, runs.STRIDED):
            yield scan, batch, threads
