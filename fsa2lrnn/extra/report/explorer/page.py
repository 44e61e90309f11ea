"""The explorer's page: `build(title, machine, models)` returns one HTML text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display.markup import Markup, join, tag, visible
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.extra.report.drawing.automaton import LOOK, notes
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, transitions
from fsa2lrnn.extra.report.explorer.scene import MODELS, Scene, SceneModel, scene
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verdicts import Proved, Refuted
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.falsify import Budget, falsify

_HERE = files("fsa2lrnn.extra.report.explorer")
_STEPS = {  # buttons by id: what they show, what they are called, and the key that does the same
    "first": ("|◀", "to the start", "Home"),
    "back": ("◀", "one letter back", "←"),
    "play": ("▶ play", "play", "space"),
    "next": ("▶", "one letter on", "→"),
    "last": ("▶|", "to the end", "End"),
    "error": ("✗ error", "to the first wrong output", "e"),
}
_SPEEDS = {"1 letter per second": 1000, "3 per second": 330, "15 per second": 66, "as fast as possible": 0}
_PROGRAM = ("engine.js", "views.js", "words.js", "explorer.js")  # each calls those before it
_WIDE = 560.0  # pixels of a drawing that takes the whole width of the page


def build(title: str, machine: MooreMachine, models: Mapping[str, SceneModel], ignore: Ignore = ()) -> str:
    """Return the explorer's page as HTML.

    Args:
        title: the title, as "task:sum_mod(5)".
        machine: the target of the models; its minimal machine is shown.
        models: up to 4, by name, over the machine's letters.
        ignore: which outputs of the machine do not count (`fsa2lrnn.automata.counting`).

    Raises:
        UnsupportedFormat: for more models, and as `programs.programs` does.
        InvalidMachine: if a model has other letters.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> page = build("parity", zoo.parity(), {"constructed": SceneModel(compile_machine(zoo.parity()), "constructed")})
    >>> page.startswith("<!doctype html>"), "http://" in page.replace("http://www.w3.org", "")
    (True, False)
    """
    if len(models) > MODELS:
        raise UnsupportedFormat(
            f"{len(models)} models: a page shows {MODELS} side by side, write several pages for more"
        )
    shown = scene(machine, models, ignore)
    drawn = shown.drawn
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(LOOK + _text("explorer.css"))),
    )
    facts = f"{len(drawn.states)} states, {len(drawn.alphabet)} letters, {len(set(drawn.outputs))} outputs"
    header = tag("header", tag("h1", title), tag("p", facts, class_="lead"))
    is_wide = shown.machine is None or _width(shown.machine) > _WIDE
    board = tag("div", _machine(drawn, shown), *_models(shown), class_="board wide" if is_wide else "board")
    body = tag("body", header, tag("main", _controls(drawn, shown), board), _footer(), _scripts(shown.data))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _controls(machine: DrawnMachine, shown: Scene) -> Markup:
    how = {
        "characters": "letters without spaces",
        "words": "letters separated by spaces",
        "list": 'a JSON list of letters, ["a b", "c"]',
    }[shown.data["typed"]]
    field = tag(
        "p",
        tag("label", "Word", for_="word"),
        tag("input", id="word", type="text", autocomplete="off", autocapitalize="off", spellcheck="false",
            placeholder=how, aria_describedby="fault"),
        class_="field",
    )  # fmt: skip
    steps = [
        tag("button", sign, id=name, type="button", title=f"{said} ({key})", aria_label=said, aria_keyshortcuts=key)
        for name, (sign, said, key) in _STEPS.items()
    ]
    speeds = [
        tag("option", said, value=str(wait), selected="" if wait == 330 else None) for said, wait in _SPEEDS.items()
    ]
    pad = [
        tag("button", letter if letter.strip() else f"“{letter}”", type="button", data_letter=str(a), title="append")
        for a, letter in enumerate(visible(letter, lines=False) for letter in machine.alphabet[:64])
    ]
    words = [
        tag("button", f"counterexample to {word['of']} ({len(word['letters']):,} letters)", type="button",
            data_word=str(i), class_="failing")
        for i, word in enumerate(shown.data["words"])
    ]  # fmt: skip
    random = tag("button", "40 random letters", type="button", id="random")
    rub = tag("button", "⌫", type="button", id="rub", aria_label="take the last letter away")
    return tag(
        "section",
        field,
        tag("p", id="fault", role="alert"),
        tag("div", *pad, rub, class_="row pad", role="group", aria_label="Letters"),
        tag("div", *words, random, class_="row", role="group", aria_label="Words"),
        tag("div", *steps, tag("label", "Speed ", tag("select", *speeds, id="speed")), class_="row steps",
            role="group", aria_label="Steps"),
        tag("div", id="tape", tabindex="0", role="region", aria_label="The word, letter by letter"),
        tag("p", id="said", aria_live="polite"),
        id="controls",
        aria_label="Word and steps",
    )  # fmt: skip


def _machine(machine: DrawnMachine, shown: Scene) -> Markup:
    said = " ".join(notes(machine))
    table = tag("details", tag("summary", "Its transitions"), transitions(machine))
    if shown.machine is None:
        return tag("section", tag("h2", "Automaton"), tag("p", said), tag("div", id="moves"), table, id="automaton")
    drawing = tag("div", shown.machine, class_="scroll", tabindex="0", role="region", aria_label="Automaton")
    ring = "A double ring accepts. " if machine.accepting else ""
    hint = tag("p", ring, said, class_="hint") if ring or said else None
    return tag("section", tag("h2", "Automaton"), drawing, hint, table, id="automaton")


def _models(shown: Scene) -> list[Markup]:
    parts = []
    for i, (model, heads) in enumerate(zip(shown.data["models"], shown.heads, strict=True)):
        small = [tag("figure", svg, tag("figcaption", f"head {h + 1}"), data_head=str(h)) for h, svg in heads.items()]
        parts.append(
            tag(
                "section",
                tag("h2", tag("span", class_=f"kind {model['kind']}", title=model["kind"]), model["name"]),
                tag("p", model["said"], class_="hint") if model["said"] else None,
                tag("p", class_="verdict"),
                tag("div", class_="views"),
                join(tag("h3", "Its heads as automata"), tag("div", *small, class_="heads")) if small else None,
                tag("div", class_="layers"),
                tag("details", tag("summary", "The numbers"), tag("pre", class_="numbers")),
                class_="model",
                data_model=str(i),
                aria_label=model["name"],
            )
        )
    return parts


def _footer() -> Markup:
    keys = [join(tag("kbd", key), f" {said}") for _, (_, said, key) in _STEPS.items()]
    separated = [part for key in keys for part in (key, " · ")][:-1]
    return tag("footer", tag("p", "Keys: ", *separated), tag("p", "Made by fsa2lrnn draw."))


def _scripts(data: dict[str, Any]) -> Markup:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    text = text.encode("utf-8", "backslashreplace").decode()  # halves of characters, as JSON escapes them
    return join(
        tag("script", Markup(text), id="data", type="application/json"),
        tag("script", Markup("".join(map(_text, _PROGRAM)))),
    )


def _text(name: str) -> str:
    return _HERE.joinpath(name).read_text(encoding="utf-8")


def _width(drawing: Markup) -> float:
    return float(drawing.partition('viewBox="0 0 ')[2].split(" ", 1)[0])


_PAIRS = 20_000  # joint states that a proof may take


def constructed(model: LRNN, machine: MooreMachine) -> SceneModel:
    """Return a compiled model with a sentence on its proof, if the joint states can be enumerated within the budget.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> constructed(compile_machine(zoo.parity()), zoo.parity()).said.partition("; ")[2]
    'every shape of call, batch and number of threads.'
    """
    verdict = prove_equivalent(model, machine, _PAIRS)
    said = "Compiled from the automaton."
    if isinstance(verdict, Proved):
        closed = counted(verdict.pairs, "joint state")
        said = f"Proved right on all words: {closed} closed, bit for bit, {verdict.covers}."
    return SceneModel(model, "constructed", said)


def searched(model: LRNN, machine: MooreMachine, seconds: float, ignore: Ignore = ()) -> SceneModel:
    """Return a model with the result of a counterexample search. Raises as `falsify` does."""
    verdict = falsify(model, machine, Budget(seconds=seconds), ignore)
    if isinstance(verdict, Refuted):
        least = "the shortest" if verdict.is_shortest else "the shortest found"
        n = len(verdict.word)
        return SceneModel(
            model, "learned", f"Fails on a word of {n:,} letter{'s' * (n != 1)}, {least}.", (verdict.word,)
        )
    if verdict.checked_length is None:
        said = "No word fails that is read letter by letter: its states close, and all were looked at."
        return SceneModel(model, "constructed", said)
    return SceneModel(model, "learned", f"No failing word found in {seconds:g} seconds, which proves nothing.")
