"""Collect the data of an explorer as one JSON object, and the drawings in its page."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fsa2lrnn import symbols
from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display.markup import Markup
from fsa2lrnn.extra.report.drawing.automaton import automaton
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.explorer.programs import programs
from fsa2lrnn.extra.report.facts import NEAR
from fsa2lrnn.extra.report.gather import fisher, heads_of, machine_facts
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verification.specification import Specification, specification_of

MODELS = 4
"""The most models that a page shows side by side."""
_WORDS, _LENGTH, _SHOWN = 16, 24, 160  # number and length of the words for a plane, and the points shown in it
_DIMENSIONS = 2_000  # the most entries of a state for which a plane is computed
_HEAD_STATES, _HEADS = 12, 16  # the most states of a drawn head, and the most drawn heads


@dataclass(frozen=True)
class SceneModel:
    """A model of the explorer with its description.

    Args:
        model: the model, on the CPU.
        kind: "learned", "repaired" or "constructed".
        said: a sentence that states on which words the model is known to be correct.
        failing: words on which the model is wrong, as letters.
    """

    model: LRNN
    kind: str = "learned"
    said: str = ""
    failing: Sequence[Sequence[Hashable]] = ()


@dataclass(frozen=True)
class Scene:
    """The data of an explorer: the JSON object, the minimal machine, its drawing, and drawings of heads by model."""

    data: dict[str, Any]
    drawn: DrawnMachine
    machine: Markup | None
    heads: list[dict[int, Markup]] = field(default_factory=list)


def scene(machine: MooreMachine, models: Mapping[str, SceneModel], ignore: Ignore = ()) -> Scene:
    """Return the scene of a machine and of models of it, and raise the errors of `programs` and `specification_of`."""
    minimal = machine.minimise()
    drawn = machine_facts(minimal)
    written_by = programs({name: shown.model for name, shown in models.items()})
    number, like = symbols.letter_index(minimal.alphabet), None
    heads: list[dict[int, Markup]] = []
    entries: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for name, shown in models.items():
        goal = specification_of(shown.model, minimal, ignore)
        automata = _heads(shown.model, minimal)
        plane = _plane(shown.model, goal, like)
        # Planes of later models are turned so that they resemble the first one.
        if like is None and plane is not None:
            like = plane["points"]
        heads.append({h: svg for h, (_, svg) in automata.items()})
        entries.append(
            {
                "name": name,
                "kind": shown.kind,
                "said": shown.said,
                "program": written_by[name],
                "letters": symbols.align(minimal.alphabet, shown.model.alphabet),
                "outputs": [symbols.show(output) for output in shown.model.outputs],
                "wanted": [int(j) if j < goal.known else -1 for j in goal.wanted],
                "counts": goal.counts.tolist(),
                "plane": plane,
                "heads": {str(h): states for h, (states, _) in automata.items()},
            }
        )
        words += [{"of": name, "letters": [number[letter] for letter in word]} for word in shown.failing]
    data = {
        "machine": {
            **vars(drawn),
            "names": drawn.names,
            "outputs": [symbols.show(output) for output in minimal.outputs],
            "sinks": _sinks(minimal.delta).tolist(),
        },
        "typed": _typed(drawn.alphabet),
        "words": words,
        "models": entries,
    }
    return Scene(data, drawn, automaton(drawn), heads)


def _typed(alphabet: Sequence[str]) -> str:
    if len(set(alphabet)) < len(alphabet) or any(text.split() != [text] for text in alphabet):
        return "list"
    return "characters" if all(len(text) == 1 for text in alphabet) else "words"


def _plane(model: LRNN, goal: Specification, like: list[list[float]] | None) -> dict[str, Any] | None:
    """Return the plane that best separates the machine's states along random words, or None.

    It is a JSON object with the projection and points [x, y, state, NEAR]. With `like`, points of another model, it is
    the plane in which the states lie most similarly (`fisher`). The result is None for a model of index tables, for
    states of more than 2,000 entries or not finite, and if the plane separates less than half of the machine's states.
    """
    if model.config.reads_letters:
        return None
    tokens = _lively(goal)
    state, rows = model.initial_state(_WORDS), []
    with torch.no_grad():
        for letters in torch.from_numpy(tokens).split(1, dim=1):
            _, state = model.advance(letters, state)
            rows.append(torch.cat([layer.x.flatten(1) for layer in state], dim=1))
    x = torch.stack(rows, dim=1).double().flatten(0, 1).numpy()  # (B·T, d)
    if x.shape[1] > _DIMENSIONS or not np.isfinite(x).all():
        return None
    q = goal.path(tokens).ravel()
    mean, directions = fisher(x, q, like)
    points = np.round((x - mean) @ directions, 3)
    seen = np.unique(q)
    centres = np.stack([points[q == state].mean(0) for state in seen])
    if 2 * len(np.unique(np.round(10 * centres), axis=0)) < len(seen):
        return None  # the plane separates too few states
    points = points[:_SHOWN]
    listed = [[float(a), float(b), int(state), NEAR] for (a, b), state in zip(points, q, strict=False)]
    return {"mean": mean.tolist(), "directions": directions.T.tolist(), "points": listed}


def _sinks(delta: np.ndarray) -> np.ndarray:
    """Return which states are sinks: table (|Σ|, n) -> bool (n,)."""
    return (delta == np.arange(delta.shape[1])).all(0)


def _lively(goal: Specification) -> np.ndarray:
    """Return random words, int64 (16, 24), that avoid sinks if possible, except for one word in eight."""
    rng, words = np.random.default_rng(0), np.empty((_WORDS, _LENGTH), np.int64)
    inside = ~_sinks(goal.delta)
    for i, word in enumerate(words):
        q = goal.start
        for k in range(_LENGTH):
            onward = np.flatnonzero(inside[goal.delta[:, q]])
            is_free = i % 8 == 0 or not len(onward)
            word[k] = rng.integers(len(goal.delta)) if is_free else rng.choice(onward)
            q = goal.delta[word[k], q]
    return words


def _heads(model: LRNN, minimal: MooreMachine) -> dict[int, tuple[list[int], Markup]]:
    if model.recurrences[0].block_sizes == (minimal.n_states,):
        return {}
    drawn = {h: (head.states, automaton(head.machine, "small")) for h, head in heads_of(model, _HEAD_STATES).items()}
    return {h: (states, svg) for h, (states, svg) in list(drawn.items())[:_HEADS] if svg is not None}
