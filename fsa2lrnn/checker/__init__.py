"""The checker of horizon certificates, as a program of its own: numpy, safetensors and the standard library.

    python -m fsa2lrnn.checker CERTIFICATE MODEL MACHINE.json

It imports nothing of the search that finds certificates, nor anything else of the library, so that a third party can
read this folder, copy it anywhere, and trust the answer. `proof` says what is done in which order. What it
relies on is L1 and L2 of docs/theory.md, IEEE arithmetic in float64 (`intervals`), and the bounds on the model's own
rounding (`rounding`). `fsa2lrnn.check` calls it for models in memory, with bounds on how their gates round.
"""

from .errors import InvalidCertificate, UnsupportedInput
from .proof import SCANS, check_sets

__all__ = ["SCANS", "InvalidCertificate", "UnsupportedInput", "check_sets"]
