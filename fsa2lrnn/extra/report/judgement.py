"""Assess one learned model and its repairs, for the report and the demonstration.

The steps are extraction, the search for a counterexample, certification and alignment. Then the model is repaired, with
unchanged columns, with bounded columns, and with exact arithmetic; each repaired model is run on half a million letters
and certified or proved. A model that is proved correct on all words is neither searched nor certified nor repaired.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.display.brief import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExact, OutOfTime
from fsa2lrnn.extra.report.align import Alignment, align
from fsa2lrnn.extraction import Extraction, extract_learned
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.optional import require
from fsa2lrnn.verdicts import Proved, Refuted, Scope, Undecided
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import WORK, certify
from fsa2lrnn.verification.coverage import certified_length, proof_json
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.exactness import may_close
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.specification import Specification, specification_of

PAIRS = 100_000  # the most joint states of a proof
REPAIRS = (("keep", "least"), ("p<=1", "least"), ("keep", "dyadic"))  # columns and mode of each repair
_SHARES = {"extract": 0.2, "prove": 0.4, "falsify": 0.4, "certify": 0.4}  # shares of the remaining time
_LEAST = 0.01  # the least time in seconds of a search


@dataclass(frozen=True, eq=False)
class ModelAssessment(Brief):
    """The assessment of one learned model and of its repairs.

    Args:
        falsified: the shortest counterexample found, or the searches; None for a proved model.
        certificate: the certified length and the sets; None for a proved model.
        extraction: the extracted machine, or the reason why none was extracted.
        isomorphic: whether the extracted machine is equivalent to the target on the outputs that count.
        alignment: the alignment of a model of one layer over letters.
        repairs: the repairs of a model of one layer over letters, if the extra "repairing" is installed: each is an
            `EvaluatedRepair` of that extra.
        scope: the outputs that counted in all steps.
        seconds: the time of each step.
        proof: a proof of correctness on all words except the empty one.
    """

    falsified: Refuted | Undecided | None
    certificate: Certificate | None
    extraction: Extraction | str
    isomorphic: bool
    alignment: Alignment | None
    repairs: tuple[Any, ...]
    scope: Scope
    seconds: dict[str, float]
    proof: Proved | None = None

    @property
    def failure(self) -> int | None:
        """The length of the shortest counterexample found; None if none was found."""
        return self.falsified.position if isinstance(self.falsified, Refuted) else None

    def to_json(self) -> dict[str, Any]:
        """Return the assessment as a JSON object, without the models and the sets of a certificate."""
        failing: dict[str, Any] = {"failure": None}
        if isinstance(self.falsified, Refuted):
            written = self.falsified.to_json()
            failing = {name: written[name] for name in ("failure", "found_by", "is_shortest")}
        value = {**failing, "scope": self.scope.to_json()}
        if self.certificate is not None:
            value |= {"certified": certified_length(self.certificate)}
            value |= {"memory": self.certificate.memory, "method": self.certificate.method}
        if self.proof is not None:
            value["proved"] = proof_json(self.proof)
        if isinstance(self.extraction, str):
            value["extraction"] = {"refused": self.extraction}
        else:
            value["extraction"] = {"states": self.extraction.machine.n_states, "depth": self.extraction.depth}
        value["extraction"] |= {"isomorphic": self.isomorphic}
        if self.alignment is not None:
            value["alignment"] = _aligned(self.alignment)
        return {**value, "repairs": [repair.to_json() for repair in self.repairs], "seconds": self.seconds}


def judge(
    model: LRNN,
    machine: MooreMachine,
    budget: Budget | None = None,
    work: float = WORK,
    say: Callable[[str], None] | None = None,
    ignore: Ignore = (),
    seconds: float | Deadline | None = None,
    repairs: Sequence[tuple[str, str]] | None = None,
) -> ModelAssessment:
    """Return the assessment of a model against a machine.

    Args:
        budget: the limits of the counterexample search.
        work: the bound on the search of each certificate.
        ignore: the outputs of the machine that do not count: (), "lacked" (by the model), or a collection of them.
        seconds: a time limit for all steps except the alignment, in place of the budget's; a step that reaches it
            results in a refusal or an incomplete search. By default only the counterexample search depends on time.
        repairs: the columns and mode of each repair, all of `REPAIRS` by default.

    Raises:
        InvalidMachine: if model and machine have different alphabets.
        UnsupportedFormat: if no output counts, or the value of `ignore` is invalid.
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
    evaluated = []
    selected = REPAIRS if repairs is None else repairs
    from fsa2lrnn.extra.repairing import evaluation as repairing

    for i, (columns, mode) in enumerate(selected if repairing and one_layer and proof is None else ()):
        with clock(f"repair {mode}{'' if columns == 'keep' else ', ' + columns}"):
            limit = deadline.share(1 / (len(selected) - i))
            try:
                evaluated.append(repairing.evaluate_repair(model, machine, columns, mode, work, ignored, limit))
            except OutOfTime as error:
                evaluated.append(repairing.EvaluatedRepair(columns, mode, str(error)))
    return ModelAssessment(
        falsified, certificate, extraction, isomorphic, alignment, tuple(evaluated), goal.scope, took, proof
    )


def _extracted(
    model: LRNN, machine: MooreMachine, goal: Specification, deadline: Deadline
) -> tuple[Extraction | str, bool]:
    # The acceptor of the words after which the machine's output counts.
    counts = [output not in goal.ignored for output in machine.outputs]
    counted = MooreMachine(machine.delta, counts, machine.start, machine.alphabet) if goal.ignored else None
    try:
        extraction = extract_learned(model, counts=counted, seconds=deadline)
    except (NotExact, BudgetExceeded) as error:
        return str(error), False
    return extraction, equivalent(extraction.machine, machine, goal.ignored, empty_word=False) is None


def _aligned(alignment: Alignment) -> dict[str, Any]:
    heads = [alignment.heads[h] for h in alignment.carrying]
    return {
        "r2": alignment.probe.r2,
        "worst_error": alignment.probe.worst_error,
        "carrying": len(heads),
        "needed": len(alignment.needed),
        "kinds": sorted(head.kind for head in heads),
        "frequencies": sorted({head.cycle.frequency for head in heads if head.kind == "cyclic" and head.cycle}),
        "largest_residual": max((head.residual for head in heads), default=None),
        "beyond_circle": max((head.beyond_circle for head in heads), default=None),
    }
