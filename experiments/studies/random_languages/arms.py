"""The layers and column rules of the study: how each is trained, and theory's prediction for a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.export.in_use import NO, NOT_EXCLUDED, YES, say
from fsa2lrnn.families import represent
from fsa2lrnn.training.settings import Settings, preset

BLOCK, HEADS = 8, 8
TRAINING: Mapping[str, Any] = {
    "steps": 1_000,
    "batch": 32,
    "length": 40,
    "test_length": 40,
    "test_words": 256,
    "evaluate_every": 100,
    "stop_at": None,  # a run that has learned goes on, as those that have not: how long it stays right is asked too
}


class Arm(NamedTuple):
    """One way to train one layer.

    Args:
        title: what tables call it.
        changes: of the settings; None for what `learn` does.
        theory: which answer, of `export.in_use`, a machine gets, and why.
    """

    title: str
    changes: Mapping[str, Any] | None
    theory: Callable[[MooreMachine], tuple[str, str]]


def settings(arm: str, source: str, seed: int) -> Settings:
    """Return a run's settings, except for "onehot", which `learn` trains by its own recipe."""
    changes = ARMS[arm].changes
    assert changes is not None
    return preset("quick", source, seed=seed, **TRAINING, **changes)


def _one_hot(machine: MooreMachine) -> tuple[str, str]:
    return YES, f"a block of {machine.n_states} one-hot columns a letter is the machine (T1)"


def _blocks(machine: MooreMachine) -> tuple[str, str]:
    said = say(machine, "block")
    return said.answer, said.why


def _released(machine: MooreMachine) -> tuple[str, str]:
    """Return the family's answer: its "no" holds for centred columns too, but they are not the whole family."""
    answer, why = _blocks(machine)
    return (NO, why) if answer == NO else (NOT_EXCLUDED, f"{why}; centred columns are a part of it")


def _clipped(machine: MooreMachine) -> tuple[str, str]:
    """Return the answer for bounded columns: one-hot columns meet the bound, so machines that fit are represented."""
    if machine.n_states <= BLOCK:
        return YES, f"{machine.n_states} states fit into a block with one-hot columns (T1)"
    answer, why = _blocks(machine)
    return (NO, why) if answer == NO else (NOT_EXCLUDED, f"{why}; columns of norm at most 1 are a part of it")


def _of_family(family: str) -> Callable[[MooreMachine], tuple[str, str]]:
    def theory(machine: MooreMachine) -> tuple[str, str]:
        verdict = represent(machine, family, short_words=False)
        answers = {"yes": YES, "no": NO, "unknown": NOT_EXCLUDED}
        return answers[verdict.answer], f"{family}: {verdict.answer}"

    return theory


def _named(name: str) -> Callable[[MooreMachine], tuple[str, str]]:
    def theory(machine: MooreMachine) -> tuple[str, str]:
        said = say(machine, name)
        return said.answer, said.why

    return theory


def _householder(factors: int) -> Mapping[str, Any]:
    return {"block": BLOCK, "heads": HEADS, "layer": "householder", "factors": factors, "normalisation": "none"}


ARMS: dict[str, Arm] = {
    "onehot": Arm("one-hot columns, by `learn`", None, _one_hot),
    "released": Arm("blocks of 8, paper rule", {"block": BLOCK, "heads": HEADS}, _released),
    "clip": Arm(
        "blocks of 8, clipped, p = 1",
        {"block": BLOCK, "heads": HEADS, "normalisation": "clip", "p": 1.0},
        _clipped,
    ),
    "none": Arm(
        "blocks of 8, no rule, a tenth of the rate",
        {"block": BLOCK, "heads": HEADS, "normalisation": "none", "learning_rate": 1e-4, "gradient_clip": 1.0},
        _blocks,
    ),  # at the others' rate most runs diverge within ten steps, clipped or not
    "diagonal": Arm(
        "diagonal in [−1, 1]",
        {"block": 1, "heads": 64, "normalisation": "clip", "p": 1.0},
        _of_family("diagonal[-1,1]"),
    ),
    "lru": Arm("complex diagonal, the same for all letters (LRU)", {"layer": "lru"}, _named("lru")),
    "householder_1": Arm("one Householder factor a letter", _householder(1), _of_family("householder(1)")),
    "householder_2": Arm("two Householder factors a letter", _householder(2), _of_family("householder(2)")),
    "s4d": Arm("S4D", {"layer": "s4d"}, _named("s4d")),
    "rwkv4": Arm("RWKV-4", {"layer": "rwkv4"}, _named("rwkv4")),
}
