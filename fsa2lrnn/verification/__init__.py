"""Judges: what a model, learned or constructed, does on every word.

`goal` says what counts as right, `equivalence` proves or refutes for all lengths, `falsify` looks for a failing word,
`certify` proves that there is none up to a length, `check` judges such a proof. Their verdicts are one vocabulary
(`fsa2lrnn.verdicts`), and each says which outputs it left out.

`certify`, `check` and `falsify` are functions here, and rooms too: all are loaded with this one, so that the names
stand for the functions whatever is imported later. `from fsa2lrnn.verification.certify import …` reaches into a room.
"""

from fsa2lrnn.verdicts import Accepted, Counterexample, Proved, Refuted, Scope, Undecided, Verdict
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.coverage import model_digest
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.goal import Specification, specification_of

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
