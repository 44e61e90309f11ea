"""Gradient descent on tasks that a refusal excludes: `python -m experiments.studies.released_search`.

One small layer of each kind, made by its own code with its own initial weights, is placed between an embedding and two
linear maps with ReLU that also read the letter. It is trained on all words of `SHORT` letters with the output after
each letter as label. The machines are all those with at most three states that are refused for the layer, and some that
are not, as a control of the search. A machine counts as found if every output is right on all words of `SHORT` letters,
on random words of `LONG` letters, and on the refusal's own word, repeated to that length. Short words alone can be
solved by counting, which fails on longer ones.

Chunks of 64 would be padded around so few letters, so layers are trained through their own letter-by-letter functions.
RWKV-7's code computes without gradients, so its recurrence is restated here, and compared with the code in a test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor, nn

from experiments import results_io, script
from fsa2lrnn.automata import MooreMachine, minimise, zoo
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.recheck import LAYERS as ALL_LAYERS
from fsa2lrnn.extra.huggingface.refuse import refuse

LAYERS = tuple(layer for layer in ALL_LAYERS if layer != "qwen3.5")  # the recurrence of qwen3-next
SMALL = (
    "parity", "sum_mod(3)", "flip_flop", "length_mod(3)", "ab_star", "tomita(1)", "tomita(6)", "length_mod(2)",
    "all_maps(3)", "elevator(3)", "resettable_counter(3)", "remainder(3)", "count_mod(2)", "shift_register(1)",
)  # fmt: skip
CONTROLS = (
    ("parity", "olmo-hybrid"),
    *(("tomita(1)", layer) for layer in LAYERS),
    *(("flip_flop", layer) for layer in LAYERS),
)
SHORT, LONG = 8, 64
SEEDS, STEPS, LOOK = 1, 200, 50
_WIDTH, _BATCH = 16, 128


def main() -> None:
    """Search, write results/released_search.json, print a line a cell."""
    table = Table("machine", "layer", "refused", "best on short words", "best on long words", "found")
    rows = list[dict]()
    for source, layer in track(cells(), description="cells", transient=True):
        rows.append(search(source, layer))
        line = rows[-1]
        table.add_row(source, layer, *(str(line[key]) for key in ("refused", "short", "long", "found")))
    path = results_io.write("released_search", rows, "python -m experiments.studies.released_search")
    Console(width=110).print(table, f"written to {path.name}")


def cells() -> list[tuple[str, str]]:
    """Return refused machines of at most three states with their layers, and the controls."""
    refused = [(s, layer) for s in SMALL for layer in LAYERS if refuse(zoo.from_task(s), layer) is not None]
    return [*CONTROLS, *refused]


def search(source: str, layer: str, seeds: int = SEEDS, steps: int = STEPS) -> dict:
    """Return the best of several seeds on one machine: shares of right outputs, and whether all are right."""
    machine = minimise(zoo.from_task(source))
    refusal, found = refuse(machine, layer), list[tuple[float, float]]()
    repeated = () if refusal is None else (*refusal.before, *refusal.repeated * LONG)[:LONG]
    for seed in range(seeds):
        found.append(train(machine, layer, seed, steps, repeated))
        if found[-1] == (1.0, 1.0):
            break
    return {
        "machine": source,
        "states": machine.n_states,
        "layer": layer,
        "refused": refusal is not None,
        "seeds": len(found),
        "steps": steps,
        "short": round(max(short for short, _ in found), 4),
        "long": round(max(long for _, long in found), 4),
        "found": found[-1] == (1.0, 1.0),
    }


def train(
    machine: MooreMachine, layer: str, seed: int, steps: int, repeated: tuple[int, ...] = ()
) -> tuple[float, float]:
    """Return the shares of right outputs on short and on long words, at the first perfect step or at the end."""
    torch.manual_seed(seed)
    rng, k = np.random.default_rng(seed), len(machine.alphabet)
    outputs = {output: j for j, output in enumerate(dict.fromkeys(machine.outputs))}
    short = all_words(k)
    drawn = rng.integers(k, size=(31 if repeated else 32, LONG))
    long = np.concatenate([drawn, np.array(repeated, np.int64)[None]]) if repeated else drawn
    exams = [(torch.from_numpy(words), answers(machine, words, outputs)) for words in (short, long)]
    model = Small(layer, k, len(outputs))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=steps)
    for step in range(1, steps + 1):
        rows = torch.from_numpy(rng.integers(len(short), size=_BATCH))
        logits = model(exams[0][0][rows])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), exams[0][1][rows].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % LOOK == 0 and _share(model, *exams[1]) == 1.0 and _share(model, *exams[0]) == 1.0:
            return 1.0, 1.0
    return _share(model, *exams[0]), _share(model, *exams[1])


class Small(nn.Module):
    """A network of an embedding, one layer, and a read-out that also reads the letter: (B, T) -> (B, T, |Γ|)."""

    def __init__(self, layer: str, n_letters: int, n_outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_letters, _WIDTH)
        self.mixer = mixer(layer)
        self.readout = nn.Sequential(nn.Linear(2 * _WIDTH, 32), nn.ReLU(), nn.Linear(32, n_outputs))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits after each letter."""
        x = self.embedding(tokens)
        with transformers():
            return self.readout(torch.cat([x, self.mixer(x)], dim=-1))


def mixer(layer: str) -> nn.Module:
    """Return a layer of two heads of 8, or of as many numbers, in a stream of 16: (B, T, 16) -> (B, T, 16)."""
    if layer == "rwkv-7":
        return Rwkv7()
    linear = {"layer_types": ["linear_attention", "full_attention"], "linear_conv_kernel_dim": 4}
    gated = {
        **linear,
        **{f"linear_num_{kind}_heads": 2 for kind in ("key", "value")},
        **{f"linear_{kind}_head_dim": 8 for kind in ("key", "value")},
    }
    delta = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")
    kimi = ("chunk_kimi_delta_attention", "recurrent_kimi_delta_attention")
    two = {"expand": 2, "num_heads": 4, "head_dim": 8, "n_groups": 1, "state_size": 8, "chunk_size": SHORT}
    of_kimi = {**linear, "linear_num_heads": 2, "linear_head_dim": 8}
    name, architecture, kind, options, functions = {
        "olmo-hybrid": ("olmo_hybrid", "OlmoHybrid", "GatedDeltaNet", gated, delta),
        "qwen3-next": ("qwen3_next", "Qwen3Next", "GatedDeltaNet", gated, delta),
        "mamba-2": ("mamba2", "Mamba2", "Mixer", two, None),
        "mamba": ("mamba", "Mamba", "Mixer", {"expand": 2, "state_size": 8, "time_step_rank": 4}, None),
        "kimi-linear": ("kimi_linear", "KimiLinear", "DeltaAttention", of_kimi, kimi),
    }[layer]
    code = modeling(name)
    config = getattr(code, f"{architecture}Config")(hidden_size=_WIDTH, num_hidden_layers=2, **options)
    made = getattr(code, architecture + kind)(config, 0)
    if layer == "kimi-linear":  # these are drawn by the whole model
        nn.init.uniform_(made.forget_gate.A_log, 0.0, 2.0)
        nn.init.uniform_(made.forget_gate.dt_bias, -5.0, 0.0)
    return made if functions is None else _LetterByLetter(made, code, *functions)


class _LetterByLetter(nn.Module):
    """A layer whose code calls its function for single letters instead of the one for chunks."""

    def __init__(self, made: Any, code: Any, chunks: str, letters: str) -> None:
        super().__init__()
        self.made, self._code, self._chunks, self._letters = made, code, chunks, letters

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs: (B, T, 16) -> (B, T, 16)."""
        before = getattr(self._code, self._chunks)
        setattr(self._code, self._chunks, getattr(self._code, self._letters))
        try:
            return self.made(x)
        finally:
            setattr(self._code, self._chunks, before)


class Rwkv7(nn.Module):
    """RWKV-7's recurrence with gates read by linear maps from two letters: S ← S(diag(w) − κ(κ∘a)ᵀ) + v kᵀ."""

    def __init__(self, n_heads: int = 2, size: int = 8) -> None:
        super().__init__()
        self.n_heads, self.size, width = n_heads, size, n_heads * size
        self.mix = nn.Parameter(torch.full((6, _WIDTH), 0.5))
        self.branches = nn.ModuleList(nn.Linear(_WIDTH, width) for _ in "rwkavg")
        self.norm = nn.GroupNorm(n_heads, width, eps=64e-5)
        self.out = nn.Linear(width, _WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs: (B, T, 16) -> (B, T, 16)."""
        before = nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        mixed = [branch(x + mu * (before - x)) for branch, mu in zip(self.branches, self.mix, strict=True)]
        r, w, k, a, v, g = (part.unflatten(-1, (self.n_heads, self.size)) for part in mixed)
        y = recurrence(r, w, k, torch.sigmoid(a), v)
        y = self.norm(y.flatten(2).flatten(0, 1)).unflatten(0, x.shape[:2])
        return self.out(y * torch.sigmoid(g.flatten(2)))


def recurrence(r: Tensor, w: Tensor, k: Tensor, a: Tensor, v: Tensor) -> Tensor:
    """Return RWKV-7's read-outs of S, all (B, T, heads, N); w before its σ, a after it, k not normalised."""
    kappa, k = nn.functional.normalize(k, dim=-1), k * a  # k(1 + (a − 1)k_a) with k_a = 1
    w = torch.exp(-0.606531 * torch.sigmoid(w))
    S, found = k.new_zeros(*k[:, 0].shape, k.shape[-1]), list[Tensor]()
    for t in range(k.shape[1]):
        erased = torch.einsum("bhij,bhj->bhi", S, kappa[:, t])[..., None] * (kappa * a)[:, t, :, None]
        S = S * w[:, t, :, None] - erased + v[:, t, ..., None] * k[:, t, :, None]
        found.append(torch.einsum("bhij,bhj->bhi", S, r[:, t]))
    return torch.stack(found, dim=1)


def all_words(k: int) -> np.ndarray:
    """Return all words of `SHORT` letters, (kⁿ, n)."""
    return np.stack(np.meshgrid(*[np.arange(k)] * SHORT, indexing="ij"), axis=-1).reshape(-1, SHORT)


def answers(machine: MooreMachine, words: np.ndarray, outputs: dict) -> Tensor:
    """Return the number of the machine's output after each letter, (B, T)."""
    numbers, q = np.array([outputs[output] for output in machine.outputs]), np.full(len(words), machine.start)
    found = np.empty_like(words)
    for t in range(words.shape[1]):
        q = machine.delta[words[:, t], q]
        found[:, t] = numbers[q]
    return torch.from_numpy(found)


@torch.no_grad()
def _share(model: Small, words: Tensor, wanted: Tensor) -> float:
    """Return the share of right outputs, exactly 1 if all are right."""
    right = torch.cat([model(part).argmax(dim=-1) for part in words.split(1_024)]).eq(wanted)
    return right.float().mean().item() if not right.all() else 1.0


if __name__ == "__main__":
    script.run(main)
