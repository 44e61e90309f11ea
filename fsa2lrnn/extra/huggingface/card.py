"""The model card of an exported folder: what was compiled, what is proved, how to check the proof."""

from __future__ import annotations

from typing import Any

from fsa2lrnn import symbols
from fsa2lrnn.errors import counted, shortened
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.tokens import is_prefix_free
from fsa2lrnn.verdicts import Proved

_CARD = """---
tags: [finite-automaton, state-tracking, fsa2lrnn]
---
# A finite automaton in the weights of {layer}

The weights of this model were constructed by fsa2lrnn, not trained. After every letter the model puts out what the
automaton puts out.

| | |
|---|---|
| automaton | {states}, {letters} |
| letters | {alphabet} |
| outputs | {outputs} |
| construction | {how} |
| model | {model} |

## What is proved

On every word of every length, the output after each letter is the automaton's: {pairs} (model state, automaton
state) and {transitions} were enumerated on the package's own code, and no other can be reached.

- Covered: {covers}.
- Outputs that count: {scope}.
- SHA-256 of the files without this one: `{digest}`.

No claim is made about other versions, other devices or several letters per call.

## Check it again

`fsa2lrnn verify FOLDER SOURCE` enumerates all states again, from the files alone, and compares the model with the
automaton SOURCE. The automaton that this folder was written from is in `fsa2lrnn.json`.
{use}"""
_USE = """
## Use it

```python
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForCausalLM.from_pretrained("FOLDER")
tokens = tokenizer("{word}", return_tensors="pt").input_ids
with torch.no_grad():
    found = model(tokens).logits.argmax(-1)[0]
print(tokenizer.convert_ids_to_tokens(found.tolist()))  # {expected}
```

{spaces} Outputs are tokens that begin with `=`. The model
reads letters only, not outputs: `generate` with `max_new_tokens=1` returns the output after the last letter. Any other
letter becomes `<unk>`, which is outside the embedding, and the model raises an error. Padding (`<pad>`) belongs on the
right.
"""


def model_card(plan: Any, layer: str, dtype: str, verdict: Proved) -> str:
    """Return the README.md of a folder in Markdown."""
    machine, file = plan.machine, layer_file(layer)
    use, model = "", layer
    if isinstance(file.CODE, HuggingFace):
        model = file.CODE.kind
        word = machine.alphabet[:3]
        expected = [f"={symbols.show(output)}" for output in machine.transduce(word)]
        is_split = symbols.is_character_alphabet(machine.alphabet) or is_prefix_free(list(map(str, machine.alphabet)))
        spaces = "Spaces between letters change nothing." if is_split else "Letters are separated by spaces."
        use = _USE.format(word=" ".join(map(str, word)), expected=expected, spaces=spaces)
    return _CARD.format(
        layer=layer, states=counted(machine.n_states, "state"), letters=counted(len(machine.alphabet), "letter"),
        alphabet=_listed(machine.alphabet), outputs=_listed(plan.outputs), how=plan.how,
        model=f"{model}, {dtype}; {file.LAYER.tried}", pairs=counted(verdict.pairs, "joint state"),
        transitions=counted(verdict.transitions, "transition"), covers=verdict.covers, scope=verdict.scope,
        digest=verdict.digest, use=use,
    )  # fmt: skip


def _listed(values: Any) -> str:
    return shortened(symbols.listed(values), 200).replace("|", "\\|")
