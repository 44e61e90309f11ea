"""The check of certificates for torch models, by one of three walks.

`fsa2lrnn.checker` checks sets of one layer, `joint_sets` those of several, and the model's own step enumerations.

The checker proves claims by sets in numpy, from tables and bounds on their rounding (`slack`). Both are computed here
from the model, so that a certificate cannot understate the rounding of its model's gates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore, ignored_outputs
from fsa2lrnn.checker import SCANS, check_sets
from fsa2lrnn.checker.claims import Claim
from fsa2lrnn.checker.proof import MOST_WORK
from fsa2lrnn.errors import check_type
from fsa2lrnn.nn.checkpoint import digest
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import SwitchedAffine, switched
from fsa2lrnn.reading import shown
from fsa2lrnn.verdicts import Accepted
from fsa2lrnn.verification.certificate import Certificate, CertificateRefused, library_errors, plain, slack_of
from fsa2lrnn.verification.coverage import of_certificate
from fsa2lrnn.verification.joint_sets import MOST_LENGTHS, JointSets
from fsa2lrnn.verification.modelled import check_modelled
from fsa2lrnn.verification.specification import Specification, specification_of
from fsa2lrnn.verification.walk import MOST_ALONE, MOST_BYTES, explore

MOST_READ = 1 << 20
"""The maximal number of letters that the check of an enumeration reads, over all joint states."""


def check(
    certificate: Certificate, model: LRNN | SwitchedAffine, ignore: Ignore = (), work: float | None = None
) -> Accepted:
    """Check the proof of a certificate for a model and return `Accepted` with its length, scope and coverage.

    The check proves the certificate's own claim: about its machine, up to its certified length, wherever the outputs
    count according to the certificate. It covers `model` as it runs, gates included, or given tables alone.

    Args:
        ignore: which outputs of the machine the certificate may leave out: none; "lacked", those that the model does
            not have; or a collection of them.
        work: the maximal number of operations, of about a nanosecond each, for a certificate by sets. The default is
            2^31, and 2^19 per byte of the certificate's compressed arrays, but at most 2^35; for joint sets it is 2^35.
            A certificate that needs more, or more than about 500 MB of memory, is refused; the message states how much.

    Raises:
        CertificateRefused: naming what fails, if the certificate is for another model, leaves out outputs that `ignore`
            does not allow, or does not prove its claim.
        InvalidMachine, UnsupportedFormat: if model and machine have different alphabets, if no output counts, if
            `ignore` is invalid, if the model's rounding is not bounded, or if its modules are not those modelled.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> from fsa2lrnn.verification.certify import certify
    >>> parity = zoo.parity()
    >>> model = compile_machine(parity)
    >>> print(check(certify(model, parity), model).scope)
    every output counts but that of the empty word
    """
    check_type(certificate, Certificate, "certificate", "what certify(…) returned, or Certificate.load(file)")
    layers = check_modelled(model)
    if certificate.method == "sets":
        tables = model if isinstance(model, SwitchedAffine) else switched(model)
        _check_model(certificate, tables.sha256, tables.dtype)
        scope = _check_sets(certificate, tables, model, ignore, work).scope
    else:
        if isinstance(model, SwitchedAffine):
            raise CertificateRefused(f"a certificate by {certificate.method} is of an LRNN, not of tables")
        _check_model(certificate, digest(model.state_dict()), model.dtype)
        if certificate.method == "joint sets":
            scope = _check_joint_sets(certificate, model, ignore, MOST_WORK if work is None else work).scope
        else:
            scope = _check_enumeration(certificate, model, ignore).scope
    if (
        isinstance(model, LRNN) and certificate.tested_layers != layers
    ):  # a proof about tables does not depend on layers
        raise CertificateRefused(
            f"it names the user-defined layers {shown(list(certificate.tested_layers))}, the model has "
            f"{shown(list(layers))}: certify the model again"
        )
    return Accepted(certificate.horizon, scope, replace(of_certificate(certificate), tested_layers=layers))


def _check_model(certificate: Certificate, sha256: str, dtype: torch.dtype) -> None:
    if certificate.sha256 != sha256:
        raise CertificateRefused(
            f"the certificate is of a model with SHA-256 {certificate.sha256[:12]}…, this one has {sha256[:12]}…"
        )
    if certificate.dtype != str(dtype).removeprefix("torch."):
        raise CertificateRefused(f"the certificate is for {certificate.dtype}, the model computes in {dtype}")


def _goal(certificate: Certificate, model: LRNN | SwitchedAffine, ignore: Ignore) -> Specification:
    """Return the certificate's claim; raise `CertificateRefused` if it leaves out more than `ignore` allows."""
    goal = specification_of(model, certificate.machine, certificate.ignore)
    allowed = ignored_outputs(certificate.machine.outputs, model.outputs, ignore)
    if not set(goal.ignored) <= set(allowed):
        raise CertificateRefused(
            f'it claims less than was asked: {goal.scope}; say which to leave out, ignore="lacked" for those '
            "that the model does not have"
        )
    return goal


def _check_sets(
    certificate: Certificate, tables: SwitchedAffine, model: LRNN | SwitchedAffine, ignore: Ignore, work: float | None
) -> Specification:
    """Check a certificate of sets with the checker's own replay, and return the specification it proves."""
    tube, more = certificate.tube, certificate.slack
    if tube is None or not 0 <= more < float("inf"):
        raise CertificateRefused(f"slack = {more}: what tables may differ by is a number of at least 0")
    goal = _goal(certificate, tables, ignore)
    claim = Claim(certificate.horizon, certificate.margins, certificate.scans, tube)
    with library_errors():
        check_sets(claim, plain(tables), goal.target, slack_of(model, more), work)
    return goal


def _check_joint_sets(certificate: Certificate, model: LRNN, ignore: Ignore, work: float) -> Specification:
    """Recompute the margins of joint sets, refuse any that is claimed larger, and return the specification."""
    goal, claimed, horizon = _goal(certificate, model, ignore), certificate.margins, certificate.horizon
    if uncovered := set(certificate.scans) - set(SCANS):
        raise CertificateRefused(f"{', '.join(sorted(uncovered))}: joint sets are for {', '.join(SCANS)}")
    if len(claimed) > MOST_LENGTHS or (horizon is not None and len(claimed) != horizon):
        raise CertificateRefused(
            f"{len(claimed):,} margins for a certified length of {horizon}: one is needed for each length, and at most "
            f"{MOST_LENGTHS:,} are checked"
        )
    if horizon == 0:  # nothing is claimed
        return goal
    sets = JointSets(model, goal, cast("np.ndarray", certificate.partition))
    if (needed := sets.work * len(claimed)) > work:
        raise CertificateRefused(
            f"the check takes {needed:,.0f} operations, its bound is {work:,.0f}: give a larger `work` if you trust "
            "the certificate's author"
        )
    proved = sets.margins()
    for length, margin in enumerate(claimed, 1):
        least = next(proved, np.inf)  # nothing counts after words of which no continuation counts
        if not 0 < margin <= least:
            raise CertificateRefused(f"at length {length:,} a margin of {margin:.6g} is claimed, {least:.6g} is proved")
    # All lengths are proved only if after the claimed ones no position counts any more.
    if horizon is None and next(proved, None) is not None:
        raise CertificateRefused(
            f"words of more than {len(claimed):,} letters count too, and the certificate bounds no margins of these"
        )
    return goal


def _check_enumeration(certificate: Certificate, model: LRNN, ignore: Ignore) -> Specification:
    """Enumerate the joint states again up to the claimed length, or until they close; return the specification."""
    goal, horizon = _goal(certificate, model, ignore), certificate.horizon
    # T8 (c): agreement up to the claimed length, or (a) for all lengths if no pair is new.
    walk = explore(model, goal, lambda steps: steps <= MOST_READ, horizon)
    if uncovered := set(certificate.scans) - set(walk.scans):
        raise CertificateRefused(
            f"{', '.join(sorted(uncovered))}: the states were stepped through as {walk.scans} does"
        )
    if walk.is_wrong:
        raise CertificateRefused(f"a word of length {walk.length + 1} is answered wrongly")
    if not walk.is_closed and (horizon is None or walk.length < horizon):
        raise CertificateRefused(
            f"the states do not close: {walk.pairs:,} are reached by words of up to {walk.length:,} letters, and no "
            f"more are looked at than {MOST_READ:,} letters, {MOST_ALONE:,} where steps round, or "
            f"{MOST_BYTES >> 20} MB of states allow"
        )
    return goal


__all__ = ["MOST_READ", "SCANS", "CertificateRefused", "check"]
