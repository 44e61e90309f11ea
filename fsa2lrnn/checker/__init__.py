"""An independent checker of certificates, which needs only numpy, safetensors and the standard library.

    python -m fsa2lrnn.checker CERTIFICATE MODEL MACHINE.json

It imports nothing of the search that finds certificates, nor anything else of the library, so that a third party can
read this folder, copy it anywhere, and trust the answer. `proof` checks claims up to a length, `pairs` proofs for all
lengths. They rely on L1, L2 and T26 of docs/theory.md, IEEE arithmetic in float64, and the bounds on the model's own
rounding (`rounding`). `fsa2lrnn.check` calls `proof` for models in memory.
"""

from .errors import InvalidCertificate, UnsupportedInput
from .proof import SCANS, check_sets

__all__ = ["SCANS", "InvalidCertificate", "UnsupportedInput", "check_sets"]
