"""Read the languages of the benchmark MLRegTest by name, as in `mlregtest:04.04.SL.2.1.0`, from a user's folder.

The benchmark (van der Poel et al., JMLR 25, 2024, CC-BY-4.0; its data are CC0) publishes its automata as OpenFst text
in `src/fstlib/att_format` of github.com/heinz-jeffrey/subregular-learning; fsa2lrnn does not contain these files. A
name is `alphabet size . tier size . class . k . threshold . number`. Missing transitions reject.
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
"""The classes of the published automata: strictly local (SL) and piecewise (SP), locally (LT), locally threshold (LTT),
piecewise (PT) and piecewise locally testable (PLT), tier-based (T…), star-free (SF), Zp, regular (Reg)."""
_NAME = re.compile(rf"[0-9]+\.[0-9]+\.({'|'.join(CLASSES)})(\.[0-9]+){{3}}")


def from_mlregtest(name: str, folder: str | Path | None = None) -> MooreMachine:
    """Return the minimal complete acceptor of a language of MLRegTest.

    Args:
        name: the name of the language, as in `mlregtest:NAME`.
        folder: the folder of .att files; by default that in the environment variable FSA2LRNN_MLREGTEST.

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
