"""Sizes of machines and models, as JSON and as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from fsa2lrnn import symbols
from fsa2lrnn.cli.console import markup
from fsa2lrnn.display import blocks_text

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.nn.model import LRNN

_SHOWN_STATES = 40  # the most states of a printed transition table


def machine_json(machine: MooreMachine) -> dict[str, Any]:
    """Return the sizes of a machine as a JSON object."""
    return {
        "states": machine.n_states,
        "minimal_states": machine.minimise().n_states,
        "letters": [symbols.to_json(letter) for letter in machine.alphabet],
        "outputs": [symbols.to_json(output) for output in dict.fromkeys(machine.outputs)],
    }


def machine_rows(machine: MooreMachine) -> list[tuple[str, str]]:
    """Return the sizes of a machine as names and values."""
    minimal = machine.minimise().n_states
    smaller = "" if minimal == machine.n_states else f" ({minimal:,} when minimised)"
    return [
        ("states", f"{machine.n_states:,}{smaller}"),
        ("letters", f"{len(machine.alphabet):,}: {symbols.listed(machine.alphabet)}"),
        ("outputs", symbols.listed(dict.fromkeys(machine.outputs))),
    ]


def model_json(model: LRNN) -> dict[str, Any]:
    """Return the sizes of a model as a JSON object."""
    from fsa2lrnn.nn.gate import Gate

    config = model.config
    return {
        "layers": [{"block_sizes": list(layer.block_sizes), "n_heads": layer.n_heads} for layer in model.recurrences],
        "layout": "index" if config.reads_letters else "dense",
        "token_shift": config.token_shift,
        "hidden_units": sum(module.n_hidden for module in model.modules() if isinstance(module, Gate)),
        "dtype": str(model.dtype).removeprefix("torch."),
        "normalisation": config.normalisation,
        "parameters": sum(p.numel() for p in model.parameters()),
        "bytes": sum(t.numel() * t.element_size() for t in model.state_dict().values()),
    }


def model_rows(model: LRNN) -> list[tuple[str, str]]:
    """Return the sizes of a model as names and values, with one row per layer if it has several."""
    sizes = model_json(model)
    layers = [blocks_text(layer["block_sizes"]) for layer in sizes["layers"]]
    kind = "index table of the linear map" if sizes["layout"] == "index" else "dense"
    weights = ("weights", f"{sizes['parameters']:,} parameters, {sizes['bytes'] / 1024:,.0f} KiB in {sizes['dtype']}")
    units = [] if model.config.reads_letters else [("hidden units", f"{sizes['hidden_units']:,} of gates and read-out")]
    if len(layers) == 1:
        return [("layers", f"1 ({layers[0]}), {kind}"), *units, weights]
    shift = "yes: gates see the step before too" if sizes["token_shift"] else "no: gates see this step alone"
    return [
        ("layers", f"{len(layers)}, {kind}"),
        *((f"  layer {i}", text) for i, text in enumerate(layers)),
        ("token shift", shift),
        *units,
        weights,
    ]


def transition_table(machine: MooreMachine) -> Table | None:
    """Return δ and ω as a table, None for a machine that is too large to print."""
    if machine.n_states > _SHOWN_STATES or len(machine.alphabet) > 16:
        return None
    table = Table("state", *(markup(symbols.show(letter)) for letter in machine.alphabet), "output", box=None)
    for q in range(machine.n_states):
        mark = "→ " if q == machine.start else "  "
        targets = [str(int(target)) for target in machine.delta[:, q]]
        table.add_row(f"{mark}{q}", *targets, markup(symbols.show(machine.outputs[q])))
    return table
