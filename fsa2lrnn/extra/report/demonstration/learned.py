"""Run the learned part of the demonstration: train, refute and repair a network on Sum(5), and prove another one.

The page that it writes describes the first network. The second network has one-hot columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fsa2lrnn.cli import console, evidence
from fsa2lrnn.extra.learning.public import learn, summary
from fsa2lrnn.extra.report.assemble import of_judgements, write
from fsa2lrnn.extra.report.compare import judgement_rows
from fsa2lrnn.extra.report.judgement import ModelAssessment, judge
from fsa2lrnn.lrnn.checkpoint import save
from fsa2lrnn.lrnn.switched import as_tables
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import Progress, train
from fsa2lrnn.verification import Budget, Proved, Refuted, Undecided

TASK = "task:sum_mod(5)"
SETTINGS = {"steps": 6_000}  # a maximum: training stops at accuracy 1.0 on words of 500 letters
SEARCH = Budget(seconds=10)
WORK = 1.5e8  # the bound on the work of each certificate
REPAIRS = (("keep", "least"), ("keep", "dyadic"))  # one with columns of norm at most 1 takes half a minute more
SHOWN = {"lengths": (40, 500, 5_000), "n_words": 1_000, "letters": 500_000}


def show(out: Path) -> dict[str, Any]:
    """Train, assess and repair a model, write a page into `out`, and return the facts; "ok" states the success."""
    settings = preset("paper", TASK, **SETTINGS)
    console.out.print(
        f"\n[bold]7. A learned one.[/] The same class, eight blocks of 8, learns {TASK.removeprefix('task:')} from "
        f"words of {settings.length} letters\n   with the settings of the paper's released code, until it is right "
        f"at the end of {settings.test_words} words of {settings.test_length} letters"
    )
    outcome = train(settings, out / "sum5", report=_step)
    model, machine = as_tables(outcome.model), settings.machine()
    assessment = judge(
        model, machine, SEARCH, WORK, lambda text: console.err.print(f"[dim]   {text}[/]"), repairs=REPAIRS
    )
    _print_assessment(assessment, outcome.step)
    origin = {
        "command": f'fsa2lrnn train "{TASK}" --output FOLDER --steps {settings.steps}',
        "step": f"{outcome.step:,}",
    }
    facts = of_judgements(TASK, {"learned": model}, {"learned": assessment}, SHOWN, {"learned": origin})
    page, data = write(facts, out / "sum5.html")
    for repair in assessment.repairs:
        if repair.repaired is not None:
            save(repair.repaired.model, out / f"sum5-{repair.mode}{'-p' * (repair.columns != 'keep')}.safetensors")
    console.out.print(f"   all of it as a page: [cyan]{page}[/]")
    proved = _prove(out / "proved")
    is_repaired = any(repair.proof is not None for repair in assessment.repairs)
    more = {
        "steps": outcome.step,
        "page": str(page),
        "facts": str(data),
        "learned_and_proved": summary(proved),
        "ok": assessment.isomorphic and proved.is_proved and is_repaired,
    }
    return {**assessment.to_json(), **more}


def _prove(out: Path) -> Any:
    console.out.print(
        "\n[bold]8. Learned, then proved.[/] The same class, four blocks whose columns are one-hot by rule: each"
        "\n   block is an automaton while it learns, and a look at its states tells whether it is the machine"
    )
    learned = learn(TASK, folder=out, resume=False)
    console.out.print(f"   {learned.steps:,} steps, {learned.seconds:.1f} s: {console.plain(learned.explain())}")
    if isinstance(learned.verdict, Proved | Refuted | Undecided):
        console.out.print(f"   {evidence.verdict_text(learned.verdict, learned.machine.alphabet)}")
    return learned


def _print_assessment(assessment: ModelAssessment, steps: int) -> None:
    same = "the machine itself" if assessment.isomorphic else "[red]another machine[/]"
    console.out.print(f"   trained for {steps:,} steps. Extracted from its behaviour on short words: {same}. And yet:")
    console.facts("", judgement_rows(assessment))
    if isinstance(assessment.falsified, Refuted):
        console.out.print(
            "   It is not an automaton: its states turn a little further with every letter. The repairs change its\n"
            "   tables so that they carry an exact image of the machine; the dyadic one never rounds, and is proved."
        )


def _step(progress: Progress) -> None:
    if progress.record is not None:
        record = progress.record
        console.out.print(
            f"   step {progress.step:5,}: loss {record['loss']:.4f}, {record['accuracy']:.3f} right at "
            f"{record['length']} letters, {progress.steps_per_second:.0f} steps/s"
        )
