"""Weighted automata on the command line: what `explain` says of one, and `learn --weighted`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fsa2lrnn import symbols
from fsa2lrnn.cli import console
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import BudgetExceeded, counted
from fsa2lrnn.files import exists, write_atomically
from fsa2lrnn.reading import read_text

if TYPE_CHECKING:
    from fsa2lrnn.weighted import WeightedAutomaton


def read_weighted(source: str) -> WeightedAutomaton | None:
    """Return the weighted automaton of a file of ours or of PAutomaC; None for other sources."""
    if source.endswith("_model.txt"):
        from fsa2lrnn.weighted.pautomac import read_model

        return read_model(Path(source))
    if source.endswith(".json") and exists(source) and '"fsa2lrnn-weighted"' in (text := read_text(Path(source)))[:200]:
        from fsa2lrnn.weighted import WeightedAutomaton

        return WeightedAutomaton.from_json(text, source)
    return None


def explain_weighted(w: WeightedAutomaton, folder: Path | None, as_json: bool, max_seconds: float) -> None:
    """Print the size and the minimal dimension of a weighted automaton, and write its certificate into a folder."""
    from fsa2lrnn.weighted.spaces import minimal

    value: dict[str, object] = {"states": w.n_states, "letters": len(w.alphabet), "minimal_dimension": None}
    try:
        with limited(Deadline.of(max_seconds)):
            least = minimal(w)
            answer = f"{least.second.n_states} ({least.check().partition(':')[0]}, re-checked independently)"
            value["minimal_dimension"] = least.second.n_states
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / "minimal.json", (json.dumps(least.to_json()) + "\n").encode())
    except BudgetExceeded as fault:
        answer = f"unknown: {fault}"
    if as_json:
        console.emit_json(value)
        return
    rows = [
        ("weighted automaton", counted(w.n_states, "state")),
        ("letters", symbols.listed(w.alphabet)),
        ("outputs", "one function" if w.outputs is None else symbols.listed(w.outputs)),
        ("minimal dimension", answer),
    ]
    console.facts("machine", rows)


def learn_weighted(path: Path, folder: Path, as_json: bool) -> None:
    """Learn a weighted automaton from a file of words in PAutomaC's format, and write it to `weighted.json`."""
    from fsa2lrnn.weighted.pautomac import read_words
    from fsa2lrnn.weighted.spectral import estimate

    letters, words = read_words(path)
    found = estimate(words, range(letters))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "weighted.json"
    write_atomically(file, (json.dumps(found.automaton.to_json()) + "\n").encode())
    n, values = found.automaton.n_states, [f"{x:.3g}" for x in found.singular_values[: found.automaton.n_states + 2]]
    if as_json:
        value = {"states": n, "noise": found.noise, "singular_values": found.singular_values, "file": str(file)}
        console.emit_json(value)
        return
    console.facts(
        "weighted automaton",
        [
            ("words", f"{len(words):,}"),
            ("states", f"{n}, the singular values above the expected sampling error {found.noise:.3g}"),
            ("singular values", " ".join(values)),
            ("saved", str(file)),
        ],
    )
    console.then(f"fsa2lrnn explain {file}")
