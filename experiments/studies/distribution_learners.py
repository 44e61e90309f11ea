"""Perplexities of what several methods learn from words: `python -m experiments.studies.distribution_learners FOLDER`.

FOLDER holds problems in the format of PAutomaC (`studies.pautomac`); `--generate N` first writes N drawn ones there.
The methods are the spectral estimate, `learn_distribution`, a network that is trained from the spectral estimate, one
that is trained from random weights, and ALERGIA, which needs AALpy (pip install aalpy).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor
from torch.nn.functional import log_softmax

from experiments import results_io, script
from experiments.studies.pautomac import perplexity
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.scans import scan_tokens
from fsa2lrnn.optional import require
from fsa2lrnn.weighted.distribution import learn_distribution
from fsa2lrnn.weighted.pautomac import Word, read_model, read_solution, read_words
from fsa2lrnn.weighted.spectral import estimate

COMMAND = "python -m experiments.studies.distribution_learners"
HIDDEN = 8  # dimensions of the network that is trained from random weights
SECONDS = 30.0  # of processor time for `learn_distribution`
Link = Callable[..., Tensor]


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


def learned(letters: int, train: list[Word], words: list[Word], solution: list[float]) -> dict[str, dict[str, Any]]:
    """Return the states and the perplexity of each method on the test words."""
    fit, held = [word for i, word in enumerate(train) if i % 10], train[::10]
    spectral = estimate(train, range(letters)).automaton
    likeliest = learn_distribution(train, range(letters), Deadline.of(SECONDS)).automaton
    start = estimate(fit, range(letters), rank=spectral.n_states).automaton
    A, x0, beta = (torch.tensor(np.array(part, float)) for part in (start.transitions, start.initial, start.final))
    # The weight of all words from a state; that of those that begin with a letter is the letter's part in it.
    onwards = torch.linalg.solve((torch.eye(len(x0)).double() - A.sum(0)).T, beta)
    tuned = fitted((A, x0, torch.cat([torch.einsum("j,aji->ai", onwards, A), beta[None]])), shares, fit, held)
    generator = torch.Generator().manual_seed(0)
    shapes = (letters, HIDDEN, HIDDEN), (HIDDEN,), (letters + 1, HIDDEN)
    drawn = [torch.randn(shape, generator=generator).double() * HIDDEN**-0.5 for shape in shapes]
    random = fitted(drawn, log_softmax, fit, held)
    states, alergia = best_alergia(fit, held)
    found = {
        "spectral": (spectral.n_states, [float(spectral(word)) for word in words]),
        "learn_distribution": (likeliest.n_states, [float(likeliest(word)) for word in words]),
        "network from the spectral estimate": (len(x0), log_likelihoods(tuned, shares, words).exp().tolist()),
        "network from random weights": (HIDDEN, log_likelihoods(random, log_softmax, words).exp().tolist()),
        "ALERGIA": (states, [alergia(word) for word in words]),
    }
    return {name: {"states": n, "perplexity": perplexity(solution, values)} for name, (n, values) in found.items()}


def shares(outputs: Tensor, dim: int = -1) -> Tensor:
    """Return the logarithms of the positive parts of outputs as shares of their sum, each at least about 10⁻⁵."""
    positive = (outputs * outputs.sum(dim, keepdim=True).sign()).clamp_min(0)
    found = positive / positive.sum(dim, keepdim=True).clamp_min(1e-300) + 1e-5
    return (found / found.sum(dim, keepdim=True)).log()


def log_likelihoods(parts: Sequence[Tensor], link: Link, words: Sequence[Word]) -> Tensor:
    """Return log P of words (N,): after each prefix link(W x) has the letters, and last the end.

    So the probabilities of all words sum to 1, whatever the signs of the weights are. The loss −log f + log Σ f of the
    values f of an automaton has no such bound: it falls without end where f becomes negative on other words.
    """
    A, x0, W = parts
    lengths = torch.tensor([len(word) for word in words])
    tokens = torch.zeros(len(words), int(lengths.max()) + 1).long()
    for row, word in zip(tokens, words, strict=True):
        row[: len(word)] = torch.tensor(word).long()
    v = x0.new_zeros(len(A), 1, len(x0))
    states = scan_tokens(tokens[:, :-1], A[:, None], v, x0[None])[:, :, 0]
    states = torch.cat([x0.expand(len(words), 1, -1), states], 1)
    step = torch.arange(tokens.shape[1])
    goal = torch.where(step < lengths[:, None], tokens, len(A))
    found = link(states @ W.T, dim=-1).gather(-1, goal[..., None])[..., 0]
    return torch.where(step <= lengths[:, None], found, 0).sum(1)


def fitted(
    parts: Sequence[Tensor], link: Link, fit: Sequence[Word], held: Sequence[Word], steps: int = 300
) -> Sequence[Tensor]:
    """Return trained A, x₀ and W with the least loss on words that are held out."""
    rng, held = np.random.default_rng(0), held[:2_000]
    parts = [part.clone().requires_grad_() for part in parts]
    optimiser, best, least = torch.optim.Adam(parts, 1e-2), list(parts), np.inf
    for step in range(steps + 1):
        if step % 20 == 0:
            with torch.no_grad():
                loss = -float(log_likelihoods(parts, link, held).mean())
            if loss < least:
                best, least = [part.detach().clone() for part in parts], loss
        batch = [fit[i] for i in rng.integers(0, len(fit), 1_000)]
        optimiser.zero_grad()
        (-log_likelihoods(parts, link, batch).mean()).backward()
        torch.nn.utils.clip_grad_norm_(parts, 1.0)
        optimiser.step()
    return best


def best_alergia(fit: Sequence[Word], held: Sequence[Word]) -> tuple[int, Callable[[Word], float]]:
    """Return the states and the probabilities of ALERGIA's Markov chain, of three ε by the words held out."""
    learning = require("aalpy.learning_algs", None, "the comparison with ALERGIA")
    start, end = -1, 1 + max((a for word in fit for a in word), default=0)
    options = list[tuple[float, int, Callable[[Word], float]]]()
    for eps in (0.005, 0.05, 0.5):
        chain = learning.run_Alergia([[start, *word, end] for word in fit], "mc", eps=eps)
        moves = {state.state_id: {to.output: (to.state_id, p) for to, p in state.transitions} for state in chain.states}

        def probability(word: Word, q: Any = chain.initial_state.state_id, moves: Any = moves) -> float:
            total = 1.0
            for a in (*word, end):
                if a not in moves[q]:
                    return 0.0
                q, p = moves[q][a]
                total *= p
            return total

        likelihood = sum(np.log(max(probability(word), 1e-12)) for word in held)
        options.append((likelihood, len(chain.states), probability))
    _, states, best = max(options, key=lambda option: option[0])
    return states, best


def main(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="of the problems")],
    drawn: Annotated[int, typer.Option("--generate", min=0, help="drawn problems to write into the folder")] = 0,
) -> None:
    """Learn from the words of each problem, print the perplexities, and write results/distribution_learners.json."""
    if drawn:
        generate(folder, drawn)
    models = sorted(folder.glob("*.pautomac_model.txt"), key=lambda path: int(path.name.split(".")[0]))
    if not models:
        raise UnsupportedFormat(f"{folder} holds no N.pautomac_model.txt: give the folder of PAutomaC's problems")
    rows = list[dict[str, Any]]()
    for path in models:
        stem = str(path).removesuffix("_model.txt")
        (letters, train), (_, words) = read_words(f"{stem}.train"), read_words(f"{stem}.test")
        solution = [float(x) for x in read_solution(f"{stem}_solution.txt")]
        row = {"problem": int(path.name.split(".")[0]), "target": perplexity(solution, solution)}
        rows.append(row | {"learned": learned(letters, train, words, solution)})
        found = ", ".join(f"{name} {one['perplexity']:.3f}" for name, one in rows[-1]["learned"].items())
        print(f"problem {row['problem']}: target {row['target']:.3f}, {found}", flush=True)
        results_io.write("distribution_learners", {"are_drawn": bool(drawn), "problems": rows}, f"{COMMAND} FOLDER")


if __name__ == "__main__":
    script.run(main)
