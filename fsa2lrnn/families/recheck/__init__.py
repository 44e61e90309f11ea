"""Check certificates of families independently of the search, with the standard library alone.

    python recheck certificate.json                        # the folder alone, in any place
    python -m fsa2lrnn.families.recheck certificate.json   # imports the package around it too, which needs numpy

This package shares no code with the search for certificates, so that a third party can read this one folder and trust
the answer. It relies on docs/theory.md §4, T31 to T36, T54 to T56 and T58. Each file checks one kind of argument:

`impossibilities` (*impossible*)   In the family, some pairs of words (u, u') must have equal linear parts, A_u = A_u'
    (`_must_agree`). Then x_{su} − x_{tu} = x_{su'} − x_{tu'} for all states s, t, and also after any further word. The
    certificate is a combination of such equations that adds up to x_p = x_q, for two states that a word separates.
    Or: words that every stack of input-independent layers, or every layer of attention, confuses.
`witnesses` (*representable*)   Functions f of the state with f(δ(q,a)) = χ(a) f(q) + v(a), one per channel, or
    vectors x_q with x_{δ(q,a)} = A x_q + v(a); together they separate all states. χ(a) is 0 or a root of unity, a
    power of ζ = exp(2πi/m); numbers are polynomials in ζ modulo the m-th cyclotomic polynomial.

    Liquid-S4 gives A, B and x_q with x_{δ(q,a)} = (A + diag(B_a)) x_q + B_a; Householder products give the integer keys
    k of their factors I − β k kᵀ, and the vectors of states.
`readout_bounds`   For layers with a linear read-out: a Hankel minor that bounds the dimension, and an equation as in
    `impossibilities` that the outputs break.
`weighted_automata`   Equality of two weighted automata on all words, a shortest separating word, the least dimension.
`blocks`, `householder_factors`   A layer of blocks of bounded size over the rational, real or complex numbers, or of
    products of boundedly many Householder factors. Representable: the functions of each block, closed under letters, in
    a number field if necessary (`polynomials`). Impossible: the functions of the state modulo constants
    (`module_algebra`) as copies of modules that are proved to be irreducible, and a count of all further copies
    (`chains`).

All certificates concern a minimal machine with all states reachable (§4), which `checked_machine` checks. Words are
lists of [letter number, repetitions]. A certificate has the fields that are read here, and no others.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from . import weighted_automata
from .blocks import recheck_block
from .certificate_fields import HEADER, WORK, RejectedCertificate, allowing, fields, require
from .checked_machine import read_machine
from .householder_factors import recheck_factors
from .impossibilities import KINDS, check_confused, check_impossible, read_family
from .readout_bounds import check_linear_readout
from .witnesses import check_representable

__all__ = ["RejectedCertificate", "recheck"]

BLOCK = re.compile(r"block\(([1-9][0-9]{0,8})\)")
FACTORS = re.compile(r"householder\(([1-9][0-9]{0,8})\)")
FORM = ("fsa2lrnn-family-certificate", 1)


def recheck(certificate: dict[str, Any], work: int = WORK) -> str:
    """Check a certificate and return the claim that it proves, as one line of text.

    Args:
        certificate: a JSON object, as `to_json` of the answers of `families.represent` returns.
        work: the largest number of steps of the check, about a tenth of a microsecond each.

    Raises `RejectedCertificate` if the certificate is wrong, malformed, or needs more steps.
    """
    try:
        with allowing(work):
            return _recheck(certificate)
    except RejectedCertificate:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as fault:
        raise RejectedCertificate(
            f"the certificate is malformed ({type(fault).__name__}: {str(fault)[:200]})"
        ) from None


def _recheck(certificate: dict[str, Any]) -> str:
    """Return the claim that a certificate proves, after the check that its kind and family call for."""
    form = certificate["format"], certificate["version"]
    if form == weighted_automata.FORM:
        return weighted_automata.check_weighted(certificate)
    names = f"{str(form[0])[:80]!r}, version {str(form[1])[:80]!r},"
    require(form == FORM and type(form[1]) is int, f"{names} is not a certificate that this file can read")
    family, verdict = certificate["family"], certificate["verdict"]
    if family in KINDS:
        require(verdict == "impossible", f"verdict {str(verdict)[:80]!r} is not known")
        *_, value, words, separator = fields(certificate, *HEADER, "words", "separator")
        check_confused(words, separator, read_machine(value), value["start"], family)
        return f"impossible: no network of the kind {family} computes this machine"
    block, factors = (form.fullmatch(str(family)) for form in (BLOCK, FACTORS))
    machine = read_machine(certificate["machine"])
    if verdict == "linear-readout":
        return check_linear_readout(certificate, machine)
    if block:
        return recheck_block(certificate, machine, int(block[1]))
    if factors and "terms" not in certificate:
        return recheck_factors(certificate, machine, int(factors[1]))
    form_of_family = read_family("householder" if factors else str(family))
    if form_of_family.beta == 2 and "blocks" in certificate:  # of reflections
        return recheck_factors(certificate, machine, form_of_family.factors or 0)
    if verdict == "impossible":
        fields(certificate, *HEADER, "states", "separator", "terms")
        check_impossible(certificate, machine, form_of_family)
        p, q = certificate["states"]
        return f"impossible: no {family} layer represents this machine, states {p} and {q} would share one vector"
    require(verdict == "representable", f"verdict {str(verdict)[:80]!r} is not known")
    dimension = check_representable(certificate, machine, form_of_family)
    size = f"{dimension} dimension{'' if dimension == 1 else 's'}"
    return f"representable: one {family} layer of {size} represents this machine"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "a field stands twice in one object")
    return dict(pairs)


def main(arguments: list[str]) -> str:
    """Return the claim that the certificate in a file proves; raise `SystemExit` with the reason if it is rejected."""
    if len(arguments) != 1:
        sys.exit("usage: python -m fsa2lrnn.families.recheck certificate.json")
    try:
        with Path(arguments[0]).open(encoding="utf-8") as file:
            return recheck(json.load(file, object_pairs_hook=_object))
    except (OSError, RecursionError, ValueError) as fault:  # of the file, of JSON, or of the check
        sys.exit(f"rejected: {fault}")
