"""Verifiers, a checker and a counterexample search for models, trained or constructed.

`specification_of` fixes the expected outputs, `prove_equivalent` proves or refutes them for all lengths,
`falsify.falsify` searches for a counterexample, `certify.certify` proves that none exists up to a length, and
`check.check` checks such a proof. Their verdicts share one vocabulary (`fsa2lrnn.verdicts`), and each states which
outputs it left out.
"""

from fsa2lrnn.verdicts import Accepted, Counterexample, Proved, Refuted, Scope, Undecided, Verdict
from fsa2lrnn.verification.coverage import model_digest
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.specification import Specification, specification_of

__all__ = [
    "Accepted",
    "Counterexample",
    "Specification",
    "Proved",
    "Refuted",
    "Scope",
    "Undecided",
    "Verdict",
    "specification_of",
    "model_digest",
    "prove_equivalent",
]
