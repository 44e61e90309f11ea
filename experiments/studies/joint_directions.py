"""Estimate what better joint directions could add to certified lengths.

`python -m experiments.studies.joint_directions --model sum3/seed-0`, one model per call. For a kept model of one layer
with a known counterexample, at the largest memory of last letters with at most `_SETS` nodes:

- `sets`: the certified length of the sets as they are;
- `carried`: the same if a letter carries joint directions exactly, without the intervals of what no share covers;
- `units`: the same, if moreover each hidden unit has a joint direction at each machine state, and the read-out bounds
  it along that direction;
- `functions`: the same, if moreover the linear functions that bound the margins where `units` ends, in the mean of each
  machine state's nodes, are joint directions.

`carried`, `units` and `functions` prove nothing. `scale` and `turn` describe the letters in slow coordinates, w' = M w
+ t. With λ the mean over letters and nodes of the trace of a head's M divided by its number of rows, `scale` is |λ − 1|
times the length of the counterexample, and `turn` so many times the root of the mean of ‖M − λ‖², both in the median of
the heads. A direction that takes only a share of itself loses about this many widths of a head's set on the way.
"""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer

from experiments import results_io, script
from experiments.resumable import known_rows, run_due
from experiments.studies.certified_gap import walked, widest_memory
from experiments.studies.keep_models import MODELS
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.checker.margins import Margins, ScaledReadout
from fsa2lrnn.checker.nodes import CountedAutomaton
from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import NORM_EPS, Slack
from fsa2lrnn.checker.sets import Tube
from fsa2lrnn.checker.tables import Tables
from fsa2lrnn.lrnn.checkpoint import load
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.certify.search import TubeSearch
from fsa2lrnn.verification.certify.work import WORK, WorkBudget
from fsa2lrnn.verification.plain import checked
from fsa2lrnn.verification.specification import specification_of

COMMAND = "python -m experiments.studies.joint_directions"
_SETS = 140
_THRESHOLD = 0.93  # of slow functionals, as the search tries first


def main(
    model: Annotated[list[str], typer.Option(help="a kept model such as sum3/seed-0; repeat for several")],
) -> None:
    """Measure these models, those without a row yet, and write results/joint_directions.json after each."""
    learned = results_io.read("learned")["results"]["models"]
    plan = [(name, learned[name]["failure"]["length"]) for name in model]

    def measured(name: str, counterexample: int) -> dict[str, Any]:
        row = {"model": name, "certified": learned[name]["certified"], "counterexample": counterexample}
        affine = switched(load(MODELS / f"{name}.safetensors"))
        machine = MooreMachine.from_source(learned[name]["task"])
        return row | reach(checked(affine), specification_of(affine, machine, "lacked").target, counterexample)

    def write(rows: list[dict[str, Any]]) -> None:
        results_io.write("joint_directions", {"models": rows}, COMMAND)

    run_due(plan, ("model",), known_rows("joint_directions", "models"), measured, write)


def reach(tables: Tables, target: CountedAutomaton, counterexample: int, most_sets: int = _SETS) -> dict[str, Any]:
    """Return the row of one model, but for its name."""
    begun = time.process_time()
    n_letters, n_states = target.delta.shape
    memory = widest_memory(n_states, n_letters, most_sets)
    tube = TubeSearch(tables, target, Slack(), WorkBudget(WORK)).tube(memory, _THRESHOLD)
    replay = TubeReplay(tables, target, tube, Slack())
    lengths = {"memory": memory, "directions": tube.directions.shape[1], "sets": walked(replay, tube)[0]}
    lengths |= _letters(replay, counterexample)
    lengths["carried"] = _walked(_carried(replay), None, counterexample)
    wider = replace(tube, directions=np.concatenate([_units(tables, replay), tube.directions], 1))
    lengths["units"], functions = _with_units(tables, target, wider, counterexample)
    wider = replace(wider, directions=np.concatenate([wider.directions, functions], 1))
    lengths["functions"], _ = _with_units(tables, target, wider, counterexample)
    return lengths | {"cpu_seconds": round(time.process_time() - begun, 1)}


def _with_units(tables: Tables, target: CountedAutomaton, tube: Tube, longest: int) -> tuple[int, np.ndarray]:
    """Return the length of a tube whose first directions are those of the hidden units, and functions where it ends."""
    replay = _carried(TubeReplay(tables, target, tube, Slack()))
    counting = np.flatnonzero(target.answerable[replay.nodes.state])
    T, slow, directions = tube.basis[counting], tube.slow[counting], replay.steps.directions[counting]
    states = replay.nodes.state[counting]
    readout = ScaledReadout(tables.weights, tables.format())
    margins = UnitMargins(readout, T, slow, directions, target.expected[states])
    margins.unit_rows = states[:, None] * len(readout.B.mid) + np.arange(len(readout.B.mid))
    length = _walked(replay, (margins, counting), longest)
    if margins.functions is None:  # the sets reach `longest` without them
        return length, tube.directions[:, :0]
    g = (margins.functions.mean(1) * slow.reshape(len(slow), 1, -1)).reshape(len(slow), -1, *slow.shape[1:])
    rows = np.concatenate([g[states == q].mean(0) for q in np.unique(states)]).astype(np.float32).astype(np.float64)
    return length, np.repeat(rows[None], len(tube.directions), 0)


class UnitMargins(Margins):
    """Margins that bound each hidden unit along its own direction too, in real numbers: an estimate.

    `unit_rows` are the numbers of the units' directions, (F, m).
    """

    unit_rows: np.ndarray
    functions: np.ndarray | None = None  # (F, J, C, n), those of the last evaluation

    def _greatest(self, g: Any, box: Any) -> Any:
        self.functions = -g
        return super()._greatest(g, box)

    def _hidden(self, sigma: Any, box: Any) -> Any:
        hidden = super()._hidden(sigma, box)
        beta = self._readout.beta.mid
        d = np.take_along_axis(self._directions, self.unit_rows[..., None], 1)  # (F, m, n)
        at_centre = box.centre @ d.swapaxes(1, 2)  # (F, J, m)
        up, down = (np.take_along_axis(x, self.unit_rows[:, None], 2) - at_centre for x in (box.upper, box.lower))
        row = self._rows[:, None] + beta[:, None] * sigma.gradient[:, :, None]  # (F, J, m, n)
        of_box, _ = self._reach(np.abs(row * ~self._fast[:, None] - d[:, None]), box)
        _, of_ball = self._reach(np.abs(row), box)
        curve = np.abs(beta) * np.maximum(sigma.below, sigma.above)[..., None]
        rest = of_box + of_ball + curve
        low = np.maximum(hidden.low, hidden.at_centre + down - rest)
        return hidden._replace(low=low, high=np.minimum(hidden.high, hidden.at_centre + up + rest))


def _units(tables: Tables, replay: TubeReplay) -> np.ndarray:
    """Return a direction for each hidden unit at each machine state, state by state: (parts, |Q| m, H, b)."""
    tube, states, weights = replay.tube, replay.nodes.state, tables.weights
    readout = ScaledReadout(weights, tables.format())
    B, beta = readout.B.mid, readout.beta.mid
    _, H, b = tube.slow.shape
    sets = next(sets for _, sets in replay.lengths() if sets is not None)
    x = np.einsum("fhij,fhj->fhi", tube.basis, sets.centre.mean(-1)).reshape(len(states), -1)
    centred = x - x.mean(-1, keepdims=True)
    sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + NORM_EPS)
    turn = centred / (x.shape[1] * sigma) if readout.has_norm else np.zeros_like(x)
    g = (B + beta[:, None] * turn[:, None]).reshape(len(x), -1, H, b)
    g = np.einsum("fmhi,fhij->fmhj", g, tube.basis) * tube.slow[:, None]
    rows = np.zeros((int(states.max()) + 1, *g.shape[1:]))
    for q in np.unique(states):
        rows[q] = g[states == q].mean(0)
    rows = rows.reshape(1, -1, H, b).astype(np.float32).astype(np.float64)
    return np.repeat(rows, len(tube.directions), 0)


def _carried(replay: TubeReplay) -> TubeReplay:
    """Return the replay with letters that carry all joint directions without a remainder."""
    for letter in replay.steps.letters:
        for along in letter.along:
            if len(along.group.heads) > 1:
                along.rest = np.zeros_like(along.rest)
    return replay


def _walked(replay: TubeReplay, units: tuple[UnitMargins, np.ndarray] | None, longest: int) -> int:
    """Return the length up to which the margins, or those of `units`, are positive."""
    length = 0
    for margin, sets in replay.lengths():
        least = margin
        if not margin > 0 and sets is not None and units is not None:
            margins, counting = units
            some = sets.at(counting)
            least = float(np.where(some.alive, margins.least(some), np.inf).min())
        if not least > 0 or length == longest:
            break
        length += 1
    return length


def _letters(replay: TubeReplay, length: int) -> dict[str, float]:
    slow = replay.tube.slow
    scale: list[float] = []
    turn: list[float] = []
    for h in range(slow.shape[1]):
        blocks: list[np.ndarray] = []
        for letter in replay.steps.letters:
            is_slow = slow[letter.source][:, h] & letter.is_slow[:, h]
            blocks += [M[np.ix_(some, some)] for M, some in zip(letter.M[:, h], is_slow, strict=True) if some.any()]
        if blocks:
            factor = float(np.mean([np.trace(M) / len(M) for M in blocks]))
            scale.append(abs(factor - 1))
            turn.append(float(np.sqrt(np.mean([np.linalg.norm(M - factor * np.eye(len(M)), 2) ** 2 for M in blocks]))))
    return {"scale": round(length * median(scale), 3), "turn": round(length * median(turn), 3)}


if __name__ == "__main__":
    script.run(main)
