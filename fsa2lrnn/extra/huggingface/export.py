"""Export a machine as a folder that its package, such as transformers, loads, after a proof of the written model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.card import model_card
from fsa2lrnn.extra.huggingface.folder import DTYPES, FILE, check_files, load, save
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.extra.huggingface.refuse import answer
from fsa2lrnn.extra.huggingface.whole_folder import folder_written_whole
from fsa2lrnn.files import write_atomically
from fsa2lrnn.layers import released_model
from fsa2lrnn.verdicts import Proved


@dataclass(frozen=True, eq=False)
class ExportResult(Brief):
    """The plan of an exported model, the proof of the model as loaded from its folder, and its number of parameters."""

    plan: Any
    verdict: Proved
    n_parameters: int


def export(machine: MooreMachine, layer: str, folder: Path, dtype: str = "float32") -> ExportResult:
    """Write a machine as a whole external model, load it as a user would, prove it, and move it to a folder.

    `folder` is unchanged until the proof has succeeded. `dtype` is "float32" or "bfloat16".

    Raises:
        NotExpressible: if no stack of the layer can represent the machine, or no construction is known; the message
            says which.
        BudgetExceeded: if the machine is too large for a whole model.
        UnsupportedFormat: for an unknown layer or dtype, or letters that a tokenizer cannot distinguish.
        CheckpointError: if the folder holds other files, which a package may read instead of those written.
        MissingPackage: if the package of the layer is not installed.
        NotExact: if the proof fails on the installed code.
        OSError: if the folder cannot be written.
    """
    if dtype not in DTYPES:
        raise UnsupportedFormat(
            f"dtype {dtype}: weights are written for {' and '.join(DTYPES)}, whose range holds gates of 512 and "
            "letters of 1,024 squared; choose one of these"
        )
    layer = released_model(layer)
    file = layer_file(layer)
    decided = answer(machine, layer)
    if decided.kind == "no":
        raise NotExpressible(f"no stack of {layer} layers without attention can hold this machine: {decided.why}")
    try:
        plan = file.plan(machine) if decided.plan is None else decided.plan  # the former says what is missing
    except NotExpressible as fault:
        raise NotExpressible(decided.why) from fault
    model: Any = file.build(plan, DTYPES[dtype])
    with folder_written_whole(folder, FILE) as place:
        save(model, layer, plan, place)
        if folder.exists():
            check_files(folder, [path.name for path in place.iterdir()])
        loaded = load(place)
        verdict = prove(loaded)
        if not isinstance(verdict, Proved):
            raise NotExact(
                f"{layer} does not run this machine on the code that is installed ({verdict}), and nothing is written: "
                f"install {file.LAYER.tried}, for which it was made, and tell the authors"
            )
        n_parameters = file.CODE.n_parameters(loaded.model)
        write_atomically(place / "README.md", model_card(plan, layer, dtype, verdict).encode())
        del loaded  # its tensors may be mapped to files, which some systems then do not move
    return ExportResult(plan, verdict, n_parameters)
