"""The content of a report as plain data, to JSON and back, independent of the classes of verifiers and networks."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.verdicts import Counterexample

KINDS = ("learned", "repaired", "constructed")
# The description of a repaired model, by the end of its name.
REPAIRED = {
    "repaired": "The least change of the tables (Frobenius) that makes them carry an exact image of the machine: for "
    "ever in real numbers. Floats drift from it, so that it is proved up to a length.",
    "p≤1": "The same with no column longer than 1 in the norm of the column rule, as the model that was trained has "
    "them.",
    "dyadic": "Tables of so few digits that no step rounds: a far larger change, from half to twice the tables' size "
    "in the models tried, and proved on words of every length.",
}
NOWHERE = "·"  # the output of an unreached state of a head in the history
NEAR, FAR = 0, 1  # points of the first letters of a word, and of letters far beyond those trained on


@dataclass(frozen=True)
class HeadAutomaton:
    """A head that is an automaton: its number from 0, and the machine of its reachable states."""

    head: int
    machine: DrawnMachine


@dataclass(frozen=True)
class HistoryHead:
    """A head at one step of training.

    Args:
        head: its number from 0.
        states: the number of its reachable states; `minimal`, of these after merging states with the same outputs on
            all continuations, where a state's output is the majority of the outputs in it.
        faults: the share of outputs, on the evaluated words, that differ from the majority in their state.
        machine: the merged one; None where its states are too many to draw.
    """

    head: int
    states: int
    minimal: int
    faults: float
    machine: DrawnMachine | None


@dataclass(frozen=True)
class HistorySnapshot:
    """The heads at one step of training, with the `event` of that step; words have `length` letters."""

    step: int
    length: int
    event: str
    heads: list[HistoryHead]


@dataclass(frozen=True)
class LayerHead:
    """A head of a network of several layers, along the words that count.

    Args:
        layer, head: its numbers from 0; layers are counted from below.
        block, states: the size of its block, and the number of its reached states.
        reads: the heads below, by place in the list of all, on whose states its transitions depend in addition to the
            letter; `reads_last`, whether they depend on the previous letter too.
        machine: its states, with −1 for a letter that does not occur; a letter that may lead to several states has a
            row for each. None if it stays in one state, or has too many to draw.
    """

    layer: int
    head: int
    block: int
    states: int
    reads: list[int]
    reads_last: bool
    machine: DrawnMachine | None


@dataclass(frozen=True)
class Learning:
    """The record of how heads that are automata learned a machine.

    Args:
        known: a sentence on the result.
        kept: the heads from which the machine was read, by number from 0, out of `of`.
        steps, starts: the numbers of training steps and starts; seconds: the time.
        outputs: of the machines in the film, in the order of their colours.
        film: the history of the heads in the last start.
        is_whole: whether the verdict is on the whole network, with all heads and its read-out.
        layers: the heads of a network of several layers, from below.
    """

    known: str
    kept: list[int]
    of: int
    steps: int
    starts: int
    seconds: float
    outputs: list[str] = field(default_factory=list)
    film: list[HistorySnapshot] = field(default_factory=list)
    is_whole: bool = False
    layers: list[LayerHead] = field(default_factory=list)


@dataclass(frozen=True)
class LayerInternals:
    """The internals of a layer over letters.

    Args:
        eigenvalues: [letter][head], pairs [real, imaginary].
        blocks: [letter][head], rows of numbers.
        points: [x, y, state, NEAR or FAR]: states of the network in the plane that separates states of the machine.
        carrying: heads that carry a function of the machine's state.
        automata: the heads that are automata over the letters with few states.
    """

    eigenvalues: list[list[list[list[float]]]]
    blocks: list[list[list[list[float]]]]
    points: list[list[float]]
    carrying: list[int]
    automata: list[HeadAutomaton] = field(default_factory=list)


@dataclass(frozen=True)
class Model:
    """One model of a report with the facts on it.

    Args:
        name: a unique name.
        kind: one of `KINDS`.
        of: of a repaired model, the name of the learned one.
        parameters: the number of its parameters.
        proved: the certified length; None without a certificate.
        proof: the method of a proof on all words, as text: "closed: 240 joint states".
        failure: the shortest counterexample found.
        scope: the outputs that do not count, as text; None if only that of the empty word does not.
        searched: the searches for counterexamples, as text.
        wrong: the frequency of errors of a model without a counterexample, as text.
        accuracy: one row per length: "length", "words", and under "whole_word" and "last_position" an "accuracy" with
            its "interval", as `fsa2lrnn.extra.report.compare` writes them.
        evidence: the evidence on a model that is compared with no machine, as text.
        inside: of a model of one layer over letters.
        learning: of a model that `learn` made.
        alignment: as `fsa2lrnn.extra.report.align` writes it.
        notes: further facts, name and value.
        provenance: the origin of the model: command, seed, versions, hash.
    """

    name: str
    kind: str
    of: str | None = None
    parameters: int | None = None
    proved: int | None = None
    proof: str | None = None
    failure: Counterexample | None = None
    scope: str | None = None
    searched: str | None = None
    wrong: str | None = None
    accuracy: list[dict[str, Any]] = field(default_factory=list)
    evidence: str | None = None
    inside: LayerInternals | None = None
    learning: Learning | None = None
    alignment: dict[str, Any] | None = None
    notes: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)

    @property
    def within(self) -> LayerInternals:
        """The internals of the model; raises `UnsupportedFormat` if they are missing."""
        if self.inside is None:
            raise UnsupportedFormat(f"{self.name!r} is not known from within: give its Inside, or draw another model")
        return self.inside


@dataclass(frozen=True)
class ReportFacts:
    """The whole content of a report.

    Args:
        title: "Sum(5): learned against constructed".
        source: of the machine, "task:sum_mod(5)".
        date: as the caller writes it.
        machine: minimal.
        models: learned, repaired, constructed, in the order of display.
        provenance: of the report: command, versions.

    Raises:
        UnsupportedFormat: naming all contradictions.
    """

    title: str
    source: str
    date: str
    machine: DrawnMachine
    models: list[Model]
    provenance: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [model.name for model in self.models]
        faults = [f"{name!r} is the name of several models" for name in sorted(set(names)) if names.count(name) > 1]
        for model in self.models:
            if model.kind not in KINDS:
                faults.append(f"{model.name!r} is of kind {model.kind!r}, none of {', '.join(KINDS)}")
            if model.of is not None and model.of not in names:
                faults.append(f"{model.name!r} is a repair of {model.of!r}, which is not there")
            if model.proof is not None and (model.failure is not None or model.wrong is not None):
                faults.append(f"{model.name!r} is proved correct on all words and has a counterexample")
            if model.failure is not None and model.proved is not None and model.failure.position <= model.proved:
                faults.append(
                    f"{model.name!r} is proved right up to {model.proved} letters and fails at letter "
                    f"{model.failure.position}"
                )
        if faults:
            raise UnsupportedFormat("; ".join(faults))

    def to_json(self) -> dict[str, Any]:
        """Return the facts as a JSON object."""
        return {f.name: _written(getattr(self, f.name)) for f in fields(self)}


def repairs_of(facts: ReportFacts, learned: Model) -> list[Model]:
    return [model for model in facts.models if model.of == learned.name]


def verdict(model: Model) -> str:
    """Return one sentence on the words for which a model is correct."""
    text = _how_long(model)
    scope = f"; {model.scope}" if model.scope else ""
    return f"{text[0].upper()}{text[1:]}{scope}."


def _how_long(model: Model) -> str:
    if model.proof is not None:
        return f"right on all words, of every length (proved: {model.proof})"
    parts = []
    if model.proved:
        parts.append(f"right on every word of up to {counted(model.proved, 'letter')} (proved)")
    if model.failure is not None:
        parts.append(f"fails on a word of {counted(model.failure.position, 'letter')}")
    elif model.wrong:
        parts.append(f"wrong {model.wrong}")
    elif model.searched:
        parts.append(f"no counterexample found ({model.searched})")
    if model.evidence:
        parts.append(model.evidence)
    return "; ".join(parts) or "no verdict"


def _written(value: Any) -> Any:
    if isinstance(value, Counterexample):
        return value.to_json()
    if is_dataclass(value):
        return {f.name: _written(getattr(value, f.name)) for f in fields(value)}
    return [_written(part) for part in value] if isinstance(value, list) else value
