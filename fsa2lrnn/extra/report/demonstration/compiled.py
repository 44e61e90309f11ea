"""Run the demonstration: compile ModArith(5), prove it for all lengths and run it, as one block and as a cascade."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cli import cascades, console, evidence, sizes
from fsa2lrnn.compile.cascade import stack_recurrence
from fsa2lrnn.compile.choice import gate_units
from fsa2lrnn.decomposition.cascade import Cascade
from fsa2lrnn.decomposition.coordinates import Cover, assemble
from fsa2lrnn.decomposition.description import describe
from fsa2lrnn.decomposition.refine import fibre_code
from fsa2lrnn.decomposition.split import congruence_coordinates, field_layers, field_names
from fsa2lrnn.errors import NotExpressible, counted
from fsa2lrnn.extraction import extract
from fsa2lrnn.lower import DTYPES, compile_machine, lower
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.optional import require
from fsa2lrnn.verification import Proved, Refuted, Undecided, prove_equivalent


def by_fields(machine: MooreMachine) -> Cascade:
    """Return the cascade without token shift that has one component per field of a minimal machine's labels.

    Each component is in the lowest possible layer. Raises `NotExpressible` if the fields cannot be arranged in layers.

    >>> from fsa2lrnn.automata import zoo
    >>> by_fields(zoo.mod_arith(3, "eager").minimise()).block_sizes
    ((1, 1), (3,), (3,))
    """
    layers = field_layers(machine)
    if layers is None:
        raise NotExpressible("the labels of this machine have no fields that stand in layers: use decompose(machine)")
    values, levels = congruence_coordinates(machine.delta, layers)
    names = field_names(machine, layers)
    shifted = assemble(machine, Cover(machine.delta, np.arange(machine.n_states), values, levels, names))
    return assemble(machine, fibre_code(shifted), reads_now=True)


MODULUS = 5
SHORT = "1+2-3*4"  # the paper's own example, §4.1
DIGITS = 10_000
SEED = 0
NARROW = (torch.float32, torch.bfloat16)
Verdicts = dict[str, Proved | Refuted | Undecided]  # by the name of the arithmetic


@dataclass(frozen=True, eq=False)
class DemonstrationCascade:
    """The cascade of the demonstration with its proofs.

    Args:
        cascade: the cascade of the machine whose labels are (operator, term, accumulator).
        model: the network, in float32.
        verdicts: the verdict of a proof for each dtype.
        given: the value of the expression `SHORT` that the network computes.
    """

    cascade: Cascade
    model: LRNN
    verdicts: Verdicts
    given: object


def main(out: Path | None, as_json: bool) -> None:
    """Run the demonstration and print each step; raise `SystemExit` if one fails. `out` None skips the learned part."""
    if out is not None:
        require("cvxpy", "repair", "the second half, on a learned model,", "--no-learned")
    console.out.quiet = console.err.quiet = as_json
    try:
        facts, is_right = _steps(out)
    finally:
        console.out.quiet = console.err.quiet = False
    if as_json:
        console.emit_json(facts)
    if not is_right:
        raise SystemExit(1)


def _steps(folder: Path | None) -> tuple[dict[str, Any], bool]:
    """Print each step; return the facts as JSON, and whether all proofs succeeded and all outputs are correct."""
    out, machine = console.out, zoo.mod_arith(MODULUS)
    out.rule("[bold]fsa2lrnn: an automaton as an exact linear recurrent network")
    out.print(
        f"\n[bold]1. The machine.[/] ModArith({MODULUS}) reads an expression such as {SHORT} and says its value modulo "
        f"{MODULUS} after every digit;\n   * binds tighter than + and −, and an illegal string is an error for ever."
    )
    console.facts("", sizes.machine_rows(machine))
    out.print(
        "\n[bold]2. The network.[/] x_k = A(a_k) x_{k-1} + v(a_k): every letter has a transition matrix whose columns "
        "are one-hot,\n   so no sum ever rounds. It is the class that is trained, with its weights set."
    )
    model = compile_machine(machine)
    console.facts("", sizes.model_rows(model))
    out.print(
        "\n[bold]3. The proof.[/] All pairs (network state, machine state) that any word can reach, compared bit by bit"
    )
    verdicts = {_name(dtype): prove_equivalent(compile_machine(machine, dtype=dtype), machine) for dtype in DTYPES}
    _show_proofs(verdicts)
    out.print("\n[bold]4. The network at work[/], beside Python's integers:")
    evaluated, is_right = list[dict[str, Any]](), all(isinstance(verdict, Proved) for verdict in verdicts.values())
    for text in (SHORT, random_expression(DIGITS, MODULUS, np.random.default_rng(SEED))):
        output = model.transduce(text)[-1]
        evaluated.append({"letters": len(text), "model": output, "integers": evaluate(text) % MODULUS})
        is_right &= _show_result(text, output)
    cascade_facts, is_proved = _show_cascade(build_rooms())
    returns = extract(model) == machine.minimise()
    back = "the minimal machine, state for state" if returns else "[red]another machine[/]"
    out.print(f"\n[bold]6. And back.[/] Extracting the automaton from the weights of step 2 gives {back}.")
    facts: dict[str, Any] = {
        "machine": sizes.machine_json(machine),
        "model": sizes.model_json(model),
        "proofs": {dtype: verdict.to_json() for dtype, verdict in verdicts.items()},
        "evaluated": evaluated,
        "rooms": cascade_facts,
        "extracted_machine_is_the_source": returns,
    }
    if folder is not None:
        from fsa2lrnn.extra.report.demonstration import learned

        facts["learned"] = learned.show(folder)
        is_right &= facts["learned"]["ok"]
    out.print(
        '\nNext: [cyan]fsa2lrnn compile "regex:(ab)*" -o ab.safetensors[/], [cyan]fsa2lrnn run ab.safetensors '
        'abab[/], [cyan]fsa2lrnn verify ab.safetensors "regex:(ab)*"[/]'
    )
    return facts, is_right and is_proved and returns


def build_rooms() -> DemonstrationCascade:
    """Build the cascade of ModArith(5) that stores an operator until its digit is read, and prove it."""
    machine = zoo.mod_arith(MODULUS, "eager").minimise()
    cascade = by_fields(machine)
    recurrence = stack_recurrence(cascade)
    models = {_name(dtype): lower(recurrence, dtype) for dtype in NARROW}
    verdicts = {dtype: prove_equivalent(model, machine) for dtype, model in models.items()}
    return DemonstrationCascade(cascade, models["float32"], verdicts, models["float32"].transduce(SHORT)[-1])


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _show_cascade(demonstration: DemonstrationCascade) -> tuple[dict[str, object], bool]:
    cascade, n_states = demonstration.cascade, demonstration.cascade.machine.n_states
    console.out.print(
        f"\n[bold]5. Three parts.[/] With the operator kept until its digit comes, ModArith({MODULUS}) is a machine of "
        f"{n_states} states whose labels\n   name them. Each becomes a layer that reads the letter and the one "
        "below: a cascade, without token shift"
    )
    console.facts("", describe(cascade))
    console.out.print(
        f"   blocks: {cascades.sizes_text(cascade)}, and {gate_units(cascade)} hidden units, instead of a block of "
        f"{n_states}"
    )
    _show_proofs(demonstration.verdicts)
    is_right = _show_result(SHORT, demonstration.given)
    facts: dict[str, object] = {
        "states": n_states,
        "layers": [
            {"name": component.name, "layer": component.layer, "block_sizes": component.block_sizes}
            for component in cascade.components
        ],
        "gate_units": gate_units(cascade),
        "model": sizes.model_json(demonstration.model),
        "proofs": {dtype: verdict.to_json() for dtype, verdict in demonstration.verdicts.items()},
        "evaluated": {"expression": SHORT, "model": demonstration.given, "integers": evaluate(SHORT) % MODULUS},
    }
    return facts, is_right and all(isinstance(verdict, Proved) for verdict in demonstration.verdicts.values())


def _show_proofs(verdicts: Verdicts) -> None:
    for dtype, verdict in verdicts.items():
        console.out.print(f"   {dtype:9}{evidence.verdict_text(verdict).splitlines()[0]}")
        if isinstance(verdict, Proved):
            pairs, transitions = counted(verdict.pairs, "joint state"), counted(verdict.transitions, "transition")
            console.out.print(f"            {pairs}, {transitions}, closed")


def _show_result(text: str, predicted: object) -> bool:
    expression = text if len(text) < 40 else f"{text[:24]}… ({text.count('') // 2:,} digits, {len(text):,} letters)"
    right = evaluate(text) % MODULUS
    mark = "[green]equal[/]" if predicted == right else "[red]different[/]"
    console.out.print(f"   {expression} = {predicted} (mod {MODULUS}); integers: {right}  {mark}")
    return predicted == right


def random_expression(n_digits: int, modulus: int, rng: np.random.Generator) -> str:
    """Return `n_digits` random digits below `modulus` as a string, with operators drawn from + − * between them.

    >>> random_expression(4, 5, np.random.default_rng(0))
    '4+3+2+1'
    """
    digits = rng.integers(modulus, size=n_digits)
    operators = rng.choice(list("+-*"), size=n_digits - 1)
    return str(digits[0]) + "".join(f"{op}{digit}" for op, digit in zip(operators, digits[1:], strict=True))


def evaluate(expression: str) -> int:
    """Return the integer value of an expression, where * takes precedence over + and -.

    >>> evaluate("1+2-3*4")
    -9
    """
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", expression):
        value = 1
        for factor in term.split("*"):
            value *= int(factor)
        total += -value if sign == "-" else value
    return total
