"""Verify and run many models: is an output within the scope of a verdict ever wrong?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import EVERY, Coverage, Proved
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import SCANS, check
from fsa2lrnn.verification.coverage import of_certificate
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.specification import specification_of
from verify.soundness.models import RULES, Drawn, model, stack

BATCHES = (1, 3, 64)
THREADS = (1, 2)
SINGLY, IN_PIECES, STRIDED = "letters one by one", "in pieces", "strided"  # calls, beside the scans of whole words
_WORDS, _LONGEST = 64, 48
_STATES = 400  # joint states of a proof
_WORK, _WORK_OF_STACKS = 1e6, 5e8  # of a search for sets
STACKED = ("sum_mod(4)", "group(D4)", "mod_arith(2)", "elevator(4)", "tomita(3)", "tomita(4)", "dyck(1, 4)")
_EVERY = 5  # models, of which one has a stack beside it: enumerations take long
_PERMUTING = ("paper", "householder", "unit keys")


def drawn(seed: int) -> tuple[Drawn, MooreMachine]:
    """Return the model parameters of a seed, and the machine that the model computes on short words."""
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


@torch.no_grad()
def examine(seed: int) -> Counter[str]:
    """Verify and run one model; return counts, of which those of "wrong …" must be zero."""
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
        alone = [(SINGLY, 1, verdict.covers.threads or 1)]
        ways = _ways(verdict.scans) if verdict.covers.shapes == EVERY else iter(alone)
        run_words(made, machine, _LONGEST, ways, "proved", counts)
    if seed % _EVERY == 0:
        task = zoo.from_task(STACKED[seed // _EVERY % len(STACKED)])
        _look_at_stack(stack(choice, task), task, counts)
    return counts


def _look_at_stack(made: LRNN, machine: MooreMachine, counts: Counter[str]) -> None:
    """Certify a model of several layers in two ways, check the certificates, and run the model."""
    counts[f"models of {len(made.layers)} layers"] += 1
    for method, work in (("auto", _WORK), ("joint sets", _WORK_OF_STACKS)):
        certificate = certify(made, machine, work=work, method=method)
        if certificate.horizon == 0:
            continue
        counts[f"stacks certified by {certificate.method}"] += 1
        horizon = _LONGEST if certificate.horizon is None else min(certificate.horizon, _LONGEST)
        run_words(made, machine, horizon, _covered(of_certificate(certificate)), "stacks", counts)
        check(certificate, made)


def _covered(covers: Coverage) -> Iterator[tuple[str, int, int]]:
    """Yield the scan, the size of the batch and the number of threads of calls within a scope."""
    if covers.shapes == EVERY:
        yield from _ways(covers.scans)
    else:
        yield SINGLY, 1, covers.threads or 1


def _look_at(certificate: Certificate, made: LRNN, machine: MooreMachine, counts: Counter[str]) -> None:
    horizon = _LONGEST if certificate.horizon is None else min(certificate.horizon, _LONGEST)
    if horizon:
        counts["certified beyond 0"] += 1
        counts["certified for ever"] += certificate.horizon is None
        run_words(made, machine, horizon, _ways(SCANS), "certified", counts)
    of_tables = certify(switched(made), machine, 1, work=_WORK).horizon  # looked up, they may be right for longer
    longer = _LONGEST if of_tables is None else min(of_tables, _LONGEST)
    if longer > horizon:
        seen: Counter[str] = Counter()
        run_words(made, machine, longer, _ways(SCANS), "tables", seen)
        counts["models wrong within the horizon of their tables, not of their gates"] += seen["wrong tables"] > 0


def _ways(scans: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    for threads in THREADS:
        for batch in BATCHES:
            for scan in ("auto", *scans, SINGLY):
                yield scan, batch, threads


def run_words(
    made: LRNN,
    machine: MooreMachine,
    length: int,
    ways: Iterator[tuple[str, int, int]],
    what: str,
    counts: Counter[str],
) -> None:
    """Run random words in these ways, and count the outputs that are not the machine's."""
    goal = specification_of(made, machine)
    tokens = np.random.default_rng(length).integers(0, len(made.alphabet), (_WORDS, length))
    tokens = np.concatenate([tokens, np.resize(np.arange(len(made.alphabet)), (8, 1)).repeat(length, 1)])
    wanted = torch.tensor(goal.wanted[goal.path(tokens)])
    words = torch.tensor(tokens)
    for scan, batch, threads in ways:
        some = words[: 4 * batch]
        with _threads(threads):
            found = torch.cat([_outputs(made, part, scan) for part in torch.split(some, batch)])
        counts[f"positions {what}"] += found.numel()
        counts[f"wrong {what}"] += int((found != wanted[: len(found)]).sum())
        counts[f"runs {what}, {scan}"] += len(found)


def _outputs(made: LRNN, tokens: Tensor, scan: str) -> Tensor:
    cuts = {SINGLY: 1, IN_PIECES: 1 + tokens.shape[1] // 3}
    if scan == STRIDED:
        logits = made(tokens.repeat_interleave(2, 1)[:, ::2])
    elif scan in cuts:
        state, parts = made.initial_state(len(tokens)), list[Tensor]()
        for piece in torch.split(tokens, cuts[scan], 1):
            logits, state = made.advance(piece, state, "sequential" if scan == SINGLY else "auto")
            parts.append(logits)
        logits = torch.cat(parts, 1)
    else:
        logits = made(tokens, scan)
    return logits.argmax(-1).masked_fill(logits.isnan().any(-1), -2)


@contextmanager
def _threads(count: int) -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run(count: int, first: int = 0, of_seed: Callable[[int], Counter[str]] = examine) -> Counter[str]:
    """Return the counts of so many models."""
    return sum(map(of_seed, range(first, first + count)), Counter[str]())


def wrong(counts: Counter[str]) -> dict[str, int]:
    """Return the nonzero counts among those that must be zero."""
    return {name: value for name, value in counts.items() if name.startswith("wrong") and value}
