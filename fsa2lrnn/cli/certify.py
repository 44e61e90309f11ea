"""`fsa2lrnn certify`: prove a trained model correct on all words of at most N letters, and check certificates."""

from __future__ import annotations

import warnings
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import UnsupportedFormat

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.nn.model import LRNN
    from fsa2lrnn.verdicts import Refuted

_SECONDS, _LONGEST = 10.0, 4_000  # for a counterexample that is one letter longer than the certified length


def certify(
    model: options.LearnedModel,
    source: options.Source,
    memory: Annotated[
        int | None,
        typer.Option(min=1, help="number of last letters that the sets of states distinguish; by default the best"),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the certificate here (.json)")] = None,
    seconds: options.TimeLimit = None,
    check: Annotated[Path | None, typer.Option(help="check this certificate of MODEL and SOURCE instead")] = None,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Prove a learned model correct on all words up to a certified length, in the floats that it computes.

    Outputs that the model lacks do not count, nor does that of the empty word. The exit code is 1 if no letter is
    certified, or the certificate is refused.
    """
    if check is not None and (memory, output) != (None, None):
        raise UnsupportedFormat("--check checks a certificate that is there: it goes without --memory and -o")
    options.check_output(output, "a certificate", ".json")
    if (folder := sources.exported_folder(model)) is not None:
        typed = f"{quote(model)} {quote(source)}{sources.repeated(completion, alphabet)}"
        raise UnsupportedFormat(
            f"{folder} is a folder that `export` wrote, and certificates are for models ({options.MODEL_SUFFIX}): "
            f"`fsa2lrnn verify {typed}` proves it on its own code"
        )
    network, machine = sources.model_and_machine(model, source, completion, alphabet, layers)
    if check is not None:
        with limited(Deadline.of(seconds)):
            code = _check(network, machine, check, as_json)
    else:
        arguments = f"{quote(model)} {quote(source)}{sources.repeated(completion, alphabet, layers)}"
        code = _certify(model, arguments, network, machine, memory, seconds, output, as_json)
    if code:
        raise typer.Exit(code)


def _certify(
    title: str, arguments: str, network: LRNN, machine: MooreMachine, memory: int | None, seconds: float | None,
    output: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """Certify a model, print what is proved, and return the exit code; `arguments` is MODEL and SOURCE as given."""
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.symbols import word_text
    from fsa2lrnn.verification.certify import SearchCutShort
    from fsa2lrnn.verification.certify import certify as certify_model
    from fsa2lrnn.verification.walk import may_close

    deadline = Deadline.of(seconds)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SearchCutShort)
        certificate = certify_model(network, machine, memory or "auto", seconds=seconds, ignore=options.LACKED)
    cut = next((str(w.message) for w in caught if w.category is SearchCutShort), None)
    if output is not None:
        certificate.save(output)
    # A counterexample that is one letter longer shows that no greater length can be certified.
    failing = _failing_next(network, machine, certificate.horizon, min(_SECONDS, deadline.left()))
    if as_json:
        facts = evidence.certificate_json(certificate, certificate.scope)
        facts["counterexample"] = None if failing is None else failing.to_json()
        console.emit_json({**facts, "cut_short": cut, "saved": str(output) if output else None})
    else:
        saved = ("saved", str(output) if output else "no (-o FILE saves it, for --check)")
        limit = [] if cut is None else [("time limit", cut)]
        rows = evidence.certificate_rows(certificate, certificate.scope)
        if failing is not None:
            word = word_text(failing.word, machine.alphabet)
            rows.insert(1, ("exact", f"no greater length can be proved: the model is wrong on {word}"))
        console.facts(title, [*rows, *limit, saved])
        if certificate.horizon and failing is None and may_close(network):
            console.then(f"fsa2lrnn verify {arguments}, which may prove all lengths")
    return options.NO if certificate.horizon == 0 else 0


def _failing_next(network: LRNN, machine: MooreMachine, horizon: int | None, seconds: float) -> Refuted | None:
    """Return a counterexample that is one letter longer than certified, if a search of so many seconds finds one."""
    from fsa2lrnn.verification import Refuted
    from fsa2lrnn.verification.falsify import Budget, falsify

    if horizon is None or horizon > _LONGEST or seconds <= 0:
        return None
    result = falsify(network, machine, Budget(seconds=seconds, length=horizon + 1), options.LACKED)
    return result if isinstance(result, Refuted) and len(result.word) == horizon + 1 else None


def _check(network: LRNN, machine: MooreMachine, file: Path, as_json: bool) -> int:
    """Check a certificate of a model and a machine, print whether it is accepted, and return the exit code."""
    from fsa2lrnn.automata.language import equivalent
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.symbols import word_text
    from fsa2lrnn.verification.certificate import Certificate
    from fsa2lrnn.verification.check import CertificateRefused
    from fsa2lrnn.verification.check import check as check_certificate

    certificate = Certificate.load(file)
    why, scope = None, certificate.scope
    try:
        if (word := equivalent(machine, certificate.machine)) is not None:
            difference = word_text(word, machine.alphabet) or "no letters"
            raise CertificateRefused(f"it is of another machine: they differ after {difference}")
        scope = check_certificate(certificate, network, options.LACKED).scope
    except CertificateRefused as error:
        why = str(error)
    if as_json:
        console.emit_json({**evidence.certificate_json(certificate, scope), "accepted": why is None, "why_not": why})
    elif why is None:
        console.facts(str(file), [*evidence.certificate_rows(certificate, scope), ("checked", "accepted")])
    else:
        console.out.print(f"[red bold]refused:[/] {console.markup(why)}")
    return 0 if why is None else options.NO
