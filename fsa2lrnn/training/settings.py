"""The settings of a training run, as frozen data that is saved with its results."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any

import torch

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat, meant
from fsa2lrnn.layers import is_layer, trained_name
from fsa2lrnn.nn.checkpoint import load
from fsa2lrnn.nn.config import MAX_LAYERS, LRNNConfig
from fsa2lrnn.nn.layers import LAYERS, Layer, Shape, layer_in_file, layer_named
from fsa2lrnn.nn.layers.base import MAX_WIDTH, Hint
from fsa2lrnn.reading import Allowed, check_fields, one_of, parse_json, shown, whole
from fsa2lrnn.training.data import SAMPLERS

OPTIMISERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SCHEDULES = ("constant", "cosine")
DTYPES = ("float32", "float64")
PRECISIONS = ("full", "mixed")
_GONE = {"init": "random", "noise": 0.0}  # settings of earlier files, at the values that change nothing
_Count = Annotated[int, whole(1, 10**9)]
_Width = Annotated[int, whole(1, MAX_WIDTH)]
_Positive = Allowed("a number above 0", lambda x: x > 0)
_NotNegative = Annotated[float, Allowed("a number of at least 0", lambda x: x >= 0)]


@dataclass(frozen=True)
class Settings:
    """The settings of one training run: task, network, optimiser and evaluations.

    Args:
        task: the source of a machine, for instance "task:sum_mod(5)".
        sampler: how words are drawn (`fsa2lrnn.training.data.make_sampler`).
        embedding_dim, block, heads, layers: the sizes; each layer has `heads` blocks of size `block`.
        layer: the kind of the layers (`fsa2lrnn.nn.layers.LAYERS`), "block" for those of the paper, or "module:Class"
            for a user-defined one.
        options: the options of that kind; "householder" takes `factors`, the number of unit keys: DeltaNet with
            eigenvalues in (−1, 1] has 1, DeltaProduct more.
        start: the file of a model from whose network and weights training starts, in place of a network of these sizes
            and this layer with random weights; "" for none.
        p, normalisation, connection, layer_norm, token_shift: as in `LRNNConfig`.
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
        cuda_graph: whether to record a step as a CUDA graph and replay it (`fsa2lrnn.training.trainer`), for
            small networks whose steps are dominated by kernel launches.
        threads: the threads of torch and numba on a CPU; the same number gives the same weights.

    A length is lowered to the largest one with a counted output at its end (39 and 499 for ModArith).

    Raises:
        UnsupportedFormat: with every invalid value.
    """

    task: str
    sampler: Annotated[str, one_of(SAMPLERS)] = "task"
    embedding_dim: _Width = 64
    block: _Width = 8
    heads: _Width = 8
    layers: Annotated[int, whole(1, MAX_LAYERS)] = 1
    layer: str = "block"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    start: str = ""
    p: Annotated[float, Allowed("a number of at least 1", lambda x: x >= 1)] = 1.2
    normalisation: str = "paper"
    connection: str = "residual"
    layer_norm: Annotated[
        bool | str, Allowed('true or false, or "readout"', lambda x: isinstance(x, bool) or x == "readout")
    ] = True
    token_shift: bool = False
    optimiser: Annotated[str, one_of(OPTIMISERS)] = "adam"
    learning_rate: Annotated[float, _Positive] = 1e-4
    weight_decay: _NotNegative = 0.0
    beta2: Annotated[float, Allowed("a number from 0 up to, not including, 1", lambda x: 0 <= x < 1)] = 0.999
    schedule: Annotated[str, one_of(SCHEDULES)] = "constant"
    gradient_clip: Annotated[float | None, Allowed("a number above 0, or None for no limit", _Positive.holds)] = None
    batch: _Count = 128
    length: _Count = 40
    steps: _Count = 40_000
    test_length: _Count = 500
    test_words: _Count = 128
    evaluate_every: _Count = 1_000
    stop_at: Annotated[float | None, Allowed("an accuracy above 0, or None for never", lambda x: 0 < x <= 1)] = 1.0
    seed: Annotated[int, whole(0, (1 << 32) - 1)] = 0
    dtype: Annotated[str, one_of(DTYPES)] = "float32"
    device: Annotated[
        str, Allowed("one of cpu, cuda, cuda:N", lambda name: name.partition(":")[0] in ("cpu", "cuda"))
    ] = "cpu"
    precision: Annotated[str, one_of(PRECISIONS)] = "full"
    compile: bool = False
    cuda_graph: bool = False
    threads: Annotated[int, whole(1, 1 << 10)] = 1

    def __post_init__(self) -> None:
        if is_layer(self.layer):  # any spelling; files have the name of the class
            object.__setattr__(self, "layer", trained_name(self.layer))
        check_fields(self, "settings do not fit")
        faults = self._faults_of_layer()
        if self.cuda_graph and self.device == "cpu":
            faults.append("cuda_graph = True with device = 'cpu': graphs are a GPU's, take cuda_graph = False")
        if self.cuda_graph and self.schedule != "constant":
            faults.append(
                f"cuda_graph = True with schedule = {self.schedule!r}: a graph holds its learning rate, take 'constant'"
            )
        if self.precision == "mixed" and (self.device == "cpu" or self.dtype != "float32"):
            faults.append(
                f"precision = 'mixed' with device = {self.device!r} and dtype = {self.dtype!r}: it is for float32 on a "
                "GPU, take 'full'"
            )
        if self.layer == "block" and self.block == 1 and self.normalisation == "paper" and not self.start:
            faults.append(
                "normalisation = 'paper' with block = 1: the rule subtracts a column's mean and leaves 0/0, take 'clip'"
            )
        if faults:
            raise UnsupportedFormat("settings do not fit: " + "; ".join(faults))

    def __hash__(self) -> int:
        return hash(self.to_json())  # options are a dictionary

    def with_seed(self, seed: int) -> Settings:
        """Return these settings with another seed."""
        return replace(self, seed=seed)

    def machine(self) -> MooreMachine:
        """Return the machine that the task names."""
        return MooreMachine.from_source(self.task)

    def _faults_of_layer(self) -> list[str]:
        """Return the fault of the layer, its options or the sizes of its state, if there is one."""
        try:
            layer_named(self.layer).Config.refuse_unknown(self.options)
            json.dumps(dict(self.options))
            Shape(self.heads, self.block)
        except UnsupportedFormat as error:
            return [str(error)]
        except (TypeError, ValueError):  # for instance dates of a TOML file
            return [f"options = {shown(self.options)} must be a table of what JSON holds"]
        return []

    @property
    def kind(self) -> type[Layer]:
        """The class of the layers."""
        return layer_named(self.layer)

    def network(self, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]) -> LRNNConfig:
        """Return the configuration of the network to train.

        Raises `UnsupportedFormat` for sizes that do not fit, or a model to start from that does not.
        """
        if self.start:
            config = load(self.start).config
            remedy = "read the machine over these, in this order (`fsa2lrnn convert SOURCE --alphabet …`)"
            for what, of_model, of_task, first in (
                ("letters", config.alphabet, alphabet, remedy),
                ("outputs", config.outputs, outputs, "start from a model with the task's outputs, in this order"),
            ):
                if of_model != of_task:
                    raise UnsupportedFormat(
                        f"{self.start} has the {what} {shown(of_model)}, and {self.task} has {shown(of_task)}: {first}"
                        ", or train a new network"
                    )
            if config.reads_letters:
                raise UnsupportedFormat(f"{self.start} is a table without weights to train: compile it with dense ones")
            return config
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
        """Return the learning rate of the step after `step` steps, for parameters with this `Hint` of their layer."""
        falling = (1 + math.cos(math.pi * step / self.steps)) / 2 if self.schedule == "cosine" else 1.0
        return hint.rate_for(self.learning_rate) * falling

    def to_json(self) -> str:
        """Return a JSON text that `from_json` reads back."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Settings:
        """Return the settings in a JSON text, whose layer must be registered or that of an installed package.

        Raises `UnsupportedFormat`, naming settings that are unknown, missing or out of range.
        """
        names = [field.name for field in fields(cls)]
        remedy = f"give a JSON object of {', '.join(names)}"
        try:
            values = parse_json(text, "the text")
            if not isinstance(values, dict):
                raise UnsupportedFormat(f"{shown(values)} is not a JSON object")
            values = {name: x for name, x in values.items() if _GONE.get(name, ...) != x}
            if unknown := [name for name in values if name not in names]:
                raise UnsupportedFormat(f"{shown(unknown[0])[1:-1]}: no such setting")
            if "task" not in values:
                raise UnsupportedFormat("task is missing")
            layer_in_file(values.get("layer", cls.layer))
        except UnsupportedFormat as error:
            raise UnsupportedFormat(f"settings cannot be read ({error}): {remedy}") from error
        return cls(**values)


# The paper gives p, (b, h), the numbers of layers, 40,000 updates and the lengths; the authors' code gives the rest.
_PAPER: dict[str, dict[str, Any]] = {
    "sum_mod": {"learning_rate": 1e-4},
    "even_pair": {"learning_rate": 2e-4},
    "mod_arith": {"learning_rate": 2e-4, "weight_decay": 1e-4, "layers": 3},
}
_QUICK: dict[str, Any] = {"learning_rate": 1e-3, "steps": 1_000, "test_length": 40, "evaluate_every": 50}
PRESETS = ("paper", "quick")


def preset(name: str, task: str, /, **changes: Any) -> Settings:
    """Return the settings of a preset, with changes.

    - "paper": the settings of the paper and its code for Sum, EvenPair and ModArith; any other task gets those of
      Sum. The paper's ModArith is trained on the five residues only, this one on the outputs that occur after digits.
    - "quick": shows within a minute whether a small machine is learned at the training length; test length 40.

    A change may also be an option of the layer, such as `factors=2` with `layer="householder"`.

    Raises `UnsupportedFormat` for an unknown name, or as `Settings` does.

    >>> preset("paper", "task:mod_arith(5)").layers, preset("quick", "task:parity", seed=3).seed
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
    values = _PAPER.get(match[1] if match else "", {}) if name == "paper" else _QUICK
    return replace(Settings(task, **values), **changes)


def _unknown_setting(names: list[str], layer: str) -> str:
    text = f"{', '.join(names)}: no such setting"
    others = [kind for kind, of in LAYERS.items() if set(names) & set(of.Config.options())]
    if others:
        return f"{text}, nor an option of the layer {layer!r}; it is one of {', '.join(others)}"
    settings = [field.name for field in fields(Settings)]
    return f"{text}; {meant(names[0], settings)}there are {', '.join(settings)}"
