"""`fsa2lrnn tasks`: the zoo of named machines, with the reason why each is included."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from fsa2lrnn.cli import console
from fsa2lrnn.cli.options import JsonOption

_SECTIONS = ("Args:", "Raises:", "|", ">>>")


def tasks(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="describe this machine in full")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the machines that task:… names: parameters, what each computes, and why it is included."""
    from fsa2lrnn.automata.zoo.tasks import TASKS, task_named

    chosen = None if name is None else task_named(name.removeprefix("task:").partition("(")[0].strip())
    tasks_listed = list(TASKS.values()) if chosen is None else [chosen]
    described = [_described(task) for task in tasks_listed]
    if as_json:
        console.emit_json({"tasks": described})
    elif chosen is not None:
        _print_task(described[0], inspect.getdoc(chosen) or "")
    else:
        _list(described)


def _described(task: Callable[..., object]) -> console.Document:
    """Return a task as data, from its signature, its docstring and the examples of the zoo."""
    from fsa2lrnn.automata.zoo import ZOO

    parameters = inspect.signature(task).parameters.values()
    summary, *rest = (inspect.getdoc(task) or "").split("\n\n")
    examples = {source: facts for source, facts in ZOO.items() if source.partition("(")[0] == task.__name__}
    return {
        "name": task.__name__,
        "parameters": [
            {"name": p.name, "required": True} if p.default is p.empty else {"name": p.name, "default": p.default}
            for p in parameters
        ],
        "computes": " ".join(summary.split()),
        "why": " ".join(next((part for part in rest if not part.startswith(_SECTIONS)), "").split()),
        "examples": [
            {"source": f"task:{source}", "minimal_states": facts.n_states, "monoid": facts.kind}
            for source, facts in examples.items()
        ],
    }


def _list(described: list[console.Document]) -> None:
    """Print each task as a source with its defaults, what it computes, and why it is included."""
    from rich.padding import Padding

    for task in described:
        console.out.print(f"[cyan bold]{console.markup(_call(task))}[/]")
        text = f"{console.markup(task['computes'])}\n[dim]{console.markup(task['why'])}[/]"
        console.out.print(Padding(text, (0, 0, 1, 4)), soft_wrap=False)
    console.out.print(
        'A task is a source: [cyan]fsa2lrnn compile "task:mod_arith(5, completion=register)"[/]. '
        "[cyan]fsa2lrnn tasks NAME[/] tells everything of one."
    )


def _print_task(task: console.Document, text: str) -> None:

    prose = console.markup(text.partition(">>>")[0].strip())
    console.out.print(f"[cyan bold]{console.markup(_call(task))}[/]\n\n{prose}\n")
    rows = [(e["source"], f"{e['minimal_states']:,} states, {e['monoid']}") for e in task["examples"]]
    console.facts("examples", rows)


def _call(task: console.Document) -> str:
    """Return a task as a source with its defaults.

    >>> _call({"name": "f", "parameters": [{"name": "n", "required": True}, {"name": "by", "default": "a"}]})
    'f(n, by=a)'
    """
    parameters = [p["name"] + (f"={p['default']}" if "default" in p else "") for p in task["parameters"]]
    return f"{task['name']}({', '.join(parameters)})" if parameters else task["name"]
