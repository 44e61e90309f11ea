"""The languages of MLRegTest by name, from a folder of the user's: `mlregtest:04.04.SL.2.1.0`.

The benchmark (van der Poel et al., JMLR 25, 2024; CC-BY-4.0) publishes its automata as OpenFst text in
`src/fstlib/att_format` of github.com/heinz-jeffrey/subregular-learning. A name is `alphabet size . tier size . class .
k . threshold . number`; missing transitions reject. fsa2lrnn does not bring these files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fsa2lrnn.automata.formats.openfst import from_openfst
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.reading import decode

FOLDER = "FSA2LRNN_MLREGTEST"
CLASSES = ("SL", "TSL", "SP", "LT", "TLT", "PT", "LTT", "TLTT", "PLT", "TPLT", "SF", "Zp", "Reg")
"""The classes of the published automata: strictly and tier-based strictly local, strictly piecewise, locally and
piecewise testable, with thresholds, star-free, periodic, regular."""
_NAME = re.compile(rf"[0-9]+\.[0-9]+\.({'|'.join(CLASSES)})(\.[0-9]+){{3}}")


def from_mlregtest(name: str, folder: str | Path | None = None) -> MooreMachine:
    """Return the complete acceptor of a language, minimised.

    Args:
        name: as in `mlregtest:NAME`.
        folder: the folder of .att files; by default the one that the environment variable FSA2LRNN_MLREGTEST names.

    Raises:
        UnsupportedFormat: for another name, or if the folder or its file is missing.
        InvalidMachine: with every problem of the file.
    """
    if not _NAME.fullmatch(name):
        raise UnsupportedFormat(
            f"mlregtest:{name} does not name a language: give alphabet, tier, class, k, threshold and number, as in "
            f"mlregtest:04.04.SL.2.1.0, with a class of {', '.join(CLASSES)}"
        )
    folder = folder or os.environ.get(FOLDER)
    if not folder:
        raise UnsupportedFormat(
            f"mlregtest:{name}: the automata are not part of this package: download src/fstlib/att_format of "
            f"github.com/heinz-jeffrey/subregular-learning and set {FOLDER} to that folder"
        )
    path = Path(folder) / f"{name}.att"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnsupportedFormat(
            f"{path} cannot be read ({error.strerror}): set {FOLDER} to the folder that has it"
        ) from None
    return from_openfst(decode(data, str(path)), completion="sink", origin=str(path)).minimise()
