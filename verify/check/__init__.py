"""The judge of certificates. It trusts nothing of the search that found them, and shares no code with it.

What it trusts: the numbers of the model and the minimal machine (`SwitchedAffine`, `Target`), the bounds on rounding in
`rounding`, and float64 with the enclosures of `verify.intervals`. What it does for a certificate by sets (L1 and L2 of
docs/theory.md):

1. every word of up to `start` letters is computed, with a ball about its state for what rounding may do;
2. the states of the longest of these are enclosed in one set a node, and the sets are carried on letter by letter, each
   with what a step computed in the model's dtype may be off by, from any tables within `slack` of the model's;
3. at the lengths where the certificate stores sets, the stored ones must hold those found, and take their place;
4. at each length the read-out is bounded on every set that counts, and must be right with the margin claimed;
5. a tail must hold itself, a letter on, at its first and last length; without growth, that is for ever.
"""

from __future__ import annotations

import hashlib

import numpy as np

from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, switched
from verify.certificate import Certificate
from verify.check.enumeration import explore
from verify.check.replay import CertificateRefused, Replay
from verify.targets import target

_MOST_PAIRS = 1 << 62  # an enumeration ends by itself, at its horizon or where the states close
SCANS = ("sequential", "fused", "letters")  # x_k from x_{k-1}, by inner products in some order


def check(certificate: Certificate, model: LRNN | SwitchedAffine) -> None:
    """Do the proof again, for this model.

    Raises:
        CertificateRefused: naming what fails, if the certificate is of another model or does not prove its claim.
        InvalidMachine, UnsupportedFormat: if model and machine have unlike alphabets or no output in common.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> from verify.certify import certify
    >>> parity = zoo.parity()
    >>> model = compile_machine(parity)
    >>> check(certify(model, parity), model)
    """
    found = sha256_of(certificate, model)
    if found != certificate.sha256:
        raise CertificateRefused(
            f"the certificate is of a model with SHA-256 {certificate.sha256[:12]}…, this one has {found[:12]}…"
        )
    if certificate.dtype != str(model.dtype).removeprefix("torch."):
        raise CertificateRefused(f"the certificate is for {certificate.dtype}, the model computes in {model.dtype}")
    if certificate.method == "sets":
        _check_sets(certificate, model if isinstance(model, SwitchedAffine) else switched(model))
    else:
        _check_enumeration(certificate, model)


def sha256_of(certificate: Certificate, model: LRNN | SwitchedAffine) -> str:
    """The digest that a certificate of this method carries: of the tables, or of the state dict."""
    if certificate.method == "sets":
        return (model if isinstance(model, SwitchedAffine) else switched(model)).sha256
    if isinstance(model, SwitchedAffine):
        raise CertificateRefused("a certificate by enumeration is of an LRNN, not of tables")
    return digest(model)


def digest(model: LRNN) -> str:
    """SHA-256 of all weights, their names, shapes and dtypes."""
    result = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        whole = tensor.detach().cpu().contiguous()
        result.update(f"{name} {whole.dtype} {tuple(whole.shape)}\n".encode() + whole.numpy().tobytes())
    return result.hexdigest()


def _check_sets(certificate: Certificate, tables: SwitchedAffine) -> None:
    tube, slack = certificate.tube, certificate.slack
    if tube is None or not 0 <= slack < np.inf:
        raise CertificateRefused(f"slack = {slack}: what tables may differ by is a number of at least 0")
    if unknown := set(certificate.scans) - set(SCANS):
        raise CertificateRefused(f"{', '.join(sorted(unknown))}: the bounds on rounding are for {', '.join(SCANS)}")
    replay = Replay(tables, target(tables, certificate.machine), tube, slack)
    claimed = certificate.margins
    steps = len(claimed) - bool(tube.tail)
    if not tube.tail and certificate.horizon != steps:
        raise CertificateRefused(f"{steps} margins for a horizon of {certificate.horizon}: there is one a length")
    sets = None
    for length, (margin, found) in zip(range(1, steps + 1), replay.lengths(), strict=False):
        _check_margin(claimed[length - 1], margin, f"at length {length:,}")
        sets = found
    if not tube.tail:
        return
    if sets is None:
        raise CertificateRefused("a tail follows sets, but there is none before it")
    margin, end = replay.tail(tube.tail, sets)
    _check_margin(claimed[-1], margin, "in the tail")
    if end is not None and (certificate.horizon is None or certificate.horizon > end):
        raise CertificateRefused(f"the tail ends at length {end:,}, before the horizon {certificate.horizon}")


def _check_margin(claimed: float, found: float, where: str) -> None:
    if not found > 0:
        raise CertificateRefused(f"{where} the output may be wrong: the margin is bounded by {found:.3g} only")
    if not 0 < claimed <= found:
        raise CertificateRefused(f"{where} a margin of {claimed:.6g} is claimed, {found:.6g} is what can be shown")


def _check_enumeration(certificate: Certificate, model: LRNN | SwitchedAffine) -> None:
    if isinstance(model, SwitchedAffine):
        raise CertificateRefused("a certificate by enumeration is of an LRNN, not of tables")
    found = explore(model, target(model, certificate.machine), _MOST_PAIRS, certificate.horizon)
    if unknown := set(certificate.scans) - set(found.scans):
        raise CertificateRefused(f"{', '.join(sorted(unknown))}: the states were stepped through as {found.scans} does")
    if found.is_wrong:
        raise CertificateRefused(f"a word of length {found.length + 1} is answered wrongly")
    if certificate.horizon is None and not found.is_closed:
        raise CertificateRefused(f"the states do not close: more than {found.pairs:,} are reached")


__all__ = ["SCANS", "CertificateRefused", "check", "digest", "sha256_of"]
