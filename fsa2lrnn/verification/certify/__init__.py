"""How long is a model right on every word? The search for a proof; `fsa2lrnn.checker` judges what it finds.

Nothing here has to be right for a certificate to be: the search proposes coordinates, how many letters to remember and
where a tail may begin, and the horizon is what the judge makes of them.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lrnn.layer_checks import user_layers
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, switched
from fsa2lrnn.lrnn.tensor_file import digest
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify.search import TubeSearch
from fsa2lrnn.verification.certify.work import WORK, SearchCutShort, WorkBudget
from fsa2lrnn.verification.check import MOST_READ, SCANS
from fsa2lrnn.verification.enumeration import explore
from fsa2lrnn.verification.goal import Specification, specification_of
from fsa2lrnn.verification.modules import check_modelled
from fsa2lrnn.verification.plain import checked
from fsa2lrnn.verification.slack import slack_of

_STEPS = 20_000  # of an enumeration, whatever the work allowed
_CLAIMED = 1 - 1e-6  # of a margin, so that other machines' roundings of float64 do not matter


def certify(
    model: LRNN | SwitchedAffine,
    machine: MooreMachine,
    memory: int | str = "auto",
    slack: float = 0.0,
    work: float = WORK,
    seconds: float | Deadline | None = None,
    ignore: Ignore = (),
) -> Certificate:
    """Up to which length the model gives the machine's output at every position that counts, of every word.

    One layer over letters is followed in sets of states, floats as they are computed by any scan that makes x_k from
    x_{k-1} by inner products. Other models are enumerated, bit for bit, as far as a budget of joint states goes.

    Args:
        model: of one layer over letters in float32 or float64, or any LRNN.
        machine: over the same letters; the output on the empty word does not count.
        memory: how many last letters a set remembers, or "auto" for as many as pay.
        slack: by how much more, entry by entry, tables may differ than other products of the same gates may make them:
            that is bounded from the gates' weights, whatever the order of sums (`judge.slack`), and is most of
            what limits a model of wide gates. `as_tables(model)` looks its tables up, and needs none.
        work: multiplications that the search may take, about: the same model gets the same certificate on any machine.
            A model that is enumerated takes as many a step as it has numbers, and 20,000 steps are always made.
        seconds: a time limit on top. Where it ends the search, the certificate is of the length proved so far, a
            `SearchCutShort` warning says so, and N depends on the machine's load.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them. The certificate names them.

    Returns:
        a certificate that `fsa2lrnn.check` accepts; its horizon is 0 where nothing can be shown.

    Raises:
        FalseDeclaration: for a user-defined layer that computes other than it declares, on random inputs.
        InvalidMachine, UnsupportedFormat: if model and machine have unlike alphabets, if no output counts, if numbers
            are none or too large or of a dtype whose rounding is not bounded, for a layer whose tables' rounding is
            not, for modules that are not modelled (`judge.modules`), and for options that make no sense.
        MissingPackage: without cvxpy, which shapes the sets of most trained models.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> certify(compile_machine(zoo.parity()), zoo.parity()).horizon > 10_000
    True
    """
    layers = check_modelled(model)
    tables, effort = _tables(model), WorkBudget(work, seconds)
    if isinstance(tables, LRNN):
        certificate = _enumerated(tables, machine, specification_of(tables, machine, ignore), effort)
        effort.warn_if_cut_short(certificate.horizon)
        return certificate
    goal = specification_of(tables, machine, ignore)
    numbers = checked(tables)  # before anything is computed with numbers that may be none
    bound = slack_of(model, slack)
    with np.errstate(all="ignore"):  # of numbers that overflow nothing is shown
        search = TubeSearch(numbers, goal.target, bound, effort)
        walk = search.settled(search.best(memory))
    effort.warn_if_cut_short(walk.horizon)
    return Certificate(
        horizon=walk.horizon,
        margins=np.array(walk.margins) * _CLAIMED,
        method="sets",
        dtype=_name(tables),
        scans=SCANS,
        slack=slack,
        sha256=tables.sha256,
        machine=minimise(machine),
        tube=walk.tube,
        ignore=goal.ignored,
        tested_layers=layers,
    )


def _tables(model: LRNN | SwitchedAffine) -> SwitchedAffine | LRNN:
    """What is to be certified: tables where a model has them, else the model."""
    if isinstance(model, SwitchedAffine):
        return model
    return switched(model) if model.is_switched else model


def _enumerated(model: LRNN, machine: MooreMachine, goal: Specification, effort: WorkBudget) -> Certificate:
    numbers = sum(tensor.numel() for tensor in model.state_dict().values())

    def allows(steps: int) -> bool:
        return steps <= MOST_READ and effort.allows(max(0, steps - _STEPS) * numbers)

    found = explore(model, goal, allows, deadline=effort.deadline)
    return Certificate(
        horizon=None if found.is_closed and not found.is_wrong else found.length,
        margins=np.zeros(0),
        method="enumeration",
        dtype=_name(model),
        scans=found.scans,
        slack=0.0,
        sha256=digest(model.state_dict()),
        machine=minimise(machine),
        ignore=goal.ignored,
        tested_layers=user_layers(model),
    )


def _name(model: LRNN | SwitchedAffine) -> str:
    return str(model.dtype).removeprefix("torch.")


__all__ = ["WORK", "SearchCutShort", "certify"]
