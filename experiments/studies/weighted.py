"""Weighted automata: comparison checked by enumeration, Hankel ranks of the atlas, two trained models.

python -m experiments.studies.weighted
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch
from sympy import QQ
from sympy.polys.matrices import DomainMatrix
from torch.nn.functional import cross_entropy

from experiments import results_io, script
from fsa2lrnn import LRNN, MooreMachine, Readout, WeightedAutomaton, represent
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.families import FAMILIES, LinearReadout
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.nn.scans import scan_tokens
from fsa2lrnn.weighted import EqualFunctions, SeparatingWord, compare, minimal
from fsa2lrnn.weighted.networks import from_model, prove_equivalent

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


def main() -> None:
    """Run all parts and write results/weighted.json."""
    results = {"pairs": pairs(500), "atlas": atlas(), "sum5": two_models()}
    path = results_io.write("weighted", results, COMMAND)
    print(f"{results['pairs']}\n{results['sum5']}\nwritten to {path.name}")


if __name__ == "__main__":
    script.run(main)
