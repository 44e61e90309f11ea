"""Write a canary into a released model, prove it, and save it as a folder that its package loads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsa2lrnn.canary.faults import SINGLE, detection
from fsa2lrnn.canary.machines import Canary, Head, exchange, held, long_cycle, recency, words
from fsa2lrnn.canary.report import FILE, FORMAT, VERSION, check_model, read_record
from fsa2lrnn.errors import CheckpointError, NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.export import target
from fsa2lrnn.export.constructions import reflections, register
from fsa2lrnn.export.folder import DTYPES, ExportedModel
from fsa2lrnn.export.huggingface import HuggingFace
from fsa2lrnn.export.plan import UNIT, Orbit, Shape, Stage, StageHead, StagePlan, Unit, orbit
from fsa2lrnn.export.whole_model import folder_written_whole, prove
from fsa2lrnn.layers import released_model
from fsa2lrnn.verdicts import Proved

WITH_EXCHANGES = ("olmo-hybrid",)  # the released models with eigenvalue −1


def plan_of(canary: Canary) -> StagePlan:
    """Return the plan of a canary: a stage for each of its layers; all but the last pass the letters on."""
    n = len(canary.letters)
    orbits = [[_orbit(head) for head in heads] for heads in canary.layers]
    marks = [
        [_marks(head, made) for head, made in zip(*pair, strict=True)]
        for pair in zip(canary.layers, orbits, strict=True)
    ]
    of_heads = [mark for layer in marks for mark in layer]
    names = {label: i for i, label in enumerate(dict.fromkeys(canary.machine.outputs[1:]))}
    label_of: dict[tuple[int, ...], Hashable] = {held(state): canary.label(state) for state in canary.reachable[1:]}
    last = tuple(
        Unit(None, tuple(mark[value] for mark, value in zip(of_heads, values, strict=True)), names[label_of[values]])
        for values in canary.outputs
    )
    passed_on = tuple(Unit(a, (), a) for a in range(n))
    stages = [Stage(tuple(layer), passed_on, n) for layer in orbits[:-1]]
    stages.append(Stage(tuple(orbits[-1]), last, len(names)))
    how = f"{canary.kind}: {len(of_heads)} heads in {len(orbits)} layers, every output names their values"
    # The groups of heads and experts are read by models that have them. Outputs are small, because a word whose
    # exchanges cancel leads all heads to zero at once, where a chunk of letters leaves the rounding of its products.
    shape = Shape(head=64, group=1 if canary.kind == "exchange" else 2, attention=3, experts=4, output=1 / 64)
    return _Plan(canary.machine, tuple(stages), how, shape, tuple(names))


@dataclass(frozen=True, eq=False)
class _Plan(StagePlan):
    """A plan whose outputs are those after a letter; the output before the first letter is none."""

    named: tuple[Hashable, ...] = ()

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        return self.named


def _orbit(head: Head) -> Orbit:
    """Return the head of a plan that holds what a head of a canary holds."""
    table = np.array(head.table)
    if head.lag:  # holds the class of an earlier letter, and nothing before there is one
        n, size = table.shape[0], table.max()
        values = UNIT * (table[:, :1] == 1 + np.arange(size))
        ones = np.ones(n)
        return orbit(StageHead(np.ones((n, 1)), values, ones, ones, np.ones(1), np.ones(size), np.full(size, head.lag)))
    is_register = all((row[1:] == row[1]).all() or (row[1:] == np.arange(1, len(row))).all() for row in table)
    made = register(table[:, 1:] - 1) if is_register else reflections(table, 0)
    if made is None:
        raise NotExpressible("a head of the canary is neither a register nor a group of exchanges")
    return made


def _marks(head: Head, made: Orbit) -> dict[int, int]:
    """Return the number of the orbit's mark for each value of a head."""
    found, queue = {0: 0}, [0]
    for value in queue:
        for letter, row in enumerate(head.table):
            after, at = row[value], int(made.table[letter, found[value]])
            if found.setdefault(after, at) != at:
                raise NotExpressible("a head of the plan does not follow the canary's")
            if after not in queue:
                queue.append(after)
    return found


@dataclass(frozen=True)
class _LettersOut(HuggingFace):
    """The interface to a model that puts out letters: they are read as the outputs after the letters."""

    of_letter: tuple[int, ...] = ()

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        put_out, cache = super().read(model, tokens, cache)
        numbers = torch.tensor([*self.of_letter, *[-1] * int(put_out.max() + 1)])
        return numbers[put_out], cache


WORDS, LENGTH = 8, 256  # words of a folder, and their letters


def make(name: str, folder: Path, dtype: str = "float32", generates: bool = False) -> Proved:
    """Write a canary into the released model `name`, prove it for every word, and move it to a folder.

    Raises:
        UnsupportedFormat: for a model without a canary or an unknown dtype.
        NotExact: if the installed code of the package does not follow the canary.
        CheckpointError: if the folder holds other files, or another canary.
        OSError: if the folder cannot be written.
    """
    layer = released_model(name)
    into = target(layer)
    if not isinstance(into.code, HuggingFace) or dtype not in DTYPES:
        raise UnsupportedFormat(
            f"a canary of {layer} in {dtype}: they are written for models of transformers, in {' and '.join(DTYPES)}"
        )
    if (folder / FILE).exists():
        known = read_record(folder)
        if (known["model"], known["generates"], known["dtype"]) != (layer, generates, dtype):
            raise CheckpointError(
                f"{folder} holds a canary of {known['model']} in {known['dtype']}: give another folder"
            )
    blocks = 2 if into.layers_a_stage == 1 else 1
    canary = exchange(blocks=blocks) if layer in WITH_EXCHANGES else recency(blocks)
    canary = replace(canary, follows=long_cycle(canary)) if generates else canary
    plan = plan_of(canary)
    model: Any = into.build(plan, DTYPES[dtype])
    n = len(canary.letters)
    code = into.code
    if generates:  # a unit that names the next letter puts out the letter's own token
        weight = model.get_output_embeddings().weight
        with torch.no_grad():
            for i, letter in enumerate(plan.outputs):
                row = weight[n + i].clone()
                weight[n + i] = 0
                weight[canary.letters.index(letter)] = row
        outputs = [n + plan.outputs.index(letter) if letter in plan.outputs else -1 for letter in canary.letters]
        code = _LettersOut(**vars(code), of_letter=tuple(outputs))
    with folder_written_whole(folder, FILE) as place:
        into.code.save(model, canary.letters, plan.outputs, place)
        shown = [] if generates else [detected(canary, fault) for fault in SINGLE]
        described = {**record(canary, layer, dtype, generates), "detection": shown}
        (place / FILE).write_text(json.dumps(described, indent=1) + "\n")
        loaded = into.code.load(place)
        verdict = prove(ExportedModel(loaded, layer, canary.machine, plan.outputs, code, _digest(place)))
        if not isinstance(verdict, Proved):
            raise NotExact(f"{layer} does not follow its canary on the code that is installed ({verdict})")
        if not check_model(loaded, ("whole",), place):  # the proof is of calls of one token
            raise NotExact(f"{layer} does not follow its canary in calls of a whole word on the code that is installed")
        del loaded
    return verdict


def record(canary: Canary, layer: str, dtype: str, generates: bool) -> dict[str, Any]:
    """Return what `canary.json` holds: all that the driver and the explanation of faults need."""
    n = len(canary.letters)
    return {
        "format": FORMAT, "version": VERSION, "model": layer, "dtype": dtype, "kind": canary.kind,
        "generates": generates, "letters": canary.letters,
        "layers": [[head._asdict() for head in heads] for heads in canary.layers],
        "follows": [[list(values), letter] for values, letter in canary.follows],
        "outputs": [] if generates else [[list(values), n + i] for values, i in canary.outputs.items()],
        "words": words(canary, WORDS, LENGTH), "padding": n + len(canary.outputs),
    }  # fmt: skip


def detected(canary: Canary, fault: str, tokens: int = 6, letters: int = 6) -> dict[str, Any]:
    """Return what the next tokens show of a fault, after all histories of some letters, as `verify` computes it too."""
    found = detection(canary, fault, tokens, last=1, length=letters)
    return {
        "fault": fault, "history": letters, "tokens": tokens, "within": found.within, "unseen": str(found.unseen),
        "harmless": str(found.harmless),
    }  # fmt: skip


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
