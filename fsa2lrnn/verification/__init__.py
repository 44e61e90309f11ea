"""Verifiers, a checker and a counterexample search for models, trained or constructed.

`specification_of` fixes the expected outputs, `prove_equivalent` proves or refutes them for all lengths, `falsify`
searches for a counterexample, `certify` proves that none exists up to a length, and `check` checks such a proof. Their
verdicts share one vocabulary (`fsa2lrnn.verdicts`), and each states which outputs it left out.

The names `certify`, `check` and `falsify` denote functions here, not the packages and modules of the same names.
`from fsa2lrnn.verification.certify import …` imports from a module.
"""

from fsa2lrnn.verdicts import Accepted, Counterexample, Proved, Refuted, Scope, Undecided, Verdict
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.coverage import model_digest
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.specification import Specification, specification_of

__all__ = [
    "Accepted",
    "Budget",
    "Certificate",
    "CertificateRefused",
    "Counterexample",
    "Specification",
    "Proved",
    "Refuted",
    "Scope",
    "Undecided",
    "Verdict",
    "certify",
    "check",
    "falsify",
    "specification_of",
    "model_digest",
    "prove_equivalent",
]
