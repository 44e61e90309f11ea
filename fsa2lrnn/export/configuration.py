"""Read the configuration of a released model, and decide which machines its recurrent layers can hold.

`read_card` reads a `config.json` of a folder in `model_folders`, without weights and without a download. Recurrent
layers hold one of four classes of machines (`CLASSES`), in stacks of any size with finitely many states. An answer on
a machine adds whether a known construction fits the sizes of this configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, UnsupportedFormat
from fsa2lrnn.export.confused_words import ConfusedWords, confused
from fsa2lrnn.export.constructions import MAX_WINDOW, construct
from fsa2lrnn.export.model_folders import (
    ALL,
    COUNTER_FREE,
    ENDS,
    FOLDERS,
    KINDS,
    LAST,
    RANGE_FIELDS,
    ModelFolder,
    Ranges,
)
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.export.refuse import Refusal, refuse
from fsa2lrnn.reading import parse_json, shown

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class MachineClass:
    """A class of machines that stacks of a recurrence hold.

    Args:
        title: the class in words.
        can, cannot: sources of smallest machines inside and outside it, each with a description.
        theorem: what proves both directions (docs/theory.md).
        kind: the kind of `confused` that decides it; "" for another decision.
    """

    title: str
    can: tuple[tuple[str, str], ...]
    cannot: tuple[tuple[str, str], ...]
    theorem: str
    kind: str = ""


_EVEN = ("regex:(aa)*", "the length modulo 2")
_OCCURRED = ("regex:b*a(a|b)*", "whether a letter occurred")
_LAST = ("regex:(a|b)*a", "the last letter")
_BEFORE_LAST = ("regex:(a|b)*a(a|b)", "the letter before the last")
CLASSES = {
    ALL: MachineClass("every finite machine", (_EVEN, _OCCURRED), (), "section 11"),
    COUNTER_FREE: MachineClass("machines without groups", (_OCCURRED, _LAST), (_EVEN,), "T15, section 11"),
    ENDS: MachineClass(
        "the first and the last letters of long words", (_LAST, _BEFORE_LAST), (_EVEN, _OCCURRED), "T62", "ends-stack"
    ),
    LAST: MachineClass("the last letter", (_LAST,), (_EVEN, _OCCURRED, _BEFORE_LAST), "T62", "last-letter-stack"),
}


@dataclass(frozen=True, eq=False)
class Card(Brief):
    """What a configuration decides about its model.

    Args:
        model: the model's folder.
        types: the kind of each layer in order: "recurrent", "attention", "recurrent and attention" or "units".
        ranges: the ranges of each recurrent layer, in order.
        room: the sizes that bound constructions: the stages of a plan that the layers take; the heads, keys, values and
            taps of a layer (a state without keys has key 1; taps are letters that a convolution reads); the width of
            the narrowest MLP ("units") and of the stream ("hidden").
        notes: what the ranges depend on, as sentences.
        ignored: fields that name ranges and that the code of the folder does not read.
    """

    model: ModelFolder
    types: tuple[str, ...]
    ranges: tuple[Ranges, ...]
    room: Mapping[str, int]
    notes: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def holds(self) -> MachineClass:
        """The class of the machines that stacks of these recurrent layers hold."""
        return CLASSES[self.ranges[0].holds]

    @property
    def one_layer(self) -> str:
        """The kind of `confused` that decides a single layer, whose decays depend on the letter alone; "" for none."""
        taps = self.room["taps"]
        return f"diagonal-layer-{taps}" if self.model.layer == "mamba-2" and len(self.ranges) == 1 and taps < 5 else ""

    @property
    def scope(self) -> str:
        """What a "no" and the class are about."""
        n = sum("attention" in kind for kind in self.types)
        is_of_calls = self.model.layer == "mamba-2" and self.ranges[0].holds == ENDS
        return (
            "recurrent layers with finitely many states, in exact arithmetic with ranges as float32 computes them, any "
            f"functions between them{', calls of several tokens' * is_of_calls}"
            f"{f'; the layers that attend, {n}, are left out' if n else ''}"
        )

    def lines(self) -> list[tuple[str, str]]:
        """Return the layers in order, by one letter each, and the ranges of the recurrent ones, by number from 1."""
        known = {kind: kind[0].upper() for kind in self.types} | {"recurrent and attention": "B"}
        legend = ", ".join(f"{letter} {kind}" for kind, letter in known.items() if kind in self.types)
        numbers = [i + 1 for i, kind in enumerate(self.types) if kind.startswith("recurrent")]
        found = [("order", f"{''.join(map(known.__getitem__, self.types))} ({legend})")]
        for of in dict.fromkeys(self.ranges):
            own = [number for number, other in zip(numbers, self.ranges, strict=True) if other == of]
            ends = (f"[{low:.9g}, {high:.9g}]" for low, high in (of.decay, of.eigenvalue))
            every = "recurrent layers" if len(own) == len(numbers) else f"layer{'s' * (len(own) > 1)} {own}"
            found.append((every.translate({91: None, 93: None}), "decay in {}, eigenvalues in {}".format(*ends)))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the card as a JSON object."""
        ranges = iter(self.ranges)
        layers = [{"kind": kind} | (vars(next(ranges)) if kind.startswith("recurrent") else {}) for kind in self.types]
        return {
            "model": self.model.folder, "layer": self.model.layer, "export": self.model.export or None,
            "layers": layers, "room": dict(self.room), "notes": list(self.notes), "ignored": list(self.ignored),
            "holds": vars(self.holds), "scope": self.scope,
        }  # fmt: skip


def read_card(path: Path) -> Card:
    """Return the card of a `config.json`, or of the one in a folder.

    Raises `UnsupportedFormat` for a file beyond `MAX_BYTES`, an unknown `model_type`, or a field that does not fit.
    """
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise UnsupportedFormat(f"{path}: no such configuration: give a config.json or a folder that has one")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UnsupportedFormat(f"{path} has more than {MAX_BYTES:,} bytes, and configurations are smaller")
    try:
        return of_config(parse_json(data, "it"))
    except UnsupportedFormat as fault:
        raise UnsupportedFormat(f"{path}: {fault}") from None


def of_config(config: Any) -> Card:
    """Return the card of a configuration as `config.json` has it; raise `UnsupportedFormat` as `read_card` does.

    >>> of_config({"model_type": "olmo_hybrid", "linear_allow_neg_eigval": False}).ranges[0].eigenvalue
    (0.0, 1.0)
    """
    if not isinstance(config, dict):
        raise UnsupportedFormat(f"a configuration is an object, not {shown(config)}")
    inner = config.get("text_config")
    if isinstance(inner, dict):  # the text part of a model of texts and images
        config = {"model_type": config.get("model_type"), **inner}
    name = config.get("model_type")
    model = FOLDERS.get(name.removesuffix("_text")) if isinstance(name, str) else None
    if model is None:
        raise UnsupportedFormat(
            f"model_type = {shown(name)}: known are those with a linear recurrence, {', '.join(FOLDERS)}"
        )
    fields = model.fields(config)
    given = model.layer_types(fields)
    kinds = tuple(KINDS[kind] for kind in given)
    recurrent = [i for i, kind in enumerate(kinds) if kind.startswith("recurrent")]
    if not recurrent:
        raise UnsupportedFormat("none of the layers has a recurrence: correct layer_types")
    ranges, notes = zip(*(model.gate(fields, i, len(kinds)) for i in recurrent), strict=True)
    sizes = model.sizes_of(fields)
    stages = len(recurrent) // model.mixers_a_stage
    if "units" in kinds:  # MLPs are layers of their own, and a stage is one after a mixer
        order = [kind for kind in kinds if kind != "attention"]
        stages = sum((kind, after) == ("recurrent", "units") for kind, after in pairwise(order))
    room = {"stages": stages, **{name: sizes[name] for name in ("heads", "key", "value", "taps", "units", "hidden")}}
    inner = config.get("linear_attn_config")
    named = RANGE_FIELDS & {*config, *(inner if isinstance(inner, dict) else ())}
    ignored = tuple(sorted(named - {name.rpartition(".")[2] for name in fields.used}))
    card = Card(model, kinds, ranges, room, tuple(dict.fromkeys(filter(None, notes))), ignored)
    single = "one recurrent layer, whose decays read the current letter, holds fewer machines than a stack (T69)"
    return replace(card, notes=(*card.notes, single)) if card.one_layer else card


@dataclass(frozen=True, eq=False)
class ModelAnswer(Brief):
    """The answer on a machine: "yes" with a plan if one is needed, "no" with a certificate, else "unknown".

    Args:
        kind: the answer.
        why: the construction or the reason.
        scope: what the answer is about.
        plan: the construction by stages.
        certificate: the words that prove a "no".
    """

    kind: str
    why: str
    scope: str
    plan: StagePlan | None = None
    certificate: Refusal | ConfusedWords | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a JSON object, with its certificate if it has one."""
        value = {"answer": self.kind, "evidence": self.why, "scope": self.scope}
        return value if self.certificate is None else {**value, "certificate": self.certificate.to_json()}


def answer(machine: MooreMachine, card: Card) -> ModelAnswer:
    """Decide whether the recurrent layers of a configuration hold a machine.

    >>> from fsa2lrnn.automata import zoo
    >>> answer(zoo.parity(), of_config({"model_type": "olmo_hybrid"})).why
    'one layer, one head: reflections, 2 matrices; 1 of 24 stages, 1 of 30 heads'
    """
    minimal, holds = minimise(machine), card.holds
    if minimal.n_states == 1:
        return ModelAnswer("yes", "a read-out alone: the output is constant", card.scope)
    certificate, theorem = None, holds.theorem
    if holds.kind:
        try:
            certificate = confused(minimal, holds.kind)
        except BudgetExceeded as fault:
            return ModelAnswer("unknown", str(fault), card.scope)
    elif holds is CLASSES[COUNTER_FREE]:
        # The argument "positive" of `recheck` holds for each of these layers, under the name of one that it knows.
        certificate = refuse(minimal, "kimi-linear")
    if certificate is None and (kind := card.one_layer):
        with suppress(BudgetExceeded):  # a construction may be found all the same
            certificate, theorem = confused(minimal, kind), "T69"
    if certificate is not None:
        return ModelAnswer("no", f"{certificate.explain()} ({theorem})", card.scope, certificate=certificate)
    n, window = last_letters(minimal), 1 + len(card.ranges) * (card.room["taps"] - 1)
    is_in_window = n is not None and n <= window
    needed = "first letters" if n is None else f"the last {n} letters"
    why = f"{needed} count, and these layers pass on the last {window:,} without a recurrence"
    if holds.kind:
        return ModelAnswer("yes" if is_in_window else "unknown", why, card.scope)
    lacks, letters = "", len(minimal.alphabet)
    for lag in dict.fromkeys((min(MAX_WINDOW, card.room["taps"] - 1), 0)):  # 0: more layers, but often fewer units
        try:
            plan = construct(minimal, holds is CLASSES[ALL], lag)
        except (BudgetExceeded, NotExpressible) as fault:
            lacks = lacks or str(fault)
            break
        if not (lacking := _lacks(plan, card)):
            exported = (
                f"; `export --layer {card.model.export}` writes and proves this plan in a model of the least sizes"
            )
            used = f"{plan.n_layers} of {card.room['stages']} stages, {plan.n_heads} of {card.room['heads']:,} heads"
            scope = card.scope + (exported if lag and card.model.export else "; no weights are exported")
            return ModelAnswer("yes", f"{plan.how}; {used}", scope, plan)
        lacks = lacks or f"the known construction ({plan.how}) does not fit: {lacking}"
    # A channel per letter and place of the window, and a unit per window.
    channels = card.room["heads"] * card.room["value"]
    if n is not None and is_in_window and n * letters <= channels and letters**n <= card.room["units"]:
        return ModelAnswer("yes", why, f"{card.scope}; no weights are exported")
    return ModelAnswer("unknown", lacks, card.scope)


def last_letters(minimal: MooreMachine) -> int | None:
    """Return the least n for which the last n letters of words of n letters or more determine the state, or None.

    >>> from fsa2lrnn.automata import zoo
    >>> last_letters(zoo.shift_register(2)), last_letters(zoo.flip_flop())
    (2, None)
    """
    apart, n = ~np.eye(minimal.n_states, dtype=bool), 0
    while apart.any():  # the pairs of states after two words with the same last n letters
        p, q = np.nonzero(apart)
        later = np.zeros_like(apart)
        later[minimal.delta[:, p], minimal.delta[:, q]] = True
        np.fill_diagonal(later, val=False)
        if later.sum() == apart.sum():  # all of it, since pairs only become fewer
            return None
        apart, n = later, n + 1
    return n


def _lacks(plan: StagePlan, card: Card) -> str:
    """Return in which sizes a plan exceeds the room of a configuration, or what its heads need; "" if it fits."""
    orbits = [orbit for stage in plan.stages for orbit in stage.orbits]
    n_letters, n_symbols = len(plan.machine.alphabet), [stage.n_symbols for stage in plan.stages]
    value = plan.d_v
    if card.model.layer in ("mamba", "rg-lru"):  # gates read symbols, which channels beside the values hold
        value = max(sum(o.head.values.shape[1] for o in stage.orbits) for stage in plan.stages)
        value += max(n_letters, *n_symbols) + 1
    lags = [int(orbit.head.lags.max()) for orbit in orbits if orbit.head.lags is not None]
    needed = {
        "stages": plan.n_layers, "heads": plan.n_heads, "key": plan.d_k, "value": value,
        "taps": 1 + max(lags, default=0), "units": max(len(stage.units) for stage in plan.stages),
        "hidden": n_letters + sum(n_symbols) + sum(orbit.marks.shape[1] for orbit in orbits),
    }  # fmt: skip
    lacking = [f"{name} {n:,} of {card.room[name]:,}" for name, n in needed.items() if n > card.room[name]]
    if card.ranges[0].decay[0] > 0 and any((o.head.alphas == 0).any() and o.head.keys.shape[1] > 1 for o in orbits):
        lacking.append("a head forgets several keys at once, and no decay is 0")
    if not card.model.layer.startswith(("gated-deltanet", "kda")):
        try:
            for orbit in orbits:
                orbit.head.keeps()
        except NotExpressible as fault:
            lacking.append(str(fault))
    return ", ".join(lacking)
