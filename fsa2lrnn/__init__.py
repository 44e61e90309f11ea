"""fsa2lrnn: finite automata as exact linear recurrent networks, and back.

This module lists the public names and imports each at its first use: automata alone and `fsa2lrnn --help` do not import
torch. It is the only module that does so. No subpackage has the name of a public function, because importing
`fsa2lrnn.repair` would replace the function `repair`.

>>> from fsa2lrnn import MooreMachine, compile_machine
>>> model = compile_machine(MooreMachine.from_source("regex:(ab)*"))
>>> model.transduce("abab")
[False, True, False, True]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsa2lrnn.automata import zoo
    from fsa2lrnn.automata.language import equivalent
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.automata.monoid import classify
    from fsa2lrnn.cascade.cascade import Cascade
    from fsa2lrnn.cascade.decomposition import decompose
    from fsa2lrnn.cli.explanation import explain
    from fsa2lrnn.compile.choice import choose
    from fsa2lrnn.compile.lower import compile_machine
    from fsa2lrnn.compile.recurrence import Recurrence, compile_recurrence
    from fsa2lrnn.families import FAMILIES, represent
    from fsa2lrnn.learning.methods import learn
    from fsa2lrnn.nn.affine import Readout
    from fsa2lrnn.nn.checkpoint import load, save
    from fsa2lrnn.nn.model import LRNN
    from fsa2lrnn.nn.streams import Stream
    from fsa2lrnn.nn.wrapped import wrap, wrap_fla
    from fsa2lrnn.repairing.least_change import repair
    from fsa2lrnn.training.train import train
    from fsa2lrnn.verdicts import Proved, Refuted, Undecided
    from fsa2lrnn.verification import prove_equivalent
    from fsa2lrnn.verification.certify import certify
    from fsa2lrnn.verification.check import check
    from fsa2lrnn.verification.extraction import extract, extract_learned
    from fsa2lrnn.verification.falsify import falsify
    from fsa2lrnn.verification.falsify.model_comparison import Budget
    from fsa2lrnn.weighted import WeightedAutomaton

__version__ = "0.1.0"

_HOME = {
    "Budget": "fsa2lrnn.verification.falsify.model_comparison",
    "Cascade": "fsa2lrnn.cascade.cascade",
    "FAMILIES": "fsa2lrnn.families",
    "LRNN": "fsa2lrnn.nn.model",
    "MooreMachine": "fsa2lrnn.automata.machine",
    "Proved": "fsa2lrnn.verdicts",
    "Readout": "fsa2lrnn.nn.affine",
    "Recurrence": "fsa2lrnn.compile.recurrence",
    "Refuted": "fsa2lrnn.verdicts",
    "Stream": "fsa2lrnn.nn.streams",
    "Undecided": "fsa2lrnn.verdicts",
    "WeightedAutomaton": "fsa2lrnn.weighted",
    "certify": "fsa2lrnn.verification.certify",
    "check": "fsa2lrnn.verification.check",
    "choose": "fsa2lrnn.compile.choice",
    "classify": "fsa2lrnn.automata.monoid",
    "compile_machine": "fsa2lrnn.compile.lower",
    "compile_recurrence": "fsa2lrnn.compile",
    "decompose": "fsa2lrnn.cascade.decomposition",
    "equivalent": "fsa2lrnn.automata.language",
    "explain": "fsa2lrnn.cli.explanation",
    "extract": "fsa2lrnn.verification.extraction",
    "extract_learned": "fsa2lrnn.verification.extraction",
    "falsify": "fsa2lrnn.verification.falsify",
    "learn": "fsa2lrnn.learning.methods",
    "load": "fsa2lrnn.nn.checkpoint",
    "prove_equivalent": "fsa2lrnn.verification",
    "repair": "fsa2lrnn.repairing.least_change",
    "represent": "fsa2lrnn.families",
    "save": "fsa2lrnn.nn.checkpoint",
    "train": "fsa2lrnn.training.train",
    "wrap": "fsa2lrnn.nn.wrapped",
    "wrap_fla": "fsa2lrnn.nn.wrapped",
}

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
    "Stream",
    "Undecided",
    "WeightedAutomaton",
    "certify",
    "check",
    "choose",
    "classify",
    "compile_machine",
    "compile_recurrence",
    "decompose",
    "equivalent",
    "explain",
    "extract",
    "extract_learned",
    "falsify",
    "learn",
    "load",
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
        if name == "zoo":
            return import_module("fsa2lrnn.automata.zoo")
        raise AttributeError(f"module 'fsa2lrnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
