"""Checks before a verification: settings of torch, and that a model consists of modules that the verifiers model.

Verdicts hold only for these. Bounds on rounding, and exact float32 sums of integers below 2²⁴ (T1, T26), require
products with all 24 bits of the factors. TF32 keeps 11 bits of a factor, bfloat16 eight; autocast computes in another
dtype than the weights'. A processor that replaces subnormal numbers by zero computes other bits than IEEE 754 defines.

A verifier reads weights, and reasons about Linear, ReLU, LayerNorm with ε = 10⁻⁵ and the scans of the library's layers.
So a model is compared with a new one of the same configuration: the same types of modules and tensors, the same
parameters and buffers, no other attribute than plain data, no hooks, no parametrizations. A program that replaces
methods of classes or functions of torch while it runs is not detected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize

from fsa2lrnn.errors import UnsupportedFormat, check_type
from fsa2lrnn.nn.affine import Readout, SwitchedAffine
from fsa2lrnn.nn.checkpoint import on_meta_device
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layer_checks import check_layers, user_layers
from fsa2lrnn.nn.layers import OURS, name_of
from fsa2lrnn.nn.layers.block import AffineLayer
from fsa2lrnn.nn.layers.index import IndexEmbedding, IndexReadout, Numbers
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.reading import shown

_FULL = ("none", "ieee")  # of torch.backends' fp32_precision
_ENVIRONMENT = {
    "ONEDNN_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "DNNL_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "MKL_BLAS_COMPUTE_MODE": ("", "STANDARD"),
}
_PER_THREAD = 1 << 15  # entries from which torch splits an addition among its threads


def check_arithmetic(device: torch.device) -> None:
    """Raise `UnsupportedFormat`, listing settings that make a device compute less exactly than the dtype, if any."""
    if faults := reductions(device):
        raise UnsupportedFormat(f"cannot verify a model that runs so: {'; '.join(faults)}")


def reductions(device: torch.device) -> list[str]:
    """Return one message, with a remedy, per setting that makes the device compute less exactly than the dtype.

    >>> reductions(torch.device("cpu"))
    []
    """
    return [*_everywhere(), *(_on_cuda() if device.type == "cuda" else _on_cpu())]


def _everywhere() -> Iterator[str]:
    """Yield the settings of torch that lower precision on any device: autocast, precision of float32 products."""
    for kind in ("cpu", "cuda"):
        if torch.is_autocast_enabled(kind):
            yield f"autocast is on for {kind} and computes in another dtype: leave torch.autocast before verifying"
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch raises it if the precision of a single backend was set
        return
    if precision != "highest":
        yield f'torch.set_float32_matmul_precision({precision!r}) keeps fewer bits of products: set it to "highest"'


def _on_cpu() -> Iterator[str]:
    """Yield the settings of the CPU that lower precision: of oneDNN, of the environment, and of subnormal numbers.

    The last is tested by a sum over one tensor that torch splits among all threads, as each has a setting of its own.
    """
    products = getattr(torch.backends.mkldnn, "matmul", None)
    settings = {
        "torch.backends.fp32_precision": getattr(torch.backends, "fp32_precision", "none"),
        "torch.backends.mkldnn.fp32_precision": getattr(torch.backends.mkldnn, "fp32_precision", "none"),
        "torch.backends.mkldnn.matmul.fp32_precision": getattr(products, "fp32_precision", "none"),
    }
    yield from (f'{name} = {value!r}: set it to "ieee"' for name, value in settings.items() if value not in _FULL)
    for name, allowed in _ENVIRONMENT.items():
        if (value := os.environ.get(name, "")).upper() not in allowed:
            yield f"the environment sets {name} = {value!r}, which makes float32 products less exact: unset it"
    # A tensor that torch splits among all of its threads, since each thread has its own setting.
    tiny = torch.full((_PER_THREAD * torch.get_num_threads(),), torch.finfo(torch.float32).tiny, device="cpu")
    if not bool((tiny / 2).all()):
        yield (
            "in some thread numbers below the smallest normal one are taken for zero (torch.set_flush_denormal, or a "
            "library that sets it): call torch.set_flush_denormal(False), in a new process if threads have run"
        )


def _on_cuda() -> Iterator[str]:
    products = torch.backends.cuda.matmul
    for name in ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        if getattr(products, name):
            yield f"torch.backends.cuda.matmul.{name} is on: set it to False"


def check_causal(model: object) -> None:
    """Raise `UnsupportedFormat` for what is not a network, or, naming the layer, if outputs depend on later letters."""
    check_type(
        model, nn.Module, "model", "a network, of load(…), compile_machine(…) or wrap(module, alphabet, outputs)"
    )
    if isinstance(model, LRNN) and (reason := model.not_causal) is not None:
        raise UnsupportedFormat(reason)


def check_provable(model: LRNN) -> None:
    """Raise `UnsupportedFormat` unless the model is a causal `LRNN` without layers that verifiers refuse.

    The message names commands that support the model.
    """
    if not isinstance(model, LRNN):
        raise UnsupportedFormat(
            f"cannot verify a {type(model).__name__}, which is not an LRNN: only its outputs are visible. Test it with "
            "falsify and extract_learned; a layer over letters that is all in its tables comes in by LRNN.from_tables"
        )
    check_causal(model)
    for i, layer in enumerate(model.recurrences):
        if layer.unproved is not None:
            raise UnsupportedFormat(
                f"layers.{i} is of kind {name_of(model.config.layers[i])}, {layer.unproved}: compare and falsify run "
                "it on words, extract --method suffixes says what it seems to compute"
            )


_HOOKS = ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks")
_TABLES = ("_parameters", "_buffers", "_modules")
_COMPARED_APART = {*_TABLES, *(f"_{kind}" for kind in _HOOKS), "training"}  # no module depends on the training mode
_MOST = 4  # the most faults that a message names
_ANEW = "load or build the model anew"
_ENDS = (nn.Embedding, Gate, IndexEmbedding, IndexReadout)
_PLAIN = (bool, int, float, str, type(None))


def check_modelled(model: LRNN | SwitchedAffine) -> tuple[str, ...]:
    """Check that verifiers model every part of a model or of its tables, and test user-defined layers.

    Returns:
        The names of the user-defined layers, whose declarations passed a test on random inputs: () for most models
        and for tables.

    Raises:
        FalseDeclaration: for a user-defined layer that computes other than it declares, on random inputs.
        UnsupportedFormat: naming, with remedies, up to four faults: modules, attributes and tensors that differ from
            those of a new model, indices out of range, hooks, and settings of torch that compute at less than the
            dtype's precision.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> check_modelled(compile_machine(zoo.parity()))
    ()
    """
    if isinstance(model, SwitchedAffine):
        _refuse(list(_table_faults(model)))
        return ()
    check_provable(model)
    _refuse(list(_faults(model)))
    check_layers(model)
    return user_layers(model)


def _refuse(faults: list[str]) -> None:
    if faults:
        more = f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else ""
        raise UnsupportedFormat(f"cannot verify this model: {'; '.join(faults[:_MOST])}{more}")


def _table_faults(tables: SwitchedAffine) -> Iterator[str]:
    if type(tables) is not SwitchedAffine or type(tables.readout) is not Readout:
        yield f"the tables are of type {_name(tables)} with a {_name(tables.readout)}: make a SwitchedAffine of them"
        return
    for name, tensor in (vars(tables) | vars(tables.readout)).items():
        if isinstance(tensor, Tensor):
            yield from _type_faults(name, tensor, (Tensor, nn.Parameter))
    yield from reductions(tables.A.device)


def _faults(model: LRNN) -> Iterator[str]:
    """Yield the faults of a model. Later checks assume that earlier ones found none, so the first kind ends them."""
    # Types are compared exactly: a subclass may override any method.
    if type(model) is not LRNN:
        yield f"it is of type {_name(model)}, a subclass that may compute anything: verify an LRNN itself"
        return
    if type(model.config) is not LRNNConfig:
        yield f"its configuration is of type {_name(model.config)}: give an LRNNConfig"
        return
    try:
        with on_meta_device():  # uses neither memory nor random numbers
            fresh = LRNN(model.config)
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        yield f"its configuration cannot be built on the meta device ({str(error)[:200]}): build its layers there"
        return
    # User-defined layers, and ends that these define, are tested instead (`check_layers`).
    tested = {f"layers.{i}" for i, layer in enumerate(fresh.recurrences) if type(layer) not in OURS}
    tested |= {name for name in ("embedding", "readout") if type(fresh.get_submodule(name)) not in _ENDS}
    if faults := list(_differences("", model, fresh, tested)):
        yield from faults
        return
    if hooks := [kind for kind in _HOOKS if getattr(torch_module, f"_global_{kind}", None)]:
        yield f"torch has {', '.join(hooks)} for all modules: remove them before verifying"
    if mixtures := list(_mixtures(model)):
        yield from mixtures
        return
    yield from reductions(model.device)
    yield from _buffer_faults(model)


def _differences(name: str, module: nn.Module, fresh: nn.Module, tested: set[str]) -> Iterator[str]:
    """Yield the differences of a module from a new one; of modules that are tested, only hooks and the type."""
    label = name or "the model"
    if type(module) is not type(fresh):
        yield f"{label} is of type {_name(module)}, its configuration makes it {_name(fresh)}: {_ANEW}"
        return
    if name in tested:
        for place, part in module.named_modules(prefix=name):
            yield from _hooks(place, part)
        return
    yield from _hooks(label, module)
    own, made = vars(module), vars(fresh)
    for table in _TABLES:
        mine, new = ({k: part for k, part in held[table].items() if part is not None} for held in (own, made))
        if [*mine] != [*new]:  # in order, since a Sequential runs in the order of its modules
            held = (", ".join(names) or "nothing" for names in (mine, new))
            yield "{} has as {} {}, its configuration makes it {}: {}".format(label, table[1:], *held, _ANEW)
            continue
        for key in new:
            place = f"{name}.{key}".lstrip(".")
            if table == "_modules":
                yield from _differences(place, mine[key], new[key], tested)
            else:
                yield from _tensor_faults(place, mine[key], new[key])
    for key in sorted((own.keys() | made.keys()) - _COMPARED_APART):
        if key not in made:
            # Other programs leave marks, which are never read here; a method or a tensor may be.
            if not _is_plain(own[key]) or hasattr(type(module), key):
                yield f"{label} has the attribute {key}, unlike a new one: delete it"
        elif key not in own or type(own[key]) is not type(made[key]) or own[key] != made[key]:
            yield f"{label}.{key} = {shown(own.get(key))}, its configuration makes it {shown(made[key])}: {_ANEW}"


def _is_plain(value: object) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _tensor_faults(name: str, tensor: Any, like: Tensor) -> Iterator[str]:
    """Yield how a tensor differs from a contiguous one of the shape and kind of `like`."""
    if faults := [*_type_faults(name, tensor, (type(like),))]:
        yield from faults
    elif tensor.layout != torch.strided or not tensor.is_contiguous():
        yield f"{name} does not lie in memory as a new tensor does: put tensor.contiguous() in its place"
    elif tensor.shape != like.shape or (
        not tensor.is_floating_point() if like.is_floating_point() else tensor.dtype != like.dtype
    ):
        shape, made = (f"{tuple(part.shape)} of {part.dtype}" for part in (tensor, like))
        yield f"{name} has the shape {shape}, its configuration makes it {made}: {_ANEW}"


def _type_faults(name: str, tensor: object, kinds: tuple[type[Tensor], ...]) -> Iterator[str]:
    if type(tensor) not in kinds:
        yield f"{name} is of type {_name(tensor)}: only {' or '.join(kind.__name__ for kind in kinds)} is modelled"


def _hooks(name: str, module: nn.Module) -> Iterator[str]:
    if hooks := [kind for kind in _HOOKS if getattr(module, f"_{kind}")]:
        yield f"{name} has {', '.join(hooks)}: remove them before verifying, whatever they do is not modelled"
    if parametrize.is_parametrized(module):
        yield f"{name} is parametrized: bake it in (torch.nn.utils.parametrize.remove_parametrizations)"


def _mixtures(model: LRNN) -> Iterator[str]:
    tensors = [*model.parameters(), *model.buffers()]
    kinds = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    if len(kinds) > 1 or len({tensor.device for tensor in tensors}) > 1:
        listed = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
        yield f"its tensors are of the dtypes {listed}, or on several devices: convert it to one"


def _buffer_faults(model: LRNN) -> Iterator[str]:
    """Yield faults that neither digest nor configuration shows: masks, and indices that compiled loops do not check."""
    for name, module in model.named_modules():
        if isinstance(module, AffineLayer) and type(module) in OURS:
            sizes = torch.tensor(module.block_sizes)[:, None]
            if not torch.equal(module.mask.cpu(), torch.arange(int(sizes.max())) < sizes):
                yield f"{name}.mask is not that of blocks of sizes {module.block_sizes}: {_ANEW}"
        if isinstance(module, Numbers):
            yield from module.out_of_range(dict(model.named_buffers()), f"{name}.")


def _name(thing: object) -> str:
    return type(thing).__name__
