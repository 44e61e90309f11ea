"""Define the content of a report as plain data, independent of the classes of verifiers and networks."""

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
NEAR, FAR = 0, 1  # kinds of points: after the first letters of a word, and after letters far beyond those trained on


@dataclass(frozen=True)
class HeadAutomaton:
    """A head that is an automaton: the number of the head, and the machine of its reachable states."""

    head: int
    machine: DrawnMachine


@dataclass(frozen=True)
class HistoryHead:
    """A head at one step of training.

    Args:
        head: the number of the head, from 0.
        states: the number of its reachable states.
        minimal: the number of states of its minimal machine, in which the output of a state is the majority there.
        faults: the share of outputs, on the evaluated words, that differ from the majority in their state.
        machine: the minimal machine; None if it has too many states to draw.
    """

    head: int
    states: int
    minimal: int
    faults: float
    machine: DrawnMachine | None


@dataclass(frozen=True)
class HistorySnapshot:
    """The heads at one step of training on words of `length` letters, with the `event` of that step."""

    step: int
    length: int
    event: str
    heads: list[HistoryHead]


@dataclass(frozen=True)
class LayerHead:
    """A head of a network of several layers, along the words that count.

    Args:
        layer, head: the numbers of the layer, from the lowest, and of the head, from 0.
        block: the size of its block.
        states: the number of its reached states.
        reads: the heads of lower layers, by number among all heads, on whose states its transitions depend.
        reads_last: whether its transitions depend on the previous letter.
        machine: the machine of its states, in which a letter that may lead to several states has a row for each. None
            if it has one state, or too many to draw.
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
        known: a sentence that states the result.
        kept: the numbers of the heads from which the machine was read, from 0.
        of: the number of all heads.
        steps, starts: the numbers of training steps and of starts.
        seconds: the training time.
        outputs: the outputs of the machines in the history, in the order of their colours.
        film: the history of the heads in the last start.
        is_whole: whether the verdict is on the whole network, with all heads and its read-out.
        layers: the heads of a network of several layers, from the lowest layer.
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
    """The internals of a model of one layer over letters.

    Args:
        eigenvalues: the eigenvalues [real, imaginary] of each block, by [letter][head].
        blocks: the transition blocks, as rows of numbers, by [letter][head].
        points: states of the network in the plane that separates states of the machine: [x, y, state, NEAR or FAR].
        carrying: the numbers of the heads that carry a function of the machine's state.
        automata: the heads that are automata over the letters with few states.
    """

    eigenvalues: list[list[list[list[float]]]]
    blocks: list[list[list[list[float]]]]
    points: list[list[float]]
    carrying: list[int]
    automata: list[HeadAutomaton] = field(default_factory=list)


@dataclass(frozen=True)
class Model:
    """One model of a report with its facts.

    Args:
        name: a unique name.
        kind: one of `KINDS`.
        of: for a repaired model, the name of the learned model.
        parameters: the number of its parameters.
        proved: the certified length; None without a certificate.
        proof: the method of a proof on all words, as text.
        failure: the shortest counterexample found.
        scope: the outputs that do not count, as text; None if only that of the empty word does not.
        searched: the searches for counterexamples, as text.
        wrong: the frequency of errors of a model without a counterexample, as text.
        accuracy: one row per length: "length", "words", and under "whole_word" and "last_position" an "accuracy" with
            its "interval", as `fsa2lrnn.extra.report.compare` writes them.
        evidence: the evidence on a model that is not compared with a machine, as text.
        inside: the internals of a model of one layer over letters.
        learning: the training record of a model that `learn` made.
        alignment: the JSON object of an `Alignment`.
        notes: further facts by name.
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
    def wrong_within(self) -> int | None:
        """The least length of evaluated words of which some have a wrong output, None if all are right.

        It is None for a model with a `scope`, too, since the evaluation also counts other outputs.
        """
        rows = [] if self.scope else self.accuracy
        return min((row["length"] for row in rows if row["whole_word"]["accuracy"] < 1), default=None)

    @property
    def within(self) -> LayerInternals:
        """The internals of the model. Raises `UnsupportedFormat` for a model without them."""
        if self.inside is None:
            raise UnsupportedFormat(f"{self.name!r} is not known from within: give its Inside, or draw another model")
        return self.inside


@dataclass(frozen=True)
class ReportFacts:
    """The whole content of a report.

    Args:
        title: the title, such as "Sum(5): learned against constructed".
        source: the source of the machine, such as "task:sum_mod(5)".
        date: the date, as text.
        machine: the minimal machine.
        models: the models in the order of display.
        provenance: the origin of the report: command, versions.

    Raises:
        UnsupportedFormat: with all contradictions between the facts.
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
            if model.wrong_within is not None and (model.proved or 0) >= model.wrong_within:
                faults.append(
                    f"{model.name!r} is proved right up to {model.proved} letters and is wrong on random words of "
                    f"{model.wrong_within}: do not trust the certificate, unless they ran by a scan that it leaves out"
                )
        if faults:
            raise UnsupportedFormat("; ".join(faults))

    def to_json(self) -> dict[str, Any]:
        """Return the facts as a JSON object."""
        return {f.name: _written(getattr(self, f.name)) for f in fields(self)}


def repairs_of(facts: ReportFacts, learned: Model) -> list[Model]:
    return [model for model in facts.models if model.of == learned.name]


def verdict(model: Model) -> str:
    """Return a sentence that states on which words a model is correct."""
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
        length = model.wrong_within
        wrong = f"wrong on some random words of {counted(length, 'letter')}; no shorter" if length else "no"
        parts.append(f"{wrong} counterexample found ({model.searched})")
    if model.evidence:
        parts.append(model.evidence)
    return "; ".join(parts) or "no verdict"


def _written(value: Any) -> Any:
    if isinstance(value, Counterexample):
        return value.to_json()
    if is_dataclass(value):
        return {f.name: _written(getattr(value, f.name)) for f in fields(value)}
    return [_written(part) for part in value] if isinstance(value, list) else value
