"""fsa2lrnn: finite automata as exact linear recurrent networks, and back.

This module lists the public names and imports each at its first use, so that automata alone do not import torch. No
subpackage has the name of a public function, because importing `fsa2lrnn.repair` would replace the function `repair`.

>>> from fsa2lrnn import MooreMachine, compile_machine
>>> model = compile_machine(MooreMachine.from_source("regex:(ab)*"))
>>> model.transduce("abab")
[False, True, False, True]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsa2lrnn import lrnn
    from fsa2lrnn.automata import zoo
    from fsa2lrnn.automata.language import equivalent
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.automata.monoid import classify
    from fsa2lrnn.compile import compile_recurrence
    from fsa2lrnn.compile.choice import choose
    from fsa2lrnn.decomposition.cascade import Cascade
    from fsa2lrnn.decomposition.search import decompose
    from fsa2lrnn.extra.learning.methods import learn
    from fsa2lrnn.extra.repairing.public import repair
    from fsa2lrnn.extra.selective.fla import wrap_fla
    from fsa2lrnn.extraction import extract, extract_learned
    from fsa2lrnn.families import FAMILIES, represent
    from fsa2lrnn.lower import compile_machine
    from fsa2lrnn.lrnn.affine import Readout
    from fsa2lrnn.lrnn.checkpoint import load, save
    from fsa2lrnn.lrnn.model import LRNN
    from fsa2lrnn.lrnn.wrapped import wrap
    from fsa2lrnn.recurrence import Recurrence
    from fsa2lrnn.training.train import train
    from fsa2lrnn.verdicts import Proved, Refuted, Undecided
    from fsa2lrnn.verification import prove_equivalent
    from fsa2lrnn.verification.certify import certify
    from fsa2lrnn.verification.check import check
    from fsa2lrnn.verification.falsify import falsify
    from fsa2lrnn.verification.falsify.verdict import Budget

__version__ = "0.1.0"

_HOME = {
    "Budget": "fsa2lrnn.verification.falsify.verdict",
    "Cascade": "fsa2lrnn.decomposition.cascade",
    "FAMILIES": "fsa2lrnn.families",
    "LRNN": "fsa2lrnn.lrnn.model",
    "MooreMachine": "fsa2lrnn.automata.machine",
    "Proved": "fsa2lrnn.verdicts",
    "Readout": "fsa2lrnn.lrnn.affine",
    "Recurrence": "fsa2lrnn.recurrence",
    "Refuted": "fsa2lrnn.verdicts",
    "Undecided": "fsa2lrnn.verdicts",
    "certify": "fsa2lrnn.verification.certify",
    "check": "fsa2lrnn.verification.check",
    "choose": "fsa2lrnn.compile.choice",
    "classify": "fsa2lrnn.automata.monoid",
    "compile_machine": "fsa2lrnn.lower",
    "compile_recurrence": "fsa2lrnn.compile",
    "decompose": "fsa2lrnn.decomposition.search",
    "equivalent": "fsa2lrnn.automata.language",
    "extract": "fsa2lrnn.extraction",
    "extract_learned": "fsa2lrnn.extraction",
    "falsify": "fsa2lrnn.verification.falsify",
    "learn": "fsa2lrnn.extra.learning.methods",
    "load": "fsa2lrnn.lrnn.checkpoint",
    "prove_equivalent": "fsa2lrnn.verification",
    "repair": "fsa2lrnn.extra.repairing.public",
    "represent": "fsa2lrnn.families",
    "save": "fsa2lrnn.lrnn.checkpoint",
    "train": "fsa2lrnn.training.train",
    "wrap": "fsa2lrnn.lrnn.wrapped",
    "wrap_fla": "fsa2lrnn.extra.selective.fla",
}
_MODULES = {"lrnn": "fsa2lrnn.lrnn", "zoo": "fsa2lrnn.automata.zoo"}

__all__ = [
    "Budget",
    "Cascade",
    "FAMILIES",
    "LRNN",
    "MooreMachine",
    "Proved",
    "Readout",
    "Recurrence",
    "Refuted",
    "Undecided",
    "certify",
    "check",
    "choose",
    "classify",
    "compile_machine",
    "compile_recurrence",
    "decompose",
    "equivalent",
    "extract",
    "extract_learned",
    "falsify",
    "learn",
    "load",
    "lrnn",
    "prove_equivalent",
    "repair",
    "represent",
    "save",
    "train",
    "wrap",
    "wrap_fla",
    "zoo",
]


if not TYPE_CHECKING:  # what a type checker finds is imported above, and nothing else is here

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            return getattr(import_module(_HOME[name]), name)
        if name in _MODULES:
            return import_module(_MODULES[name])
        raise AttributeError(f"module 'fsa2lrnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
