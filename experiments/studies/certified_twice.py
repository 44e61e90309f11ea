"""Repeat the certification of models to test that N is reproducible: `python -m experiments.studies.certified_twice`.

Each certification runs in its own process, with the work limit of results/learned.json, or of `several_layers` for the
cascades with noise whose certificates are joint sets; the second one runs next to at least one busy core, which is the
machine's own load if that occupies all cores, otherwise another process. The study compares N and all bytes of the
certificate. results/certified_twice.json is written after each run, first runs first, so that a second call continues
where the first stopped, and calls for different models may run in parallel. A model whose weights have changed is
certified anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from safetensors.torch import save

from experiments import results_io, script
from experiments.studies import several_layers
from experiments.studies.keep_models import MODELS
from experiments.studies.learned import work_of
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.distributed.results import KeptModelOrigin, read_result
from fsa2lrnn.lrnn.checkpoint import load
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import check

COMMAND = "python -m experiments.studies.certified_twice"
TIMES = 2
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"


def main(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="these alone, sum5/seed-0; by default all")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="forget what these came to before")] = False,
) -> None:
    """Certify models twice, write results/certified_twice.json, print one line per run."""
    kept = [str(path.relative_to(MODELS).with_suffix("")) for path in sorted(MODELS.rglob("*.safetensors"))]
    by_joint_sets = [
        row["model"] for row in results_io.read("several_layers")["results"]["models"] if row["method"] == "joint sets"
    ]
    every = [*kept, *by_joint_sets]
    if unknown := [name for name in names or [] if name not in every]:
        raise UnsupportedFormat(f"no model {', '.join(unknown)}: there are {', '.join(every)}")
    digests = {name: hashlib.sha256(weights(name)).hexdigest() for name in every}
    if fresh:
        _write({name: row for name, row in known().items() if names and name not in names})
    for time_of in range(TIMES):
        for name in names or every:
            row = known().get(name, {})
            runs = row["runs"] if row.get("file_sha256") == digests[name] else []
            if len(runs) > time_of:
                continue
            found = run(name, beside_a_busy_core=time_of > 0)
            rows = {name: row for name, row in known().items() if name in digests}
            rows[name] = {"file_sha256": digests[name], "runs": [*runs, found]}
            _write(rows)
            Console(stderr=True).print(f"{name}: {found}{'' if are_alike(rows[name]['runs']) else ', UNLIKE before'}")


def known() -> dict[str, Any]:
    """Return the rows that exist already."""
    try:
        return results_io.read("certified_twice")["results"]
    except FileNotFoundError:
        return {}


def _write(rows: dict[str, Any]) -> None:
    results_io.write("certified_twice", {name: rows[name] for name in sorted(rows)}, COMMAND)


def are_alike(runs: list[dict[str, Any]]) -> bool:
    """Return whether these runs found the same certificate, byte for byte."""
    return len({(run["certified"], run["certificate_sha256"]) for run in runs}) == 1


def run(name: str, beside_a_busy_core: bool) -> dict[str, Any]:
    """Return one certificate's data, searched and checked in a new process, and the load of the machine before."""
    load_before, cores = os.getloadavg()[0], os.cpu_count() or 1
    needs_company = beside_a_busy_core and load_before < cores
    with _company(needs_company), ProcessPoolExecutor(1, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        found = pool.submit(certified, name).result()
    is_busy = needs_company or load_before >= cores
    return {"beside_a_busy_core": is_busy, "load_before": round(load_before, 1), "cores": cores} | found


def weights(name: str) -> bytes:
    """Return the bytes that tell whether a model is the one that was certified."""
    path = MODELS / f"{name}.safetensors"
    return path.read_bytes() if path.exists() else save(several_layers.subject(name)[0].state_dict())


def certified(name: str) -> dict[str, Any]:
    """Return N and a digest of the certificate that the checker accepted, and the cost of the search."""
    if name in several_layers.DISTURBED:
        (model, machine), work = several_layers.subject(name), several_layers.WORK
    else:
        origin = read_result(MODELS / f"{name}.json", KeptModelOrigin)
        model, machine = load(MODELS / f"{name}.safetensors"), MooreMachine.from_source(origin["task"])
        work = work_of(model)
    begun, computed = time.monotonic(), time.process_time()
    certificate = certify(model, machine, work=work, ignore="lacked")
    seconds, cpu_seconds = time.monotonic() - begun, time.process_time() - computed
    check(certificate, model, "lacked")
    return {
        "certified": "all lengths" if certificate.horizon is None else certificate.horizon,
        "memory": certificate.memory,
        "certificate_sha256": hashlib.sha256(json.dumps(certificate.to_json()).encode()).hexdigest(),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
    }


@contextmanager
def _company(is_needed: bool) -> Iterator[None]:
    """Run another busy process within the context if `needs_company`."""
    process = subprocess.Popen([sys.executable, "-c", _BUSY]) if is_needed else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


if __name__ == "__main__":
    script.run(main)
