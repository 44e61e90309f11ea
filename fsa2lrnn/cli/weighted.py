"""Weighted automata on the command line: what `explain` says of one, `compile` of one, and `learn --weighted`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from fsa2lrnn.cli import console
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import BudgetExceeded, NotExact, counted
from fsa2lrnn.files import exists, write_atomically
from fsa2lrnn.reading import read_text

if TYPE_CHECKING:
    from fsa2lrnn.weighted import WeightedAutomaton


_FORMAT = re.compile(r'"format"\s*:\s*"fsa2lrnn-weighted"')


def read_weighted(source: str) -> WeightedAutomaton | None:
    """Return the weighted automaton of a file of ours or of PAutomaC; None for other sources."""
    if source.endswith("_model.txt"):
        from fsa2lrnn.weighted.pautomac import read_model

        return read_model(Path(source))
    if source.endswith(".json") and exists(source) and _FORMAT.search(text := read_text(Path(source))):
        from fsa2lrnn.weighted import WeightedAutomaton

        return WeightedAutomaton.from_json(text, source)
    return None


def explain_weighted(w: WeightedAutomaton, folder: Path | None, as_json: bool, max_seconds: float) -> None:
    """Print the size and the minimal dimension of a weighted automaton, and write its certificate into a folder."""
    from fsa2lrnn import symbols
    from fsa2lrnn.families.recheck import RejectedCertificate
    from fsa2lrnn.weighted.spaces import minimal

    size, answer = None, ""
    try:
        with limited(Deadline.of(max_seconds)):
            least = minimal(w)
            size = least.second.n_states
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / "minimal.json", (json.dumps(least.to_json()) + "\n").encode())
            answer = f"{size}, proved; not re-checked within the time limit"
            least.check()
            answer = f"{size}, proved and re-checked independently"
    except RejectedCertificate as fault:  # a limit of the checker, or a fault of the search: the message says which
        answer = f"{size} by the search; the independent check refuses its certificate: {fault}"
    except BudgetExceeded as fault:
        answer = answer or f"unknown: {fault}"
    if as_json:
        said = {"minimal_dimension": size, "evidence": answer}
        console.emit_json({"states": w.n_states, "letters": len(w.alphabet), **said})
        return
    outputs = "one function" if w.outputs is None else symbols.listed(w.outputs)
    rows = [("weighted automaton", counted(w.n_states, "state")), ("letters", symbols.listed(w.alphabet))]
    console.facts("machine", [*rows, ("outputs", outputs), ("minimal dimension", answer)])


def compile_weighted(w: WeightedAutomaton, output: Path | None, dtype: str, as_json: bool) -> None:
    """Compile a weighted automaton, and print whether the network is equal to it over the reals and what it rounds."""
    import torch

    from fsa2lrnn.cli import evidence
    from fsa2lrnn.nn.checkpoint import save
    from fsa2lrnn.weighted.networks import compile_machine, prove_equivalent, rounding_bound

    arithmetic = getattr(torch, dtype)
    model = compile_machine(w, arithmetic)
    verdict = prove_equivalent(model, w)
    try:
        bound = str(rounding_bound(w, arithmetic))
    except NotExact as fault:
        bound = f"no bound: {fault}"
    if output is not None:
        save(model, output)
    if as_json:
        facts = {"states": w.n_states, "letters": len(w.alphabet), "model": evidence.model_json(model)}
        words = {"over_the_reals": str(verdict), "rounding": bound}
        console.emit_json(facts | words | {"saved": str(output) if output else None})
        return
    rows = [*evidence.model_rows(model), ("over the reals", str(verdict)), ("rounding", bound)]
    console.facts("model", [*rows, ("saved", str(output) if output else "no (-o FILE saves it)")])


def learn_weighted(path: Path, folder: Path, as_json: bool, seconds: float | None = None) -> None:
    """Learn a weighted automaton from a file of words in PAutomaC's format, and write it to `weighted.json`."""
    from fsa2lrnn.weighted.distribution import SECONDS, learn_distribution
    from fsa2lrnn.weighted.pautomac import read_words

    letters, words = read_words(path)
    found = learn_distribution(words, range(letters), Deadline.of(seconds or SECONDS))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "weighted.json"
    write_atomically(file, found.automaton.to_json().encode())
    n = found.automaton.n_states
    tried = [{"method": method, "states": size, "bits": bits} for (method, size), bits in found.tried.items()]
    if as_json:
        console.emit_json({"states": n, "method": found.method, "bits": found.bits, "tried": tried, "file": str(file)})
        return
    others = ", ".join(f"{each['method']} with {each['states']}: {each['bits']:.2f}" for each in tried)
    rows = [
        ("words", f"{len(words):,}"),
        ("states", str(n)),
        ("method", found.method),
        ("bits per word", f"{found.bits:.2f} on a fifth of the words, which the methods did not see ({others})"),
        ("saved", str(file)),
    ]
    console.facts("weighted automaton", rows)
    console.then(f"fsa2lrnn explain {quote(str(file))}", f"fsa2lrnn compile {quote(str(file))} -o m.safetensors")
