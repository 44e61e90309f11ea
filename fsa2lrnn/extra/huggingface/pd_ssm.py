"""Write any machine into PD-SSM, from IBM's repository expressive-sparse-state-space-model, by its dual.

`models/pdssm.py` is a file, not a package: it is imported from the user's copy and never distributed. A model always
starts at h = e₁ and does not return its state. So a state is read from the input of the block's dropout, and a word is
continued by a special letter that adds the state to e₁; each such call checks the result.

What one step executes: P = one row-wise argmax of Σ_k A_k·softmax(Sx)_k; D = σ(MLP x)·exp(2πi·σ(MLP x)); h ← D·(P h) +
B x; out = LayerNorm(W[Re h, Im h] + D x). Transition: D·P with rows of P one-hot and |D| in [0, 1]: any map of
coordinates, read backwards. A word starts from h = e₁; convolved: nothing: every input reads the current letter.
Saturated, hence exact, gates: softmax at a distance of 200 is one-hot, σ(200) = 1 and σ(−200) = 0. Classes: PD_Block,
PD.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.extra.huggingface.declared import Code, ExternalLayer, State
from fsa2lrnn.extra.huggingface.observed.pd import PdSsmObserver
from fsa2lrnn.extra.huggingface.packages import pdssm, pdssm_versions
from fsa2lrnn.extra.huggingface.plan import OneLayerPlan
from fsa2lrnn.extra.huggingface.stream import blank, write

LAYER = ExternalLayer("pd-ssm", tried="pdssm.py of commit 8682e78 with einops 0.8")
_SATURATED = 200.0
_BYTES = 2**27  # memory for the matrices of the letters that are read together, about 40 bytes per entry


def plan(machine: MooreMachine) -> Dual:
    """Return the dual of a machine as a plan; raise `BudgetExceeded` beyond `MAX_COORDINATES` coordinates."""
    return dual(machine)


def build(plan: Dual, dtype: Any) -> Any:
    """Return a `PD` with one block that runs a dual; raise `UnsupportedFormat` for a dtype other than float32."""
    # Coordinates of a state: those of the dual, one per letter, and one that loads a state.
    if dtype is not torch.float32:
        raise UnsupportedFormat(f"dtype {dtype}: pd-ssm computes in complex64, so that weights are float32; choose it")
    k, n_outputs = len(plan.machine.alphabet), len(plan.outputs)
    N = max(plan.n_coordinates + k + 1, n_outputs)
    model = _made({"state_size": N, "input_size": k, "output_size": n_outputs})
    blank(model)
    (block,) = model.blocks
    sources = np.full((k + 1, N), ZERO)
    sources[:, ONE] = ONE
    sources[:k, : plan.n_coordinates] = plan.sources
    A = np.zeros((N, N, k + 1))
    A[np.arange(N), sources, np.arange(k + 1)[:, None]] = _SATURATED
    letters = np.zeros((k, N))
    letters[:, : plan.n_coordinates] = plan.added
    letters[:, N - 1 - k : N - 1] = np.eye(k)
    scores, constant = np.zeros((N, 2 * N)), np.zeros(N)
    for j, (coordinate, is_it) in enumerate(zip(plan.shown, plan.at_start, strict=True), 1):
        scores[j, coordinate], constant[j] = 1, is_it
    scores[0], constant[0] = -scores.sum(axis=0), 1 - constant.sum()
    write(block.A_dict, A)
    write(block.S.weight, _SATURATED * np.eye(N)[N - 1 - k :])
    write(block.B_re, np.eye(N))
    write(block.D_magnitude_generator[2].bias, np.full(N, _SATURATED))
    write(block.D_phase_generator[2].bias, np.full(N, -_SATURATED))
    write(block.norm.weight, np.ones(N))
    write(block.readout.weight, scores)
    write(block.readout.bias, constant)
    write(model.embedding.weight, letters)
    write(model.readout.weight, np.eye(n_outputs, N))
    return model


class PdSsm(Code):
    """The interface to write, load and run the model class `PD`; a cache is the state h, complex64 (N,)."""

    def load(self, folder: Path) -> Any:
        return OBSERVER.open(folder)

    def versions(self) -> dict[str, str]:
        return pdssm_versions()

    def describe(self, model: Any) -> str:  # noqa: ARG002 - the same for all
        packages = self.versions()
        file, how = f"pdssm.py ({packages['pdssm.py']})", "one letter a call, after one that loads the state"
        return f"PD of {file} with einops {packages['einops']} on torch {packages['torch']}, {how}"

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        outputs, (block,) = list[torch.Tensor](), model.blocks
        for piece in tokens.split(max(1, _BYTES // (40 * block.hidden_size**2))):
            logits, cache = _piece(model, piece, cache)
            outputs.append(model.embedding.num_embeddings + logits.argmax(dim=1))
        return torch.cat(outputs), cache

    def state(self, model: Any, cache: Any) -> State:
        k = model.embedding.num_embeddings
        return (torch.view_as_real(cache)[: len(cache) - 1 - k] + 0.0,)

    def cache(self, model: Any, state: State) -> Any:
        rest = torch.zeros(model.embedding.num_embeddings + 1, 2)
        return torch.view_as_complex(torch.cat([state[0], rest]))

    def check(self, model: Any) -> None:
        """Raise `UnsupportedFormat` if coordinates of letters are read again, or if there are several blocks.

        A row copies the largest entry of a mean of the dictionary's rows, weighted by a softmax. If in each dictionary
        row all entries for letters are less than the mean of the others, an entry for a letter is never the largest of
        a weighted mean.
        """
        k, block = model.embedding.num_embeddings, model.blocks[0]
        first = block.hidden_size - 1 - k
        if first < 1:
            raise UnsupportedFormat(f"{block.hidden_size} coordinates for {k} letters: no room for a state")
        rows = block.A_dict[:first].double()  # (first, N, K)
        of_states, of_letters = rows[:, :first].mean(dim=1).amin(dim=1), rows[:, first:].amax(dim=(1, 2))
        reads = not (of_states > of_letters + 1e-3 * rows.abs().amax(dim=(1, 2))).all()
        shows = block.readout.weight.unflatten(1, (2, -1))[:, :, first:].any() or block.D.any()
        if len(model.blocks) != 1 or reads or shows:
            raise UnsupportedFormat("more is read of letters past than the dual's coordinates: no proof by states")


CODE = PdSsm()
OBSERVER = PdSsmObserver()


def _piece(model: Any, tokens: torch.Tensor, h: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits (T, |Γ|) and the last state, from state h or None; raise `UnsupportedFormat` if loading h fails."""
    (block,), inputs = model.blocks, list[torch.Tensor]()
    hook = block.drop.register_forward_pre_hook(lambda _, arguments: inputs.append(arguments[0][0]))
    try:
        if h is None:
            logits = model(tokens[None])[0]
        else:
            loads = h.real.clone()
            loads[ONE], loads[-1] = 0, 1
            letters = torch.cat([loads[None], model.embedding(tokens)])
            logits = model.readout(block(letters[None]))[0, 1:]
    finally:
        hook.remove()
    states = inputs[0].unflatten(1, (2, -1)).transpose(1, 2)  # (T, N, 2)
    k = model.embedding.num_embeddings
    if h is not None and not torch.equal(states[0, : -1 - k], torch.view_as_real(h)[: -1 - k]):
        raise UnsupportedFormat("a state does not come back as it was loaded: these weights are not as exported")
    return logits, torch.view_as_complex(states[-1].contiguous())


def _made(sizes: dict[str, int]) -> Any:
    N, k = sizes["state_size"], sizes["input_size"]
    made = pdssm().PD(**sizes, embed_size=N, dictionary_size=k + 1, num_layers=1, return_all_outputs=True)
    return made.eval()


MAX_COORDINATES = 512
ONE, ZERO = 0, 1  # the coordinates that always hold 1 and 0


@dataclass(frozen=True, eq=False)
class Dual(OneLayerPlan):
    """The dual of a machine: an implementation by layers h ← P h + b with one-hot rows of P and small integers.

    h is e₁ at the start. A new coordinate is an old one plus a number, so coordinates are functions of the state: an
    indicator of an output, φ(q) = [ω(q) = γ], and its compositions with words, φ∘a. The entry of h for φ is φ(q) −
    φ(q₀). There are about as many coordinates as the determinised reversed machine has states: at worst 2ⁿ, for a group
    at most its order per output.

    Args:
        machine: the minimal machine.
        sources: the coordinate that each coordinate copies at a letter, int64 (|Σ|, N).
        added: the numbers that are added to the copies, −1, 0 or 1, int64 (|Σ|, N).
        shown: the coordinate of each output but the first, int64 (|Γ| − 1,).
        at_start: 1 for that of these outputs that the machine has at the start, otherwise 0, int64 (|Γ| − 1,).
    """

    machine: MooreMachine
    sources: np.ndarray
    added: np.ndarray
    shown: np.ndarray
    at_start: np.ndarray

    @property
    def n_coordinates(self) -> int:
        return self.sources.shape[1]

    @property
    def how(self) -> str:
        """The description of the construction, in one line."""
        return f"the dual: {self.n_coordinates} coordinates that copy one another"

    def start(self) -> np.ndarray:
        """Return the state h before a word, int64 (N,)."""
        return np.eye(self.n_coordinates, dtype=np.int64)[ONE]

    def step(self, h: np.ndarray, a: int) -> np.ndarray:
        """Return the state after letter number a: int64 (N,) -> (N,)."""
        return h[self.sources[a]] + self.added[a]

    def output(self, h: np.ndarray) -> Hashable:
        scores = h[self.shown] + self.at_start
        return self.outputs[0 if not scores.any() else 1 + int(scores.argmax())]


def dual(machine: MooreMachine, limit: int = MAX_COORDINATES) -> Dual:
    """Return the dual of the minimal machine; raise `BudgetExceeded` beyond `limit` coordinates.

    >>> from fsa2lrnn.automata import zoo
    >>> run = dual(zoo.sum_mod(5))
    >>> h = run.start()
    >>> for letter in (3, 4, 1):
    ...     h = run.step(h, letter)
    >>> run.n_coordinates, run.output(h)
    (7, 3)
    """
    minimal = minimise(machine)
    outputs = tuple(dict.fromkeys(minimal.outputs))
    numbers = {np.zeros(minimal.n_states, np.int64).tobytes(): ZERO}
    functions = list[np.ndarray]()

    def number(values: np.ndarray) -> int:
        code = numbers.setdefault(values.tobytes(), len(functions) + 2)
        if code == len(functions) + 2:
            functions.append(values)
            if code >= limit:
                raise BudgetExceeded(
                    f"the dual of these {minimal.n_states:,} states has more than {limit:,} coordinates, and every "
                    "letter takes a matrix of their square: give a smaller machine"
                )
        return code

    indicators = [np.array([output == target for output in minimal.outputs], np.int64) for target in outputs[1:]]
    at_start = np.array([values[minimal.start] for values in indicators], np.int64)
    shown = np.array([number(v - v[minimal.start]) for v in indicators], np.int64)
    rows = [[(ONE, 0), (ZERO, 0)] for _ in minimal.delta]
    for values in functions:  # grows
        for row, letter in zip(rows, minimal.delta, strict=True):
            after = values[letter]
            row.append((number(after - after[minimal.start]), int(after[minimal.start])))
    table = np.array(rows, np.int64)
    return Dual(minimal, table[..., 0], table[..., 1], shown, at_start)
