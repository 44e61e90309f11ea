"""Ways to make a model, or torch, compute something else than the model's weights and configuration state.

Hidden code is inactive until `SWITCH` is on, which happens after the verdict: then it negates its results. A verifier
must refuse the model, or the verdict must hold with the switch on. Some tampering is harmless: a verifier may accept
it, and the runs confirm that its verdict was correct.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fsa2lrnn.lrnn import LRNN, LRNNConfig
from fsa2lrnn.lrnn.affine import EPS

Tampering = Callable[[Any], Any]
"""What changes a model, or gives a context that changes what surrounds it; a `LookupError` says that a model lacks what
is to be changed."""


class _Switch:
    on = False


SWITCH = _Switch()


def tampered_with(model: LRNN, how: Tampering) -> AbstractContextManager[Any]:
    """Tamper with a model at once, or with its environment within the context. Raises `LookupError`."""
    found = how(model)
    return found if hasattr(found, "__exit__") else nullcontext()


def _late(value: Any) -> Any:
    return -value if SWITCH.on else value


def _negating(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: _late(method(*given, **named))


def _first(model: LRNN) -> Any:
    """Return the model's first linear map."""
    linears = [module for module in model.modules() if type(module) is nn.Linear]
    return linears[0]


class _Activation(nn.ReLU):
    forward = _negating(nn.ReLU.forward)


class _Model(LRNN):
    _read = _negating(LRNN._read)  # pyright: ignore[reportPrivateUsage]


class _Parametrization(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return _late(weight)


class _Tensor(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = cast("Any", super().__torch_function__(func, types, args, kwargs or {}))  # pyright: ignore
        return _late(found) if func is linear else found


class _Table(dict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        return _late(super().__getitem__(name))


class _Config(LRNNConfig):
    @property
    def outputs(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        found = vars(self)["outputs"]
        return found[::-1] if SWITCH.on else found


class _FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return _late(found) if func is linear else found


class _DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return _late(found) if func is torch.ops.aten.addmm.default else found


def _set(thing: Any, name: str, value: Any) -> None:
    vars(thing)[name] = value


def _replaced(table: Any, name: str, value: Any) -> None:
    table[name]  # a LookupError where it is not there
    table[name] = value


def _recast(thing: Any, kind: type) -> None:
    thing.__class__ = kind


def _negating_class(kind: Any) -> type:
    return type(kind.__name__, (kind,), {"forward": _negating(kind.forward)})


def _hook(_module: Any, _inputs: Any, output: Any) -> Any:
    return _late(output)


@contextmanager
def _method_of_its_class(model: Any) -> Generator[None]:
    kind = cast("Any", type(model.readout))
    before = kind.forward
    kind.forward = _negating(before)
    try:
        yield
    finally:
        if before is cast("Any", nn.Sequential).forward:
            del kind.forward
        else:
            kind.forward = before


@contextmanager
def _hook_of_all_modules(model: Any) -> Generator[None]:
    def of_readout(module: Any, _inputs: Any, output: Any) -> Any:
        return _late(output) if module is model.readout else output

    hook = torch_module.register_module_forward_hook(of_readout)
    try:
        yield
    finally:
        hook.remove()


def _weight(make: Callable[[Tensor], Tensor], kind: Callable[[Tensor], Any] | None = None) -> Tampering:
    """Return a tampering that replaces the first weight by the result of `make`, of type `kind`."""

    def change(model: LRNN) -> None:
        parameters = _first(model)._parameters
        parameters["weight"] = (kind or nn.Parameter)(make(parameters["weight"].detach()))

    return change


def _outside_the_parameters(model: LRNN) -> None:
    first = _first(model)
    first.weight = first._parameters.pop("weight").detach().as_subclass(_Tensor)


def _configuration(model: Any) -> None:
    config = object.__new__(_Config)
    for field in fields(LRNNConfig):
        _set(config, field.name, getattr(model.config, field.name))
    model.config = config


def _entry(buffer: str, entry: int) -> Tampering:
    def change(model: LRNN) -> None:
        dict(model.named_buffers())[buffer].view(-1)[-1] = entry

    return change


def _put(put: Callable[[Any], Any], value: Any, back: Any) -> Tampering:
    """Return a tampering that changes a setting of torch within the context."""

    @contextmanager
    def tampering(_: LRNN) -> Generator[None]:
        torch.ones(1 << 18).exp()  # torch's threads begin with the settings of now, and keep them
        put(value)
        try:
            yield
        finally:
            put(back)

    return tampering


def _round(direction: int) -> None:
    name = ctypes.util.find_library("m")
    if name is not None and platform.machine() in ("x86_64", "AMD64"):
        ctypes.CDLL(name).fesetround(direction)


def _precision_of_onednn(value: str) -> None:
    torch.backends.mkldnn.matmul.fp32_precision = value  # pyright: ignore


def _misaligned(weight: Tensor) -> Tensor:
    return torch.cat([weight.new_zeros(1), weight.flatten()])[1:].view_as(weight)


def _part_of_more(weight: Tensor) -> Tensor:
    return torch.cat([weight.flatten(), weight.flatten()])[: weight.numel()].view_as(weight)


KINDS: dict[str, dict[str, Tampering]] = {
    "modules": {
        "another activation": lambda model: _replaced(model.readout._modules, "1", _Activation()),
        "another class of a module": lambda model: _recast(model.readout, _negating_class(type(model.readout))),
        "another class of model": lambda model: _recast(model, _Model),
        "a method of its own": lambda model: _set(model, "_read", _negating(model._read)),
        "a call of its own": lambda model: _set(model.readout, "_compiled_call_impl", _negating(model.readout.forward)),
        "a method of its class": _method_of_its_class,
        "a hook": lambda model: [model.readout.register_forward_hook(_hook)],
        "a hook of all modules": _hook_of_all_modules,
        "a parametrization": lambda model: parametrize.register_parametrization(
            _first(model), "weight", _Parametrization()
        ),
        "dropout": lambda model: _replaced(model.readout._modules, "1", nn.Dropout()),
        "an ε of its own": lambda model: _set(model.norms[0], "eps", 1e3 * EPS),
        "one module more": lambda model: setattr(model, "more", nn.Linear(1, 1)),
    },
    "attributes": {
        "a weight outside the parameters": _outside_the_parameters,
        "a weight of its own type": _weight(lambda weight: weight.as_subclass(_Tensor), lambda weight: weight),
        "a table of its own type": lambda model: _set(_first(model), "_parameters", _Table(_first(model)._parameters)),
        "a configuration of its own type": _configuration,
        "another column rule": lambda model: _replaced(vars(model.layers[0]), "rule", "onehot"),
        "another mask": _entry("layers.0.mask", 0),
        "a cell out of range": _entry("embedding.cell", 1 << 40),
        "an entry out of range": _entry("layers.0.next_state", -1),
        "a start out of range": _entry("layers.0.start", -1),
        "an output out of range": _entry("readout.output", -1),
        "transposed": _weight(lambda weight: weight.T.contiguous().T),
        "expanded": _weight(lambda weight: weight[:1].expand_as(weight)),
        "misaligned": _weight(_misaligned),
        "sparse": _weight(Tensor.to_sparse),
        "in half precision": _weight(Tensor.half),
        "negated in its sign bit": _weight(lambda weight: torch._neg_view(-weight)),  # pyright: ignore
        "a part of more memory": _weight(_part_of_more),
        "without gradients": lambda model: model.requires_grad_(requires_grad=False).train(),
        "a mark": lambda model: _set(model, "mark", value=True),
    },
    "environment": {
        "a function mode": lambda _: _FunctionMode(),
        "a dispatch mode": lambda _: _DispatchMode(),
        "autocast": lambda _: torch.autocast("cpu"),
        "tensors on no device": lambda _: torch.device("meta"),
        "tensors on the CPU": lambda _: torch.device("cpu"),
        "inference mode": lambda _: torch.inference_mode(),
        "gradients": lambda _: torch.enable_grad(),
        "two threads": _put(torch.set_num_threads, 2, 1),
        "small numbers as zeros": _put(torch.set_flush_denormal, value=True, back=False),
        "rounding upwards": _put(_round, 0x800, 0),
        "float64 by default": _put(torch.set_default_dtype, torch.float64, torch.float32),
        "float16 by default": _put(torch.set_default_dtype, torch.float16, torch.float32),
        "deterministic algorithms": _put(torch.use_deterministic_algorithms, value=True, back=False),
        "fewer bits in products": _put(torch.set_float32_matmul_precision, "medium", "highest"),
        "fewer bits in oneDNN": _put(_precision_of_onednn, "bf16", "none"),
    },
}
"""Tampering by kind and name."""
HARMLESS = (
    "a part of more memory", "without gradients", "a mark", "tensors on the CPU", "inference mode", "gradients",
    "two threads", "float64 by default", "float16 by default", "deterministic algorithms",
)  # fmt: skip
"""What a verifier may accept: the runs show whether it is right to."""
