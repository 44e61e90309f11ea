"""`fsa2lrnn demo`: compile a machine, prove it and use it; then train a model, find its error, repair and prove it."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import console, options
from fsa2lrnn.files import check_folder, write_atomically

STEPS = 2_000  # enough for Sum(5): right on the training words of 40 letters, wrong on a word of some hundred
DIGITS = 10_000


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="a folder for the trained and the repaired model and their page")
    ] = Path("runs/demo"),
) -> None:
    """Compile ModArith(5), prove it and use it; then train a model of Sum(5), find a word on which it fails, repair it,
    and prove the repaired model. It takes a minute."""
    check_folder(output)

    import numpy as np

    from fsa2lrnn import MooreMachine, Proved, Refuted, compile_machine, falsify, prove_equivalent, repair, save
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.draw.explorer import build, compiled, with_verdict
    from fsa2lrnn.training.evaluate import evaluate as accuracies
    from fsa2lrnn.training.settings import preset
    from fsa2lrnn.training.train import Progress, train
    from fsa2lrnn.verification.falsify.model_comparison import Budget

    say = console.out.print

    say("[bold]1. Compile.[/] ModArith(5) reads an expression and outputs its value modulo 5 after every digit")
    machine = MooreMachine.from_source("task:mod_arith(5)")
    model = compile_machine(machine)
    console.facts("", [*evidence.machine_rows(machine), *evidence.model_rows(model)])

    say("\n[bold]2. Prove[/] that the network equals the machine on every word, bit for bit")
    proof = prove_equivalent(model, machine)
    say(evidence.verdict_text(proof))

    say("\n[bold]3. Use it[/], compared with Python's integers")
    rng = np.random.default_rng(0)
    signs = ["", *rng.choice(list("+-*"), DIGITS - 1)]
    long = "".join(f"{sign}{digit}" for sign, digit in zip(signs, rng.integers(5, size=DIGITS), strict=True))
    is_right = True
    for name, text in (("1+2-3*4", "1+2-3*4"), (f"an expression of {DIGITS:,} digits", long)):
        value, expected = model.transduce(text)[-1], evaluate(text) % 5
        is_right &= value == expected
        say(f"{name} = {value} (mod 5); integers: {expected}")

    say(f"\n[bold]4. Train.[/] The same class learns Sum(5) in {STEPS:,} steps on words of 40 letters")
    settings = preset("paper", "task:sum_mod(5)", steps=STEPS, evaluate_every=500)

    def show(progress: Progress) -> None:
        if progress.record is not None:
            say(f"step {progress.step:5,}: loss {progress.loss:.4f}")

    outcome = train(settings, output / "sum5", report=show)
    trained, target = outcome.model, settings.machine()
    for found in accuracies(trained, outcome.words, 1, (settings.length, settings.test_length), 1_000):
        say(f"{found.whole:,} of {found.words:,} new words of {found.length} letters all right")

    say("\n[bold]5. Find a counterexample[/] to the trained model")
    # A budget of work, so that the result does not depend on how busy the computer is.
    verdict = falsify(trained, target, Budget(seconds=300, words=1_000, length=500, width=8, rounds=0))
    say(evidence.verdict_text(verdict, trained.alphabet))

    say("\n[bold]6. Repair[/] the model, so that it carries the machine in numbers that never round, and prove it")
    repaired = repair(trained, target, mode="dyadic")
    save(repaired.model, output / "sum5-repaired.safetensors")
    again = prove_equivalent(repaired.model, target, empty_word=False)
    say(evidence.verdict_text(again))

    if not (is_right and isinstance(proof, Proved) and isinstance(verdict, Refuted) and isinstance(again, Proved)):
        raise typer.Exit(options.NO)
    page = output / "sum5.html"
    shown = {
        "trained": with_verdict(trained, "learned", verdict),
        "repaired": with_verdict(repaired.model, "repaired", again),
        "compiled": compiled(compile_machine(target), target),
    }
    write_atomically(page, build("task:sum_mod(5)", target, shown).encode())
    say(f"\n[bold]7. See it.[/] Open {page}: the machine, the matrices, and the models letter by letter")
    console.then('fsa2lrnn compile "regex:(ab)*" -o ab.safetensors', "fsa2lrnn run ab.safetensors abab")


def evaluate(expression: str) -> int:
    """Return the value of an expression of digits, +, − and *.

    >>> evaluate("1+2-3*4")
    -9
    """
    return sum(prod(map(int, term.split("*"))) for term in expression.replace("-", "+-").split("+"))
