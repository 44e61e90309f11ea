"""The grid of a sweep, tasks × networks × settings × seeds: read it from a file, validate it, list its runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.layers import is_layer
from fsa2lrnn.nn.layers import layer_in_file
from fsa2lrnn.reading import parse_json, parse_toml, read, read_text, shown
from fsa2lrnn.training.evaluate import LENGTHS, LETTERS, WORDS
from fsa2lrnn.training.seeds import RunPlan
from fsa2lrnn.training.settings import Settings, preset

Changes = Mapping[str, Any]  # of settings, by name

MAX_BYTES = 1 << 20  # the largest file of a sweep
MAX_ENTRIES = 2_000_000  # the most transitions of the machines of all tasks together
_FAULTS_SHOWN = 100
MAX_RUNS = 10_000  # the product of four short lists can be billions

# All have width 64, as the paper's networks. The paper's column rule gives 0/0 for blocks of size 1, which are clipped.
NETWORKS: dict[str, Changes] = {
    "block-8": {"block": 8, "heads": 8},
    "block-8-clip": {"block": 8, "heads": 8, "normalisation": "clip"},
    "block-8-none": {"block": 8, "heads": 8, "normalisation": "none"},
    "block-4": {"block": 4, "heads": 16},
    "block-2": {"block": 2, "heads": 32},
    "diagonal": {"block": 1, "heads": 64, "normalisation": "clip"},
    "householder-1": {"block": 8, "heads": 8, "layer": "householder", "factors": 1, "normalisation": "none"},
    "householder-2": {"block": 8, "heads": 8, "layer": "householder", "factors": 2, "normalisation": "none"},
}


@dataclass(frozen=True)
class _SweepFile:
    """The content of a sweep file: networks are names in `NETWORKS`, or tables of changes by name."""

    tasks: tuple[str, ...]
    networks: tuple[str, ...] | dict[str, dict[str, Any]] = ("block-8",)
    settings: dict[str, dict[str, Any]] = field(default_factory=lambda: {"as-preset": {}})
    seeds: tuple[int, ...] = (0,)
    preset: str = "paper"
    lengths: tuple[int, ...] = LENGTHS
    words: int = WORDS
    letters: int = LETTERS


@dataclass(frozen=True)
class Trial:
    """One run of a sweep: its task, the names of its network and setting, its settings, and its evaluation plan."""

    task: str
    network: str
    setting: str
    settings: Settings
    plan: RunPlan

    @cached_property
    def folder(self) -> str:
        """The name of the folder of the run, which depends on its names and settings only, not on other runs."""
        digest = hashlib.sha256(self.settings.to_json().encode()).hexdigest()[:8]
        names = (self.task, self.network, self.setting, str(self.settings.seed))
        return "-".join([*(re.sub(r"[^\w.]+", "_", name).strip("_")[:40] for name in names), digest])

    @property
    def judged(self) -> dict[str, Any]:
        """The evaluation plan as JSON: the lengths, the number of words per length, and the limit on letters."""
        return {"lengths": list(self.plan.lengths), "words": self.plan.n_words, "letters": self.plan.letters}


@dataclass(frozen=True)
class Sweep:
    """A sweep: one run for each combination of a task, a network, a setting and a seed.

    Args:
        tasks: sources of machines, such as "task:parity".
        networks: by name, changes of the preset that define a network: `block`, `heads`, `normalisation` and more.
        settings: by name, other changes of the preset.
        seeds: the seeds of the runs of every combination.
        preset: the settings to which the changes apply (`fsa2lrnn.training.settings.preset`).
        plan: the evaluation of the last checkpoints.

    Raises:
        UnsupportedFormat: with all invalid tasks, networks, settings and seeds (or the first hundred).

    >>> sweep = Sweep(("task:parity",), networks={"diagonal": NETWORKS["diagonal"]}, seeds=(0, 1), preset="quick")
    >>> [(trial.network, trial.settings.seed, trial.settings.block) for trial in sweep.trials]
    [('diagonal', 0, 1), ('diagonal', 1, 1)]
    """

    tasks: tuple[str, ...]
    networks: Mapping[str, Changes] = field(default_factory=lambda: {"block-8": NETWORKS["block-8"]})
    settings: Mapping[str, Changes] = field(default_factory=lambda: {"as-preset": {}})
    seeds: tuple[int, ...] = (0,)
    preset: str = "paper"
    plan: RunPlan = field(default_factory=RunPlan)

    def __post_init__(self) -> None:
        axes = {name: getattr(self, name) for name in ("tasks", "networks", "settings", "seeds")}
        faults = [f"{name} is empty: give at least one" for name, values in axes.items() if not values]
        faults += [
            f"{name} = {shown(list(x))}: each may occur once" for name, x in axes.items() if len(set(x)) < len(x)
        ]
        for (network, of_network), (name, changes) in product(self.networks.items(), self.settings.items()):
            if both := sorted(of_network.keys() & changes.keys()):
                faults.append(
                    f"setting {name!r} changes {', '.join(both)}, which network {network!r} decides: name another one"
                )
            if taken := sorted({"task", "seed"} & (of_network.keys() | changes.keys())):
                faults.append(f"{network!r} with {name!r} changes {', '.join(taken)}: those are axes of their own")
        if (runs := prod(map(len, axes.values()))) > MAX_RUNS:
            faults.append(f"{runs:,} runs: at most {MAX_RUNS:,} are a sweep, split it")
        if not faults:
            faults = self._faults_of_trials()
        if faults:
            raise UnsupportedFormat("the sweep does not fit: " + "; ".join(dict.fromkeys(faults)))

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All runs, ordered by task, network, setting and seed."""
        return tuple(self._trial(*axes) for axes in product(self.tasks, self.networks, self.settings, self.seeds))

    def _trial(self, task: str, network: str, setting: str, seed: int) -> Trial:
        changes = {**self.networks[network], **self.settings[setting], "seed": seed}
        return Trial(task, network, setting, preset(self.preset, task, **changes), self.plan)

    def _faults_of_trials(self) -> list[str]:
        """Return at most `_FAULTS_SHOWN` messages: tasks that are not machines, and networks that fit no task."""
        faults, symbols, entries = [], {}, 0
        for task in self.tasks:
            if entries > MAX_ENTRIES:
                faults.append(f"the machines of the tasks have more than {MAX_ENTRIES:,} transitions: split the sweep")
                break
            try:
                machine = MooreMachine.from_source(task)
            except (Fsa2LrnnError, OSError) as error:
                faults.append(f"task {shown(task)}: {error}")
            else:
                entries += machine.delta.size
                symbols[task] = machine.alphabet, tuple(dict.fromkeys(machine.outputs))
        for task, network, setting, seed in product(symbols, self.networks, self.settings, self.seeds):
            try:
                self._trial(task, network, setting, seed).settings.network(*symbols[task])
            except UnsupportedFormat as error:
                faults.append(f"network {network!r} with setting {setting!r}: {error}")
                if len(faults) >= _FAULTS_SHOWN:
                    return faults
        return faults

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sweep:
        """Return the sweep that a table of entries describes, as a file holds it (`_SweepFile`).

        Raises `UnsupportedFormat` with every entry that is unknown or of another type, or as `Sweep` does.
        """
        file = read(_SweepFile, dict(values), "the sweep", {Any: lambda change, _: change})
        networks = file.networks
        if isinstance(networks, tuple):
            if unknown := [name for name in networks if name not in NETWORKS]:
                raise UnsupportedFormat(
                    f"network {unknown[0]!r} is none of {', '.join(NETWORKS)}: choose one, or give a table of changes"
                )
            networks = {name: NETWORKS[name] for name in networks}
        plan = RunPlan(lengths=file.lengths, n_words=file.words, letters=file.letters)
        return cls(file.tasks, networks, file.settings, file.seeds, file.preset, plan)


def read_sweep(path: Path) -> dict[str, Any]:
    """Return the table in a .json or .toml file of a sweep, whose layers must be registered already.

    Raises `UnsupportedFormat` for another format, a content other than a table, an unknown layer, or a file of more
    than `MAX_BYTES`; `OSError` if the file cannot be read.
    """
    readers: dict[str, Callable[[str, str], Any]] = {".json": parse_json, ".toml": parse_toml}
    if path.suffix not in readers:
        raise UnsupportedFormat(f"{path} ends in {path.suffix or 'nothing'}: a sweep is a .json or a .toml file")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise UnsupportedFormat(f"{path} has {size:,} bytes, and at most {MAX_BYTES:,} are a sweep: split it")
    try:
        values = readers[path.suffix](read_text(path), "the text")
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{path} cannot be read ({error}): give a {path.suffix[1:].upper()} table") from error
    if not isinstance(values, dict):
        raise UnsupportedFormat(f"{path} holds a {type(values).__name__}: give a table with tasks")
    for name in ("networks", "settings"):
        tables = values.get(name)
        for changes in tables.values() if isinstance(tables, dict) else ():
            # A layer of this library has every spelling; another one is not imported because a file names it.
            if isinstance(changes, dict) and "layer" in changes and not is_layer(changes["layer"]):
                layer_in_file(changes["layer"])
    return values
