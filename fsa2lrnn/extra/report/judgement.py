"""All that there is to say of one learned model and of what mends it, for the table, the report and the demo.

The learned model is searched for a failing word, certified, extracted and aligned. Then it is repaired, with the
columns as they come, with bounded columns, and in numbers that never round; each repaired model is run on half a
million letters and certified or proved in its turn. Where it may be proved right on all words, that comes first, and
there is then nothing to search for, to certify or to mend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore, counted_words
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, NotExact, NotExpressible, OutOfTime
from fsa2lrnn.extra.report.align import Alignment, align
from fsa2lrnn.extraction import Extraction, extract_learned, output_numbers
from fsa2lrnn.graph_kernels import walk
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.optional import require
from fsa2lrnn.repairing import Columns, Mode, Repaired, repair
from fsa2lrnn.verdicts import Proved, Refuted, Scope, Undecided
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import WORK, certify
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.exactness import may_close
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.goal import Goal, goal_for

LETTERS = 500_000
PAIRS = 100_000  # of states, up to which a proof is tried
REPAIRS: tuple[tuple[Columns, Mode], ...] = (("keep", "least"), ("p<=1", "least"), ("keep", "dyadic"))
_PIECE = 1 << 14
_REPAIR = 0.8  # of the time of a repair with its certificate
_SHARES = {"extract": 0.2, "prove": 0.4, "falsify": 0.4, "certify": 0.4}  # of the time that is left
_LEAST = 0.01  # seconds of a search


@dataclass(frozen=True, eq=False)
class Mended:
    """A repair and what it is worth.

    Args:
        columns, mode: as asked of `repair`.
        refused: why there is none; the rest is then None.
        repaired: the model and the change.
        dtype: that it computes in: the learned model's, or float64 where a dyadic one needs more digits.
        accuracy: share of right outputs along one random word of `LETTERS` letters.
        certificate: of a model repaired in real numbers.
        proof: of a dyadic model, on words of every length but the empty one.
    """

    columns: Columns
    mode: Mode
    refused: str | None = None
    repaired: Repaired | None = None
    dtype: str | None = None
    accuracy: float | None = None
    certificate: Certificate | None = None
    proof: Proved | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON object without the model and the sets."""
        found: dict[str, Any] = {"columns": self.columns, "mode": self.mode, "refused": self.refused}
        if self.repaired is None:
            return found
        found |= {"dtype": self.dtype, "accuracy": self.accuracy, "letters": LETTERS}
        found |= {
            name: value
            for name, value in self.repaired.to_json().items()
            if name in ("change", "p", "column_norm_before", "column_norm_after", "places", "scope")
        }
        found["ranks"] = {head.head: head.image.rank for head in self.repaired.heads}
        if self.certificate is not None:
            found["certified"] = _horizon(self.certificate)
        if self.proof is not None:
            found["proved"] = _proved(self.proof)
        return found


@dataclass(frozen=True, eq=False)
class Judgement:
    """One learned model and its repairs.

    Args:
        falsified: the shortest failing word found, or what was searched; None of a model that is proved.
        certificate: N, and the sets; None of a model that is proved.
        extraction: the machine found without knowing it, or why none was.
        isomorphic: whether that machine is the true one, where outputs count.
        alignment: of a model of one layer over letters.
        mended: the repairs of such a model.
        scope: which outputs counted, in all of it.
        seconds: what each took.
        proof: that it is right on words of every length but the empty one.
    """

    falsified: Refuted | Undecided | None
    certificate: Certificate | None
    extraction: Extraction | str
    isomorphic: bool
    alignment: Alignment | None
    mended: tuple[Mended, ...]
    scope: Scope
    seconds: dict[str, float]
    proof: Proved | None = None

    @property
    def failure(self) -> int | None:
        """The length of the shortest failing word known."""
        return self.falsified.position if isinstance(self.falsified, Refuted) else None

    def to_json(self) -> dict[str, Any]:
        """A JSON object without models and sets."""
        failing: dict[str, Any] = {"failure": None}
        if isinstance(self.falsified, Refuted):
            written = self.falsified.to_json()
            failing = {name: written[name] for name in ("failure", "found_by", "is_shortest")}
        found = {**failing, "scope": self.scope.to_json()}
        if self.certificate is not None:
            found |= {"certified": _horizon(self.certificate)}
            found |= {"memory": self.certificate.memory, "method": self.certificate.method}
        if self.proof is not None:
            found["proved"] = _proved(self.proof)
        if isinstance(self.extraction, str):
            found["extraction"] = {"refused": self.extraction}
        else:
            found["extraction"] = {"states": self.extraction.machine.n_states, "depth": self.extraction.depth}
        found["extraction"] |= {"isomorphic": self.isomorphic}
        if self.alignment is not None:
            found["alignment"] = _aligned(self.alignment)
        return {**found, "mended": [mended.to_json() for mended in self.mended], "seconds": self.seconds}


def judge(
    model: LRNN,
    machine: MooreMachine,
    budget: Budget | None = None,
    work: float = WORK,
    say: Callable[[str], None] | None = None,
    ignore: Ignore = (),
    seconds: float | Deadline | None = None,
) -> Judgement:
    """Everything at once. `work` is that of each certificate's search; `say` hears what is being done.

    `seconds` is a time limit for all of it but the alignment, in the place of the budget's: what it ends is said to be
    refused or cut short. By default there is none, and only the search for a failing word depends on the clock.

    `ignore` says which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
    collection of them.

    Raises:
        InvalidMachine: if model and machine have unlike alphabets.
        UnsupportedFormat: if no output counts, or `ignore` makes no sense.
        MissingPackage: without cvxpy, which certificates and bounded columns need.
    """
    require("cvxpy", "repair", "a judgement with its repairs")  # before anything is computed
    goal = goal_for(model, machine, ignore)
    ignored = goal.ignored
    took: dict[str, float] = {}
    deadline = Deadline.of(seconds)

    @contextmanager
    def clock(name: str) -> Iterator[None]:
        if say is not None:
            say(name)
        begun = time.monotonic()
        yield
        took[name] = round(time.monotonic() - begun, 2)

    one_layer = model.is_switched
    with clock("extract"):
        extraction, isomorphic = _extracted(model, machine, goal, deadline.share(_SHARES["extract"]))
    proof, falsified, certificate = None, None, None
    if may_close(model):
        with clock("prove"):
            verdict = prove_equivalent(model, machine, PAIRS, False, ignored, deadline.share(_SHARES["prove"]))
            proof = verdict if isinstance(verdict, Proved) else None
    if proof is None:
        with clock("falsify"):
            if seconds is not None:
                budget = replace(budget or Budget(), seconds=max(deadline.share(_SHARES["falsify"]).left(), _LEAST))
            falsified = falsify(model, machine, budget, ignored)
        with clock("certify"):
            limit = deadline.share(_SHARES["certify"] if one_layer else 1)
            certificate = certify(model, machine, work=work, ignore=ignored, seconds=limit)
    alignment = None
    if one_layer:
        with clock("align"):
            alignment = align(model, machine, ignore=ignored)
    mended = []
    for i, (columns, mode) in enumerate(REPAIRS if one_layer and proof is None else ()):
        with clock(f"repair {mode}{'' if columns == 'keep' else ', ' + columns}"):
            limit = deadline.share(1 / (len(REPAIRS) - i))
            try:
                mended.append(mend(model, machine, columns, mode, work, ignored, limit))
            except OutOfTime as error:
                mended.append(Mended(columns, mode, str(error)))
    return Judgement(falsified, certificate, extraction, isomorphic, alignment, tuple(mended), goal.scope, took, proof)


def mend(
    model: LRNN,
    machine: MooreMachine,
    columns: Columns,
    mode: Mode,
    work: float = WORK,
    ignore: Ignore = (),
    seconds: float | Deadline | None = None,
) -> Mended:
    """One repair, run on `LETTERS` letters, and certified or proved, wherever `ignore` lets the outputs count.

    A dyadic repair that the model's dtype has too few digits for is made in float64. `seconds` is a time limit, of
    which the repair takes `_REPAIR` at most; a certificate is of what it leaves.

    Raises `MissingPackage` without cvxpy, unless the repair is dyadic, and `OutOfTime` if the repair takes too long.
    """
    deadline = Deadline.of(seconds)
    repairing = deadline.share(_REPAIR)
    if mode != "dyadic":
        require("cvxpy", "repair", "a repair that is certified", 'mode="dyadic", which is proved')
    try:
        try:
            repaired = repair(model, machine, columns, mode, ignore, repairing)
        except NotExact:
            if mode != "dyadic" or model.dtype == torch.float64:
                raise
            repaired = repair(_copy(model).double(), machine, columns, mode, ignore, repairing)
    except (NotExact, NotExpressible) as error:
        return Mended(columns, mode, str(error))
    dtype = str(repaired.model.dtype).removeprefix("torch.")
    accuracy = long_accuracy(repaired.model, machine, LETTERS, ignore=ignore)
    if mode == "dyadic":
        verdict = prove_equivalent(repaired.model, machine, empty_word=False, ignore=ignore, seconds=deadline)
        proof = verdict if isinstance(verdict, Proved) else None
        return Mended(columns, mode, None, repaired, dtype, accuracy, None, proof)
    certificate = certify(repaired.model, machine, work=work, ignore=ignore, seconds=deadline)
    return Mended(columns, mode, None, repaired, dtype, accuracy, certificate)


def long_accuracy(
    model: LRNN, machine: MooreMachine, letters: int = LETTERS, seed: int = 0, ignore: Ignore = ()
) -> float:
    """The share of right outputs, where they count, along one random word, in the model's dtype and by its own scan.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> long_accuracy(compile_machine(zoo.parity()), zoo.parity(), 1_000)
    1.0
    """
    goal = goal_for(model, machine, ignore)
    tokens = np.random.default_rng(seed).integers(0, len(model.alphabet), letters)
    state, q = model.initial_state(), goal.start
    wrong = counted = 0
    with torch.no_grad():
        for start in range(0, letters, _PIECE):
            piece = tokens[start : start + _PIECE]
            logits, state = model.advance(torch.from_numpy(piece)[None], state)
            states = walk(goal.delta, q, piece)
            q = int(states[-1])
            wrong += int(goal.is_wrong(output_numbers(logits[0]), states).sum())
            counted += int(goal.counts[states].sum())
    return (counted - wrong) / counted if counted else 1.0


def _copy(model: LRNN) -> LRNN:
    copied = LRNN(model.config).to(model.dtype)
    copied.load_state_dict(model.state_dict())
    return copied


def _extracted(model: LRNN, machine: MooreMachine, goal: Goal, deadline: Deadline) -> tuple[Extraction | str, bool]:
    try:
        counts = counted_words(machine, goal.ignored) if goal.ignored else None
        found = extract_learned(model, counts=counts, seconds=deadline)
    except (NotExact, BudgetExceeded) as error:
        return str(error), False
    return found, equivalent(found.machine, machine, goal.ignored, empty_word=False) is None


def _aligned(found: Alignment) -> dict[str, Any]:
    heads = [found.heads[h] for h in found.carrying]
    return {
        "r2": found.probe.r2,
        "worst_error": found.probe.worst_error,
        "carrying": len(heads),
        "needed": len(found.needed),
        "kinds": sorted(head.kind for head in heads),
        "frequencies": sorted({head.cycle.frequency for head in heads if head.kind == "cyclic" and head.cycle}),
        "largest_residual": max((head.residual for head in heads), default=None),
        "beyond_circle": max((head.beyond_circle for head in heads), default=None),
    }


def _proved(proof: Proved) -> dict[str, Any]:
    covered = {**vars(proof.covers), "covered": str(proof.covers)}
    return {"joint_states": proof.pairs, "digest": proof.digest, **covered}


def _horizon(certificate: Certificate) -> int | str:
    return "all lengths" if certificate.horizon is None else certificate.horizon
