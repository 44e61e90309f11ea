"""`fsa2lrnn verify`: prove a model equal to an automaton, or find a shortest counterexample."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fsa2lrnn.cli import console, options, sources


def verify(
    model: options.ModelOrSource,
    source: options.Source,
    max_states: Annotated[int, typer.Option(min=1, help="the most joint states that are explored")] = 1_000_000,
    seconds: options.TimeLimit = None,
    empty_word: Annotated[bool, typer.Option(help="whether the output on the empty word counts")] = True,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    certificate: Annotated[
        Path | None, typer.Option(help="write the proof to this file (.safetensors), for `python -m fsa2lrnn.checker`")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Prove a model equal to an automaton on every word, or show a shortest word on which they differ.

    The exit code is 1 unless equality is proved.
    """
    options.check_output(certificate, "a proof", options.MODEL_SUFFIX)
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.verification import Proved, Refuted, Undecided, prove_equivalent

    # An exported folder is verified on its own code, not as an `LRNN`.
    if (folder := sources.exported_folder(model)) is not None:
        from fsa2lrnn.export.folder import load
        from fsa2lrnn.export.whole_model import prove

        machine = sources.read_machine(source, completion, alphabet)
        sources.refuse_for_folder(folder, {"--certificate": certificate})
        exported = load(folder, machine)
        verdict = prove(exported, machine, max_states, seconds)
        evidence.tell(verdict, exported.machine.alphabet, as_json)
        if not isinstance(verdict, Proved):
            raise typer.Exit(options.NO)
        return

    from fsa2lrnn.verification.walk import may_close

    network, machine = sources.model_and_machine(model, source, completion, alphabet, layers, may_compile=True)
    console.note(f"joint states are enumerated, at most {max_states:,}")
    verdict = prove_equivalent(network, machine, max_states, empty_word, seconds=seconds, certificate=certificate)
    is_hopeless = isinstance(verdict, Undecided) and not may_close(network)
    evidence.tell(verdict, network.alphabet, as_json, not is_hopeless)
    if certificate is not None and isinstance(verdict, Proved) and verdict.covers.environment:
        console.error(
            "warning",
            f"`python -m fsa2lrnn.checker` does not read {certificate}: this model's steps round; use the certificate "
            "that `fsa2lrnn certify` writes",
        )
    both = f"{quote(model)} {quote(source)}{sources.repeated(completion, alphabet, layers)}"
    if is_hopeless and not as_json:
        console.then(f"fsa2lrnn certify {both}", f"fsa2lrnn falsify {both}")
    has_all = set(machine.outputs) <= set(network.outputs)
    if isinstance(verdict, Refuted) and not verdict.word and has_all and not as_json:
        console.then(f"fsa2lrnn verify {both} --no-empty-word")
    if not isinstance(verdict, Proved):
        raise typer.Exit(options.NO)
