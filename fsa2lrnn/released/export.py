"""A machine as a folder that `AutoModelForCausalLM` loads, proved before it is handed over."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.released import layer_file
from fsa2lrnn.released.answers import answer
from fsa2lrnn.released.folder import DTYPES, load, save
from fsa2lrnn.released.proof import prove
from fsa2lrnn.verdicts import Proved


@dataclass(frozen=True, eq=False)
class Written:
    """What was written, and what was proved of it as it was read back."""

    plan: Any
    verdict: Proved
    n_parameters: int


def export(machine: MooreMachine, layer: str, folder: Path, dtype: str = "float32") -> Written:
    """Write the machine as a whole model of that layer into a folder, load it from there and prove it.

    Raises:
        NotExpressible: if no stack of the layer can hold the machine, or no construction is known here; the message
            says which.
        BudgetExceeded: if the machine is too large for a whole model.
        UnsupportedFormat: for an unknown layer or dtype, or letters that a tokenizer can't tell.
        MissingPackage: without the package that has the layer.
        NotExact: if the proof fails on the code that is installed, so that nothing is claimed.
    """
    if dtype not in DTYPES:
        raise UnsupportedFormat(
            f"dtype {dtype}: weights are written for {' and '.join(DTYPES)}, whose range holds gates of 512 and "
            "letters of 1,024 squared; choose one of these"
        )
    file = layer_file(layer)
    if file.CODE is None:
        raise UnsupportedFormat(
            f"layer {layer}: its models run on GPUs alone, and here it is known by the recurrence that was published; "
            f"`explain SOURCE --layer {layer}` says what that holds"
        )
    said = answer(machine, layer)
    if said.kind == "no":
        raise NotExpressible(f"no stack of {layer} layers without attention can hold this machine: {said.why}")
    try:
        plan = file.plan(machine) if said.plan is None else said.plan  # the former says what is missing
    except NotExpressible as fault:
        raise NotExpressible(said.why) from fault
    model: Any = file.build(plan, DTYPES[dtype])
    folder.mkdir(parents=True, exist_ok=True)
    save(model, layer, plan, folder)
    loaded = load(folder)
    verdict = prove(loaded)
    if not isinstance(verdict, Proved):
        raise NotExact(
            f"{folder} is not right on the code that is installed ({verdict}): install {file.LAYER.tried}, for which "
            "it was made, and tell the authors"
        )
    return Written(plan, verdict, file.CODE.n_parameters(loaded.model))
