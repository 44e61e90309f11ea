"""The columns of Table 2: the network and optimiser of each layer, and reasons for choices that the paper omits.

The paper specifies little about the baselines. So all but ours and the vanilla one use the backbone of the published S4
code (LayerNorm before each layer, a residual around each, LayerNorm and a linear map last), 64 wide, with as many
layers as ours, and the optimiser of that code; RWKV-4 and ours are whole models of their own. Two learning rates are
tried, the layer's own and that of the paper's published code for the task (`choice`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fsa2lrnn.training.grid import Sweep
from fsa2lrnn.training.seeds import RunPlan

TASKS = ("task:sum_mod(5)", "task:even_pair(5)", "task:mod_arith(5)")
LENGTHS = (40, 100, 500)
WORDS = 10_000
RATES = ("own", "paper")  # the layer's own learning rate, and that of the paper's code for the task
FIRST_SEED = 0  # with which both are tried

_BACKBONE = {"connection": "full-residual", "layer_norm": True, "optimiser": "adamw", "weight_decay": 0.0}


@dataclass(frozen=True)
class Column:
    """A layer in Table 2.

    Attributes:
        title: what the table calls it.
        network: changes of the settings by which the released network is trained.
        own_rate: its own learning rate; None where that is the paper's code's.
        seeds: how many are asked for.
        paper: what the paper prints, task by task; None where it prints nothing.
        note: what to know of it.
    """

    title: str
    network: Mapping[str, Any]
    own_rate: float | None
    seeds: int
    paper: tuple[float, ...] | None = None
    note: str = ""


def _backbone(layer: str, **options: Any) -> dict[str, Any]:
    return {"layer": layer, "options": options, **_BACKBONE}


COLUMNS: dict[str, Column] = {
    "ours": Column("the paper's layer", {}, None, 5, (1.00, 0.99, 1.00), "as released"),
    "s4": Column("S4", _backbone("s4"), 1e-3, 5, (0.27, 0.81, 0.27), "LegS, diagonal less rank one"),
    "s4d": Column("S4D", _backbone("s4d"), 1e-3, 5, (0.27, 0.82, 0.27), "S4D-Lin, zero-order hold"),
    "liquid_polyb": Column(
        "Liquid-S4",
        _backbone("liquid_s4", kernel="polyb"),
        1e-3,
        5,
        (0.27, 0.72, 0.27),
        "released code, polyb, degree 2: not causal; which variant the paper ran is not said",
    ),
    "liquid_exact": Column(
        "Liquid-S4, exact", _backbone("liquid_s4", kernel="exact"), 1e-3, 2, None, "the recurrence of its paper"
    ),
    "s5": Column("S5", _backbone("s5"), 1e-3, 2, None, "clipped eigenvalues, LayerNorm"),
    "lru": Column("LRU", _backbone("lru"), 1e-3, 2, None, "LayerNorm"),
    "rwkv4": Column(
        "RWKV-4",
        {
            "layer": "rwkv4",
            "connection": "chain",
            "layer_norm": "readout",
            "beta2": 0.99,
            "weight_decay": 0.0,
            "gradient_clip": 1.0,
        },
        8e-4,
        2,
        None,
        "whole blocks",
    ),
    "vanilla": Column(
        "vanilla",
        {"layer": "vanilla", "gradient_clip": 1.0},
        None,
        2,
        None,
        "ours with one learned dense matrix, whose norm nothing bounds: where states overflow float32, the logits are "
        "NaN, which counts as wrong, and a share is 0.000",
    ),
}


def rates_of(name: str) -> tuple[str, ...]:
    """Return the rates that are tried for a column."""
    return RATES if COLUMNS[name].own_rate is not None else ("paper",)


def sweep(task: str, name: str, rates: tuple[str, ...], seeds: tuple[int, ...], device: str = "cpu") -> Sweep:
    """Return the runs of one cell with these rates and seeds; on a GPU with CUDA graphs."""
    where: dict[str, Any] = {} if device == "cpu" else {"device": device, "cuda_graph": True}
    own = COLUMNS[name].own_rate
    changes = {"own": {} if own is None else {"learning_rate": own}, "paper": {}}
    return Sweep(
        (task,),
        {name: {**COLUMNS[name].network, **where}},
        {rate: changes[rate] for rate in rates},
        seeds,
        "paper",
        RunPlan(lengths=LENGTHS, n_words=WORDS),
    )
