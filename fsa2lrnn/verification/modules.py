"""Check that a model consists of the modules that the verifiers model, since their verdicts hold only for these.

A verifier reads weights, and reasons about Linear, ReLU, LayerNorm with ε = 10⁻⁵ and the scans of the library's layers.
So a model is compared, attribute by attribute, with a new one of the same configuration. Verifiers do not read hooks,
other activations, a user-defined `forward` or tensors outside the parameters: models with these are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.affine import Readout, SwitchedAffine
from fsa2lrnn.lrnn.arithmetic import FOREIGN, INSTEAD, reductions, unproved
from fsa2lrnn.lrnn.config import LRNNConfig
from fsa2lrnn.lrnn.gate import Gate, TableGate
from fsa2lrnn.lrnn.layer_checks import check_layers, user_layers
from fsa2lrnn.lrnn.layers import LAYERS, OURS, name_of
from fsa2lrnn.lrnn.layers.block import AffineLayer
from fsa2lrnn.lrnn.layers.index import IndexEmbedding, IndexReadout, Numbers
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.tensor_file import on_meta_device
from fsa2lrnn.reading import shown

_HOOKS = ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks")
_ADMITTED: set[type[LRNN]] = {LRNN}
_MOST = 4  # the most faults that a message names
_ALIGNED = 64  # bytes: torch aligns tensors to these, and kernels may sum unaligned ones in another order
_ANEW = "load or build the model anew"
_ENDS = (nn.Embedding, Gate, IndexEmbedding, IndexReadout)
_MODELLED = (LRNN, *_ENDS, TableGate, nn.Linear, nn.ReLU, nn.LayerNorm, nn.ModuleList)
_MODELLED += tuple(
    layer for layer in LAYERS.values() if layer in OURS
)  # loads the layers of extras, so that their classes are recorded as imported
_PLAIN = (bool, int, float, str, type(None))
_NOT_RUN = ("__annotations__", "__setstate__")  # Python and torch's compiler set these on first use


def _class_attributes() -> dict[tuple[type, str], object]:
    parts = ((kind, vars(base)) for kind in _MODELLED for base in reversed(kind.__mro__))
    return {(kind, name): part for kind, own in parts for name, part in own.items() if name not in _NOT_RUN}


_AS_IMPORTED = _class_attributes()


def admit(kind: type[LRNN]) -> None:
    """Admit a mutant's class to the verifiers, so that they verify mutants instead of rejecting the class."""
    _ADMITTED.add(kind)


def check_modelled(model: LRNN | SwitchedAffine) -> tuple[str, ...]:
    """Check that verifiers model every part of a model or of its tables, and test user-defined layers.

    Returns:
        The names of the user-defined layers, whose declarations passed a test on random inputs: () for most models
        and for tables.

    Raises:
        FalseDeclaration: for a user-defined layer that computes other than it declares, on random inputs.
        UnsupportedFormat: naming, with remedies, up to four faults: modules, attributes and tensors that differ from
            those of a new model, indices out of range, hooks, replaced methods, and settings of torch that compute at
            less than the dtype's precision.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> check_modelled(compile_machine(zoo.parity()))
    ()
    """
    faults = list(_faults(model) if not isinstance(model, SwitchedAffine) else _table_faults(model))
    if faults:
        more = f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else ""
        raise UnsupportedFormat(f"cannot verify this model: {'; '.join(faults[:_MOST])}{more}")
    if isinstance(model, SwitchedAffine):
        return ()
    check_layers(model)
    return user_layers(model)


def _own_layers(config: LRNNConfig) -> dict[str, str]:
    names = {f"layers.{i}": name_of(layer) for i, layer in enumerate(config.layers)}
    return {place: name for place, name in names.items() if LAYERS[name] not in OURS}


def _table_faults(tables: SwitchedAffine) -> Iterator[str]:
    if type(tables) is not SwitchedAffine or type(tables.readout) is not Readout:
        yield f"the tables are of type {_name(tables)} with a {_name(tables.readout)}: make a SwitchedAffine of them"
        return
    for name, tensor in (vars(tables) | vars(tables.readout)).items():
        if isinstance(tensor, Tensor):
            yield from _type_faults(name, tensor, (Tensor, nn.Parameter))
    yield from reductions(tables.A.device)


def _faults(model: LRNN) -> Iterator[str]:
    if type(model) not in _ADMITTED:
        reason = "a subclass that may compute anything: verify an LRNN itself"
        yield f"it is of type {_name(model)}, {reason if isinstance(model, LRNN) else f'not an LRNN: {FOREIGN}'}"
        return
    # Validate the configuration and the classes first: every later check calls their methods.
    config: Any = vars(model).get("config")
    if faults := [*_replaced_methods(), *_config_faults(config)]:
        yield from faults
        return
    try:
        with on_meta_device():  # uses neither memory nor random numbers
            fresh = LRNN(config)
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        yield f"its configuration cannot be built on the meta device ({str(error)[:200]}): build its layers there"
        return
    ends = {name for name in ("embedding", "readout") if type(fresh.get_submodule(name)) not in _ENDS}
    assumed = {*_own_layers(config), *ends}  # a user-defined layer may define its own ends
    if faults := list(_differences("", model, fresh, assumed)):
        yield from faults
        return
    if model.not_causal is not None:
        yield model.not_causal
    elif reasons := unproved(model):
        yield f"{reasons[0]}: {INSTEAD}"
    if faults := [*_global_hooks(), *_numbers(model), *reductions(model.device)]:
        yield from faults
        return
    yield from _values(model)


def _replaced_methods() -> Iterator[str]:
    now = _class_attributes()
    for (kind, name), part in _AS_IMPORTED.items():
        if now.get((kind, name)) is not part:
            yield f"{kind.__name__}.{name} is not what it was when it was imported: put it back, or start Python anew"


def _config_faults(config: Any) -> Iterator[str]:
    """Yield a message for each part of a configuration that is not plain data, and could change between two reads."""
    if type(config) is not LRNNConfig or type(config.layers) is not tuple:
        yield f"its configuration is of type {_name(config)}, or its layers of another than tuple: give an LRNNConfig"
        return
    symbols = {"alphabet": config.alphabet, "outputs": config.outputs}
    if odd := [name for name, value in symbols.items() if type(value) not in (tuple, str)]:
        yield f"config.{odd[0]} is of type {_name(symbols[odd[0]])}: make it a tuple"
    parts = {f"layers[{i}]": layer for i, layer in enumerate(config.layers) if LAYERS[name_of(layer)] in OURS}
    for place, part in {"": config, **parts}.items():
        if vars(part).keys() != {field.name for field in fields(part)}:
            yield f"config.{place} holds {', '.join(vars(part))}: its class has other fields"
        for name, value in vars(part).items():
            if name not in ("alphabet", "outputs", "layers") and not _is_plain(value):
                yield f"config.{place}.{name} = {shown(value)} is of type {_name(value)}: give plain data"
        replace(part)  # raises as for a new configuration


def _is_plain(value: object) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _differences(name: str, module: nn.Module, fresh: nn.Module, assumed: set[str]) -> Iterator[str]:
    """Yield the differences of a module from a new one; user-defined layers are only checked for tampering."""
    label = name or "the model"
    if not isinstance(module, nn.Module) or (name and type(module) is not type(fresh)):
        yield f"{label} is of type {_name(module)}, its configuration makes it {_name(fresh)}: {_ANEW}"
        return
    if name in assumed:
        for place, part in module.named_modules(prefix=name):
            yield from _tampering(place, part)
        return
    yield from _tampering(label, module)
    own, made = vars(module), vars(fresh)  # attributes first, then parameters, buffers and submodules
    for key in sorted(own.keys() ^ made.keys()):
        if key in own and _is_plain(own[key]):  # a mark of another program, which is never read here
            continue
        yield f"{label} {'has' if key in own else 'lacks'} the attribute {key}, unlike a new one: {_ANEW}"
    for key in own.keys() & made.keys():
        mine, new = own[key], made[key]
        if key in ("_parameters", "_buffers", "_modules"):
            if type(mine) is not dict or [*mine] != [*new] or any((mine[k] is None) != (new[k] is None) for k in new):
                held = (", ".join(k for k in part if part[k] is not None) or "nothing" for part in (mine, new))
                yield "{} has as {} {}, its configuration makes it {}: {}".format(label, key[1:], *held, _ANEW)
                continue
            for part in [part for part in new if new[part] is not None]:
                place = f"{name}.{part}".lstrip(".")
                if key == "_modules":
                    yield from _differences(place, mine[part], new[part], assumed)
                else:
                    yield from _tensor_faults(place, mine[part], new[part])
        elif key != "training" and not _is_same(mine, new):  # no module here depends on the training mode
            yield f"{label}.{key} = {shown(mine)}, its configuration makes it {shown(new)}: {_ANEW}"


def _is_same(mine: Any, new: Any) -> bool:
    """Decide whether two values are equal and of equal types: a user-defined type may equal anything."""
    if type(mine) is not type(new) or (isinstance(new, tuple | dict) and len(mine) != len(new)):
        return False
    if isinstance(new, dict):
        return all(_is_same(*pair) for pair in zip(mine.items(), new.items(), strict=True))
    return all(map(_is_same, mine, new)) if isinstance(new, tuple) else bool(mine == new)


def _tensor_faults(name: str, tensor: Any, like: Tensor) -> Iterator[str]:
    """Yield how a tensor differs from a contiguous, aligned one of the shape and kind of `like`."""
    if faults := [*_type_faults(name, tensor, (type(like),))]:
        yield from faults
        return
    is_view = tensor.layout != torch.strided or tensor.is_nested or tensor.is_neg() or tensor.is_conj()
    if is_view or tensor._is_zerotensor() or not tensor.is_contiguous():
        yield f"{name} does not lie in memory as a new tensor does: put tensor.contiguous() in its place"
    elif tensor.device.type == "cpu" and tensor.data_ptr() % _ALIGNED:
        yield f"{name} does not begin at a multiple of {_ALIGNED} bytes: put tensor.clone() in its place"
    elif tensor.shape != like.shape or not _has_kind(tensor.dtype, like.dtype):
        shape, made = (f"{tuple(part.shape)} of {part.dtype}" for part in (tensor, like))
        yield f"{name} has the shape {shape}, its configuration makes it {made}: {_ANEW}"


def _has_kind(dtype: torch.dtype, like: torch.dtype) -> bool:
    return dtype.is_floating_point if like.is_floating_point else dtype == like


def _type_faults(name: str, tensor: Any, kinds: tuple[type[Tensor], ...]) -> Iterator[str]:
    if type(tensor) not in kinds:
        yield f"{name} is of type {_name(tensor)}: only {' or '.join(kind.__name__ for kind in kinds)} is modelled"
    else:
        yield from _shadowing(name, tensor)


def _tampering(name: str, module: nn.Module) -> Iterator[str]:
    if hooks := [kind for kind in _HOOKS if getattr(module, f"_{kind}")]:
        yield f"{name} has {', '.join(hooks)}: remove them before judging, whatever they do is not modelled"
    if parametrize.is_parametrized(module):
        yield f"{name} is parametrized: bake it in (torch.nn.utils.parametrize.remove_parametrizations)"
    yield from _shadowing(name, module)


def _shadowing(name: str, thing: nn.Module | Tensor) -> Iterator[str]:
    if taken := sorted(attribute for attribute in vars(thing) if hasattr(type(thing), attribute)):
        yield f"{name} has its own {', '.join(taken)} in place of its class's: delete it"


def _values(model: LRNN) -> Iterator[str]:
    """Yield faults that neither digest nor configuration shows: masks, and indices that compiled loops do not check."""
    for name, module in model.named_modules():
        if isinstance(module, AffineLayer) and type(module) in OURS:
            sizes = torch.tensor(module.block_sizes)[:, None]
            if not torch.equal(module.mask.cpu(), torch.arange(int(sizes.max())) < sizes):
                yield f"{name}.mask is not that of blocks of sizes {module.block_sizes}: {_ANEW}"
        if isinstance(module, Numbers):
            yield from module.out_of_range(dict(model.named_buffers()), f"{name}.")


def _numbers(model: LRNN) -> Iterator[str]:
    tensors = [*model.parameters(), *model.buffers()]
    kinds = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    if len(kinds) > 1 or len({tensor.device for tensor in tensors}) > 1:
        listed = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
        yield f"its tensors are of the dtypes {listed}, or on several devices: convert it to one"


def _global_hooks() -> Iterator[str]:
    for kind in _HOOKS:
        if getattr(torch_module, f"_global_{kind}", None):
            yield f"torch has {kind} for all modules: remove them before judging"


def _name(thing: object) -> str:
    return type(thing).__name__
