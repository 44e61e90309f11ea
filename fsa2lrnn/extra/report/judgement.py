"""All that there is to say of one learned model and of what mends it, for the table, the report and the demo.

The learned model is searched for a failing word, certified, extracted and aligned. Then it is repaired, with the
columns as they come, with bounded columns, and in numbers that never round; each repaired model is run on half a
million letters and certified or proved in its turn. Where it may be proved right on all words, that comes first, and
there is then nothing to search for, to certify or to repair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from fsa2lrnn.automata.counting import Ignore, counted_words
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, NotExact, OutOfTime
from fsa2lrnn.extra.report.align import Alignment, align
from fsa2lrnn.extraction import Extraction, extract_learned
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.optional import require
from fsa2lrnn.repairing import Columns, Mode
from fsa2lrnn.repairing.evaluation import EvaluatedRepair, certified_length, evaluate_repair, proof_json
from fsa2lrnn.verdicts import Proved, Refuted, Scope, Undecided
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import WORK, certify
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.exactness import may_close
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.goal import Specification, specification_of

PAIRS = 100_000  # of states, up to which a proof is tried
REPAIRS: tuple[tuple[Columns, Mode], ...] = (("keep", "least"), ("p<=1", "least"), ("keep", "dyadic"))
_SHARES = {"extract": 0.2, "prove": 0.4, "falsify": 0.4, "certify": 0.4}  # of the time that is left
_LEAST = 0.01  # seconds of a search


@dataclass(frozen=True, eq=False)
class ModelAssessment:
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
    mended: tuple[EvaluatedRepair, ...]
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
            found |= {"certified": certified_length(self.certificate)}
            found |= {"memory": self.certificate.memory, "method": self.certificate.method}
        if self.proof is not None:
            found["proved"] = proof_json(self.proof)
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
) -> ModelAssessment:
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
    goal = specification_of(model, machine, ignore)
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
                mended.append(evaluate_repair(model, machine, columns, mode, work, ignored, limit))
            except OutOfTime as error:
                mended.append(EvaluatedRepair(columns, mode, str(error)))
    return ModelAssessment(
        falsified, certificate, extraction, isomorphic, alignment, tuple(mended), goal.scope, took, proof
    )


def _extracted(
    model: LRNN, machine: MooreMachine, goal: Specification, deadline: Deadline
) -> tuple[Extraction | str, bool]:
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
