"""Write the explorer, a self-contained page on which an automaton and its networks run letter by letter.

It shows the machine, and of up to four models the matrices of each letter, the state and the outputs, along any word;
a button leads to the word on which a model fails. The page computes the models in their own arithmetic (`engine.js`)
and contains all data for this. States are drawn in the plane in which the automaton's states tell them apart best.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from fsa2lrnn import symbols
from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Markup, visible
from fsa2lrnn.draw.automaton import automaton, notes
from fsa2lrnn.draw.drawn_machine import DrawnMachine, written
from fsa2lrnn.draw.model_program import programs
from fsa2lrnn.draw.svg import render
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.verdicts import Proved, Refuted
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.specification import Specification, specification_of

_WORDS, _LENGTH, _SHOWN = 16, 24, 160  # number and length of the words for a plane, and the points shown in it
_DIMENSIONS = 2_000  # the most entries of a state for which a plane is computed
_RIDGE = 1e-3  # the part of the variance within states that is added to each direction, so that none has zero variance


def plane(model: LRNN, goal: Specification, like: list[list[float]] | None) -> dict[str, Any] | None:
    """Return the plane that best separates the machine's states along random words, or None.

    It is a JSON object with the projection and points [x, y, state]. With `like`, points of another model, it is
    the plane in which the states lie most similarly (`_fisher`). The result is None for a model of index tables, for
    states of more than 2,000 entries or not finite, and if the plane separates less than half of the machine's states.
    """
    if model.config.reads_letters:
        return None
    tokens = _lively_words(goal)
    state, rows = model.initial_state(_WORDS), []
    with torch.no_grad():
        for letters in torch.from_numpy(tokens).split(1, dim=1):
            _, state = model.advance(letters, state)
            rows.append(torch.cat([layer.x.flatten(1) for layer in state], dim=1))
    x = torch.stack(rows, dim=1).double().flatten(0, 1).numpy()  # (B·T, d)
    if x.shape[1] > _DIMENSIONS or not np.isfinite(x).all():
        return None
    q = goal.path(tokens).ravel()
    mean, directions = _fisher(x, q, like)
    points = np.round((x - mean) @ directions, 3)
    seen = np.unique(q)
    centres = np.stack([points[q == state].mean(0) for state in seen])
    if 2 * len(np.unique(np.round(10 * centres), axis=0)) < len(seen):
        return None  # the plane separates too few states
    points = points[:_SHOWN]
    listed = [[float(a), float(b), int(state)] for (a, b), state in zip(points, q, strict=False)]
    return {"mean": mean.tolist(), "directions": directions.T.tolist(), "points": listed}


def _lively_words(goal: Specification) -> np.ndarray:
    """Return random words, int64 (16, 24), that avoid sinks if possible, except for one word in eight."""
    rng, words = np.random.default_rng(0), np.empty((_WORDS, _LENGTH), np.int64)
    inside = ~sinks(goal.delta)
    for i, word in enumerate(words):
        q = goal.start
        for k in range(_LENGTH):
            onward = np.flatnonzero(inside[goal.delta[:, q]])
            is_free = i % 8 == 0 or not len(onward)
            word[k] = rng.integers(len(goal.delta)) if is_free else rng.choice(onward)
            q = goal.delta[word[k], q]
    return words


def sinks(delta: np.ndarray) -> np.ndarray:
    """Return which states are sinks: table (|Σ|, n) -> bool (n,)."""
    return (delta == np.arange(delta.shape[1])).all(0)


def _fisher(x: np.ndarray, q: np.ndarray, like: list[list[float]] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the origin (d,) and two directions (d, 2) of the plane that separates classes most: x (N, d), q (N,).

    It is Fisher's discriminant plane (1936), or with `like` that in which the centres of classes are closest to those
    of the points `like`. The largest coordinate of a centre is scaled to 1.
    """
    seen = np.unique(q)
    centres = np.stack([x[q == state].mean(0) for state in seen])
    rest = x - centres[np.searchsorted(seen, q)]
    within = rest.T @ rest / len(x)
    scale = max(float(np.trace(within)), float(x.var(0).sum()) * _RIDGE, 1e-12)
    whiten = np.linalg.inv(np.linalg.cholesky(within + _RIDGE * scale * np.eye(x.shape[1])))
    mean = centres.mean(0)
    apart = (centres - mean) @ whiten.T
    if like is None:
        turned = np.linalg.svd(apart, full_matrices=False)[2][:2].T
    else:
        goals = np.stack([_centre(like, int(state)) for state in seen])
        turned = np.linalg.pinv(apart, rcond=_RIDGE) @ (goals - goals.mean(0))
    directions = whiten.T @ turned
    directions = np.pad(directions, ((0, 0), (0, 2 - directions.shape[1])))
    size = np.abs((centres - mean) @ directions).max()
    return mean, directions / (size or 1.0)


def _centre(points: list[list[float]], state: int) -> np.ndarray:
    near = [point[:2] for point in points if point[2] == state]
    return np.mean(near, axis=0) if near else np.zeros(2)


MODELS = 4
"""The most models that a page shows side by side."""
_HEAD_STATES, _HEADS = 12, 16  # the most states of a drawn head, and the most drawn heads
_PAIRS = 20_000  # the most joint states of a proof
_STEPS = {  # buttons by id: the text, the name, and the key of the same function
    "first": ("|◀", "to the start", "Home"),
    "back": ("◀", "one letter back", "←"),
    "play": ("▶ play", "play", "space"),
    "next": ("▶", "one letter on", "→"),
    "last": ("▶|", "to the end", "End"),
    "error": ("✗ error", "to the first wrong output", "e"),
}
_SPEEDS = {"1 letter per second": 1000, "3 per second": 330, "15 per second": 66, "as fast as possible": 0}
_TYPED = {
    "characters": "letters without spaces",
    "words": "letters separated by spaces",
    "list": 'a JSON list of letters, ["a b", "c"]',
}
_WIDE = 560.0  # the width in pixels from which a drawing takes the whole width of the page


@dataclass(frozen=True)
class SceneModel:
    """A model of the explorer with its description.

    Args:
        model: the model, on the CPU.
        kind: "learned", "repaired" or "compiled".
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


def build(title: str, machine: MooreMachine, models: Mapping[str, SceneModel], ignore: Ignore = ()) -> str:
    """Return the explorer's page as HTML.

    Args:
        title: the title, such as "task:sum_mod(5)".
        machine: the target of the models; its minimal machine is shown.
        models: at most 4 models by name, over the machine's letters.
        ignore: the outputs of the machine that do not count (`fsa2lrnn.automata.counting`).

    Raises:
        UnsupportedFormat: for more models, and as `programs` does.
        InvalidMachine: if a model has other letters.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> page = build("parity", zoo.parity(), {"compiled": SceneModel(compile_machine(zoo.parity()), "compiled")})
    >>> page.startswith("<!doctype html>"), "http://" in page.replace("http://www.w3.org", "")
    (True, False)
    """
    if len(models) > MODELS:
        raise UnsupportedFormat(
            f"{len(models)} models: a page shows {MODELS} side by side, write several pages for more"
        )
    shown = scene(machine, models, ignore)
    text = json.dumps(shown.data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return render(
        "explorer.html",
        title=title, data=shown.data, drawn=shown.drawn, machine=shown.machine, heads=shown.heads,
        letters=[visible(letter, lines=False) for letter in shown.drawn.alphabet[:64]],
        notes=" ".join(notes(shown.drawn)),
        is_wide=shown.machine is None or _width(shown.machine) > _WIDE, steps=_STEPS, speeds=_SPEEDS, how_typed=_TYPED,
        json=Markup(text.encode("utf-8", "backslashreplace").decode()),  # lone surrogates, as JSON escapes them
    )  # fmt: skip


def _width(drawing: Markup) -> float:
    return float(drawing.partition('viewBox="0 0 ')[2].split(" ", 1)[0])


def compiled(model: LRNN, machine: MooreMachine) -> SceneModel:
    """Return a compiled model with a sentence that states its proof, if the joint states are few enough to enumerate.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> compiled(compile_machine(zoo.parity()), zoo.parity()).said.partition("; ")[2]
    'every shape of call, batch and number of threads.'
    """
    verdict = prove_equivalent(model, machine, _PAIRS)
    if isinstance(verdict, Proved):
        return with_verdict(model, "compiled", verdict)
    return SceneModel(model, "compiled", "Compiled from the automaton.")


def searched(model: LRNN, machine: MooreMachine, seconds: float, ignore: Ignore = ()) -> SceneModel:
    """Return a model with a sentence on the result of a counterexample search, and raise the errors of `falsify`."""
    verdict = falsify(model, machine, Budget(seconds=seconds), ignore)
    if isinstance(verdict, Refuted):
        return with_verdict(model, "learned", verdict)
    if verdict.checked_length is None:
        said = "Correct on all words that are read letter by letter: all reachable joint states were enumerated."
        return SceneModel(model, "compiled", said)
    return SceneModel(model, "learned", f"No counterexample found in {seconds:g} seconds, which proves nothing.")


def with_verdict(model: LRNN, kind: str, verdict: Proved | Refuted) -> SceneModel:
    """Return a model with a sentence that states its proof, or with its counterexample."""
    if isinstance(verdict, Proved):
        closed = counted(verdict.pairs, "joint state")
        said = f"Proved correct on all words: {closed} enumerated, bit for bit, {verdict.covers}."
        return SceneModel(model, kind, said)
    least = "the shortest" if verdict.is_shortest else "the shortest found"
    said = f"Fails on a word of {counted(len(verdict.word), 'letter')}, {least}."
    return SceneModel(model, kind, said, (verdict.word,))


def scene(machine: MooreMachine, models: Mapping[str, SceneModel], ignore: Ignore = ()) -> Scene:
    """Return the scene of a machine and of models of it, and raise the errors of `programs` and `specification_of`."""
    minimal = machine.minimise()
    drawn = DrawnMachine.of_machine(minimal)
    written_by = programs({name: shown.model for name, shown in models.items()})
    number, like = symbols.letter_index(minimal.alphabet), None
    heads: list[dict[int, Markup]] = []
    entries: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for name, shown in models.items():
        goal = specification_of(shown.model, minimal, ignore)
        automata = _heads(shown.model, minimal)
        flat = plane(shown.model, goal, like)
        # Planes of later models are turned so that they resemble the first one.
        if like is None and flat is not None:
            like = flat["points"]
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
                "plane": flat,
                "heads": {str(h): states for h, (states, _) in automata.items()},
            }
        )
        words += [{"of": name, "letters": [number[letter] for letter in word]} for word in shown.failing]
    data = {
        "machine": {
            **vars(drawn),
            "names": drawn.names,
            "outputs": [symbols.show(output) for output in minimal.outputs],
            "sinks": sinks(minimal.delta).tolist(),
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


def _heads(model: LRNN, minimal: MooreMachine) -> dict[int, tuple[list[int], Markup]]:
    """Return, by number, the heads that are small automata over the letters: their reachable states and a drawing.

    A model without tables has none; of a model that is one block with the machine's states none is drawn again.
    """
    layer = model.recurrences[0]
    if not model.is_switched or layer.block_sizes == (minimal.n_states,):
        return {}
    with torch.no_grad():
        A, v = layer.tables(model.first_inputs())
        start = layer.initial_state(1)[0]
    heads: dict[int, tuple[list[int], Markup]] = {}
    for h, b in enumerate(layer.block_sizes):
        if len(heads) == _HEADS or not _is_automaton(A[:, h, :b, :b], v[:, h], start[h, :b]):
            continue
        # The 1 of a one-hot column q of A is the row of the next state.
        delta, first = A[:, h, :b, :b].argmax(-2).tolist(), int(start[h, :b].argmax())  # [letter][state]
        graph = nx.DiGraph((q, then) for row in delta for q, then in enumerate(row))
        states = sorted({first} | nx.descendants(graph, first))
        if len(states) <= _HEAD_STATES:
            number, names = {q: i for i, q in enumerate(states)}, [str(q) for q in states]
            rows = [[number[row[q]] for q in states] for row in delta]
            drawn = automaton(DrawnMachine(names, written(model.alphabet), names, rows, number[first]), "small")
            heads[h] = states, drawn or Markup()
    return heads


def _is_automaton(A: Tensor, v: Tensor, start: Tensor) -> bool:
    """Return whether x₀ (b,) and all columns of A (|Σ|, b, b) are one-hot, and v is zero."""
    rows = torch.cat([A.transpose(-1, -2).flatten(0, 1), start[None]])
    return bool(((rows == 0) | (rows == 1)).all() and (rows.sum(-1) == 1).all() and not v.any())
