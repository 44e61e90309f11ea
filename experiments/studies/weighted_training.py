"""Does spectral learning help gradient training? `python -m experiments.studies.weighted_training FOLDER`.

For each problem of PAutomaC (`studies/weighted.py`), the layer of a weighted automaton is trained to maximise the
likelihood |f(w)| / |Σ f| of the training words, from the spectral estimate and from random numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from experiments import results_io, script
from experiments.studies.weighted import perplexity
from fsa2lrnn import WeightedAutomaton
from fsa2lrnn.nn.scans import scan_tokens
from fsa2lrnn.weighted.pautomac import Word, read_solution, read_words
from fsa2lrnn.weighted.spectral import estimate

COMMAND = "python -m experiments.studies.weighted_training FOLDER"


def values(words: list[Word], A: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Return f of each word, differentiable: A (|Σ|, n, n), alpha and beta (n,) -> (N,)."""
    longest = max(1, *map(len, words))
    tokens = torch.tensor([[*word, *[0] * (longest - len(word))] for word in words])
    states = scan_tokens(tokens, A[:, None], alpha.new_zeros(len(A), 1, len(alpha)), alpha[None], "sequential")[:, :, 0]
    states = torch.cat([alpha.expand(len(words), 1, -1), states], 1)
    return states[torch.arange(len(words)), torch.tensor([len(word) for word in words])] @ beta


def trained(words: list[Word], start: list[Tensor], steps: int) -> tuple[Tensor, ...]:
    """Return A, alpha and beta after so many steps of Adam on batches of 256 words."""
    parts = [part.clone().requires_grad_() for part in start]
    optimiser, drawn = torch.optim.Adam(parts, 1e-3), np.random.default_rng(0)
    for _ in range(steps):
        A, alpha, beta = parts
        batch = [words[i] for i in drawn.integers(len(words), size=256)]
        # Σ f over all words is β (I − Σ A)⁻¹ α.
        total = beta @ torch.linalg.solve(torch.eye(len(alpha)) - A.sum(0), alpha)
        loss = total.abs().log() - (values(batch, A, alpha, beta).abs() + 1e-12).log().mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parts, 1.0)
        optimiser.step()
    return tuple(part.detach() for part in parts)


def tensors(w: WeightedAutomaton) -> list[Tensor]:
    return [
        torch.tensor(np.array(part, dtype=float), dtype=torch.float32) for part in (w.transitions, w.initial, w.final)
    ]


def problem(stem: str, rank: int | None, steps: int) -> dict[str, Any]:
    """Return perplexities on the test words: of the target, the estimate, and what training makes of both starts."""
    letters, words = read_words(Path(f"{stem}.train"))
    test, solution = (
        read_words(Path(f"{stem}.test"))[1],
        [float(x) for x in read_solution(Path(f"{stem}_solution.txt"))],
    )
    w = estimate(words, range(letters), rank=rank).automaton
    spectral, generator = tensors(w), torch.Generator().manual_seed(0)
    random = [part.abs().mean() * torch.rand(part.shape, generator=generator) * 2 for part in spectral]
    ends = {"estimate": tuple(spectral)} | {
        name: trained(words, start, steps) for name, start in (("from_estimate", spectral), ("from_random", random))
    }
    scores = {name: perplexity(solution, values(test, *parts).abs().tolist()) for name, parts in ends.items()}
    return {"problem": Path(stem).name, "states": w.n_states, "target": perplexity(solution, solution), **scores}


def main(
    folder: Annotated[Path, typer.Argument(help="of PAutomaC's problems", exists=True)],
    rank: Annotated[int, typer.Option(min=1, help="states")] = 6,
    steps: Annotated[int, typer.Option(min=1, help="of Adam")] = 400,
) -> None:
    """Train on each problem of a folder, and write results/weighted_training.json."""
    stems = sorted(str(path).removesuffix("_model.txt") for path in folder.glob("*.pautomac_model.txt"))
    rows = [problem(stem, rank, steps) for stem in stems]
    results_io.write("weighted_training", {"steps": steps, "problems": rows}, COMMAND)
    for row in rows:
        print(row)


if __name__ == "__main__":
    script.run(main)
