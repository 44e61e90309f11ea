"""`fsa2lrnn falsify`: search for a counterexample, a word on which a model is wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from fsa2lrnn.cli import sources
from fsa2lrnn.cli.options import (
    LACKED,
    NO,
    AlphabetOption,
    CompletionOption,
    DtypeOption,
    JsonOption,
    LayersOption,
    ModelOrSource,
    SecondsOption,
    Source,
)


def falsify(
    model: ModelOrSource,
    source: Source,
    seconds: SecondsOption = 20.0,
    max_length: Annotated[int, typer.Option(min=1, help="letters of the longest words that are tried")] = 2_000,
    max_states: Annotated[int, typer.Option(min=0, help="joint states that the exhaustive search may hold")] = 100_000,
    period: Annotated[int, typer.Option(min=0, help="longest period of the words that repeat")] = 3,
    prefix: Annotated[int, typer.Option(min=0, help="longest word before a period")] = 1,
    periodic_words: Annotated[int, typer.Option(min=0, help="words that repeat, the shortest first")] = 2_000,
    random_words: Annotated[int, typer.Option(min=0, help="random words")] = 128,
    width: Annotated[int, typer.Option(min=0, help="states that a beam keeps for each of the automaton's")] = 32,
    seed: Annotated[int, typer.Option(min=0, help="of the random words")] = 0,
    rounds: Annotated[int, typer.Option(min=0, help="of the beam that is guided from behind")] = 8,
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    alphabet: AlphabetOption = None,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for a shortest word on which a model is wrong; exit with 1 if one is found."""
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.verification import Budget, Refuted
    from fsa2lrnn.verification import falsify as falsify_model

    network, machine = sources.model_and_machine(model, source, completion, alphabet, layers, dtype)
    budget = Budget(seconds, max_states, max_length, period, prefix, periodic_words, random_words, width, seed, rounds)
    verdict = falsify_model(network, machine, budget, LACKED)
    evidence.tell(verdict, network.alphabet, as_json)
    if isinstance(verdict, Refuted):
        raise typer.Exit(NO)
