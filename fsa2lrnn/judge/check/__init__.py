"""The judge of certificates. It trusts nothing of the search that found them, and imports nothing of it.

What it trusts: the numbers of the model and the minimal machine (`SwitchedAffine`, `Goal`), the bounds on rounding in
`rounding`, and float64 with the enclosures of `judge.intervals`. What it does for a certificate by sets (L1 and L2 of
docs/theory.md):

1. every word of up to `start` letters is computed, with a ball about its state for what rounding may do;
2. the states of the longest of these are enclosed in one set a node, and the sets are carried on letter by letter, each
   with what a step computed in the model's dtype may be off by, from any tables that the model's gates may make
   (`slack`, which is computed here from the model) and any within the certificate's slack of them;
3. at the lengths where the certificate stores sets, the stored ones must hold those found, and take their place;
4. at each length no state may be so large as to overflow, and the read-out is bounded on every set that counts and must
   be right with the margin claimed;
5. a tail must hold itself, a letter on, at its first and last length; without growth, that is for ever.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore, ignored_outputs
from fsa2lrnn.judge.certificate import Certificate, Tube
from fsa2lrnn.judge.check.bounds import allowed_work
from fsa2lrnn.judge.check.enumeration import explore
from fsa2lrnn.judge.check.replay import CertificateRefused, Replay, check_size
from fsa2lrnn.judge.check.slack import slack_of
from fsa2lrnn.judge.goal import Goal, goal_for
from fsa2lrnn.judge.modules import check_modelled
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, switched
from fsa2lrnn.verdicts import Accepted

MOST_READ = 1 << 20
"""Letters that an enumeration may ask the judge to read, in all joint states: many times what the search asks for."""
_MOST_STEPS = 1 << 14  # four times as many as the search walks
SCANS = ("sequential", "fused", "letters")
"""The scans that a certificate by sets covers: x_k from x_{k-1}, by inner products in some order."""


def check(
    certificate: Certificate, model: LRNN | SwitchedAffine, ignore: Ignore = (), work: float | None = None
) -> Accepted:
    """Do the proof of a certificate again, for this model.

    What is proved is the certificate's own claim: about its machine, up to its horizon, wherever the machine's outputs
    count according to the certificate; of `model` as it runs, gates and all, or of tables alone where they are given.

    Args:
        ignore: which outputs of the machine the certificate may leave out: none; "lacked", those that the model does
            not have; or a collection of them.
        work: operations that the check of a certificate by sets may take, of about a nanosecond each. By default
            2^32, and 2^19 for each byte that the certificate's arrays compress to, but at most 2^35. A certificate that
            asks for more, or for more than 512 MB, is refused with the figure.

    Raises:
        CertificateRefused: naming what fails, if the certificate is of another model, leaves out outputs that are not
            to be ignored, or does not prove its claim.
        InvalidMachine, UnsupportedFormat: if model and machine have unlike alphabets, if no output counts, if `ignore`
            makes no sense, the model's numbers are not such as rounding is bounded for, or its modules
            not those modelled.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> from fsa2lrnn.judge.certify import certify
    >>> parity = zoo.parity()
    >>> model = compile_machine(parity)
    >>> print(check(certify(model, parity), model).scope)
    every output counts but that of the empty word
    """
    check_modelled(model)
    if certificate.method == "sets":
        tables = model if isinstance(model, SwitchedAffine) else switched(model)
        _check_model(certificate, tables.sha256, tables.dtype)
        with np.errstate(all="ignore"):  # what overflows becomes infinite or NaN, and no comparison lets that pass
            return Accepted(certificate.horizon, _check_sets(certificate, tables, model, ignore, work).scope)
    if isinstance(model, SwitchedAffine):
        raise CertificateRefused("a certificate by enumeration is of an LRNN, not of tables")
    _check_model(certificate, digest(model), model.dtype)
    return Accepted(certificate.horizon, _check_enumeration(certificate, model, ignore).scope)


def digest(model: LRNN) -> str:
    """SHA-256 of all weights, their names, shapes and dtypes."""
    result = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        whole = tensor.detach().cpu().contiguous()
        result.update(f"{name} {whole.dtype} {tuple(whole.shape)}\n".encode())
        result.update(whole.reshape(-1).view(torch.uint8).numpy().tobytes())
    return result.hexdigest()


def _check_model(certificate: Certificate, sha256: str, dtype: torch.dtype) -> None:
    if certificate.sha256 != sha256:
        raise CertificateRefused(
            f"the certificate is of a model with SHA-256 {certificate.sha256[:12]}…, this one has {sha256[:12]}…"
        )
    if certificate.dtype != str(dtype).removeprefix("torch."):
        raise CertificateRefused(f"the certificate is for {certificate.dtype}, the model computes in {dtype}")


def _goal(certificate: Certificate, model: LRNN | SwitchedAffine, ignore: Ignore) -> Goal:
    """What the certificate claims. Raises `CertificateRefused` if it leaves out more than is to be ignored."""
    goal = goal_for(model, certificate.machine, certificate.ignore)
    allowed = ignored_outputs(certificate.machine.outputs, model.outputs, ignore)
    if not set(goal.ignored) <= set(allowed):
        raise CertificateRefused(
            f'it claims less than was asked: {goal.scope}; say which to leave out, ignore="lacked" for those '
            "that the model does not have"
        )
    return goal


def _check_sets(
    certificate: Certificate, tables: SwitchedAffine, model: LRNN | SwitchedAffine, ignore: Ignore, work: float | None
) -> Goal:
    tube, more = certificate.tube, certificate.slack
    if tube is None or not 0 <= more < np.inf:
        raise CertificateRefused(f"slack = {more}: what tables may differ by is a number of at least 0")
    if unknown := set(certificate.scans) - set(SCANS):
        raise CertificateRefused(f"{', '.join(sorted(unknown))}: the bounds on rounding are for {', '.join(SCANS)}")
    goal = _goal(certificate, tables, ignore)
    claimed = certificate.margins
    steps = len(claimed) - bool(tube.tail)
    _check_lengths(tube, steps)
    check_size(tube, goal, tables, steps, allowed_work(tube, claimed) if work is None else work)
    replay = Replay(tables, goal, tube, slack_of(model, more))
    if not tube.tail and certificate.horizon != steps:
        raise CertificateRefused(f"{steps} margins for a horizon of {certificate.horizon}: there is one a length")
    sets = None
    for length, (margin, found) in zip(range(1, steps + 1), replay.lengths(), strict=False):
        _check_margin(claimed[length - 1], margin, f"at length {length:,}")
        sets = found
    if not tube.tail:
        return goal
    if sets is None:
        raise CertificateRefused("a tail follows sets, but there is none before it")
    margin, end = replay.tail(tube.tail, sets)
    _check_margin(claimed[-1], margin, "in the tail")
    if end is not None and (certificate.horizon is None or certificate.horizon > end):
        raise CertificateRefused(f"the tail ends at length {end:,}, before the horizon {certificate.horizon}")
    return goal


def _check_lengths(tube: Tube, steps: int) -> None:
    """Every set that is stored has its turn, and takes a bounded time."""
    if steps > _MOST_STEPS:
        raise CertificateRefused(f"{steps:,} margins: at most {_MOST_STEPS:,} lengths are walked one by one")
    lengths = [sets.length for sets in tube.stored]
    if any(after <= before for before, after in pairwise([tube.start, *lengths])) or max(lengths, default=0) > steps:
        raise CertificateRefused(
            f"sets are stored at the lengths {lengths}: they must rise, from above start = {tube.start} to {steps:,}"
        )
    if any(ramp.steps is None for ramp in tube.tail[:-1]):
        raise CertificateRefused("something follows the part of the tail that holds for ever: nothing would check it")


def _check_margin(claimed: float, found: float, where: str) -> None:
    if not found > 0:
        raise CertificateRefused(f"{where} the output may be wrong: the margin is bounded by {found:.3g} only")
    if not 0 < claimed <= found:
        raise CertificateRefused(f"{where} a margin of {claimed:.6g} is claimed, {found:.6g} is what can be shown")


def _check_enumeration(certificate: Certificate, model: LRNN, ignore: Ignore) -> Goal:
    goal, horizon = _goal(certificate, model, ignore), certificate.horizon
    found = explore(model, goal, lambda steps: steps <= MOST_READ, horizon)
    if unknown := set(certificate.scans) - set(found.scans):
        raise CertificateRefused(f"{', '.join(sorted(unknown))}: the states were stepped through as {found.scans} does")
    if found.is_wrong:
        raise CertificateRefused(f"a word of length {found.length + 1} is answered wrongly")
    if not found.is_closed and (horizon is None or found.length < horizon):
        raise CertificateRefused(
            f"the states do not close: {found.pairs:,} are reached by words of up to {found.length:,} letters, and no "
            "more are looked at"
        )
    return goal


__all__ = ["MOST_READ", "SCANS", "CertificateRefused", "check", "digest"]
