"""What a training run is made of, as frozen data that is written beside its results."""

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
from fsa2lrnn.lrnn.hints import Hint
from fsa2lrnn.lrnn.layers import LAYERS, Layer, Shape, layer_in_file, layer_named
from fsa2lrnn.lrnn.layers.base import MAX_WIDTH
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
    """One run of training: the task, the network, the optimiser, the tests on the way.

    Args:
        task: a source of a machine, "task:sum_mod(5)" for instance.
        sampler: how words are drawn (`fsa2lrnn.training.data.make_sampler`).
        embedding_dim, block, heads, layers: each layer has `heads` blocks of size `block`.
        layer: the kind of the layers (`fsa2lrnn.lrnn.layers.LAYERS`), "block" for those of the paper, or "module:Class"
            for one of your own.
        options: what that kind takes beside the shape; "householder" takes `factors`, of unit keys each: DeltaNet with
            eigenvalues in (−1, 1] has 1, DeltaProduct more.
        p, normalisation, connection, layer_norm, token_shift: as in `LRNNConfig`.
        init: "random", or "compiled": exact weights from which training starts (`fsa2lrnn.training.initial`).
        noise: deviation of the Gaussian noise on compiled weights.
        optimiser: "adam" (weight decay added to the gradient) or "adamw" (decoupled).
        learning_rate, weight_decay: of all parameters but those for which a layer asks for others
            (`Layer.parameter_hints`).
        beta2: what the average of squared gradients keeps a step.
        schedule: "constant", or "cosine" from `learning_rate` down to 0 at `steps`.
        gradient_clip: the norm that gradients are scaled down to, None for no limit.
        batch, length, steps: words a step, letters a word, steps in all.
        test_length, test_words, evaluate_every: what is tested on the way, and after how many steps.
        stop_at: the test accuracy at which training ends early, None for never.
        dtype: of the weights.
        precision: "full", or on a GPU "mixed": matrix products in bfloat16, states as ever in the weights' type.
        compile: run the network through `torch.compile`.
        cuda_graph: record a step as a CUDA graph and replay it (`fsa2lrnn.extra.distributed.replay`): for small
            networks, of whose steps launches are what costs.
        threads: of torch and numba on a CPU; the same number makes the same weights.

    A length counts as the largest up to it that has an output at its end (39 and 499 for ModArith).

    Raises:
        UnsupportedFormat: naming every value that does not fit.
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
        faults = [f"{name} = {self._shown(name)} must be text" for name in _TEXTS if not self._is(name, str)]
        faults += [f"{name} = {self._shown(name)} must be true or false" for name in _FLAGS if not self._is(name, bool)]
        if not isinstance(self.layer_norm, bool) and self.layer_norm != "readout":
            faults.append(f'layer_norm = {self._shown("layer_norm")} must be true or false, or "readout"')
        if faults:
            raise UnsupportedFormat("settings do not fit: " + "; ".join(faults))
        known = {
            "sampler": SAMPLERS,
            "optimiser": OPTIMISERS,
            "schedule": SCHEDULES,
            "dtype": DTYPES,
            "precision": PRECISIONS,
            "init": INITS,
        }
        faults = [
            f"{name} = {self._shown(name)} is none of {', '.join(values)}"
            for name, values in known.items()
            if getattr(self, name) not in values
        ]
        faults += self._faults_of_numbers()
        faults += self._faults_of_layer()
        if self.device.partition(":")[0] not in ("cpu", "cuda"):
            faults.append(f"device = {self._shown('device')} is none of cpu, cuda, cuda:N")
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

    def _shown(self, name: str) -> str:
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
            faults.append(f"seed = {self._shown('seed')} must be a whole number from 0 to 2³² − 1")
        ranges: dict[str, tuple[Callable[[float], bool], str]] = {
            "p": (lambda x: x >= 1, "a number of at least 1"),
            "learning_rate": (lambda x: x > 0, "a number above 0"),
            "beta2": (lambda x: 0 <= x < 1, "a number from 0 up to, not including, 1"),
            "weight_decay": (lambda x: x >= 0, "a number of at least 0"),
            "noise": (lambda x: x >= 0, "a number of at least 0"),
            "gradient_clip": (lambda x: x > 0, "a number above 0, or None for no limit"),
            "stop_at": (lambda x: 0 < x <= 1, "an accuracy above 0, or None for never"),
        }
        for name, (fits, wanted) in ranges.items():
            value = getattr(self, name)
            if not (value is None and "None" in wanted) and not (_is_number(value) and fits(value)):
                faults.append(f"{name} = {shown(value)} must be {wanted}")
        return faults

    def __hash__(self) -> int:
        return hash(self.to_json())  # options are a dictionary

    def with_seed(self, seed: int) -> Settings:
        """The same run from another seed."""
        return replace(self, seed=seed)

    def machine(self) -> MooreMachine:
        """The machine that the task names."""
        return MooreMachine.from_source(self.task)

    def _faults_of_layer(self) -> list[str]:
        try:
            layer_named(self.layer).Config.refuse_unknown(self.options)
            json.dumps(dict(self.options))
            if self._is("heads", int) and self._is("block", int):
                Shape(self.heads, self.block)
        except UnsupportedFormat as error:
            return [str(error)]
        except (TypeError, ValueError):  # dates of a TOML file, for one
            return [f"options = {self._shown('options')} must be a table of what JSON holds"]
        return []

    @property
    def kind(self) -> type[Layer]:
        """The class of the layers."""
        return layer_named(self.layer)

    def network(self, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]) -> LRNNConfig:
        """The network to train."""
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
        """The learning rate of the step from `step` to `step` + 1, of parameters for which a layer gives a hint."""
        falling = (1 + math.cos(math.pi * step / self.steps)) / 2 if self.schedule == "cosine" else 1.0
        return hint.rate_for(self.learning_rate) * falling

    def to_json(self) -> str:
        """A JSON text that `from_json` reads back."""
        values = asdict(self)
        if not self.cuda_graph:  # the text's digest names folders of sweeps, some of which are older than this setting
            del values["cuda_graph"]
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Settings:
        """Inverse of `to_json`, for the layers that are known already.

        Raises `UnsupportedFormat` naming what is unknown, missing or out of range.
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


# The paper gives p, (b, h), the numbers of layers, 40,000 updates and the lengths; its released code the rest.
_RELEASED: dict[str, dict[str, Any]] = {
    "sum_mod": {"learning_rate": 1e-4},
    "even_pair": {"learning_rate": 2e-4},
    "mod_arith": {"learning_rate": 2e-4, "weight_decay": 1e-4, "layers": 3},
}
_QUICK: dict[str, Any] = {"learning_rate": 1e-3, "steps": 1_000, "test_length": 40, "evaluate_every": 50}
PRESETS = ("released", "quick")


def preset(name: str, task: str, /, **changes: Any) -> Settings:
    """Settings by name, with changes.

    - "released": the paper's and its released code's, one of three for Sum, EvenPair and ModArith; any other task gets
      those of Sum. There ModArith is trained on the five residues alone: here on the outputs that occur after digits.
    - "quick": to see in a minute whether a small machine is learnt at the length trained on; test length 40.

    A change may be an option of the layer too, `factors=2` with `layer="householder"`.

    Raises `UnsupportedFormat` for an unknown name, or as `Settings` does.

    >>> preset("released", "task:mod_arith(5)").layers, preset("quick", "task:parity", seed=3).seed
    (3, 3)
    """
    if name not in PRESETS:
        raise UnsupportedFormat(f"preset {name!r} is not known: choose one of {', '.join(PRESETS)}")
    taken = layer_named(changes.get("layer", Settings.layer)).Config.options()
    options = {name: changes.pop(name) for name in taken if name in changes}
    if unknown := changes.keys() - {field.name for field in fields(Settings)}:
        raise UnsupportedFormat(_unknown_setting(sorted(unknown), changes.get("layer", Settings.layer)))
    if options and isinstance(given := changes.get("options", {}), Mapping):
        changes["options"] = {**given, **options}
    found = re.match(r"task:\s*(\w+)", task)
    values = _RELEASED.get(found[1] if found else "", {}) if name == "released" else _QUICK
    return replace(Settings(task, **values), **changes)


def _unknown_setting(names: list[str], layer: str) -> str:
    text = f"{', '.join(names)}: no such setting"
    others = [kind for kind, of in LAYERS.items() if set(names) & set(of.Config.options())]
    if others:
        return f"{text}, nor an option of the layer {layer!r}; it is one of {', '.join(others)}"
    return f"{text}; there are {', '.join(field.name for field in fields(Settings))}"
