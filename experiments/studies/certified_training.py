"""Compare training with and without a penalty on the drift that `certify` bounds.

`python -m experiments.studies.certified_training`, ten seconds per run. The penalty is the mean squared distance
of A(a) c(q) + v(a) from c(delta(q, a)), over the mean squared distance of the means c from one another, plus the mean
square of what operator norms of blocks exceed 1 by. The means c(q) are those of the batch. The penalty begins after
half of the steps, and its weight rises linearly from 0.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer
from torch import Tensor
from torch.nn.functional import one_hot

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due, within
from experiments.studies.failure_law import shortest
from fsa2lrnn import certify
from fsa2lrnn.errors import Fsa2LrnnError, OutOfTime
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.evaluate import evaluate
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import Diverged, TrainingRun, mean_loss
from fsa2lrnn.verification.certify.work import SearchCutShort
from fsa2lrnn.verification.specification import specification_of

NAME = "certified_training"
COMMAND = "python -m experiments.studies.certified_training"
TASKS = ("task:sum_mod(3)", "task:even_pair(3)", "task:parity")
WEIGHTS = (0.0, 1.0, 10.0)  # of the penalty
TRAINING: dict[str, Any] = {
    "steps": 400, "batch": 32, "length": 30, "block": 8, "heads": 4, "learning_rate": 2e-3, "test_length": 30,
    "test_words": 64, "evaluate_every": 400, "stop_at": None,
}  # fmt: skip
CERTIFY, _BURN, _TEST_SEED = 3.0, 3, 1 << 20


class PenalisedRun(TrainingRun):
    """A run of training with the penalty in its loss."""

    def penalise(self, weight: float) -> None:
        """Set the weight that the penalty reaches at the end of the run."""
        self.penalty_weight = weight
        target = specification_of(switched(self.model), self.settings.machine(), "lacked").target
        self.delta, self.start = torch.from_numpy(target.delta), target.start

    def _gradient(self, batch: Batch) -> Tensor:
        loss = mean_loss(self.forward(batch.tokens), batch.labels)
        risen = self.penalty_weight * (2 * self.step / self.settings.steps - 1)
        if risen > 0:
            loss = loss + risen * self.penalty(batch.tokens)
        return self.trainer.backward(loss)

    def penalty(self, tokens: Tensor) -> Tensor:
        """Return the penalty at the class means of the words `tokens` (B, T), a scalar."""
        layer = self.model.recurrences[0]
        A, v = layer.tables(self.model.first_inputs())
        x = layer.initial_state(len(tokens))
        q, n = torch.full((len(tokens),), self.start), self.delta.shape[1]
        sums, counts = x.new_zeros(n, *x.shape[1:]), x.new_zeros(n)
        for k, letters in enumerate(tokens.T):
            x, q = torch.einsum("nhij,nhj->nhi", A[letters], x) + v[letters], self.delta[letters, q]
            if k >= _BURN:
                member = one_hot(q, n).to(x.dtype)
                sums, counts = sums + torch.einsum("nq,nhi->qhi", member, x), counts + member.sum(0)
        is_known = counts > 0
        c = sums / counts.clamp(min=1)[:, None, None]
        residual = torch.einsum("ahij,qhj->aqhi", A, c) + v[:, None] - c[self.delta]
        spread = (c[is_known] - c[is_known].mean(0)).square().sum((1, 2)).mean() + 1e-6
        drift = residual[is_known[None] & is_known[self.delta]].square().sum((1, 2)).mean() / spread
        return drift + (torch.linalg.matrix_norm(A, 2) - 1).clamp(min=0).square().mean()


def main(
    seeds: Annotated[int, typer.Option(min=1, help="runs of each task and weight")] = 5,
    minutes: Annotated[float, typer.Option(min=0, help="minutes after which no run begins")] = 10.0,
) -> None:
    """Run what is due and write experiments/results/certified_training.json after each run."""
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * minutes

    def plan() -> Iterator[tuple[str, int, float]]:
        for seed in range(seeds):
            for task in TASKS:
                for weight in WEIGHTS:
                    if time.monotonic() > end:
                        return
                    yield task, seed, weight

    def write(rows: list[Row]) -> None:
        results_io.write(
            "certified_training", {"training": TRAINING, "certify_seconds": CERTIFY, "runs": rows}, COMMAND
        )

    write(run_due(plan(), ("task", "seed", "weight"), known_rows(NAME), run_one, write))


def run_one(task: str, seed: int, weight: float) -> Row:
    """Return the row of one run: its accuracy at 40 and 500 letters, N, and the shortest counterexample."""
    begun, row = time.process_time(), {"task": task, "seed": seed, "weight": weight}
    with TemporaryDirectory() as folder:
        run = PenalisedRun(preset("quick", task, seed=seed, **TRAINING), Path(folder), resume=False)
        run.penalise(weight)
        try:
            while not run.is_done:
                run.update()
            run.read_pending()
        except Diverged:
            return row | {"end": "diverged"}
    for accuracy in evaluate(run.model, run.words, _TEST_SEED, (40, 500), 256):
        row[f"last_{accuracy.length}"] = accuracy.last / 256
    tables, machine = switched(run.model), run.settings.machine()
    row["penalty"] = float(f"{run.penalty(run.draw().tokens).item():.3g}")
    row["fails_at"] = shortest(model := LRNN.from_affine(tables), machine)
    try:
        with within(3 * CERTIFY), warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchCutShort)
            row["certified"] = certify(model, machine, ignore="lacked", seconds=CERTIFY).horizon
    except (OutOfTime, Fsa2LrnnError) as error:
        row |= {"certified": None, "why": f"{type(error).__name__}: {str(error)[:80]}"}
    return row | {"end": "steps", "processor_seconds": round(time.process_time() - begun, 1)}


if __name__ == "__main__":
    script.run(main)
