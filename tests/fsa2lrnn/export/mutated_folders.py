"""Exported folders with one thing changed.

`python -m tests.fsa2lrnn.export.mutated_folders [MUTATIONS [SEED]]` tries many.

Of each folder `verify` has to refuse, or the model that `AutoModelForCausalLM` loads has to answer rightly: read one
token a call with its cache, in one call without, padded on the left, and by `generate`, with text that goes through
the tokenizer both ways. Models of packages other than transformers, where these are installed, are run by their code.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from fsa2lrnn import MooreMachine, Proved, symbols, zoo
from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError
from fsa2lrnn.export import target
from fsa2lrnn.export.folder import load, run
from fsa2lrnn.export.packages import cache_name
from fsa2lrnn.export.whole_model import export, prove
from fsa2lrnn.optional import is_installed
from tests.fsa2lrnn.export.mutations import Mutation, mutations

REGISTER = MooreMachine([range(3), *([q] * 3 for q in range(3))], "xyz", alphabet="-012")
WORDS = MooreMachine([[0, 1], [0, 0], [1, 1]], ("no", "yes"), 0, ("keep", "reset", "set"))
MACHINES = {
    "olmo-hybrid": zoo.group("S3", "transpositions"), "qwen3-next": REGISTER, "mamba-2": zoo.flip_flop(),
    "mamba": WORDS, "kimi-linear": zoo.ab_star(), "rwkv-7": WORDS,
}  # fmt: skip
NEEDED = {"rwkv-7": ("rwkv",)}
N_WORDS, LONGEST, LONG = 200, 12, 130
FINE = ("refused", "agreed")


def outcome(mutation: Mutation, folder: Path, rng: random.Random) -> str | None:
    """Return "refused", "agreed", what is wrong, or None where what was drawn changes nothing."""
    with tempfile.TemporaryDirectory() as place:
        changed = Path(place) / "changed"
        shutil.copytree(folder, changed)
        mutation.apply(changed, rng)
        if _content(mutation.layer, changed) == _content(mutation.layer, folder):
            return None
        machine = MACHINES[mutation.layer]
        try:
            verdict = prove(load(changed), machine, budget=500)
        except Fsa2LrnnError:
            return "refused"
        if not isinstance(verdict, Proved):
            return "refused"
        try:
            ways = by_other_packages if mutation.layer in NEEDED else by_transformers
            wrong = ways(changed, machine)
        except Exception as fault:  # whatever transformers raises for a folder of which a proof was claimed
            wrong = f"{type(fault).__name__}: {fault}"
        return f"proved, and wrong: {wrong}" if wrong else "agreed"


@torch.no_grad()
def by_transformers(folder: Path, machine: MooreMachine) -> str:
    """Run words through the Auto classes in every way; return the ways that answer otherwise than the machine."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    rng, between = np.random.default_rng(0), "" if symbols.is_character_alphabet(machine.alphabet) else " "
    words = [
        [machine.alphabet[a] for a in rng.integers(len(machine.alphabet), size=1 + i % LONGEST)] for i in range(N_WORDS)
    ]
    right = [[f"={symbols.show(output)}" for output in machine.transduce(word)] for word in words]
    ids = [tokenizer(between.join(map(str, word)))["input_ids"] for word in words]
    if any(len(row) != len(word) for row, word in zip(ids, words, strict=True)):
        return "tokenizer"
    left, mask, begun = (torch.zeros(N_WORDS, LONGEST, dtype=torch.int64) for _ in range(3))
    for i, row in enumerate(map(torch.tensor, ids)):
        left[i, LONGEST - len(row) :], begun[i, : len(row)] = row, row
        mask[i, LONGEST - len(row) :] = 1
    name, cache, steps = cache_name(model), None, list[torch.Tensor]()
    for t in range(LONGEST):
        answer = model(input_ids=begun[:, t : t + 1], use_cache=True, **{name: cache})
        cache = getattr(answer, name)
        steps.append(answer.logits[:, -1])
    put_out = {
        "with cache": torch.stack(steps, dim=1),
        "without cache": model(input_ids=begun, use_cache=False).logits,
        "padded": model(input_ids=left, attention_mask=mask).logits.flip(1),
    }
    wrong = list[str]()
    for way, logits in put_out.items():
        for row, expected in zip(logits.argmax(dim=2).tolist(), right, strict=True):
            given = row[: len(expected)][:: -1 if way == "padded" else 1]
            if [tokenizer.decode([token]) for token in given] != expected:
                wrong.append(way)
                break
    last = model.generate(input_ids=left, attention_mask=mask, max_new_tokens=1, pad_token_id=0)[:, -1].tolist()
    if [tokenizer.decode([token]) for token in last] != [expected[-1] for expected in right]:
        wrong.append("generate")
    word = [machine.alphabet[a] for a in rng.integers(len(machine.alphabet), size=LONG)]
    whole = model(**tokenizer(between.join(map(str, word)), return_tensors="pt")).logits[0].argmax(dim=1).tolist()
    if [tokenizer.decode([token]) for token in whole] != [f"={symbols.show(o)}" for o in machine.transduce(word)]:
        wrong.append("one long call")
    return ", ".join(wrong)


def by_other_packages(folder: Path, machine: MooreMachine) -> str:
    """Run words letter by letter and at once, by the token numbers of fsa2lrnn.json."""
    model, rng, wrong = load(folder), np.random.default_rng(0), set[str]()
    alphabet = list(model.machine.alphabet)
    for i in range(N_WORDS):
        word = [
            machine.alphabet[a] for a in rng.integers(len(machine.alphabet), size=LONG if not i else 1 + i % LONGEST)
        ]
        expected = [len(alphabet) + model.outputs.index(output) for output in machine.transduce(word)]
        for chunk in (1, LONG):
            if run(model, torch.tensor([alphabet.index(a) for a in word]), chunk)[0].tolist() != expected:
                wrong.add(f"{chunk} letters a call")
    return ", ".join(sorted(wrong))


def try_all(n: int, seed: int, folders: dict[str, Path]) -> dict[tuple[str, str], Counter[str]]:
    """Try `n` mutations that are drawn by a seed, and count what became of them, by file and kind."""
    everything = [mutation for layer, folder in folders.items() for mutation in mutations(layer, folder)]
    random.Random(seed).shuffle(everything)
    counts, tried = dict[tuple[str, str], Counter[str]](), 0
    for i, mutation in enumerate(everything):
        if tried == n:
            break
        found = outcome(mutation, folders[mutation.layer], random.Random(f"{seed} {i}"))
        if found is not None:
            tried += 1
            name = found if found in FINE else f"{mutation.layer} {i}: {found}"
            counts.setdefault((mutation.file, mutation.kind), Counter())[name] += 1
    return counts


def write_all(place: Path) -> dict[str, Path]:
    """Export a machine to each layer whose package is installed."""
    there = [layer for layer in MACHINES if all(map(is_installed, NEEDED.get(layer, ())))]
    for layer in there:
        export(MACHINES[layer], layer, place / layer)
    return {layer: place / layer for layer in there}


def violations(counts: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Return what was proved and answers wrongly."""
    return [f"{file}, {kind}: {name}" for (file, kind), found in counts.items() for name in found if name not in FINE]


def _content(layer: str, folder: Path) -> dict[str, Any]:
    """What the files of a folder say, however JSON and tensors are laid out."""
    found = {path.name: _said(path) for path in folder.iterdir()}
    try:
        weights = target(layer).code.weights(folder)
    except CheckpointError:
        return found
    parts = {
        name: (part.dtype, part.shape, part.flatten().view(torch.uint8).tolist()) for name, part in weights.items()
    }
    return {name: parts if name.startswith("model.") else said for name, said in found.items()}


def _said(path: Path) -> Any:
    try:
        if path.suffix == ".json":
            return json.dumps(json.loads(path.read_text(), object_pairs_hook=lambda pairs: [[*pair] for pair in pairs]))
    except ValueError:
        pass
    return path.read_bytes()


def main(n: int = 1_000, seed: int = 0) -> None:
    """Print what became of `n` mutations, file by file; ends with 1 if one was proved and answers wrongly."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        folders = write_all(Path(place))
        total = sum(len(list(mutations(layer, folder))) for layer, folder in folders.items())
        counts = try_all(n, seed, folders)
    table, everything = Table("file", "kind", *FINE, "wrong"), Counter[str]()
    for (file, kind), found in sorted(counts.items()):
        row = Counter({name: found[name] for name in FINE}) | Counter(wrong=found.total() - sum(found[n] for n in FINE))
        table.add_row(file, kind, *(str(row[name]) for name in (*FINE, "wrong")))
        everything += row
    table.add_row("all", f"of {total:,}", *(str(everything[name]) for name in (*FINE, "wrong")))
    Console(width=100).print(table, *violations(counts), sep="\n")
    sys.exit(bool(everything["wrong"]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
