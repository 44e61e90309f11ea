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
    max_states: Annotated[int, typer.Option(min=0, help="the most joint states of the exhaustive search")] = 100_000,
    period: Annotated[int, typer.Option(min=0, help="longest period of the periodic words")] = 3,
    prefix: Annotated[int, typer.Option(min=0, help="longest prefix of the periodic words")] = 1,
    periodic_words: Annotated[int, typer.Option(min=0, help="number of periodic words, the shortest first")] = 2_000,
    random_words: Annotated[int, typer.Option(min=0, help="number of random words")] = 128,
    width: Annotated[
        int, typer.Option(min=0, help="states of the model per state of the automaton in the beam search")
    ] = 32,
    seed: Annotated[int, typer.Option(min=0, help="seed of the random words")] = 0,
    rounds: Annotated[int, typer.Option(min=0, help="rounds of the backward search")] = 8,
    dtype: options.DtypeOption = "float32",
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

    network, machine = sources.model_and_machine(model, source, completion, alphabet, layers, dtype)
    budget = Budget(seconds, max_states, max_length, period, prefix, periodic_words, random_words, width, seed, rounds)
    verdict = falsify_model(network, machine, budget, options.LACKED)
    evidence.tell(verdict, network.alphabet, as_json)
    if isinstance(verdict, Refuted):
        raise typer.Exit(options.NO)
