"""`fsa2lrnn falsify`: search for a counterexample, a word on which a model is wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from fsa2lrnn.cli import options, sources


def falsify(
    model: options.ModelOrSource,
    source: options.Source,
    seconds: options.SecondsOption = 20.0,
    max_length: Annotated[int, typer.Option(min=1, help="length of the longest words that are tried")] = 2_000,
    seed: Annotated[int, typer.Option(min=0, help="seed of the random words")] = 0,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Search for a shortest counterexample to a model; the exit code is 1 if one is found.

    Outputs that the model lacks do not count, nor does that of the empty word. No counterexample is no proof.
    """
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.verification import Refuted
    from fsa2lrnn.verification.falsify import Budget
    from fsa2lrnn.verification.falsify import falsify as falsify_model

    network, machine = sources.model_and_machine(model, source, completion, alphabet, layers, may_compile=True)
    verdict = falsify_model(network, machine, Budget(seconds=seconds, length=max_length, seed=seed), options.LACKED)
    evidence.tell(verdict, network.alphabet, as_json)
    if isinstance(verdict, Refuted):
        raise typer.Exit(options.NO)
