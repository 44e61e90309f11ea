"""The scope of each verdict as verifiers state it, and the tests of it: `python -m experiments.coverage`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import torch

from experiments import script
from fsa2lrnn.automata import zoo
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.compile.recurrence import compile_recurrence
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.verdicts import EVERY, LETTERS, Coverage
from fsa2lrnn.verification import coverage
from fsa2lrnn.verification.certify import certify

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "coverage.md"
SOUNDNESS, FUZZ = ROOT / "verify" / "soundness" / "counts.json", ROOT / "tests" / "fuzz" / "counts.json"
HEAD = ("verdict", "where", "dtype", "scans", "calls", "threads", "environment", "positions")
TITLES = {  # of readers on the page; their names in tests/fuzz seed the hostile files
    "configuration of others": "external configuration",
    "weights of others": "external weights",
}
_WIDE = "float32, float64"  # the formats in which the checker bounds steps and read-outs
CALLS = {EVERY: "every length, batch and division into pieces", LETTERS: "one letter per call, batch 1"}


def page() -> str:
    """Return the text of the page."""
    lines = [_row(HEAD), _row(["---"] * len(HEAD)), *map(_row, _rows())]
    return _PAGE.format(table="\n".join(lines), trusted=_trusted(), soundness=_soundness(), fuzz=_fuzz())


def _rows() -> Iterator[tuple[str, ...]]:
    machine = zoo.parity()
    torch.manual_seed(0)
    block = BlockLayerConfig((2,), 3, 3)
    one, two = (LRNN(LRNNConfig(machine.alphabet, (False, True), (block,) * n)) for n in (1, 2))
    counting = "those that the scope counts"
    exact_steps = coverage.of_exact_steps(one)
    table = compile_machine(machine, layout="index")
    proved = {
        "models in which rounding changes no state or output: compiled, most learned": coverage.of_exact(one),
        "the same as index tables: compiled from blocks of more than 64 states": coverage.of_exact(table),
        "models whose steps do not round and whose margins exceed the read-out's rounding: dyadic repairs": exact_steps,
        "any other model with finitely many states": coverage.of_letters(str(one.dtype)),
        "a `Recurrence`": coverage.of_integers(compile_recurrence(machine)),
    }
    for where, covers in proved.items():
        dtype = _WIDE if covers is exact_steps else _dtype(covers)
        yield _cells("`Proved`", where, covers, dtype, f"{counting}; the empty word if requested")
    certified = {
        "by sets: one layer over letters": (one, "auto"),
        "by joint sets: several layers": (two, "joint sets"),
        "by enumeration: several layers that round": (two, "auto"),
    }
    for where, (model, method) in certified.items():
        covers = coverage.of_certificate(certify(model, machine, 1, work=1, method=method))
        dtype = _WIDE if model is one else _dtype(covers)
        positions = f"{counting}, except the empty word"
        yield _cells("certificate, up to its certified length", where, covers, dtype, positions)


def _dtype(covers: Coverage) -> str:
    return "int" if covers.arithmetic == "int" else "the model's"


def _cells(verdict: str, where: str, covers: Coverage, dtype: str, positions: str) -> tuple[str, ...]:
    threads = "any number" if covers.threads is None else "as many as when proved"
    environment = "as when proved" if covers.environment else "any"
    return verdict, where, dtype, ", ".join(covers.scans), CALLS[covers.shapes], threads, environment, positions


def _row(cells: Sequence[str]) -> str:
    return f"|{'|'.join(cells)}|"


_PAGE = """# What each verdict covers

Written by `python -m experiments.coverage`. `method="auto"` chooses among a layer's scans by the size of the call:
where a verdict covers only some, pass one of them, such as `method="sequential"`.

{table}

!!! warning "No verdict covers `torch.compile` or GPUs"
    Compiled code may fuse, reorder and skip roundings.

- **Model.** `Proved` carries a `digest`, the SHA-256 of weights and configuration, or of an exported folder's files.
  Compare it with `fsa2lrnn.verification.model_digest(model)` before you rely on the verdict.
- **Environment.** If the order of float additions matters, `Proved.covers.environment` names the version of torch, the
  CPU capability (`torch.backends.cpu.get_cpu_capability()`), the BLAS library and its version, and the environment
  variables that these libraries read. In any other environment prove the model again: under `MKL_CBWR=COMPATIBLE`,
  models that were proved without it gave wrong outputs.
- **Modules.** The model consists of the modules, parameters and buffers that its configuration makes, of torch's own
  types, without hooks, parametrizations or other tensors (`verification.modelled` refuses others). Products keep all
  bits of their factors and subnormal numbers are not flushed to zero (`verification.modelled` refuses settings that do
  otherwise). Code that changes classes, functions or modes of torch or of this library while the process runs is out
  of scope.
- **User-defined layers.** The verdict assumes the declarations of the layers in `tested_layers`, which are tested on
  random inputs, not proved.
- **Other verdicts.** `Refuted` holds for the scans that its counterexample names; if it names none, for one letter per
  call. `Undecided` holds for the batches that were explored.

## What a verdict rests on

For the certificates of this table a small program decides. It imports nothing of the rest of the library, and does not
trust the search:

{trusted}

`python fsa2lrnn/families/recheck FILE` runs that folder alone; `python -m fsa2lrnn.families.recheck FILE` also imports
the package around it, which needs numpy.

`python -m fsa2lrnn.checker CERTIFICATE MODEL MACHINE.json` reads models whose gates look their tables up: compiled
models and those of `as_tables(model)`. It replays a proof by enumeration
(`fsa2lrnn verify MODEL MACHINE --certificate FILE`) for the scans sequential, fused and letters if no step can round,
and refuses other proofs. `fsa2lrnn.check` also checks horizon certificates of models whose gates compute their tables.
Their bounds on rounding (`nn/rounded_numbers.py` and the layer's `rounded_tables`), the check of modules
(`verification/modelled.py`) and torch must then be trusted too. `check` replays joint sets with
`verification/joint_sets.py` and `nn/zonotopes.py`; no separate program does. Horizon certificates by enumeration, and
a `Proved` that the checker has not replayed, rest on the model's own step in torch. A `Proved` for more than single
letters also rests on the layers' declarations `starts_exact` and `is_exact` (`verification/walk.py`), or on
`verification/equivalence.py`.

!!! warning "A fault in the checker would be believed"
    `certify` searches with the checker's own steps and margins, so it would propose what a faulty checker accepts. Only
    `families/recheck` shares no code with its search.

Two tests look for such faults:

- **Mutation test**, `python -m verify.mutation`: changes one operator, constant, comparison, term or statement of the
  trusted lines at a time, and runs those tests of `make test` that execute the line. The lines are drawn from both
  folders of the table, integer tables, bounds on rounding and sets (`nn/rounded_numbers.py`, `zonotopes.py`),
  layers' declarations with their tests, `verification/walk.py`, `verification/equivalence.py` and the audit of the
  kernel probes. A mutant that survives calls for a test, or for a proof that it is equivalent. The mutation test
  measures the tests: it does not find checks that are missing, nor faults that all tests accept, and draws no lines
  from `export/recheck.py`, `verification/joint_sets.py` or `verification/modelled.py`.
- **Independent oracle**, `python -m verify.oracle`: evaluates small models in ball arithmetic, with code of its own
  written from the definitions (`verify/oracle/exact.py`). They have one to three layers of blocks or Householder
  products, blocks of at most three states and at most three letters, each column rule and dtype, LayerNorm, ties, zeros
  and extreme scales. On all words of up to 12 letters (the worst of a length with more than 2,500) and on the worst of
  up to 40, it compares the claimed margins, the stored sets and the tolerance of the tables with exact values, and the
  outputs of every covered scan, in several batches and calls, with the machine's. It does not evaluate other layers,
  and says nothing about longer words or about certificates of families and external layers.

## How the verifiers were tested

{soundness}

The readers of files were run on valid files with changed bytes, text and values (`python -m tests.fuzz.run`). A fault
is an exception that is not a refusal, more than five processor seconds, or more memory than 20 times the file plus 50
MB (500 MB for certificates of horizons and families):

{fuzz}
"""


def _trusted() -> str:
    """Return a table of the checkers that run independently, with their numbers of lines."""
    alone = {
        "checker": (
            "horizon certificates by sets, proofs by enumeration",
            "Python, numpy (float64 of IEEE 754), safetensors",
        ),
        "families/recheck": ("certificates of families and of block sizes", "Python alone"),
        "export/recheck.py": ("refusals of external layers", "Python alone"),
    }
    rows = [_row(("checker", "what it checks", "lines", "also trusted")), _row(["---"] * 4)]
    for name, (what, besides) in alone.items():
        path = ROOT / "fsa2lrnn" / name
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        rows.append(_row((f"`fsa2lrnn/{name}`", what, f"{lines:,}", besides)))
    return "\n".join(rows)


def _soundness() -> str:
    """Return a paragraph on the models that were drawn."""
    counts = Counter[str](json.loads(SOUNDNESS.read_bytes())["counts"])
    read, wrong = (
        sum(value for name, value in counts.items() if name.startswith(kind)) for kind in ("positions", "wrong")
    )
    stacks, joint = counts["stacks certified by enumeration"], counts["stacks certified by joint sets"]
    said = (
        f"`python -m verify.soundness` drew, verified and ran {counts['models']:,} models in float32 and float64: "
        "gates with weights from 1 to 10⁶ under each column rule (sums cancel in three of four) and Householder "
        f"products, with LayerNorm and without. {counts['certified beyond 0']:,} of them received a certificate of one "
        f"letter or more, {counts['proved']:,} a proof. {stacks:,} cascades of several layers, with noise in their "
        f"weights, were certified by enumeration, {joint:,} by joint sets. {read:,} covered outputs were computed by "
        "every scan, one letter per call and in whole words, in batches of 1, 3 and 64, with 1 and 2 threads. "
        f"{wrong:,} were wrong."
    )
    return f"{fill(said, 120)}\n\n{fill(_beside(), 120)}"


def _beside() -> str:
    """Return a sentence for each kind of models at the limits of rounding."""
    said = []
    for name, what in (("near-ties", "ties, exact zeros and near ties"), ("extremes", "numbers near a format's ends")):
        path = SOUNDNESS.with_name(f"{name.replace('-', '_')}.json")
        counts = Counter[str](json.loads(path.read_bytes())["counts"])
        proofs, certificates = (
            sum(value for key, value in counts.items() if key.startswith(kind))
            for kind in ("proved for calls", "certified by")
        )
        read = sum(value for key, value in counts.items() if key.startswith("positions"))
        wrong = sum(value for key, value in counts.items() if key.startswith("wrong"))
        said.append(
            f"`--{name}` drew {counts['models']:,} models of blocks, Householder, selective and hard layers, "
            f"with {what}: {proofs:,} proofs, {certificates:,} certificates, {read:,} outputs, {wrong:,} wrong."
        )
    return " ".join(said)


def _fuzz() -> str:
    """Return a table of the hostile files that each reader was tested with."""
    document: dict[str, Any] = json.loads(FUZZ.read_bytes())
    rows: dict[str, dict[str, Any]] = document["readers"]
    lines = [_row(["reader", "files", "read", "refused by name", "faults", "slowest, s"])]
    lines.append(_row(["---"] * 6))
    total = [0, 0, 0]
    for name, row in rows.items():
        title = TITLES.get(name, name)
        files, read, faults = sum(row["ends"].values()), row["ends"].get("read", 0), len(row["faults"])
        total = [sum(pair) for pair in zip(total, (files, read, faults), strict=True)]
        lines.append(
            _row([title, f"{files:,}", f"{read:,}", f"{files - read - faults:,}", str(faults), f"{row['slowest']:.1f}"])
        )
    files, read, faults = total
    lines.append(_row(["all", f"{files:,}", f"{read:,}", f"{files - read - faults:,}", str(faults), ""]))
    return "\n".join(lines)


def main() -> None:
    """Write docs/coverage.md anew."""
    write_atomically(FILE, page().encode())


if __name__ == "__main__":
    script.run(main)
