"""The settings of a training run, as frozen data that is saved with its results."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeGuard

import torch

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.config import MAX_LAYERS, LRNNConfig
from fsa2lrnn.lrnn.layers import LAYERS, Layer, Shape, layer_in_file, layer_named
from fsa2lrnn.lrnn.layers.base import MAX_WIDTH, Hint
from fsa2lrnn.reading import MAX_WHOLE, parse_json, shown
from fsa2lrnn.training.data import SAMPLERS

OPTIMISERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SCHEDULES = ("constant", "cosine")
INITS = ("random", "compiled")
DTYPES = ("float32", "float64")
PRECISIONS = ("full", "mixed")
_WHOLE = (
    "embedding_dim", "block", "heads", "layers", "batch", "length", "steps", "test_length", "test_words",
    "evaluate_every", "threads",
)  # fmt: skip
_MOST = {"embedding_dim": MAX_WIDTH, "block": MAX_WIDTH, "heads": MAX_WIDTH, "layers": MAX_LAYERS, "threads": 1 << 10}
_MOST_WHOLE = 10**9
_TEXTS = (
    "task", "sampler", "layer", "normalisation", "connection", "init", "optimiser", "schedule", "dtype", "device",
    "precision",
)  # fmt: skip
_FLAGS = ("token_shift", "compile", "cuda_graph")


@dataclass(frozen=True)
class Settings:
    """The settings of one training run: task, network, optimiser and evaluations.

    Args:
        task: the source of a machine, for instance "task:sum_mod(5)".
        sampler: how words are drawn (`fsa2lrnn.training.data.make_sampler`).
        embedding_dim, block, heads, layers: the sizes; each layer has `heads` blocks of size `block`.
        layer: the kind of the layers (`fsa2lrnn.lrnn.layers.LAYERS`), "block" for those of the paper, or "module:Class"
            for a user-defined one.
        options: the options of that kind; "householder" takes `factors`, the number of unit keys: DeltaNet with
            eigenvalues in (−1, 1] has 1, DeltaProduct more.
        p, normalisation, connection, layer_norm, token_shift: as in `LRNNConfig`.
        init: "random", or "compiled": exact weights from which training starts (`fsa2lrnn.training.initial`).
        noise: the standard deviation of the Gaussian noise on compiled weights.
        optimiser: "adam" (weight decay added to the gradient) or "adamw" (decoupled).
        learning_rate, weight_decay: the values for all parameters without a hint of their layer
            (`Layer.parameter_hints`).
        beta2: the decay factor of the average of squared gradients, per step.
        schedule: "constant", or "cosine" from `learning_rate` down to 0 at `steps`.
        gradient_clip: the largest norm of gradients, None for no limit.
        batch, length, steps: the words per step, the letters per word, and the number of steps.
        test_length, test_words, evaluate_every: the length and number of words of an evaluation, and its interval.
        stop_at: the test accuracy at which training ends early, None for never.
        dtype: the type of the weights.
        precision: "full", or on a GPU "mixed": matrix products in bfloat16, states in the weights' type.
        compile: whether to run the network through `torch.compile`.
        cuda_graph: whether to record a step as a CUDA graph and replay it (`fsa2lrnn.extra.distributed.replay`), for
            small networks whose steps are dominated by kernel launches.
        threads: the threads of torch and numba on a CPU; the same number gives the same weights.

    A length is lowered to the largest one with a counted output at its end (39 and 499 for ModArith).

    Raises:
        UnsupportedFormat: with every invalid value.
    """

    task: str
    sampler: str = "task"
    embedding_dim: int = 64
    block: int = 8
    heads: int = 8
    layers: int = 1
    layer: str = "block"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    p: float = 1.2
    normalisation: str = "released"
    connection: str = "residual"
    layer_norm: bool | str = True
    token_shift: bool = False
    init: str = "random"
    noise: float = 0.0
    optimiser: str = "adam"
    learning_rate: float = 1e-4
    weight_decay: float = 0.0
    beta2: float = 0.999
    schedule: str = "constant"
    gradient_clip: float | None = None
    batch: int = 128
    length: int = 40
    steps: int = 40_000
    test_length: int = 500
    test_words: int = 128
    evaluate_every: int = 1_000
    stop_at: float | None = 1.0
    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    precision: str = "full"
    compile: bool = False
    cuda_graph: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        faults = [f"{name} = {self._text(name)} must be text" for name in _TEXTS if not self._is(name, str)]
        faults += [f"{name} = {self._text(name)} must be true or false" for name in _FLAGS if not self._is(name, bool)]
        if not isinstance(self.layer_norm, bool) and self.layer_norm != "readout":
            faults.append(f'layer_norm = {self._text("layer_norm")} must be true or false, or "readout"')
        if faults:
            raise UnsupportedFormat("settings do not fit: " + "; ".join(faults))
        choices = {
            "sampler": SAMPLERS,
            "optimiser": OPTIMISERS,
            "schedule": SCHEDULES,
            "dtype": DTYPES,
            "precision": PRECISIONS,
            "init": INITS,
        }
        faults = [
            f"{name} = {self._text(name)} is none of {', '.join(values)}"
            for name, values in choices.items()
            if getattr(self, name) not in values
        ]
        faults += self._faults_of_numbers()
        faults += self._faults_of_layer()
        if self.device.partition(":")[0] not in ("cpu", "cuda"):
            faults.append(f"device = {self._text('device')} is none of cpu, cuda, cuda:N")
        if self.cuda_graph and self.device == "cpu":
            faults.append("cuda_graph = True with device = 'cpu': graphs are a GPU's, take cuda_graph = False")
        if self.cuda_graph and self.schedule != "constant":
            faults.append(
                f"cuda_graph = True with schedule = {self.schedule!r}: a graph holds its learning rate, take 'constant'"
            )
        if self.noise and self.init == "random":
            faults.append(f"noise = {self.noise!r} is put on compiled weights: it goes with init = 'compiled'")
        if self.precision == "mixed" and (self.device == "cpu" or self.dtype != "float32"):
            faults.append(
                f"precision = 'mixed' with device = {self.device!r} and dtype = {self.dtype!r}: it is for float32 on a "
                "GPU, take 'full'"
            )
        if faults:
            raise UnsupportedFormat("settings do not fit: " + "; ".join(faults))

    def _is(self, name: str, kind: type) -> bool:
        return isinstance(getattr(self, name), kind)

    def _text(self, name: str) -> str:
        return shown(getattr(self, name))

    def _faults_of_numbers(self) -> list[str]:
        faults: list[str] = []
        for name in _WHOLE:
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                faults.append(f"{name} = {shown(value)} must be a whole number of at least 1")
            elif value > (most := _MOST.get(name, _MOST_WHOLE)):
                faults.append(f"{name} = {shown(value)} is too large to be meant: at most {most:,} is taken")
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 32:
            faults.append(f"seed = {self._text('seed')} must be a whole number from 0 to 2³² − 1")
        ranges: dict[str, tuple[Callable[[float], bool], str]] = {
            "p": (lambda x: x >= 1, "a number of at least 1"),
            "learning_rate": (lambda x: x > 0, "a number above 0"),
            "beta2": (lambda x: 0 <= x < 1, "a number from 0 up to, not including, 1"),
            "weight_decay": (lambda x: x >= 0, "a number of at least 0"),
            "noise": (lambda x: x >= 0, "a number of at least 0"),
            "gradient_clip": (lambda x: x > 0, "a number above 0, or None for no limit"),
            "stop_at": (lambda x: 0 < x <= 1, "an accuracy above 0, or None for never"),
        }
        for name, (fits, expected) in ranges.items():
            value = getattr(self, name)
            if not (value is None and "None" in expected) and not (_is_number(value) and fits(value)):
                faults.append(f"{name} = {shown(value)} must be {expected}")
        return faults

    def __hash__(self) -> int:
        return hash(self.to_json())  # options are a dictionary

    def with_seed(self, seed: int) -> Settings:
        """Return these settings with another seed."""
        return replace(self, seed=seed)

    def machine(self) -> MooreMachine:
        """Return the machine that the task names."""
        return MooreMachine.from_source(self.task)

    def _faults_of_layer(self) -> list[str]:
        try:
            layer_named(self.layer).Config.refuse_unknown(self.options)
            json.dumps(dict(self.options))
            if self._is("heads", int) and self._is("block", int):
                Shape(self.heads, self.block)
        except UnsupportedFormat as error:
            return [str(error)]
        except (TypeError, ValueError):  # for instance dates of a TOML file
            return [f"options = {self._text('options')} must be a table of what JSON holds"]
        return []

    @property
    def kind(self) -> type[Layer]:
        """The class of the layers."""
        return layer_named(self.layer)

    def network(self, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]) -> LRNNConfig:
        """Return the configuration of the network to train."""
        layer = self.kind.Config.of_shape(Shape(self.heads, self.block), self.options)
        return LRNNConfig(
            alphabet,
            outputs,
            tuple(layer.at(i, self.layers) for i in range(self.layers)),
            embedding_dim=self.embedding_dim,
            readout_hidden=self.heads * self.block,
            normalisation=self.normalisation,
            p=self.p,
            connection=self.connection,
            layer_norm=self.layer_norm,
            token_shift=self.token_shift,
        )

    def rate(self, step: int, hint: Hint = Hint()) -> float:  # noqa: B008 - frozen
        """Return the learning rate of the step from `step` to `step` + 1, for parameters with this hint of a layer."""
        falling = (1 + math.cos(math.pi * step / self.steps)) / 2 if self.schedule == "cosine" else 1.0
        return hint.rate_for(self.learning_rate) * falling

    def to_json(self) -> str:
        """Return a JSON text that `from_json` reads back."""
        values = asdict(self)
        if not self.cuda_graph:  # the digest of the text names folders of sweeps that are older than this setting
            del values["cuda_graph"]
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Settings:
        """Return the settings in a JSON text, for layers that are registered already.

        Raises `UnsupportedFormat` with what is unknown, missing or out of range.
        """
        names = [field.name for field in fields(cls)]
        remedy = f"give a JSON object of {', '.join(names)}"
        try:
            values = parse_json(text, "the text")
            if not isinstance(values, dict):
                raise UnsupportedFormat(f"{shown(values)} is no object")
            if "factors" in values:  # files of version 0.1
                factors = values.pop("factors")
                values |= {"layer": "householder", "options": {"factors": factors}} if factors else {}
            if unknown := [name for name in values if name not in names]:
                raise UnsupportedFormat(f"{shown(unknown[0])[1:-1]}: no such setting")
            if "task" not in values:
                raise UnsupportedFormat("task is missing")
            layer_in_file(values.get("layer", cls.layer))
        except UnsupportedFormat as error:
            raise UnsupportedFormat(f"settings can't be read ({error}): {remedy}") from error
        return cls(**values)


def _is_number(value: object) -> TypeGuard[float]:
    if type(value) is int:
        return abs(value) <= MAX_WHOLE
    return isinstance(value, float) and math.isfinite(value)


# The paper gives p, (b, h), the numbers of layers, 40,000 updates and the lengths; the authors' code gives the rest.
_PAPER: dict[str, dict[str, Any]] = {
    "sum_mod": {"learning_rate": 1e-4},
    "even_pair": {"learning_rate": 2e-4},
    "mod_arith": {"learning_rate": 2e-4, "weight_decay": 1e-4, "layers": 3},
}
_QUICK: dict[str, Any] = {"learning_rate": 1e-3, "steps": 1_000, "test_length": 40, "evaluate_every": 50}
PRESETS = ("released", "quick")


def preset(name: str, task: str, /, **changes: Any) -> Settings:
    """Return the settings of a preset, with changes.

    - "released": the settings of the paper and its code for Sum, EvenPair and ModArith; any other task gets those of
      Sum. The paper's ModArith is trained on the five residues only, this one on the outputs that occur after digits.
    - "quick": shows within a minute whether a small machine is learned at the training length; test length 40.

    A change may also be an option of the layer, such as `factors=2` with `layer="householder"`.

    Raises `UnsupportedFormat` for an unknown name, or as `Settings` does.

    >>> preset("released", "task:mod_arith(5)").layers, preset("quick", "task:parity", seed=3).seed
    (3, 3)
    """
    if name not in PRESETS:
        raise UnsupportedFormat(f"preset {name!r} is not known: choose one of {', '.join(PRESETS)}")
    of_layer = layer_named(changes.get("layer", Settings.layer)).Config.options()
    options = {name: changes.pop(name) for name in of_layer if name in changes}
    if unknown := changes.keys() - {field.name for field in fields(Settings)}:
        raise UnsupportedFormat(_unknown_setting(sorted(unknown), changes.get("layer", Settings.layer)))
    if options and isinstance(explicit := changes.get("options", {}), Mapping):
        changes["options"] = {**explicit, **options}
    match = re.match(r"task:\s*(\w+)", task)
    values = _PAPER.get(match[1] if match else "", {}) if name == "released" else _QUICK
    return replace(Settings(task, **values), **changes)


def _unknown_setting(names: list[str], layer: str) -> str:
    text = f"{', '.join(names)}: no such setting"
    others = [kind for kind, of in LAYERS.items() if set(names) & set(of.Config.options())]
    if others:
        return f"{text}, nor an option of the layer {layer!r}; it is one of {', '.join(others)}"
    return f"{text}; there are {', '.join(field.name for field in fields(Settings))}"
