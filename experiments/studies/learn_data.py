"""`learn DATA` without options on words of known machines: `python -m experiments.studies.learn_data`.

Ten cases of words with labels at the ends or after every letter; the StaMinA problems in a folder, by held-out words;
and languages of MLRegTest from words with one label at the end. Machines and words of a case are drawn by a seed, until
the words use every transition `_USED` times: else they would not determine it. A result is exact if `equivalent` finds
no word on which it differs; for MLRegTest on words of 20 letters and more, as its data say nothing of shorter ones.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer

from experiments import results_io, script
from experiments.resumable import known_rows, run_due
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.names import parse_name
from fsa2lrnn import MooreMachine, equivalent
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.zoo.mlregtest import from_mlregtest
from fsa2lrnn.errors import Fsa2LrnnError
from fsa2lrnn.learning import Agreement, Data, learn
from fsa2lrnn.learning.choosing import SECONDS
from fsa2lrnn.learning.likelihood import draw, share_of

NAME = "learn_data"
_USED, _LONGEST = 100, 20  # uses of each transition at least, and letters of a word at most
_LANGUAGES, _LENGTHS = 117, range(20, 30)  # of MLRegTest, and letters of their words


class Case(NamedTuple):
    states: int
    letters: int
    outputs: int
    words: int
    noise: float
    everywhere: bool
    quiet: bool  # three of five transitions lead to the state itself, as in logs


CASES = (
    Case(6, 12, 2, 20_000, 0.028, False, True),
    Case(4, 3, 2, 5_000, 0.0, False, False),
    Case(10, 5, 3, 20_000, 0.01, False, False),
    Case(15, 6, 5, 50_000, 0.03, False, True),
    Case(8, 10, 2, 100_000, 0.1, False, False),
    Case(30, 8, 20, 100_000, 0.01, False, False),
    Case(30, 6, 2, 20_000, 0.03, True, True),
    Case(20, 12, 20, 5_000, 0.1, True, False),
    Case(12, 4, 4, 100_000, 0.0, True, False),
    Case(12, 3, 2, 10_000, 0.1, True, True),
)


def main(
    stamina: Annotated[Path | None, typer.Option(help="the folder of StaMinA's training files")] = None,
    mlregtest: Annotated[Path | None, typer.Option(help="the folder of MLRegTest's .att files")] = None,
    sizes: Annotated[str, typer.Option(help="words of each language of MLRegTest")] = "100000,10000,1000",
    limit: Annotated[float, typer.Option(min=1, help="seconds of processor time per language")] = SECONDS,
    minutes: Annotated[float, typer.Option(min=0, help="after which no run begins")] = 60.0,
) -> None:
    """Learn what has no row yet, and write experiments/results/learn_data.json."""
    torch.set_num_threads(1)
    learn([("a", 0), ("b", 1), ("ab", 1)], held_out=0)  # compiles what is compiled once
    plan: list[tuple[str, int, Any]] = [(f"case {i}", case.words, case) for i, case in enumerate(CASES, 1)]
    plan += [(f"StaMinA {path.name}", 0, path) for path in sorted(stamina.iterdir())] if stamina else []
    if mlregtest is not None:
        drawn = random.Random(31).sample(names(mlregtest, seed=31)[:_LANGUAGES], _LANGUAGES)
        plan += [(name, int(size), (mlregtest, limit)) for size in sizes.split(",") for name in drawn]

    def write(rows: list[Any]) -> None:
        command = f"python -m experiments.studies.{NAME} --stamina … --mlregtest …"
        results_io.write("learn_data", {"languages": _LANGUAGES, "runs": rows}, command)

    write(run_due(plan, ("name", "words"), known_rows(NAME), run_one, write, minutes))


def run_one(name: str, words: int, of: Any) -> dict[str, Any]:
    """Return the row of one run through `learn` without options."""
    row: dict[str, Any] = {"name": name, "words": words}
    if isinstance(of, Case):
        target, lines = drawn(of, int(name.split()[1]))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "words.csv")
            path.write_text(f"word,output{'s' * of.everywhere}\n" + "\n".join(lines))
            learned, found = measured(path)
        return row | of._asdict() | found | {"exact": equivalent(learned, target) is None}
    if name.startswith("StaMinA"):
        return row | measured(of)[1]
    folder, limit = of
    target = from_mlregtest(name, folder)
    row |= {"class": parse_name(name).kind, "letters": len(target.alphabet), "states": target.n_states, "limit": limit}
    try:
        learned, found = measured(balanced(target, words), held_out=0, seconds=limit)
    except Fsa2LrnnError as error:
        return row | {"exact": False, "error": str(error)}
    return row | found | {"exact": agrees_from(learned, target, 20)}


def measured(source: Any, **options: Any) -> tuple[MooreMachine, dict[str, Any]]:
    """Return the machine that `learn` finds, and its states, processor time, noise and right held-out words."""
    begun = time.process_time()
    found = learn(source, **options)
    spent, noise, out = round(time.process_time() - begun, 2), found.noise, found.verdict
    assert noise is not None
    of = {"learned": found.machine.n_states, "seconds": spent, "noise_found": noise.share, "interval": noise.interval}
    return found.machine, of | ({"right": out.right, "held_out": out.words} if isinstance(out, Agreement) else {})


def drawn(case: Case, seed: int) -> tuple[MooreMachine, list[str]]:
    """Return the machine of a case and the rows of its table of words."""
    k, n, C, N = case.letters, case.states, case.outputs, case.words
    rng = np.random.default_rng(seed)
    while True:
        delta = rng.integers(n, size=(k, n))
        delta = np.where(rng.random((k, n)) < 0.6 * case.quiet, np.arange(n), delta)
        outputs = rng.permutation(np.concatenate([np.arange(C), rng.integers(C, size=n - C)]))
        machine = MooreMachine(delta, [f"out{y}" for y in outputs], 0, [f"event{a}" for a in range(k)])
        lengths, tokens = rng.integers(1, _LONGEST + 1, size=N), rng.integers(k, size=(N, _LONGEST))
        q, uses = np.zeros((N, _LONGEST + 1), np.int64), np.zeros((k, n), np.int64)
        for t in range(_LONGEST):
            q[:, t + 1] = delta[tokens[:, t], q[:, t]]
            np.add.at(uses, (tokens[t < lengths, t], q[t < lengths, t]), 1)
        if uses.min() >= _USED and machine.minimise().n_states == n:
            break
    wrong = rng.random(q.shape) < case.noise
    labels = np.where(wrong, (outputs[q] + rng.integers(1, C, size=q.shape)) % C, outputs[q])
    shown = [labels[i, 1 : m + 1] if case.everywhere else labels[i, m : m + 1] for i, m in enumerate(lengths)]
    words = (" ".join(f"event{a}" for a in row[:m]) for row, m in zip(tokens, lengths, strict=True))
    return machine, [f"{w},{' '.join(f'out{y}' for y in y_of)}" for w, y_of in zip(words, shown, strict=True)]


def balanced(machine: MooreMachine, size: int, seed: int = 0) -> Data:
    """Return words of 20 to 29 letters, equally many of each length and label, each drawn uniformly."""
    rng, each = np.random.default_rng(seed), size // (2 * len(_LENGTHS))
    rows = each * 2 * len(_LENGTHS)
    tokens, labels = (
        torch.zeros((rows, max(_LENGTHS)), dtype=torch.int64),
        torch.full((rows, max(_LENGTHS) + 1), UNCOUNTED),
    )
    lengths = torch.tensor(_LENGTHS).repeat_interleave(2 * each)
    for i, length in enumerate(_LENGTHS):
        for label in (0, 1):
            if not share_of(machine, label, length):
                raise Fsa2LrnnError(f"no word of {length} letters has the label {bool(label)}")
            of = slice((2 * i + label) * each, (2 * i + label + 1) * each)
            tokens[of, :length] = torch.from_numpy(draw(machine, label, length, each, rng))
            labels[of, length] = label
    return Data(machine.alphabet, (False, True), tokens, labels, torch.arange(1, rows + 1), lengths)


def agrees_from(learned: MooreMachine, target: MooreMachine, length: int) -> bool:
    """Return whether both machines have one output on all words of at least `length` letters."""
    order = [learned.alphabet.index(letter) for letter in target.alphabet]
    pairs = {(learned.start, target.start)}
    for _ in range(length):
        pairs = {(int(learned.delta[a, p]), int(target.delta[b, q])) for p, q in pairs for b, a in enumerate(order)}
    begun = lambda machine, q: MooreMachine(machine.delta, machine.outputs, q, machine.alphabet)  # noqa: E731
    return all(equivalent(begun(learned, p), begun(target, q)) is None for p, q in pairs)


if __name__ == "__main__":
    script.run(main)
