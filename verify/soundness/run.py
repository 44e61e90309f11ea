"""Many models, judged and run: does a word within what a verdict covers ever come out wrong?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge.certificate import Certificate
from fsa2lrnn.judge.certify import certify
from fsa2lrnn.judge.check import SCANS
from fsa2lrnn.judge.equivalence import prove_equivalent
from fsa2lrnn.judge.goal import goal_for
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verdicts import EVERY, Proved
from verify.soundness.models import RULES, Drawn, model

BATCHES = (1, 3, 64)
THREADS = (1, 2)
_WORDS, _LONGEST = 64, 48
_STATES = 400  # joint states of a proof
_WORK = 1e6  # of a search for sets
_PERMUTING = ("released", "householder", "unit keys")


def drawn(seed: int) -> tuple[Drawn, MooreMachine]:
    """The model of a seed: what it is drawn by, and the machine that it computes for a while."""
    rng = np.random.default_rng(seed)
    rule = RULES[seed % len(RULES)]
    machines = [zoo.parity(), zoo.sum_mod(3), zoo.sum_mod(4)]
    if rule not in _PERMUTING:
        machines += [zoo.tomita(3), zoo.tomita(5)]
    choice = Drawn(
        rule,
        weight=float(10 ** rng.uniform(0, 6)),
        cancelling=bool(rng.random() < 0.75),
        noise=float(rng.choice([0.0, 1e-4, 1e-2])),
        layer_norm=bool(rng.random() < 0.5),
        double=bool(rng.random() < 0.25),
        seed=seed,
    )
    return choice, machines[int(rng.integers(len(machines)))]


def examine(seed: int) -> Counter[str]:
    """What was judged of one model, and what was run: counts, those of "wrong …" to be zero."""
    counts: Counter[str] = Counter()
    choice, machine = drawn(seed)
    made = model(choice, machine)
    counts["models"] += 1
    counts[f"models, {choice.rule}, {'cancelling' if choice.cancelling else 'look-ups'}"] += 1
    try:
        certificate = certify(made, machine, 1, work=_WORK)
    except UnsupportedFormat:
        counts["refused, as nothing is bounded"] += 1
    else:
        _look_at(certificate, made, machine, counts)
    verdict = prove_equivalent(made, machine, _STATES, empty_word=False)
    if isinstance(verdict, Proved):
        counts["proved"] += 1
        counts[f"proved for calls: {verdict.covers.shapes}"] += 1
        alone = [("letters one by one", 1, verdict.covers.threads or 1)]
        ways = _ways(verdict.scans) if verdict.covers.shapes == EVERY else iter(alone)
        _run(made, machine, _LONGEST, ways, "proved", counts)
    return counts


def _look_at(certificate: Certificate, made: LRNN, machine: MooreMachine, counts: Counter[str]) -> None:
    horizon = _LONGEST if certificate.horizon is None else min(certificate.horizon, _LONGEST)
    if horizon:
        counts["certified beyond 0"] += 1
        counts["certified for ever"] += certificate.horizon is None
        _run(made, machine, horizon, _ways(SCANS), "certified", counts)
    of_tables = certify(switched(made), machine, 1, work=_WORK).horizon  # looked up, they may be right for longer
    longer = _LONGEST if of_tables is None else min(of_tables, _LONGEST)
    if longer > horizon:
        seen: Counter[str] = Counter()
        _run(made, machine, longer, _ways(SCANS), "tables", seen)
        counts["models wrong within the horizon of their tables, not of their gates"] += seen["wrong tables"] > 0


def _ways(scans: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    for threads in THREADS:
        for batch in BATCHES:
            for scan in ("auto", *scans, "letters one by one"):
                yield scan, batch, threads


def _run(
    made: LRNN,
    machine: MooreMachine,
    length: int,
    ways: Iterator[tuple[str, int, int]],
    what: str,
    counts: Counter[str],
) -> None:
    goal = goal_for(made, machine)
    tokens = np.random.default_rng(length).integers(0, len(made.alphabet), (_WORDS, length))
    tokens = np.concatenate([tokens, np.resize(np.arange(len(made.alphabet)), (8, 1)).repeat(length, 1)])
    wanted = torch.tensor(goal.wanted[goal.path(tokens)])
    words = torch.tensor(tokens)
    for scan, batch, threads in ways:
        some = words[: 4 * batch]
        with _threads(threads), torch.no_grad():
            found = torch.cat([_outputs(made, part, scan) for part in torch.split(some, batch)])
        counts[f"positions {what}"] += found.numel()
        counts[f"wrong {what}"] += int((found != wanted[: len(found)]).sum())
        counts[f"runs {what}, {scan}"] += len(found)


def _outputs(made: LRNN, tokens: Tensor, scan: str) -> Tensor:
    if scan != "letters one by one":
        logits = made(tokens, scan)
    else:
        state = made.initial_state(len(tokens))
        parts: list[Tensor] = []
        for column in tokens.T[..., None]:
            logits, state = made.advance(column, state, "sequential")
            parts.append(logits)
        logits = torch.cat(parts, 1)
    return logits.argmax(-1).masked_fill(logits.isnan().any(-1), -2)


@contextmanager
def _threads(count: int) -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run(count: int, first: int = 0) -> Counter[str]:
    """The counts of so many models."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        counts += examine(seed)
    return counts


def wrong(counts: Counter[str]) -> dict[str, int]:
    """Those of the counts that are to be zero, and are not."""
    return {name: value for name, value in counts.items() if name.startswith("wrong") and value}
