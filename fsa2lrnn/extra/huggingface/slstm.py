"""Write any machine into sLSTM of the package `xlstm`, a recurrence that is not linear.

The gates forget all (f = 0), take all new input (i = 1) and output it (o = 1), so y = tanh(z), where z depends on the
letter and on the previous y: a recurrent network of threshold units, which can represent any machine. A unit stands for
a letter and its target state; it fires if the letter is read in a state from which it leads to this target. Two more
units are always 1 and always −1 after a letter; at the start y is 0.

What one step executes: i, f, z, o = Wx + R y₋₁ + b; m = max(i, m₋₁ + log σ(f)), m = i at first; c ← e^(m₋₁ + log σ(f) −
m) c + e^(i − m) tanh z; n ← e^(m₋₁ + log σ(f) − m) n + e^(i − m); y = σ(o) c/n; out = GroupNorm(y). Transition: none:
z, and with it what is added to c, is a function of y a letter ago, and not a linear one. A word starts from y = c = n =
m = 0; convolved: nothing here: conv1d_kernel_size is 0 (4 where it is not set, for i and f). Saturated, hence exact,
gates: tanh(±256) = ±1, σ(512) = 1, exp(log σ(−512)) = 0; i = m = 0 makes e^(i − m) = 1. Classes: sLSTMLayer,
xLSTMLMModel.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, CheckpointError, MissingPackage, UnsupportedFormat
from fsa2lrnn.extra.huggingface.declared import WEIGHTS, Code, ExternalLayer, State
from fsa2lrnn.extra.huggingface.observed.loading import check_like
from fsa2lrnn.extra.huggingface.plan import OneLayerPlan
from fsa2lrnn.extra.huggingface.stream import LETTER, SATURATED, blank, write
from fsa2lrnn.optional import is_installed, require

_BLOCK, _KEPT = "block_0", "slstm_state"  # names in the package's state


class XlstmPackage(Code):
    """The interface to write, load and run models of the class `xLSTMLMModel`; a cache is the state of its `step`.

    `forward` does not return a state, so words are read one token per call, by the cell that the package calls
    "vanilla".
    """

    def load(self, folder: Path) -> Any:
        weights = self.weights(folder)
        try:
            sizes = weights["token_embedding.weight"].shape
            with torch.device("meta"):  # R has four times the square of the width, so it is looked at first
                check_like(str(folder / WEIGHTS), "xLSTMLMModel", made(*sizes), weights)
            model = made(*sizes)
            model.load_state_dict(weights)
        except CheckpointError:
            raise
        except (KeyError, RuntimeError, TypeError, ValueError) as fault:
            raise CheckpointError(f"{folder} holds no model of slstm ({str(fault)[:200]}): export it again") from None
        return model

    def versions(self) -> dict[str, str]:
        _module()
        return {name: version(name) for name in ("xlstm", "torch")}

    def describe(self, model: Any) -> str:  # noqa: ARG002 - the same for all
        known = self.versions()
        return f"xLSTMLMModel of xlstm {known['xlstm']} on torch {known['torch']}, one token a call of its step"

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        found = list[torch.Tensor]()
        for token in tokens:
            logits, cache = model.step(token[None, None], None if cache is None else dict(cache))
            found.append(logits[0, 0].argmax())
        return torch.stack(found), cache

    def state(self, model: Any, cache: Any) -> State:  # noqa: ARG002 - the cache has it all
        return (cache[_BLOCK][_KEPT] + 0.0,)

    def cache(self, model: Any, state: State) -> Any:  # noqa: ARG002 - the state has it all
        return {_BLOCK: {"conv_state": None, _KEPT: state[0].clone()}}


def made(n_tokens: int, width: int) -> Any:
    """Return an `xLSTMLMModel` of one sLSTM block with one head, in evaluation mode."""
    code = _module()
    layer = code.sLSTMLayerConfig(
        backend="vanilla",
        num_heads=1,
        conv1d_kernel_size=0,
        dtype="float32",
        enable_automatic_mixed_precision=False,
    )
    config = code.xLSTMLMModelConfig(
        vocab_size=n_tokens,
        embedding_dim=width,
        num_blocks=1,
        slstm_block=code.sLSTMBlockConfig(slstm=layer, feedforward=None),
        slstm_at=[0],
    )
    return code.xLSTMLMModel(config).eval()


def _module() -> Any:
    """Import the package `xlstm`; raise `MissingPackage` with the command that installs it."""
    if not is_installed("xlstm"):
        raise MissingPackage(
            "the layer slstm needs xlstm, which is not installed: pip install --no-deps xlstm==2.0.6 "
            "mlstm_kernels==2.0.6, which is all that it imports here"
        )
    return require("xlstm", None, "the layer slstm")


LAYER = ExternalLayer("slstm", tried="xlstm 2.0.6")
CODE = XlstmPackage()
MAX_WIDTH = 2_048


@dataclass(frozen=True, eq=False)
class Thresholds(OneLayerPlan):
    """A plan of n threshold units: unit j fires if letter `letters[j]` leads to state `targets[j]`, int64 (n,) both.

    `machine` is the minimal machine.
    """

    machine: MooreMachine
    letters: np.ndarray
    targets: np.ndarray

    @property
    def how(self) -> str:
        """The description of the construction, in one line."""
        return f"{len(self.letters)} threshold units, one a letter and a state that it leads to"

    @property
    def width(self) -> int:
        """The width of the stream: letters, their mean corrections, units, two constants; twice a power of 4."""
        needed, width = len(self.machine.alphabet) + 1 + len(self.letters) + 2, 32
        while width < needed:
            width *= 4
        return width


def plan(machine: MooreMachine) -> Thresholds:
    """Return threshold units that implement the minimal machine; raise `BudgetExceeded` beyond the width `MAX_WIDTH`.

    >>> from fsa2lrnn.automata import zoo
    >>> plan(zoo.flip_flop()).how
    '4 threshold units, one a letter and a state that it leads to'
    """
    minimal = minimise(machine)
    pairs = [(a, int(q)) for a, row in enumerate(minimal.delta) for q in np.unique(row)]
    letters, targets = np.array(pairs, np.int64).T
    units = Thresholds(minimal, letters, targets)
    if units.width > MAX_WIDTH:
        raise BudgetExceeded(
            f"{len(pairs):,} units, one for each letter and state that it leads to, and {len(minimal.alphabet):,} "
            f"letters need an embedding of {units.width:,}, and {MAX_WIDTH:,} is the largest that is written, as R has "
            "four times its square: give a smaller machine"
        )
    return units


def build(plan: Thresholds, dtype: Any) -> Any:
    """Return a model that runs a plan in one sLSTM block; raise `UnsupportedFormat` for a dtype other than float32."""
    if dtype is not torch.float32:
        raise UnsupportedFormat(f"dtype {dtype}: slstm adds up thousands of thresholds in float32; choose it")
    machine, D, k, n = plan.machine, plan.width, len(plan.machine.alphabet), len(plan.letters)
    model = made(k + len(plan.outputs), D)
    blank(model)  # the package stores norms minus 1
    units, (always, never) = k + 1 + np.arange(n), k + 1 + n + np.arange(2)
    W, R, b = np.zeros((D, D)), np.zeros((D, D)), np.zeros(D)
    # A unit is at ½ if its letter is read in a state from which it leads to the target, otherwise at −½ or less.
    comes = machine.delta[plan.letters] == plan.targets[:, None]  # (n, |Q|): the states from which unit j fires
    reads = comes[:, plan.targets]  # (n, n): the units that stand for such a state
    starts = comes[:, machine.start]
    W[units, plan.letters] = 1 / np.sqrt(D / 2)
    R[np.ix_(units, units)] = reads / 2
    R[units, always] = reads.sum(axis=1) / 2 - starts
    b[units], b[always], b[never] = starts - 1.5, 1, -1
    (block,) = model.xlstm_block_stack.blocks
    layer, gates = block.xlstm, np.zeros((4, D))  # i, f, z, o, in the order of the package's cell
    gates[1], gates[2], gates[3] = -SATURATED, SATURATED * b, SATURATED
    kernel = np.zeros((1, 4 * D, D))
    kernel[0, 2 * D : 3 * D] = SATURATED * R
    write(layer.zgate.weight, SATURATED * W[None])
    write(layer.slstm_cell._recurrent_kernel_, kernel)
    write(layer.slstm_cell._bias_, gates.reshape(-1))
    shown = np.zeros(D)
    shown[[*units, always, never]] = 1
    write(layer.group_norm.weight, shown - 1)
    embedding, head = np.zeros((k, D)), np.zeros((len(plan.outputs), D))
    embedding[:, :k], embedding[:, k] = LETTER * np.eye(k), -LETTER
    for j, output in enumerate(plan.outputs):
        those = units[[machine.outputs[q] == output for q in plan.targets]]
        head[j, those], head[j, never] = 1, -len(those)
    write(model.token_embedding.weight, embedding)
    write(model.lm_head.weight[k:], head)
    return model
