"""Assess every kept model by all verifiers: `python -m experiments.studies.learned`, minutes per model.

A row contains, for one model under experiments/models, the certified length, the shortest known counterexample, the
extracted machine, and the repairs. results/learned.json is written model by model,
so that a second call continues where the first stopped; a model whose weights have changed is assessed anew. With
`--certificates` only N is computed anew, which is reproducible under any load. With `--failures` the study searches for
shorter counterexamples than the known ones, starting from these and with a larger budget than the first assessment; a
row states that budget under "searched" and is then complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from experiments import results_io, script
from experiments.studies.keep_models import MODELS
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, NotExact, UnsupportedFormat
from fsa2lrnn.nn import LRNN
from fsa2lrnn.nn.checkpoint import load
from fsa2lrnn.repairing import evaluate_repair
from fsa2lrnn.symbols import from_json
from fsa2lrnn.training.sweep import KeptModelOrigin, read_result
from fsa2lrnn.verdicts import Proved, Refuted
from fsa2lrnn.verification.certify import WORK, certify
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.coverage import certified_length, proof_json
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.extraction import extract_learned
from fsa2lrnn.verification.falsify import Budget, falsify
from fsa2lrnn.verification.specification import Specification, specification_of
from fsa2lrnn.verification.walk import may_close

COMMAND = "python -m experiments.studies.learned"
ACCURATE = 0.95  # at length 500, from which a model counts as one that has learned its task
SHORT = 100  # letters
SEARCH = Budget(seconds=120, words=1_000, length=5_000, periodic_words=0, random_words=0, width=16, rounds=24)
PAIRS = 100_000  # the most joint states of a proof
REPAIRS = ("least", "dyadic")  # the mode of each repair
DEEP = 4e11  # the work that a model of several layers may take: of ModArith(5), all words of 9 letters


def main(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="these anew, sum5/seed-0; by default all that are due")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="judge all anew")] = False,
    certificates: Annotated[
        bool, typer.Option("--certificates", help="their certificates alone, of models that were judged")
    ] = False,
    failures: Annotated[
        bool, typer.Option("--failures", help="shorter failing words alone, of models that were judged")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help="models judged at once, on a thread each")] = 1,
) -> None:
    """Assess the kept models that have no row yet, write results/learned.json, print the table."""
    paths = {str(path.relative_to(MODELS).with_suffix("")): path for path in sorted(MODELS.rglob("*.safetensors"))}
    names = names or []
    if unknown := [name for name in names if name not in paths]:
        raise UnsupportedFormat(f"no model {', '.join(unknown)}: there are {', '.join(paths)}")
    if names and fresh:
        raise UnsupportedFormat(f"--fresh judges all anew: leave {', '.join(names)} out, or --fresh")
    rows = {} if fresh else {name: row for name, row in known().items() if name in paths}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}
    if certificates and failures:
        raise UnsupportedFormat("--certificates and --failures: one after the other")
    judged_before = [name for name in paths if rows.get(name, {}).get("file_sha256") == digests[name]]
    option = "--certificates" if certificates else "--failures" if failures else None
    if option is None:
        due = names or [name for name in paths if name not in judged_before]
    else:
        due = names or [name for name in judged_before if certificates or "searched" not in rows[name]]
    if option and (unjudged := [name for name in due if name not in judged_before]):
        raise UnsupportedFormat(f"{', '.join(unjudged)}: not judged yet as it is: leave {option} out")
    spawned = get_context("spawn")
    with ProcessPoolExecutor(processes, spawned, torch.set_num_threads, (1,)) as pool:
        find = {None: judged, "--certificates": certified, "--failures": searched}[option]
        futures = {pool.submit(find, paths[name]): name for name in due}
        for future in as_completed(futures):
            name, found = futures[future], future.result()
            if certificates:
                found = rows[name] | found | {"runs": [*rows[name].get("runs", []), *found["runs"]]}
            if failures:
                found = rows[name] | found
            rows[name] = found | {"file_sha256": digests[name]}
            rows = {name: rows[name] for name in sorted(rows)}
            results_io.write("learned", {"models": rows, "summary": summary(rows)}, COMMAND)
            fails = f"fails at {found['failure']['length']}" if found["failure"] else "no failing word"
            Console(stderr=True).print(f"{name}: N = {found['certified']}, {fails}, {rows[name]['seconds']}")
    Console().print(table(rows), json.dumps(summary(rows), indent=2))


def known() -> dict[str, Any]:
    """Return the rows that exist already."""
    try:
        return results_io.read("learned")["results"]["models"]
    except FileNotFoundError:
        return {}


def judged(path: Path) -> dict[str, Any]:
    """Return one row: the origin of the model, what the verifiers find, and its repairs.

    A model that is proved correct on all words is neither searched nor certified nor repaired, and one of several
    layers is not repaired.
    """
    origin = read_result(path.with_suffix(".json"), KeptModelOrigin)
    model, machine, work = load(path), MooreMachine.from_source(origin["task"]), work_of(load(path))
    goal, seconds = specification_of(model, machine, "lacked"), dict[str, float]()

    def timed(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        begun = time.monotonic()
        value = function(*arguments)
        seconds[name] = round(time.monotonic() - begun, 2)
        return value

    row = {name: origin[name] for name in ("task", "seed", "step", "command", "paper_protocol", "last_checkpoint")}
    row |= {"failure": None, "scope": goal.scope.to_json(), "repairs": []}
    row["extraction"] = timed("extract", _extracted, model, machine, goal)
    if may_close(model):
        proof = timed("prove", prove_equivalent, model, machine, PAIRS, False, goal.ignored)
        if isinstance(proof, Proved):
            return row | {"proved": proof_json(proof), "seconds": seconds}
    verdict = timed("falsify", falsify, model, machine, Budget(), goal.ignored)
    if isinstance(verdict, Refuted):
        row |= {name: verdict.to_json()[name] for name in ("failure", "found_by", "is_shortest")}
    certificate = timed("certify", lambda: certify(model, machine, work=work, ignore=goal.ignored))
    row |= {"certified": certified_length(certificate), "memory": certificate.memory, "method": certificate.method}
    for mode in REPAIRS if model.is_switched else ():
        repaired = timed(f"repair {mode}", evaluate_repair, model, machine, mode, work, goal.ignored)
        row["repairs"].append(repaired.to_json())
    return row | {"seconds": seconds}


def _extracted(model: LRNN, machine: MooreMachine, goal: Specification) -> dict[str, Any]:
    """Return the size of the machine extracted from a model, and whether it is `machine` where the output counts."""
    # The acceptor of the words after which the machine's output counts.
    counts = [output not in goal.ignored for output in machine.outputs]
    counted = MooreMachine(machine.delta, counts, machine.start, machine.alphabet) if goal.ignored else None
    try:
        extraction = extract_learned(model, counts=counted)
    except (NotExact, BudgetExceeded) as error:
        return {"refused": str(error), "isomorphic": False}
    same = equivalent(extraction.machine, machine, goal.ignored, empty_word=False) is None
    return {"states": extraction.machine.n_states, "depth": extraction.depth, "isomorphic": same}


def certified(path: Path) -> dict[str, Any]:
    """Return the certified length computed anew, and under "runs" the seconds and the load of the machine."""
    model, machine = (
        load(path),
        MooreMachine.from_source(read_result(path.with_suffix(".json"), KeptModelOrigin)["task"]),
    )
    load_before, begun = os.getloadavg()[0], time.monotonic()
    certificate = certify(model, machine, work=work_of(model), ignore="lacked")
    check(certificate, model, "lacked")
    found = "all lengths" if certificate.horizon is None else certificate.horizon
    run = {"certified": found, "seconds": round(time.monotonic() - begun, 1), "load": round(load_before, 1)}
    return {"certified": found, "memory": certificate.memory, "method": certificate.method, "runs": [run]}


def searched(path: Path) -> dict[str, Any]:
    """Return the result of a new search for a shorter counterexample than the known one, which is run first."""
    row = known()[str(path.relative_to(MODELS).with_suffix(""))]
    model, machine = load(path), MooreMachine.from_source(row["task"])
    before = row["failure"] or {"word": []}
    verdict = falsify(model, machine, SEARCH, "lacked", [from_json(letter) for letter in before["word"]])
    if not isinstance(verdict, Refuted):
        return {"failure": None, "searched": vars(SEARCH)}
    written = verdict.failure.to_json()
    return {
        "failure": {name: written[name] for name in ("length", "word", "margin", "scans")},
        "found_by": {**before, **row}["found_by"] if verdict.found_by == "known" else verdict.found_by,
        "is_shortest": verdict.is_shortest,
        "searched": vars(SEARCH),
    }


def work_of(model: LRNN) -> float:
    """Return the limit on multiplications in the search for a model's certificate."""
    return WORK if model.is_switched else DEEP


def summary(rows: dict[str, Any]) -> dict[str, Any]:
    """Return summary figures of the table for the models of one layer."""
    one_layer = [row for row in rows.values() if row["repairs"]]
    ratios = [row["certified"] / row["failure"]["length"] for row in one_layer if row["failure"]]
    pairs = [row for row in one_layer if row["task"].startswith("task:even_pair") and _at(row, 500) >= ACCURATE]
    repairs: dict[str, Any] = {}
    for i, mode in enumerate(REPAIRS):
        done = [row["repairs"][i] for row in one_layer if row["repairs"][i]["refused"] is None]
        repairs[mode] = {
            "models": len(one_layer),
            "repaired": len(done),
            "right_on_every_letter": sum(found["accuracy"] == 1 for found in done),
            "largest_change": max((found["change"]["A"] for found in done), default=None),
            "proved_for_all_lengths": sum(
                "proved" in found or found.get("certified") == "all lengths" for found in done
            ),
        }
    again = [[run["certified"] for run in row["runs"]] for row in rows.values() if len(row.get("runs", [])) > 1]
    return {
        "models": len(rows),
        "certified_several_times": len(again),
        "certified_alike": sum(len(set(found)) == 1 for found in again),
        "extracted_isomorphic": sum(row["extraction"]["isomorphic"] for row in rows.values()),
        "slowest_extraction_seconds": max((row["seconds"]["extract"] for row in one_layer), default=None),
        "with_a_failing_word": sum(row["failure"] is not None for row in rows.values()),
        "median_of_proved_over_failing_length": median(ratios) if ratios else None,
        "even_pair_learned": len(pairs),
        "even_pair_failing_within_100": sum(
            row["failure"] is not None and row["failure"]["length"] <= SHORT for row in pairs
        ),
        "repairs": repairs,
    }


def _at(row: dict[str, Any], length: int) -> float:
    """Return the share of right last outputs at a length, for the last checkpoint."""
    return next((x["last_position"]["accuracy"] for x in row["last_checkpoint"] if x["length"] == length), 0.0)


def table(rows: dict[str, Any]) -> Table:
    """Return a table with one line per model."""
    shown = Table("model", "proved ≤", "fails at", "extracted", *REPAIRS)
    for name, row in rows.items():
        failing = f"{row['failure']['length']:,}" if row["failure"] else "–"
        extracted = f"{row['extraction'].get('states', '–')}{'' if row['extraction']['isomorphic'] else ', another'}"
        shown.add_row(name, f"{row['certified']}", failing, extracted, *map(_repair, row["repairs"]))
    return shown


def _repair(found: dict[str, Any]) -> str:
    if found["refused"] is not None:
        return "refused"
    how = "proved, all lengths" if "proved" in found else f"≤ {found['certified']}" if "certified" in found else "–"
    return f"{100 * found['change']['A']:.1f} %, {found['accuracy']:.4f}, {how}"


if __name__ == "__main__":
    script.run(main)
