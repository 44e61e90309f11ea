"""The 48 problems of the PAutomaC competition: `python -m experiments.studies.pautomac FOLDER`.

The data may not be distributed: FOLDER is a copy, with N.pautomac_model.txt, N.pautomac.train, N.pautomac.test and
N.pautomac_solution.txt for each problem N. What is among the results is not run again: delete results/pautomac.json for
that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from experiments import results_io, script
from fsa2lrnn import LRNN, WeightedAutomaton
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.weighted import minimal
from fsa2lrnn.weighted.approximate import approximate
from fsa2lrnn.weighted.distribution import learn_distribution
from fsa2lrnn.weighted.networks import compile_machine, from_model, rounding_bound
from fsa2lrnn.weighted.pautomac import read_model, read_solution, read_words
from fsa2lrnn.weighted.spectral import estimate

_SECONDS = 300.0  # of processor time for a least dimension and its certificate, and for a smaller automaton
_LEAST = 1e-7
Word = tuple[int, ...]


def perplexity(target: Sequence[float], found: Sequence[float]) -> float:
    """Return PAutomaC's score, 2^(−Σ p log₂ q) over the test words, both normalised; a q below 1e-7 becomes that."""
    p, q = np.array(target), np.maximum(found, 0)
    q = np.maximum(q / q.sum(), _LEAST)
    return float(2 ** -(p / p.sum() @ np.log2(q / q.sum())))


@torch.no_grad()
def values(model: LRNN, words: Sequence[Word]) -> list[float]:
    """Return what a network answers after each word."""
    return [model(torch.tensor([word]).long(), "sequential", empty_word=True)[0, -1, 0].item() for word in words]


def of_target(w: WeightedAutomaton, words: Sequence[Word], solution: Sequence[float]) -> dict[str, Any]:
    """Compile a model; compare the network with it, with the solution and with minimal forms."""
    model, found = compile_machine(w), dict[str, Any]()
    exact, back = [w(word) for word in words], from_model(model)
    # Decimals are no doubles: the network is equal to the model whose numbers are rounded once.
    parts = (np.array(part, float) for part in (w.initial, w.transitions, w.final))
    found["equal_to_rounded_model"] = WeightedAutomaton(w.alphabet, *parts).equivalent(back) is None
    try:
        with limited(Deadline.of(_SECONDS)):
            least = minimal(w)
            least.check()
            found |= {
                "minimal": least.second.n_states,
                "model_equal_to_minimal": w.equivalent(least.second) is None,
                "network_equal_to_minimal": back.equivalent(back.minimise()) is None,
            }
            smaller = approximate(w, max(1, least.second.n_states // 2))
            found["half"] = {"states": smaller.automaton.n_states, "error": smaller.error}
    except BudgetExceeded as fault:
        found["undecided"] = str(fault)
    errors = [abs(Fraction(x) - y) for x, y in zip(values(model, words), exact, strict=True)]
    bound = rounding_bound(w, length=max(map(len, words)))
    total = float(sum(exact))
    return found | {
        "largest_relative_error": max(float(e / y) for e, y in zip(errors, exact, strict=True) if y),
        "largest_error": float(max(errors)),
        "certified_error": bound.bound,
        "certified_for": bound.length,
        "solution_apart": max(abs(float(y) / total - s) for y, s in zip(exact, solution, strict=True)),
    }


def of_words(stem: str, seconds: float) -> dict[str, Any]:
    """Learn from the training words; score the networks of the spectral estimate and of what is chosen."""
    (letters, words), (_, train) = read_words(Path(f"{stem}.test")), read_words(Path(f"{stem}.train"))
    solution = [float(x) for x in read_solution(Path(f"{stem}_solution.txt"))]
    spectral = estimate(train, range(letters)).automaton
    learned = learn_distribution(train, range(letters), Deadline.of(seconds))
    answers = values(compile_machine(spectral), words)
    return {
        "limit": seconds,
        "spectral": perplexity(solution, answers),
        "spectral_states": spectral.n_states,
        "not_positive": sum(x <= 0 for x in answers),
        "method": learned.method,
        "states": learned.automaton.n_states,
        "perplexity": perplexity(solution, values(compile_machine(learned.automaton), words)),
    }


def problem(path: Path) -> dict[str, Any]:
    """Return what is found for one problem."""
    begun, stem = time.process_time(), str(path).removesuffix("_model.txt")
    w, (letters, words) = read_model(path), read_words(Path(f"{stem}.test"))
    solution = [float(x) for x in read_solution(Path(f"{stem}_solution.txt"))]
    found = {"problem": int(path.name.split(".")[0]), "states": w.n_states, "letters": letters}
    found |= of_target(w, words, solution) | {"perplexity_of_target": perplexity(solution, solution)}
    return found | {"seconds": round(time.process_time() - begun, 1)}


def main(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="of the problems")],
    seconds: Annotated[float, typer.Option(help="of processor time to learn from the words of a problem")] = 25.0,
) -> None:
    """Compare all models, then learn from all words; write results/pautomac.json after each."""
    models = {int(path.name.split(".")[0]): path for path in folder.glob("*.pautomac_model.txt")}
    if not models:
        raise UnsupportedFormat(f"{folder} holds no N.pautomac_model.txt: give the folder of PAutomaC's problems")
    is_begun = (results_io.RESULTS / "pautomac.json").exists()
    rows: dict[int, Any] = {row["problem"]: row for row in results_io.read("pautomac")["results"]} if is_begun else {}
    for number in sorted(models):
        if number not in rows:
            rows[number] = problem(models[number])
            _write(rows, number)
    for number, row in rows.items():
        stem = str(models[number]).removesuffix("_model.txt")
        if "learned" not in row and Path(f"{stem}.train").exists():
            row["learned"] = of_words(stem, seconds)
            _write(rows, number)


def _write(rows: dict[int, Any], number: int) -> None:
    values = [rows[each] for each in sorted(rows)]
    results_io.write("pautomac", values, "python -m experiments.studies.pautomac FOLDER")
    print(rows[number], flush=True)


if __name__ == "__main__":
    script.run(main)
