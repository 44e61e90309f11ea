"""Arguments, options and exit codes that the verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.source_kinds import endings

NO, BAD_INPUT, INTERRUPTED = 1, 2, 130  # exit codes; 130 is the convention after Ctrl-C
LACKED = "lacked"  # outputs that a trained model lacks do not count; its verdicts state this scope
MODEL_SUFFIX = ".safetensors"

# Copies of types elsewhere, because importing these would import torch. A test compares them.
Completion = Literal["error", "sink", "ignore"]
Dtype = Literal["float64", "float32", "bfloat16", "float16"]
ExtractMethod = Literal["closure", "suffixes", "lstar"]
Form = Literal["onehot", "cascade", "auto"]
MachineKind = Literal["acceptor", "moore", "mealy"]
Layout = Literal["auto", "dense", "index"]
Normalisation = Literal["clip", "paper", "none", "onehot"]
Preset = Literal["paper", "quick"]
Sampler = Literal["uniform", "live", "balanced", "task"]
Scan = Literal["auto", "sequential", "pscan", "chunked", "fused", "letters", "triton", "walk"]

WRITTEN = f"by ending: {endings(for_writing=True)}"
SOURCE = f"regex:…, task:…, or a file ({endings()})"
_RUNNABLE = f"a model ({MODEL_SUFFIX}), a folder that `export` wrote, or a source, which is compiled first"
_TRAINED = f"a trained model ({MODEL_SUFFIX})"
_LETTERS = "its letters: ab, 'up down', or '[\"a b\", \"c\"]'; acceptors reject the new ones, see --completion"

Source = Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)]
ModelOrSource = Annotated[str, typer.Argument(metavar="MODEL", help=_RUNNABLE)]
LearnedModel = Annotated[str, typer.Argument(metavar="MODEL", help=_TRAINED)]
AlphabetOption = Annotated[
    str | None, typer.Option(metavar="LETTERS", help=f"read SOURCE over a larger alphabet than {_LETTERS}")
]
SecondsOption = Annotated[
    float, typer.Option("--max-seconds", min=0.1, help="time limit per model for the counterexample search")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        min=0.1,
        help="time limit; by default none, so that the answer does not depend on the computer's speed",
    ),
]
MachineOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", help=f"write the automaton here, {WRITTEN}", show_default=False),
]
ModelOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help=f"write the new model here ({MODEL_SUFFIX})", show_default=False)
]
CompletionOption = Annotated[
    Completion | None,
    typer.Option(help="where missing transitions lead; by default acceptors reject, others are refused"),
]
SAMPLING = (
    "how words are drawn: uniform; live: not into a state after which all outputs are equal; balanced: half of the "
    "words live; task: as the task defines"
)
DtypeOption = Annotated[Dtype, typer.Option(help="arithmetic of a model that is compiled from a source")]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object on standard output")]
LengthsOption = Annotated[str, typer.Option(help="lengths of the words on which models are evaluated")]
WordsOption = Annotated[int, typer.Option(min=1, help="fresh words per length")]
MaxTokensOption = Annotated[
    int,
    typer.Option(
        "--max-tokens", min=1, help="the most letters per length; long words are evaluated in smaller numbers"
    ),
]
MaxBlockOption = Annotated[
    int | None,
    typer.Option(min=1, help="the largest block; by default no limit for one layer, 8 for a cascade"),
]
TokenShiftOption = Annotated[
    bool,
    typer.Option(
        "--token-shift/--no-token-shift", help="whether the layers of a cascade may read the previous step too"
    ),
]
LayersOption = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE:CLASS", help="a user-defined layer that the model has; repeatable"),
]
