"""`fsa2lrnn repair`: repair a trained model."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.errors import NotExpressible

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.nn.model import LRNN

# As `repairing.Mode`, which imports torch. A test compares them.
RepairMode = Literal["least", "deadbeat", "dyadic"]


def repair(
    model: options.LearnedModel,
    source: options.Source,
    output: options.ModelOutput = None,
    mode: Annotated[
        RepairMode,
        typer.Option(
            help="least: the least change; deadbeat: forget all but the state; dyadic: the same in numbers that do not "
            "round"
        ),
    ] = "least",
    seconds: options.TimeLimit = None,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Repair a model so that it implements the automaton exactly over the reals; with --mode dyadic in floats too.

    --max-seconds limits the repair and its certificate, not the run on random letters that then measures it.
    """
    options.check_model(output)
    network, machine = sources.model_and_machine(model, source, completion, alphabet, layers)

    from fsa2lrnn.cli import evidence
    from fsa2lrnn.nn.checkpoint import save
    from fsa2lrnn.repairing import LETTERS, evaluate_repair

    evaluated = evaluate_repair(network, machine, mode, ignore=options.LACKED, seconds=seconds)
    if evaluated.repaired is None:
        raise NotExpressible(str(evaluated.refused))
    repaired, facts = evaluated.repaired.model, evaluated.to_json()
    rows = [*evidence.repair_rows(facts), ("where", str(evaluated.repaired.scope))]
    rows.append(("right outputs", f"{facts['accuracy']:.6f} along {LETTERS:,} random letters"))
    if output is not None:
        save(repaired, output)
    if as_json:
        console.emit_json({**facts, "saved": str(output) if output else None})
        return
    console.facts(model, [*rows, ("saved", str(output) if output else "no (-o FILE saves it)")])
    if output is not None:
        typed = f"{quote(str(output))} {quote(source)}{sources.repeated(completion, alphabet, layers)}"
        # `verify` counts every output, also those that the model lacks, and that of the empty word unless told not to.
        is_provable = mode == "dyadic" and set(machine.outputs) <= set(repaired.outputs)
        verb, more = ("verify", _empty_word(repaired, machine)) if is_provable else ("certify", "")
        console.then(f"fsa2lrnn {verb} {typed}{more}")


def _empty_word(repaired: LRNN, machine: MooreMachine) -> str:
    """Return the option that `verify` needs if the repaired model is wrong on the empty word, else an empty text."""
    from fsa2lrnn.nn.model import decode

    output = repaired.outputs[int(decode(repaired.initial_logits()))]
    return "" if output == machine.outputs[machine.start] else " --no-empty-word"
