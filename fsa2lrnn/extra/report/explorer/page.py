"""Build the page of the explorer, and describe models by a proof or a counterexample search."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display.markup import Markup, visible
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.extra.report.drawing.automaton import notes
from fsa2lrnn.extra.report.explorer.scene import MODELS, SceneModel, scene
from fsa2lrnn.extra.report.render import render
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verdicts import Proved, Refuted
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.falsify import Budget, falsify

_STEPS = {  # buttons by id: the text, the name, and the key of the same function
    "first": ("|◀", "to the start", "Home"),
    "back": ("◀", "one letter back", "←"),
    "play": ("▶ play", "play", "space"),
    "next": ("▶", "one letter on", "→"),
    "last": ("▶|", "to the end", "End"),
    "error": ("✗ error", "to the first wrong output", "e"),
}
_SPEEDS = {"1 letter per second": 1000, "3 per second": 330, "15 per second": 66, "as fast as possible": 0}
_TYPED = {
    "characters": "letters without spaces",
    "words": "letters separated by spaces",
    "list": 'a JSON list of letters, ["a b", "c"]',
}
_WIDE = 560.0  # the width in pixels from which a drawing takes the whole width of the page


def build(title: str, machine: MooreMachine, models: Mapping[str, SceneModel], ignore: Ignore = ()) -> str:
    """Return the explorer's page as HTML.

    Args:
        title: the title, such as "task:sum_mod(5)".
        machine: the target of the models; its minimal machine is shown.
        models: at most 4 models by name, over the machine's letters.
        ignore: the outputs of the machine that do not count (`fsa2lrnn.automata.counting`).

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
    text = json.dumps(shown.data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return render(
        "explorer.html",
        title=title, data=shown.data, drawn=shown.drawn, machine=shown.machine, heads=shown.heads,
        letters=[visible(letter, lines=False) for letter in shown.drawn.alphabet[:64]],
        notes=" ".join(notes(shown.drawn)),
        is_wide=shown.machine is None or _width(shown.machine) > _WIDE, steps=_STEPS, speeds=_SPEEDS, how_typed=_TYPED,
        json=Markup(text.encode("utf-8", "backslashreplace").decode()),  # lone surrogates, as JSON escapes them
    )  # fmt: skip


def _width(drawing: Markup) -> float:
    return float(drawing.partition('viewBox="0 0 ')[2].split(" ", 1)[0])


_PAIRS = 20_000  # the most joint states of a proof


def constructed(model: LRNN, machine: MooreMachine) -> SceneModel:
    """Return a compiled model with a sentence that states its proof, if the joint states are few enough to enumerate.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> constructed(compile_machine(zoo.parity()), zoo.parity()).said.partition("; ")[2]
    'every shape of call, batch and number of threads.'
    """
    verdict = prove_equivalent(model, machine, _PAIRS)
    said = "Compiled from the automaton."
    if isinstance(verdict, Proved):
        closed = counted(verdict.pairs, "joint state")
        said = f"Proved correct on all words: {closed} enumerated, bit for bit, {verdict.covers}."
    return SceneModel(model, "constructed", said)


def searched(model: LRNN, machine: MooreMachine, seconds: float, ignore: Ignore = ()) -> SceneModel:
    """Return a model with a sentence on the result of a counterexample search, and raise the errors of `falsify`."""
    verdict = falsify(model, machine, Budget(seconds=seconds), ignore)
    if isinstance(verdict, Refuted):
        least = "the shortest" if verdict.is_shortest else "the shortest found"
        n = len(verdict.word)
        return SceneModel(
            model, "learned", f"Fails on a word of {n:,} letter{'s' * (n != 1)}, {least}.", (verdict.word,)
        )
    if verdict.checked_length is None:
        said = "Correct on all words that are read letter by letter: all reachable joint states were enumerated."
        return SceneModel(model, "constructed", said)
    return SceneModel(model, "learned", f"No counterexample found in {seconds:g} seconds, which proves nothing.")
