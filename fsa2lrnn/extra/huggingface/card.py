"""Write the model card of an exported folder: what was compiled, what is proved, how to check the proof."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fsa2lrnn import symbols
from fsa2lrnn.errors import counted, shortened
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.tokens import is_prefix_free
from fsa2lrnn.verdicts import Proved


def model_card(plan: Any, layer: str, dtype: str, verdict: Proved) -> str:
    """Return the model card, in Markdown, of a plan written into a layer and proved by `verdict`."""
    machine, file = plan.machine, layer_file(layer)
    use, model = "", layer
    if isinstance(file.CODE, HuggingFace):
        model = file.CODE.kind
        word = machine.alphabet[:3]
        expected = [f"={symbols.show(output)}" for output in machine.transduce(word)]
        is_split = symbols.is_character_alphabet(machine.alphabet) or is_prefix_free(list(map(str, machine.alphabet)))
        spaces = "Spaces between letters change nothing." if is_split else "Letters are separated by spaces."
        use = _text("card_use.md").format(word=" ".join(map(str, word)), expected=expected, spaces=spaces)
    return _text("card.md").format(
        layer=layer, states=counted(machine.n_states, "state"), letters=counted(len(machine.alphabet), "letter"),
        alphabet=_listed(machine.alphabet), outputs=_listed(plan.outputs), how=plan.how,
        model=f"{model}, {dtype}; {file.LAYER.tried}", pairs=counted(verdict.pairs, "joint state"),
        transitions=counted(verdict.transitions, "transition"), covers=verdict.covers, scope=verdict.scope,
        digest=verdict.digest, use=use,
    )  # fmt: skip


def _listed(values: Any) -> str:
    return shortened(symbols.listed(values), 200).replace("|", "\\|")


def _text(name: str) -> str:
    return files("fsa2lrnn.extra.huggingface").joinpath(name).read_text(encoding="utf-8")
