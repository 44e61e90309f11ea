"""Runs that differ in their seed: each trains in a folder of its own, is judged, and leaves a result.

On a CPU every run is a process with its own threads, as many at once as there are cores: two runs side by side learn
more in an hour than one run on two threads. On a GPU all runs are trained as one batched model.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.training.evaluate import LENGTHS, LETTERS, WORDS, Accuracy, evaluate, paper_protocol
from fsa2lrnn.training.run_folder import MODEL
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.stacked import train_stacked
from fsa2lrnn.training.train import Diverged, Outcome, Progress, Stop, train, use_threads

RESULT = "result.json"
_JUDGING_SEED = 1 << 40  # apart from all seeds of training


class SeedFailed(Fsa2LrnnError, RuntimeError):
    """A run ended without a result."""


class Judged(NamedTuple):
    """The accuracy of a finished run at one length."""

    seed: int
    accuracy: Accuracy


Report = Callable[[Progress | Judged], None]


@dataclass(frozen=True)
class Plan:
    """How runs are started, and how their last checkpoints are judged (`fsa2lrnn.training.evaluate.evaluate`)."""

    resume: bool = True
    tensorboard: bool = False
    lengths: tuple[int, ...] = LENGTHS
    n_words: int = WORDS
    letters: int = LETTERS

    def __post_init__(self) -> None:
        if min(*self.lengths, self.n_words, self.letters, 1) < 1:
            raise UnsupportedFormat(
                f"lengths {self.lengths}, {self.n_words} words, {self.letters} letters a length: all must be at least 1"
            )


def run_seeds(
    settings: Settings, seeds: Sequence[int], folder: Path, plan: Plan, report: Report | None = None
) -> list[dict[str, Any]]:
    """Train and judge one run a seed, in `folder`/seed-N; results in the order of `seeds`.

    A run that diverges has an "error" in its result, one that SIGINT or SIGTERM cut short has "end": "interrupted";
    called again, it goes on.

    Raises:
        SeedFailed: naming the runs that could not start or were killed, after the others have finished.
    """
    jobs = [(settings.with_seed(seed), folder / f"seed-{seed}") for seed in dict.fromkeys(seeds)]
    say = report or _say_nothing
    if len(jobs) == 1:
        return [run_seed(*jobs[0], plan, say)]
    return (_side_by_side if settings.device == "cpu" else stacked)(jobs, plan, say)


def stacked(jobs: Sequence[tuple[Settings, Path]], plan: Plan, report: Report) -> list[dict[str, Any]]:
    """Train all runs as one batched model in this process, and judge one after another."""
    outcomes = train_stacked(jobs, plan.resume, report, plan.tensorboard)
    return [_result(*job, outcome, plan, report) for job, outcome in zip(jobs, outcomes, strict=True)]


def run_seed(settings: Settings, folder: Path, plan: Plan, report: Report) -> dict[str, Any]:
    """Train and judge one run in this process; the result is written to `folder`/result.json too."""
    try:
        outcome = train(settings, folder, plan.resume, report, plan.tensorboard)
    except Diverged as error:
        outcome = error
    return _result(settings, folder, outcome, plan, report)


def _result(
    settings: Settings, folder: Path, outcome: Outcome | Diverged, plan: Plan, report: Report
) -> dict[str, Any]:
    result: dict[str, Any] = {"seed": settings.seed, "folder": str(folder)}
    if isinstance(outcome, Diverged):
        result |= {"end": "diverged", "error": str(outcome)}
    else:
        result |= {"end": outcome.end, "step": outcome.step, "model": str(folder / MODEL)}
        result |= {"paper_protocol": paper_protocol(outcome.records, settings.stop_at)}
        if outcome.end != "interrupted":
            result |= {"last_checkpoint": [found.to_json() for found in _judge(settings, outcome, plan, report)]}
    write_atomically(folder / RESULT, (json.dumps(result, indent=2, ensure_ascii=False) + "\n").encode())
    return result


def _judge(settings: Settings, outcome: Outcome, plan: Plan, report: Report) -> list[Accuracy]:
    with use_threads(settings.threads):
        return evaluate(
            outcome.model,
            outcome.words,
            _JUDGING_SEED + settings.seed,
            plan.lengths,
            plan.n_words,
            plan.letters,
            lambda accuracy: report(Judged(settings.seed, accuracy)),
        )


def _say_nothing(_: Progress | Judged) -> None:
    pass


def _side_by_side(jobs: list[tuple[Settings, Path]], plan: Plan, report: Report) -> list[dict[str, Any]]:
    n_processes = max(1, min(len(jobs), (os.cpu_count() or 1) // jobs[0][0].threads))
    events: queue.SimpleQueue[Progress | Judged] = queue.SimpleQueue()
    children = _Children(plan, events.put)
    with Stop() as stop, ThreadPoolExecutor(n_processes) as pool:
        futures = [pool.submit(children.run, *job) for job in jobs]
        while not all(future.done() for future in futures) or not events.empty():
            if stop.asked:
                children.stop()
            try:
                report(events.get(timeout=0.2))
            except queue.Empty:
                continue
    answers = [future.result() for future in futures]
    if failures := [answer["failed"] for answer in answers if "failed" in answer]:
        raise SeedFailed("; ".join(failures))
    return answers


class _Children:
    """Processes that run a seed each and speak in lines of JSON."""

    def __init__(self, plan: Plan, put: Report) -> None:
        self.plan, self.put = plan, put
        self.stopped = False
        self.running: list[subprocess.Popen[str]] = []

    def run(self, settings: Settings, folder: Path) -> dict[str, Any]:
        """Start one, pass on what it reports, return its result or {"failed": why}."""
        if self.stopped:
            return {"seed": settings.seed, "folder": str(folder), "end": "interrupted", "step": 0}
        job = {"settings": settings.to_json(), "folder": str(folder), "plan": asdict(self.plan)}
        pipe, threads = subprocess.PIPE, str(settings.threads)
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        command = [sys.executable, "-m", "fsa2lrnn.training.seeds"]
        # In a session of its own, so that Ctrl-C reaches it once, through `stop`.
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, env=environment, text=True, start_new_session=True
        ) as child:
            self.running.append(child)
            if self.stopped:
                child.send_signal(signal.SIGINT)
            answer = self._listen(child, json.dumps(job))
        if answer is None and self.stopped:
            return {"seed": settings.seed, "folder": str(folder), "end": "interrupted"}
        if answer is None:
            return {"failed": f"seed {settings.seed} ended without a result (exit code {child.returncode}): call again"}
        return answer

    def stop(self) -> None:
        """Ask all to save and end; once."""
        if not self.stopped:
            self.stopped = True
            for child in self.running:
                child.send_signal(signal.SIGINT)

    def _listen(self, child: subprocess.Popen[str], job: str) -> dict[str, Any] | None:
        if child.stdin is None or child.stdout is None:
            return None
        with child.stdin as pipe:
            pipe.write(job)
        answer = None
        for line in child.stdout:
            kind, value = json.loads(line)
            if kind == "progress":
                self.put(Progress(*value))
            elif kind == "judged":
                self.put(Judged(value[0], Accuracy(**value[1])))
            else:
                answer = value
        return answer


def main() -> None:
    """A child's life: a job on standard input, lines [kind, value] on standard output."""
    job = json.load(sys.stdin)
    settings, plan = Settings.from_json(job["settings"]), Plan(**job["plan"])
    try:
        answer = run_seed(settings, Path(job["folder"]), plan, _tell)
    except Fsa2LrnnError as error:
        answer = {"failed": f"seed {settings.seed}: {error}"}
    print(json.dumps(["answer", answer]), flush=True)


def _tell(event: Progress | Judged) -> None:
    value = list(event) if isinstance(event, Progress) else [event.seed, asdict(event.accuracy)]
    print(json.dumps(["progress" if isinstance(event, Progress) else "judged", value]), flush=True)


if __name__ == "__main__":
    main()
