"""Measure what keeps certified lengths below the shortest counterexample.

`python -m experiments.studies.certified_gap`, half a minute per model. For each kept model of one layer with a known
counterexample, at one memory of last letters:

- `sets`: the certified length of the sets as they are, and with the rounding of float64, which is nearly none;
- `hull`: the length up to which the checker's bound on the read-out accepts sets of the same shape that are tight, that
  is, the hull of sampled states. What `sets` loses against it is lost by carrying sets on;
- `linear`: the length up to which one linear bound of the read-out per node is positive on the samples, if each hidden
  unit is bounded by its samples. What `hull` loses against it is lost by the shape of the sets;
- `samples`: the length up to which the read-out is right on the samples.

The samples are the best words of a beam search along each hidden unit, each difference of logits and each slow
coordinate, both ways, followed by all words of `memory` letters. They are estimates from inside: `hull`, `linear` and
`samples` prove nothing. Lengths other than `sets` are the last of a grid of `GRID` lengths that passes.

`growth` says by how much the half-width of the set along a margin's gradient grows per letter, and which parts of it
come from the balls of the contracting coordinates and from the intervals of the slow ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import numpy as np
import typer

from experiments import results_io, script
from experiments.resumable import known_rows, run_due
from experiments.studies.keep_models import MODELS
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.checker.intervals import Ball
from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.nodes import CountedAutomaton
from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import NORM_EPS, Slack
from fsa2lrnn.checker.sets import Sets, Tube
from fsa2lrnn.checker.short_words import ShortWords, enclose
from fsa2lrnn.checker.tables import Tables
from fsa2lrnn.lrnn.checkpoint import load
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.certify.search import TubeSearch
from fsa2lrnn.verification.certify.work import WORK, WorkBudget
from fsa2lrnn.verification.plain import checked
from fsa2lrnn.verification.specification import specification_of

COMMAND = "python -m experiments.studies.certified_gap"
GRID = 16  # lengths up to the shortest counterexample
_SETS = 450  # the memory is the largest with at most so many nodes
_BEAM = 2  # words per direction and machine state
_THRESHOLD = 0.93  # of slow functionals, as the search tries first


@dataclass(frozen=True, eq=False)
class Words:
    """States x after some words, (W, H, b), with (W,) each: machine states, last letters as numbers, beams."""

    state: np.ndarray
    letters: np.ndarray
    beam: np.ndarray
    x: np.ndarray

    def __getitem__(self, some: np.ndarray) -> Words:
        return Words(self.state[some], self.letters[some], self.beam[some], self.x[some])


def main(
    longest: Annotated[int, typer.Option(help="leave out models whose shortest counterexample is longer")] = 1_000,
) -> None:
    """Measure the models that have no row yet, seed by seed, and write results/certified_gap.json after each."""
    learned = results_io.read("learned")["results"]["models"]
    plan = [
        (name, row["failure"]["length"])
        for name, row in sorted(learned.items(), key=lambda item: (item[0].split("/")[1], item[0]))
        if row["method"] == "sets" and row["failure"] and row["failure"]["length"] <= longest
    ]

    def measured(name: str, counterexample: int) -> dict[str, Any]:
        row = learned[name]
        return {"model": name, "certified": row["certified"], "counterexample": counterexample} | gap(
            MODELS / f"{name}.safetensors", row["task"], counterexample
        )

    def write(rows: list[dict[str, Any]]) -> None:
        results_io.write("certified_gap", {"models": rows, "summary": summary(rows)}, COMMAND)

    rows = known_rows("certified_gap", "models")
    run_due(plan, ("model",), rows, measured, write)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over the models: lengths as shares of the shortest counterexample, sources as shares of growth.

    >>> lengths = {"certified": 4, "sets": 2, "sets_without_rounding": 2, "hull": 5, "linear": 9, "samples": 10}
    >>> row = {"counterexample": 10, "growth": {"per_letter": 0.5, "balls": 0.25, "intervals": 0.1}} | lengths
    >>> list(summary([row]).values())
    [0.4, 0.2, 0.2, 0.5, 0.9, 0.5, 0.2]
    """
    lengths = ("certified", "sets", "sets_without_rounding", "hull", "linear")
    shares = {name: median(row[name] / row["counterexample"] for row in rows) for name in lengths}
    grown = [row["growth"] for row in rows if row["growth"]]
    for name in ("balls", "intervals") if grown else ():
        shares[name] = median(part[name] / part["per_letter"] for part in grown)
    return {name: round(share, 3) for name, share in shares.items()}


def gap(path: Path, task: str, counterexample: int) -> dict[str, Any]:
    """Return the row of one model."""
    begun = time.monotonic()
    model, machine = load(path), MooreMachine.from_source(task)
    affine = switched(model)
    tables, target = checked(affine), specification_of(affine, machine, "lacked").target
    n_letters, n_states = target.delta.shape
    memory = widest_memory(n_states, n_letters, _SETS)
    tube = TubeSearch(tables, target, Slack(), WorkBudget(WORK)).tube(memory, _THRESHOLD)
    replay = TubeReplay(tables, target, tube, Slack())
    lengths = {"sets": 0, "sets_without_rounding": 0, "hull": 0, "linear": 0, "samples": 0}
    lengths["sets"], growth = walked(replay, tube)
    double = {name: x.astype(np.float64) for name, x in tables.numbers.items()}
    exact = replace(tables, numbers=double, dtype="float64")
    lengths["sets_without_rounding"], _ = walked(TubeReplay(exact, target, tube, Slack()), tube)
    grid = sorted({max(tube.start, round(counterexample * i / GRID)) for i in range(1, GRID + 1)})
    passing = {"hull", "linear", "samples"}
    for length, words in sampled(tables, target, replay, memory, grid):
        margins = {"samples": _least_margin(tables, target, words)}
        margins["linear"] = linear_margin(tables, target, words, memory)
        balls = ShortWords(words.state, words.letters, Ball.exact(words.x))
        hulls = enclose(balls, length, replay.nodes, tube, replay.steps.directions)
        margins["hull"] = replay.margin(hulls) if "hull" in passing else 0.0
        passing = {name for name in passing if margins[name] > 0}
        lengths |= dict.fromkeys(passing, length)
        if not passing:
            break
    return {"memory": memory, **lengths, "growth": growth, "seconds": round(time.monotonic() - begun, 1)}


def widest_memory(n_states: int, n_letters: int, most_sets: int) -> int:
    """Return the most last letters that sets can remember, at least one, with at most so many sets."""
    memory = 1
    while n_states * n_letters ** (memory + 1) <= most_sets:
        memory += 1
    return memory


def walked(replay: TubeReplay, tube: Tube) -> tuple[int, dict[str, float]]:
    """Return the length that sets certify, and the growth of their half-widths at half of that length."""
    walk: list[Sets] = []
    length = 0
    for margin, sets in replay.lengths():
        if not margin > 0:
            break
        length += 1
        if sets is not None:
            walk.append(sets)
    joint = (tube.directions.any(3).sum(2) > 1).any(0)  # directions that extend over several heads
    if len(walk) < 4 or not joint.any():
        return length, {}
    before, after = walk[len(walk) // 2], walk[len(walk) // 2 + 1]
    grown = [((sets.upper - sets.lower)[:, joint] / 2).max(-1)[sets.alive.any(-1)].mean() for sets in (before, after)]
    balls: list[float] = []
    intervals: list[float] = []
    for letter in replay.steps.letters:
        sources = before.at(letter.source)
        for along in letter.along:
            heads = along.group.heads
            rows = joint[along.group.rows]
            radius = sources.radius[:, heads].reshape(len(letter.source), -1, sources.radius.shape[-1])
            balls += (along.ball @ sources.ball[:, heads]).max(-1)[:, rows].ravel().tolist()
            intervals += (along.rest @ radius).max(-1)[:, rows].ravel().tolist()
    parts = {"per_letter": grown[1] - grown[0], "balls": mean(balls), "intervals": mean(intervals)}
    return length, {name: float(f"{value:.3g}") for name, value in parts.items()}


def sampled(
    tables: Tables, target: CountedAutomaton, replay: TubeReplay, memory: int, grid: list[int]
) -> list[tuple[int, Words]]:
    """Return, for each length of the grid, states after words that a beam search along many directions finds."""
    x0 = tables.weights["x0"]
    along = _functionals(tables, target, replay)  # (|Q|, D, n)
    D = along.shape[1]
    beams = Words(np.full(D, target.start), np.zeros(D, np.int64), np.arange(D), np.broadcast_to(x0, (D, *x0.shape)))
    found: list[tuple[int, Words]] = []
    for length in range(1, grid[-1] - memory + 1):
        beams = _best(_read(tables, target, beams, 1), along)
        if length + memory in grid:
            _, some = np.unique(beams.x.reshape(len(beams.x), -1), axis=0, return_index=True)
            words = beams[some]
            for _ in range(memory):
                words = _read(tables, target, words, len(tables.alphabet) ** memory)
            found.append((length + memory, words))
    return found


def _functionals(tables: Tables, target: CountedAutomaton, replay: TubeReplay) -> np.ndarray:
    """Return hidden units, differences of logits and coordinates, on the slow part, both ways: (|Q|, D, n)."""
    weights, tube = tables.weights, replay.tube
    B, W2 = _scaled(tables).B.mid, weights["W2"]
    F, H, b = tube.slow.shape
    pairs = [(W2[i] - W2[j]) @ B for i in range(len(W2)) for j in range(i)]
    rows = np.concatenate([B, np.reshape(pairs, (-1, B.shape[1]))]).reshape(-1, H, b)
    dual = np.linalg.inv(tube.basis)
    onto = (tube.basis * tube.slow[:, :, None]) @ dual  # (F, H, b, b), the projections on the slow part
    projected = np.einsum("dhi,fhij->fdhj", rows, onto).reshape(F, len(rows), -1)
    coordinates = np.zeros((F, H, b, H, b))
    for h, i in np.argwhere(tube.slow.any(0)):
        coordinates[:, h, i, h] = dual[:, h, i] * tube.slow[:, h, i, None]
    used = tube.slow.any(0)
    each = np.concatenate([projected, coordinates[:, used].reshape(F, int(used.sum()), -1)], 1)
    result = np.zeros((target.delta.shape[1], *each.shape[1:]))
    for q in np.unique(replay.nodes.state):
        result[q] = each[replay.nodes.state == q].mean(0)
    return np.concatenate([result, -result], 1)


def _read(tables: Tables, target: CountedAutomaton, words: Words, n_memories: int) -> Words:
    """Return all continuations of these words by one letter from which a position that counts can be reached."""
    A, v, n_letters = tables.weights["A"], tables.weights["v"], len(tables.alphabet)
    x = (np.einsum("ahij,whj->wahi", A, words.x, optimize=True) + v).reshape(-1, *v.shape[1:])
    state = target.delta[:, words.state].T.reshape(-1)
    letters = ((words.letters[:, None] * n_letters + np.arange(n_letters)) % n_memories).reshape(-1)
    beam = words.beam.repeat(n_letters)
    return Words(state, letters, beam, x)[target.coaccessible[state]]


def _best(words: Words, along: np.ndarray) -> Words:
    """Return the words that are farthest along the functional of their beam, a few per beam and machine state."""
    value = (words.x.reshape(len(words.x), -1) * along[words.state, words.beam]).sum(1)
    group = words.beam * len(along) + words.state
    order = np.lexsort((-value, group))
    group = group[order]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    return words[order[rank < _BEAM]]


def _scaled(tables: Tables) -> ScaledReadout:
    return ScaledReadout(tables.weights, tables.format())


def _hidden(tables: Tables, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return hidden units before the ReLU, times σ, (W, m), and σ, (W,), as in T21 of docs/theory.md."""
    readout, flat = _scaled(tables), x.reshape(len(x), -1)
    sigma = np.sqrt(flat.var(1) + NORM_EPS) if readout.has_norm else np.ones(len(flat))
    return flat @ readout.B.mid.T + readout.beta.mid * sigma[:, None], sigma


def _least_margin(tables: Tables, target: CountedAutomaton, words: Words) -> float:
    """Return the least margin on these states, where the output counts."""
    hidden, sigma = _hidden(tables, words.x)
    weights = tables.weights
    logits = (np.maximum(hidden, 0) @ weights["W2"].T) / sigma[:, None] + weights["b2"]
    some = target.answerable[words.state]
    expected = target.expected[words.state[some]]
    right = logits[some, expected]
    logits = logits[some]
    logits[np.arange(len(logits)), expected] = -np.inf
    return float((right - logits.max(1)).min())


def linear_margin(tables: Tables, target: CountedAutomaton, words: Words, memory: int) -> float:
    """Return the least margin, with each ReLU replaced by a line that is valid on the samples of a node."""
    W2, b2, n_memories = tables.weights["W2"], tables.weights["b2"], len(tables.alphabet) ** memory
    hidden, sigma = _hidden(tables, words.x)
    order = np.argsort(code := words.state * n_memories + words.letters, kind="stable")
    least = np.inf
    for some in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        if not target.answerable[q := words.state[some[0]]]:
            continue
        low, high, y = hidden[some].min(0), hidden[some].max(0), target.expected[q]
        bends = (low < 0) & (high > 0)
        steep = np.where(bends, high / np.where(bends, high - low, 1), low >= 0)
        for rival in np.flatnonzero(np.arange(len(b2)) != y):
            v = W2[y] - W2[rival]
            slope = np.where(v < 0, steep, np.where(bends, high > -low, low >= 0))
            lift = (v * np.where(bends & (v < 0), -steep * low, 0)).sum()
            margin = (hidden[some] @ (v * slope) + lift) / sigma[some] + b2[y] - b2[rival]
            least = min(least, float(margin.min()))
    return least


if __name__ == "__main__":
    script.run(main)
