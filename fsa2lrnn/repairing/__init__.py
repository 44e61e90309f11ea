"""Repair of trained models: the least change after which they implement an exact image of their machine (L6, §8).

`evaluate_repair` also measures the repaired model along a long random word, and certifies or proves it.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import NotExact, NotExpressible, OutOfTime
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.optional import require
from fsa2lrnn.repairing.least_change import Change, Mode, Repaired, RepairedHead, repair
from fsa2lrnn.verdicts import Proved
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.coverage import certified_length, proof_json
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.extraction import output_numbers
from fsa2lrnn.verification.specification import specification_of
from fsa2lrnn.walks import walk

LETTERS = 500_000
_PIECE = 1 << 14
_REPAIR = 0.8  # share of the time for the repair; the certificate gets the rest


@dataclass(frozen=True, eq=False)
class EvaluatedRepair(Brief):
    """A repair with its measured accuracy and its certificate or proof.

    Args:
        mode: the option of `repair`.
        refused: the reason if the model cannot be repaired; all further fields are then None.
        repaired: the repaired model and its change.
        dtype: the dtype of the repaired model: the trained model's, or float64 if a dyadic one needs more digits.
        accuracy: the share of right outputs along one random word of `LETTERS` letters.
        certificate: the certificate of a model repaired over the reals, None if no time was left for it.
        proof: the proof of a dyadic model, for all words but the empty one.
    """

    mode: Mode
    refused: str | None = None
    repaired: Repaired | None = None
    dtype: str | None = None
    accuracy: float | None = None
    certificate: Certificate | None = None
    proof: Proved | None = None
    letters: ClassVar[int] = LETTERS

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation as a JSON object, without the model and the sets."""
        value: dict[str, Any] = {"mode": self.mode, "refused": self.refused}
        if self.repaired is None:
            return value
        value |= {"dtype": self.dtype, "accuracy": self.accuracy, "letters": self.letters}
        value |= {
            name: value for name, value in self.repaired.to_json().items() if name in ("change", "places", "scope")
        }
        value["ranks"] = {head.head: head.image.rank for head in self.repaired.heads}
        if self.certificate is not None:
            value["certified"] = certified_length(self.certificate)
        if self.proof is not None:
            value["proved"] = proof_json(self.proof)
        return value


def evaluate_repair(
    model: LRNN,
    machine: MooreMachine,
    mode: Mode,
    ignore: Ignore = (),
    seconds: float | Deadline | None = None,
) -> EvaluatedRepair:
    """Repair a model, run it on `LETTERS` letters, and certify or prove it on all outputs but those in `ignore`.

    If the model's dtype has too few digits for a dyadic repair, it is made in float64. `seconds` is a time limit; the
    repair takes at most the share `_REPAIR` of it, and the certificate or proof the rest; the run on `LETTERS` letters
    is not interrupted.

    Raises:
        MissingPackage: without cvxpy, unless the repair is dyadic.
        OutOfTime: if the repair takes too long.
    """
    deadline = Deadline.of(seconds)
    repairing = deadline.share(_REPAIR)
    if mode != "dyadic":
        require("cvxpy", "repair", "a repair that is certified", 'mode="dyadic", which is proved')
    try:
        with limited(repairing):
            try:
                repaired = repair(model, machine, mode, ignore, repairing)
            except NotExact:
                if mode != "dyadic" or model.dtype == torch.float64:
                    raise
                repaired = repair(deepcopy(model).double(), machine, mode, ignore, repairing)
    except (NotExact, NotExpressible) as error:
        return EvaluatedRepair(mode, str(error))
    dtype = str(repaired.model.dtype).removeprefix("torch.")
    accuracy = long_accuracy(repaired.model, machine, LETTERS, ignore=ignore)
    if mode == "dyadic":
        verdict = prove_equivalent(repaired.model, machine, empty_word=False, ignore=ignore, seconds=deadline)
        proof = verdict if isinstance(verdict, Proved) else None
        return EvaluatedRepair(mode, None, repaired, dtype, accuracy, None, proof)
    certificate = None
    with suppress(OutOfTime):
        certificate = certify(repaired.model, machine, ignore=ignore, seconds=deadline)
    return EvaluatedRepair(mode, None, repaired, dtype, accuracy, certificate)


def long_accuracy(model: LRNN, machine: MooreMachine, letters: int, ignore: Ignore = ()) -> float:
    """Return the share of right outputs that count along one random word, in the model's dtype and default scan.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> long_accuracy(compile_machine(zoo.parity()), zoo.parity(), 1_000)
    1.0
    """
    goal = specification_of(model, machine, ignore)
    tokens = np.random.default_rng(0).integers(0, len(model.alphabet), letters)
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


__all__ = ["Change", "Mode", "Repaired", "RepairedHead", "repair"]
