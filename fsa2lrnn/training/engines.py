"""Engines that execute the runs of a sweep: in sequence, stacked on a GPU, in processes, or on Ray."""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.optional import require
from fsa2lrnn.training.evaluate import Record
from fsa2lrnn.training.seeds import RunPlan, run_in_a_process, run_seed, run_stacked
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.trainer import Stop

_INTERRUPTED = {"end": "interrupted"}
_CONNECT_SECONDS = 10.0
_POLL_SECONDS = 0.5  # the interval at which a signal is noticed
_PATIENCE_SECONDS = 30.0  # the time for a run to save and end after a signal


class Job(NamedTuple):
    """A run that an engine executes: its settings, its folder, and the plan of its evaluation."""

    settings: Settings
    folder: Path
    plan: RunPlan


class JobResult(NamedTuple):
    """The result of a run, or the traceback of the error that ended it."""

    result: Record | None
    traceback: str | None = None


Run = Callable[[Iterable[Job]], Iterator[tuple[Job, JobResult]]]


def attempt(job: Job) -> JobResult:
    """Train and evaluate one run in this process; return its result, or the traceback of any exception."""
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
        return JobResult(run_seed(*job, lambda _: None))
    except Exception:  # of any kind: the other runs continue, and the record holds the traceback
        return JobResult(None, traceback.format_exc())


@contextmanager
def serial(stop: Stop) -> Iterator[Run]:
    """Open an engine that runs jobs in sequence in this process; no job starts after `stop`."""

    def run(jobs: Iterable[Job]) -> Iterator[tuple[Job, JobResult]]:
        for job in jobs:
            answer = JobResult(_INTERRUPTED) if stop.asked else attempt(job)
            stop.asked |= (
                answer.result is not None and answer.result["end"] == "interrupted"
            )  # the run receives the signal first
            yield job, answer

    yield run


@contextmanager
def stacked(stop: Stop) -> Iterator[Run]:
    """Open an engine that trains groups of jobs at once on a GPU (`fsa2lrnn.training.seeds`).

    A group consists of the jobs with the same plan that differ only in the seed, or that all use CUDA graphs. No group
    starts after `stop`.
    """

    def run(jobs: Iterable[Job]) -> Iterator[tuple[Job, JobResult]]:
        groups: dict[tuple[Settings | None, RunPlan], list[Job]] = {}
        for job in jobs:
            kind = None if job.settings.cuda_graph else job.settings.with_seed(0)
            groups.setdefault((kind, job.plan), []).append(job)
        for group in groups.values():
            answers = [JobResult(_INTERRUPTED)] * len(group) if stop.asked else _attempt_stacked(group)
            stop.asked |= any(each.result is not None and each.result["end"] == "interrupted" for each in answers)
            yield from zip(group, answers, strict=True)

    yield run


def _attempt_stacked(jobs: list[Job]) -> list[JobResult]:
    try:
        results = run_stacked([(job.settings, job.folder) for job in jobs], jobs[0].plan, lambda _: None)
    except Exception:  # as in `attempt`
        return [JobResult(None, traceback.format_exc())] * len(jobs)
    return [JobResult(result) for result in results]


@contextmanager
def processes(stop: Stop) -> Iterator[Run]:
    """Open an engine that runs jobs in parallel processes and yields them in the order in which they end.

    A run takes `settings.threads` cores. If `stop` is requested, running jobs save and end, and no job starts.
    """

    def run(jobs: Iterable[Job]) -> Iterator[tuple[Job, JobResult]]:
        jobs = list(jobs)
        threads = max(job.settings.threads for job in jobs)
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // threads)) as pool:
            waiting = {pool.submit(run_in_a_process, *job, lambda _: None, stop): job for job in jobs}
            for future in as_completed(waiting):
                result = future.result()
                failed = result.get("failed")
                yield waiting[future], JobResult(None, failed) if failed else JobResult(result)

    yield run


@contextmanager
def on_ray(stop: Stop, address: str | None = None, cpus: int | None = None) -> Iterator[Run]:
    """Open an engine that runs jobs in parallel on Ray and yields them in the order in which they end.

    A job takes `settings.threads` cores, and a GPU if its device is one. No code is sent: fsa2lrnn must be installed on
    every machine, and the folders must be on a shared disk.

    Args:
        stop: if requested, running jobs save and end, and no job starts.
        address: HOST:PORT of a cluster, "auto" for the cluster of this machine, or None for a new one on this machine.
        cpus: the cores of this machine to use, None for all; a cluster determines its own.

    Raises:
        MissingPackage: if Ray is not installed.
        UnsupportedFormat: for an address of another form, or if a run needs more resources than this machine has.
        ConnectionError: if no cluster answers at the address or it refuses the connection.
    """
    ray = _ray()
    if address is not None:
        _check_reachable(address)
    options = {"num_cpus": cpus, "include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(address=address or "local", **options)
    except ConnectionError as error:
        raise ConnectionError(
            f"{error}: if the cluster asks for a token (`ray get-auth-token` there tells it), set RAY_AUTH_MODE=token "
            "and RAY_AUTH_TOKEN"
        ) from error

    def run(jobs: Iterable[Job]) -> Iterator[tuple[Job, JobResult]]:
        jobs = list(jobs)
        if address is None:
            _check_resources(ray.cluster_resources(), jobs)
        return _in_parallel(ray, stop, jobs)

    try:
        yield run
    finally:
        ray.shutdown()


def _ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report every start to its developers
    return require("ray", "sweep", "a sweep on Ray", "take --engine serial")


def _check_reachable(address: str) -> None:
    """Raise `ConnectionError` if no server answers, `UnsupportedFormat` for an address of another form."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UnsupportedFormat(f'address {address!r}: give HOST:PORT of a cluster\'s head, or "auto"')
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise ConnectionError(
            f"nothing answers at {address} ({error}): start a cluster there (`ray start --head`), or give its address"
        ) from error


def _needs(settings: Settings) -> dict[str, int]:
    return {"num_cpus": settings.threads, "num_gpus": int(settings.device != "cpu")}


def _check_resources(resources: dict[str, float], jobs: list[Job]) -> None:
    """Raise `UnsupportedFormat` for a job that needs more than `resources`, on which Ray would wait without end."""
    for job in jobs:
        for name, kind, remedy in (("num_cpus", "CPU", "lower threads"), ("num_gpus", "GPU", 'set device to "cpu"')):
            if (needed := _needs(job.settings)[name]) > (total := int(resources.get(kind, 0))):
                raise UnsupportedFormat(f"a run asks for {needed} {kind}s of {total} here: {remedy}, or give a cluster")


def _in_parallel(ray: ModuleType, stop: Stop, jobs: list[Job]) -> Iterator[tuple[Job, JobResult]]:
    """Yield jobs with their results as they end on Ray; after `stop` cancel those that run."""
    if stop.asked:
        yield from ((job, JobResult(_INTERRUPTED)) for job in jobs)
        return
    remote = ray.remote(attempt)
    # The sweep repeats failed runs itself and records the traceback of each failure.
    running = {remote.options(max_retries=0, **_needs(job.settings)).remote(job): job for job in jobs}
    cancel_at = 0.0
    while running:
        if stop.asked and time.monotonic() >= cancel_at:
            for reference in running:
                ray.cancel(reference)  # a running job receives SIGINT; a call can get lost, so it is repeated
            cancel_at = time.monotonic() + _PATIENCE_SECONDS
        ended, _ = ray.wait(list(running), timeout=_POLL_SECONDS)
        for reference in ended:
            job = running.pop(reference)
            try:
                answer = ray.get(reference)
            except ray.exceptions.RayError:  # its process died, or was cancelled before it handled signals
                answer = JobResult(_INTERRUPTED) if stop.asked else JobResult(None, traceback.format_exc())
            yield job, answer
