"""All that an explorer shows, as one JSON object, and the drawings that stand in its page."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fsa2lrnn import symbols
from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.drawing.automaton import automaton
from fsa2lrnn.drawing.machine import Machine, written
from fsa2lrnn.drawing.markup import Markup
from fsa2lrnn.drawing.ranks import distances
from fsa2lrnn.judge.goal import Goal, goal_for
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.report.explorer.programs import one_hot_heads, programs
from fsa2lrnn.report.facts import NEAR
from fsa2lrnn.report.gather import fisher, machine_facts

MODELS = 4
"""How many models a page shows side by side."""
_WORDS, _LENGTH, _SHOWN = 16, 24, 160  # whose states make a plane, and how many of them are shown in it
_DIMENSIONS = 2_000  # of states, beyond which there is no plane
_HEAD_STATES, _HEADS = 12, 16  # of automata of heads that are drawn


@dataclass(frozen=True)
class Shown:
    """A model beside what is to be said of it.

    Args:
        model: on the CPU.
        kind: "learned", "repaired" or "constructed".
        said: a sentence: how long it is right, as far as is known.
        failing: words that it gets wrong, as letters.
    """

    model: LRNN
    kind: str = "learned"
    said: str = ""
    failing: Sequence[Sequence[Hashable]] = ()


@dataclass(frozen=True)
class Scene:
    """The JSON object, and drawings by where they stand: the machine, then [model][head]."""

    data: dict[str, Any]
    machine: Markup | None
    heads: list[dict[int, Markup]] = field(default_factory=list)


def scene(machine: MooreMachine, models: Mapping[str, Shown], ignore: Ignore = ()) -> Scene:
    """Of a machine and up to `MODELS` models of it. Raises as `programs` and `goal_for` do."""
    minimal = machine.minimise()
    drawn = machine_facts(minimal)
    written_by = programs({name: shown.model for name, shown in models.items()})
    number, like = symbols.letter_index(minimal.alphabet), None
    heads: list[dict[int, Markup]] = []
    entries: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for name, shown in models.items():
        goal = goal_for(shown.model, minimal, ignore)
        automata = _heads(shown.model, minimal)
        plane = _plane(shown.model, goal, like)
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
                "outputs": written(shown.model.outputs),
                "wanted": [int(j) if j < goal.known else -1 for j in goal.wanted],
                "counts": goal.counts.tolist(),
                "plane": plane,
                "heads": {str(h): states for h, (states, _) in automata.items()},
            }
        )
        words += [{"of": name, "letters": [number[letter] for letter in word]} for word in shown.failing]
    data = {
        "machine": {"names": drawn.names, **vars(drawn)},
        "typed": _typed(drawn.alphabet),
        "words": words,
        "models": entries,
    }
    return Scene(data, automaton(drawn), heads)


def _typed(alphabet: Sequence[str]) -> str:
    """How words are typed: "characters", "words" with spaces between, or a "list" of JSON texts."""
    if len(set(alphabet)) < len(alphabet) or any(text.split() != [text] for text in alphabet):
        return "list"
    return "characters" if all(len(text) == 1 for text in alphabet) else "words"


def _plane(model: LRNN, goal: Goal, like: list[list[float]] | None) -> dict[str, Any] | None:
    """The plane in which the machine's states lie apart most, along random words: how a state is put into it, and some
    points, [x, y, state]; with `like`, points of another model, turned so that they lie as those do. None for an index
    table, and for states of very many numbers."""
    if model.config.reads_letters:
        return None
    tokens = np.random.default_rng(0).integers(0, len(model.alphabet), (_WORDS, _LENGTH))
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
    points = np.round((x - mean) @ directions, 3)[:_SHOWN]
    listed = [[float(a), float(b), int(state), NEAR] for (a, b), state in zip(points, q, strict=False)]
    return {"mean": mean.tolist(), "directions": directions.T.tolist(), "points": listed}


def _heads(model: LRNN, minimal: MooreMachine) -> dict[int, tuple[list[int], Markup]]:
    """The automata of heads that are one, as far as letters lead: the states by number, and the drawing."""
    if not model.is_switched:
        return {}
    layer = model.recurrences[0]
    with torch.no_grad():
        A, v = layer.tables(model.first_inputs())
        start = layer.initial_state(1)[0]
    heads = one_hot_heads(layer, A, v)
    if len(layer.block_sizes) == 1 and layer.block_sizes[0] == minimal.n_states:
        return {}  # the machine itself
    found = {}
    for h in heads[:_HEADS]:
        b = layer.block_sizes[h]
        delta = A[:, h, :b, :b].argmax(-2).numpy()  # (|Σ|, b)
        first = int(start[h, :b].argmax())
        edges = [(int(q), int(then)) for row in delta for q, then in enumerate(row)]
        steps = distances(b, edges, first)
        states = [q for q in range(b) if q == first or steps[q]]
        if len(states) <= _HEAD_STATES:
            number = {q: i for i, q in enumerate(states)}
            rows = [[number[int(row[q])] for q in states] for row in delta]
            names = [str(q + 1) for q in states]
            small = Machine(names, written(minimal.alphabet), names, rows, number[first])
            if (svg := automaton(small, "small")) is not None:
                found[h] = states, svg
    return found
