"""The main job on a real machine, in one screen: ModArith(5) compiled, proved for all lengths, and used."""

from __future__ import annotations

import re

import numpy as np

from fsa2lrnn.automata import zoo
from fsa2lrnn.cli import console
from fsa2lrnn.extract import extract
from fsa2lrnn.lower import DTYPES, compile_machine
from verify.equivalence import Proved, prove_equivalent

MODULUS = 5
SHORT = "1+2-3*4"  # the paper's own example, §4.1
DIGITS = 10_000
SEED = 0


def main(as_json: bool) -> None:
    """Run the demonstration and say what each step shows."""
    machine = zoo.mod_arith(MODULUS)
    model = compile_machine(machine)
    verdicts = {
        str(d).removeprefix("torch."): prove_equivalent(compile_machine(machine, dtype=d), machine) for d in DTYPES
    }
    expressions = [SHORT, random_expression(DIGITS, MODULUS, np.random.default_rng(SEED))]
    results = [(text, model.transduce(text)[-1], evaluate(text) % MODULUS) for text in expressions]
    returns = extract(model) == machine.minimise()
    facts = {
        "machine": console.machine_json(machine),
        "model": console.model_json(model),
        "proofs": {dtype: console.verdict_json(verdict) for dtype, verdict in verdicts.items()},
        "evaluated": [{"letters": len(text), "model": given, "integers": right} for text, given, right in results],
        "extracted_machine_is_the_source": returns,
    }
    if as_json:
        console.emit_json(facts)
    else:
        _show(machine, model, verdicts, results, returns)
    if not returns or not all(isinstance(v, Proved) for v in verdicts.values()) or any(g != r for _, g, r in results):
        raise SystemExit(1)


def random_expression(n_digits: int, modulus: int, rng: np.random.Generator) -> str:
    """`n_digits` digits below `modulus` with operators drawn from + − * between them."""
    digits = rng.integers(modulus, size=n_digits)
    operators = rng.choice(list("+-*"), size=n_digits - 1)
    return str(digits[0]) + "".join(f"{op}{digit}" for op, digit in zip(operators, digits[1:], strict=True))


def evaluate(expression: str) -> int:
    """The value over the integers, by Python's own arithmetic: products first, then sums; not by any automaton.

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


def _show(machine, model, verdicts, results, returns) -> None:
    out = console.out
    out.rule("[bold]fsa2lrnn: an automaton as an exact linear recurrent network")
    out.print(
        f"\n[bold]1. The machine.[/] ModArith({MODULUS}) reads an expression such as {SHORT} and says its value modulo "
        f"{MODULUS} after every digit;\n   * binds tighter than + and −, and an illegal string is an error for ever."
    )
    console.facts("", console.machine_rows(machine))
    out.print(
        "\n[bold]2. The network.[/] x_k = A(a_k) x_{k-1} + v(a_k): every letter has a transition matrix whose columns "
        "are one-hot,\n   so no sum ever rounds. It is the class that is trained, with its weights set."
    )
    console.facts("", console.model_rows(model))
    out.print(
        "\n[bold]3. The proof.[/] All pairs (network state, machine state) that any word can reach, compared bit by bit"
    )
    for dtype, verdict in verdicts.items():
        out.print(f"   {dtype:9}{console.verdict_text(verdict).splitlines()[0]}")
        if isinstance(verdict, Proved):
            out.print(f"            {verdict.pairs} joint states, {verdict.transitions} transitions, closed")
    out.print("\n[bold]4. The network at work[/], beside Python's integers:")
    for text, given, right in results:
        shown = text if len(text) < 40 else f"{text[:24]}… ({text.count('') // 2:,} digits, {len(text):,} letters)"
        mark = "[green]equal[/]" if given == right else "[red]different[/]"
        out.print(f"   {shown} = {given} (mod {MODULUS}); integers: {right}  {mark}")
    back = "the minimal machine, state for state" if returns else "[red]another machine[/]"
    out.print(f"\n[bold]5. And back.[/] Extracting the automaton from the weights gives {back}.")
    out.print(
        '\nNext: [cyan]fsa2lrnn compile "regex:(ab)*" -o ab.safetensors[/], [cyan]fsa2lrnn run ab.safetensors abab[/], '
        '[cyan]fsa2lrnn verify ab.safetensors "regex:(ab)*"[/]'
    )
