"""Weighted automata: comparison checked by enumeration, Hankel ranks of the atlas, PAutomaC, two trained models.

    python -m experiments.studies.weighted --folder PAUTOMAC

The data of PAutomaC may not be distributed: --folder takes a copy, with N.pautomac_model.txt, N.pautomac.train,
N.pautomac.test and N.pautomac_solution.txt for each problem. `--generate N` first writes N drawn problems there.
"""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from sympy import QQ
from sympy.polys.matrices import DomainMatrix
from torch.nn.functional import cross_entropy

from experiments import results_io, script
from fsa2lrnn import LRNN, MooreMachine, Readout, WeightedAutomaton, represent
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.families import FAMILIES, LinearReadout
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.nn.scans import scan_tokens
from fsa2lrnn.weighted import EqualFunctions, SeparatingWord, compare, minimal
from fsa2lrnn.weighted.approximate import approximate
from fsa2lrnn.weighted.networks import compile_machine, from_model, prove_equivalent, rounding_bound
from fsa2lrnn.weighted.pautomac import read_model, read_solution, read_words
from fsa2lrnn.weighted.spectral import estimate

COMMAND = "python -m experiments.studies.weighted"
MACHINES, SECONDS = 40, 10.0


def pairs(count: int, seed: int = 0) -> dict[str, int]:
    """Compare random pairs; count verdicts that enumeration, the checker or sympy's ranks contradict."""
    rng, counts = np.random.default_rng(seed), {"pairs": count, "equal": 0, "wrong": 0, "not_shortest": 0, "ranks": 0}
    for i in range(count):
        n = int(rng.integers(1, 5))
        A, alpha, beta = rng.integers(-2, 3, (2, n, n)), rng.integers(-1, 2, n), rng.integers(-1, 2, n)
        f = WeightedAutomaton("ab", alpha, A, beta)
        T = np.triu(rng.integers(-2, 3, (n, n)), 1) + np.eye(n, dtype=int)  # of determinant 1
        inverse = np.rint(np.linalg.inv(T)).astype(int)
        A = np.array([T @ rows @ inverse for rows in A])
        if i % 2:  # one entry changes
            A[tuple(rng.integers(0, size) for size in A.shape)] += 1
        g = WeightedAutomaton("ab", T @ alpha, A, beta @ inverse)
        verdict, words = compare(f, g), [word for k in range(2 * n) for word in product("ab", repeat=k)]
        first = next((word for word in words if f(word) != g(word)), None)
        is_word = isinstance(verdict, SeparatingWord)
        if isinstance(verdict, SeparatingWord | EqualFunctions):
            verdict.check()
        counts["equal"] += first is None
        counts["wrong"] += is_word != (first is not None)
        counts["not_shortest"] += is_word and (first is None or len(verdict.word) != len(first))
        short = [word for word in words if len(word) < n]
        H = DomainMatrix([[QQ(*f(u + v).as_integer_ratio()) for v in short] for u in short], (len(short),) * 2, QQ)
        counts["ranks"] += minimal(f).second.n_states == H.rank()
    return counts


def atlas() -> dict[str, Any]:
    """Return Hankel ranks of the smallest tasks of the atlas, and answers with any read-out and with a linear one."""
    names = [row["name"] for row in results_io.read("atlas")["results"]["runs"] if row["kind"] == "task"][:MACHINES]
    rows = []
    for name in names:
        machine, answers, linear, least = MooreMachine.from_source(f"task:{name}").minimise(), {}, {}, 0
        for family in FAMILIES:
            found = represent(machine, family, readout="linear")
            if isinstance(found, LinearReadout):
                found.check()
                least, linear[family] = found.least, found.answer
            try:
                with limited(Deadline.of(SECONDS)):
                    answers[family] = represent(machine, family, short_words=False).answer
            except BudgetExceeded:
                answers[family] = "unknown"
        rank = WeightedAutomaton.from_machine(machine).minimise().n_states
        row = {"name": name, "states": machine.n_states, "hankel_rank": rank, "least": least}
        rows.append(row | {"any": answers, "linear": linear})
    cells = [(row["any"][family], row["linear"][family], family) for row in rows for family in FAMILIES]
    return {
        "machines": rows,
        "no": sum(one == "no" for one, _, _ in cells),
        "no_unconditional": sum(one == "no" == many for one, many, _ in cells),
        "no_for_linear_readouts_alone": sum(one != "no" == many for one, many, _ in cells),
        "exact_dimension": sum(many == "yes" and family in FORCED for _, many, family in cells),
    }


def generate(folder: Path, count: int) -> None:
    """Write drawn problems in the format of PAutomaC, but those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(1, count + 1):
        rng, stem = np.random.default_rng(i), f"{folder}/{i}.pautomac"
        if Path(f"{stem}_solution.txt").exists():
            continue
        n, letters = int(rng.integers(2, 12)), int(rng.integers(2, 6))
        initial, moves = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.2), (n, letters))
        stop, emit = rng.uniform(0.1, 0.4, n), rng.dirichlet(np.full(letters, 0.5), n)
        parts = {"I: (state)": initial, "F: (state)": stop, "S: (state,symbol)": emit, "T: (state,symbol,state)": moves}
        lines = list[str]()
        for head, values in parts.items():
            entries = (f"\t({','.join(map(str, at))}) {x!r}" for at, x in np.ndenumerate(values.astype(object)))
            lines += [head, *entries]
        Path(f"{stem}_model.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name, size in (("train", 10_000), ("test", 1_000)):
            drawn = list[tuple[int, ...]]()
            for _ in range(size):
                q, word = int(rng.choice(n, p=initial)), []
                while rng.random() >= stop[q]:
                    word.append(int(rng.choice(letters, p=emit[q])))
                    q = int(rng.choice(n, p=moves[q, word[-1]]))
                drawn.append(tuple(word))
            words = sorted(set(drawn)) if name == "test" else drawn
            rows = [f"{len(words)} {letters}", *(" ".join(map(str, (len(word), *word))) for word in words)]
            Path(f"{stem}.{name}").write_text("\n".join(rows) + "\n", encoding="utf-8")
            if name == "test":
                w = read_model(Path(f"{stem}_model.txt"))
                values = [float(w(word)) for word in words]
                lines = [str(len(values)), *(repr(x / sum(values)) for x in values)]
                Path(f"{stem}_solution.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def perplexity(target: list[float], found: list[float]) -> float:
    """Return PAutomaC's score, 2^(−Σ p log₂ q) over the test words, both normalised; values below 1e-12 become that."""
    q = np.maximum(found, 1e-12)
    return float(2 ** -(np.array(target) / sum(target) @ np.log2(q / q.sum())))


def problem(path: Path) -> dict[str, Any]:
    """Return what is found for one problem of PAutomaC."""
    w, begun = read_model(path), time.process_time()
    stem = str(path).removesuffix("_model.txt")
    model, least = compile_machine(w), minimal(w)
    least.check()
    _, words = read_words(Path(f"{stem}.test"))
    exact, solution = [w(word) for word in words], [float(x) for x in read_solution(Path(f"{stem}_solution.txt"))]
    values = [model(torch.tensor([word]).long(), "sequential", empty_word=True)[0, -1, 0].item() for word in words]
    bound = rounding_bound(w, length=max(map(len, words)))
    errors = [abs(Fraction(x) - y) for x, y in zip(values, exact, strict=True)]
    letters, train = read_words(Path(f"{stem}.train"))
    learned = estimate(train, range(letters))
    back, smaller = from_model(model), approximate(w, max(1, least.second.n_states // 2))
    probabilities = [float(learned.automaton(word)) for word in words]
    return {
        "problem": path.name.split(".")[0],
        "states": w.n_states,
        "letters": letters,
        "minimal": least.second.n_states,
        "network_read_back_equal_to_its_minimal_form": back.equivalent(back.minimise()) is None,
        "network_equal_to_model": prove_equivalent(model, w).kind,
        "largest_relative_error": float(max(e / y for e, y in zip(errors, exact, strict=True) if y)),
        "largest_error": float(max(errors)),
        "certified_error": bound.bound,
        "certified_for": bound.length,
        "solution_apart": max(abs(float(y / sum(exact)) - s) for y, s in zip(exact, solution, strict=True)),
        "half": {"states": smaller.automaton.n_states, "error": smaller.error},
        "learned": {"states": learned.automaton.n_states, "perplexity": perplexity(solution, probabilities)},
        "perplexity_of_target": perplexity(solution, solution),
        "seconds": round(time.process_time() - begun, 1),
    }


def trained(seed: int, steps: int = 1_500) -> LRNN:
    """Return a model of Sum(5), one block of 8 with a linear read-out, trained on words of up to 20 letters."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {"A": (5, 1, 8, 8), "x0": (1, 8), "W": (5, 8), "b": (5,)}
    parts = {name: (0.35 * torch.randn(shape, generator=generator)).requires_grad_() for name, shape in shapes.items()}
    optimiser, v = torch.optim.Adam(parts.values(), 3e-3), torch.zeros(5, 1, 8)
    for _ in range(steps):
        tokens = torch.randint(5, (128, int(torch.randint(1, 21, (), generator=generator))), generator=generator)
        states = scan_tokens(tokens, parts["A"], v, parts["x0"])[:, :, 0]
        logits = states @ parts["W"].T + parts["b"]
        loss = cross_entropy(logits.flatten(0, 1), (tokens.cumsum(1) % 5).flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parts.values(), 1.0)
        optimiser.step()
    A, x0, W, b = (parts[name].detach() for name in shapes)
    return LRNN.from_tables(A, v, x0, Readout.linear(W, b))


def two_models(margin: float = 1.0, most: int = 7) -> dict[str, Any]:
    """Return whether two trained models are equal, and a shortest word on which their logits are a margin apart."""
    models = [trained(seed) for seed in (0, 1)]
    verdict = prove_equivalent(models[0], models[1])
    found: dict[str, Any] = {"verdict": str(verdict), "states": [from_model(model).n_states for model in models]}
    found["minimal"] = [from_model(model).minimise().n_states for model in models]
    for k in range(most + 1):
        words = torch.tensor(list(product(range(5), repeat=k))).long().reshape(5**k, k)
        y, z = (model(words, empty_word=True)[:, -1].detach() for model in models)
        gaps, right = (y - z).abs().amax(-1), words.sum(1) % 5
        if "length" not in found and float(gaps.max()) > margin:
            word = words[int(gaps.argmax())].tolist()
            exact = [from_model(model)(word) for model in models]
            gap = max(abs(a - b) for a, b in zip(*exact, strict=True))
            found |= {"margin": margin, "length": k, "word": word, "exact_difference": float(gap)}
        found[f"wrong_of_{5**k}"] = [int((x.argmax(-1) != right).sum()) for x in (y, z)]
    return found


def main(
    folder: Annotated[Path | None, typer.Option(help="of PAutomaC's problems")] = None,
    drawn: Annotated[int, typer.Option("--generate", min=0, help="drawn problems to write into the folder")] = 0,
) -> None:
    """Run all parts and write results/weighted.json."""
    if drawn and folder is not None:
        generate(folder, drawn)
    models = [] if folder is None else sorted(folder.glob("*.pautomac_model.txt"))
    if folder is not None and not models:
        raise UnsupportedFormat(f"{folder} holds no N.pautomac_model.txt: give the folder of PAutomaC's problems")
    kind = None if folder is None else "drawn" if drawn else "PAutomaC"
    problems = {"kind": kind, "problems": [problem(path) for path in models]}
    results = {"pairs": pairs(500), "atlas": atlas(), "pautomac": problems, "sum5": two_models()}
    path = results_io.write("weighted", results, COMMAND)
    print(f"{results['pairs']}\n{results['sum5']}\nwritten to {path.name}, with {len(models)} problems")


if __name__ == "__main__":
    script.run(main)
