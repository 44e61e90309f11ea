"""Is a model made of the modules that the judges model? A verdict is about these, not about whatever a module may do.

A judge reads weights, and reasons about Linear, ReLU, LayerNorm with ε = 10⁻⁵ and the layers' own scans. A hook, other
activations or a `forward` of somebody's own are not what it reads, so that it could say nothing true of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.affine import EPS, SwitchedAffine
from fsa2lrnn.lrnn.arithmetic import check_arithmetic, reductions
from fsa2lrnn.lrnn.declared import FOREIGN, INSTEAD, unproved
from fsa2lrnn.lrnn.gate import Gate, TableGate
from fsa2lrnn.lrnn.layer_checks import check_layers, user_layers
from fsa2lrnn.lrnn.layers import LAYERS, OURS, BlockLayer, Layer, LayerConfig, name_of
from fsa2lrnn.lrnn.layers.base import Columns
from fsa2lrnn.lrnn.layers.block import AffineLayer
from fsa2lrnn.lrnn.layers.index import IndexEmbedding, IndexReadout
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.unfilled import unfilled

_HOOKS = ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks")
_ADMITTED: set[type[LRNN]] = {LRNN}
_MOST = 4  # faults that a message names


def admit(kind: type[LRNN]) -> None:
    """Let judges look at a model of this type too: at a mutant, which they are to refute and not to refuse."""
    _ADMITTED.add(kind)


def check_modelled(model: LRNN | SwitchedAffine) -> tuple[str, ...]:
    """Check that a model is made of modules that the verifiers model, and test what user-defined layers declare.

    Returns:
        the names of the user-defined layers, whose declarations passed a test on random inputs.

    Raises:
        FalseDeclaration: for a user-defined layer that computes other than it declares, on random inputs.
        UnsupportedFormat: naming each module that is none of those modelled, or not set as they are, each hook,
            parametrization and attribute that takes a method's place, and each setting of torch under which products
            are less exact than their dtype; with the remedies.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> check_modelled(compile_machine(zoo.parity()))
    ()
    """
    if isinstance(model, SwitchedAffine):
        check_arithmetic(model.A.device)
        return ()
    faults = list(_faults(model))
    if faults:
        more = f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else ""
        raise UnsupportedFormat(f"nothing is said of this model: {'; '.join(faults[:_MOST])}{more}")
    check_layers(model)
    return user_layers(model)


def _faults(model: LRNN) -> Iterator[str]:
    if type(model) not in _ADMITTED:
        known = "of which nothing is known but LRNN's name: judge an LRNN itself"
        yield f"it is of type {_name(model)}, {known if isinstance(model, LRNN) else f'no LRNN: {FOREIGN}'}"
        return
    named = {name for name, _ in model.named_children()}
    if named != (wanted := {"embedding", "layers", "norms", "readout"}):
        yield f"it has the modules {sorted(named)}, an LRNN {sorted(wanted)}"
        return
    if model.not_causal is not None:
        yield model.not_causal
        return
    if reasons := unproved(model):
        yield f"{reasons[0]}: {INSTEAD}"
        return
    theirs = [layer for layer in model.recurrences if type(layer) not in OURS]
    believed = {module for layer in theirs for module in layer.modules()}
    yield from _layers(model)
    yield from _ends(model, bool(theirs))
    yield from _norms(model)
    for name, module in model.named_modules():
        yield from _tampering(name or "the model", module)
        if isinstance(module, Gate) and module not in believed:
            yield from _gate(name, module)
    yield from _numbers(model)
    yield from _global_hooks()
    yield from reductions(model.device)


def _layers(model: LRNN) -> Iterator[str]:
    if type(model.layers) is not nn.ModuleList or len(model.layers) != len(model.config.layers):
        wanted = len(model.config.layers)
        yield f"layers is {_name(model.layers)} of {len(model.layers)}, the configuration has {wanted}"
        return
    for i, (layer, config) in enumerate(zip(model.layers, model.config.layers, strict=True)):
        if type(layer) is not (wanted := LAYERS[name_of(config)]):
            hint = "register it (fsa2lrnn.lrnn.register)" if isinstance(layer, Layer) else "put a layer there"
            yield f"layers.{i} is of type {_name(layer)}, its configuration {wanted.__name__}'s: {hint}"
        elif wanted in OURS:
            yield from _settings(f"layers.{i}", layer, wanted, config, model.config.columns)
            if type(layer) is BlockLayer and (layer.value is None) != (layer.rule == "onehot"):
                how = "without" if layer.rule == "onehot" else "with"
                yield f"layers.{i} under normalisation={layer.rule!r} is modelled {how} a gate of v: build it so"


def _settings(name: str, layer: nn.Module, kind: type[Layer], config: LayerConfig, columns: Columns) -> Iterator[str]:
    """What a layer holds beside its weights that is not as its configuration makes it."""
    with unfilled():  # neither memory nor random numbers are taken
        fresh = kind.build(1, config, columns)
    plain, own = vars(nn.Module()), vars(layer)
    for key, value in vars(fresh).items():
        if key not in plain and own.get(key) != value:
            yield f"{name}.{key} = {own.get(key)!r}, its configuration makes it {value!r}: load or build the model anew"
    if isinstance(layer, AffineLayer):
        sizes = torch.tensor(layer.block_sizes, device=layer.mask.device)
        if not torch.equal(layer.mask, torch.arange(max(layer.block_sizes), device=sizes.device) < sizes[:, None]):
            yield f"{name}.mask is not that of blocks of sizes {layer.block_sizes}: load or build the model anew"


def _ends(model: LRNN, is_believed: bool) -> Iterator[str]:
    """Embedding and read-out, which a layer of a user's own may bring along."""
    known = {"embedding": (nn.Embedding, IndexEmbedding), "readout": (Gate, IndexReadout)}
    for name, kinds in known.items():
        module = model.get_submodule(name)
        if type(module) not in kinds and not is_believed:
            yield f"{name} is of type {_name(module)}: {' and '.join(kind.__name__ for kind in kinds)} are modelled"
    if isinstance(model.embedding, nn.Embedding) and model.embedding.max_norm is not None:
        yield f"embedding.max_norm = {model.embedding.max_norm} changes weights as they are read: set it to None"


def _norms(model: LRNN) -> Iterator[str]:
    wanted = {True: len(model.layers) + 1, "readout": 1, False: 0}[model.config.layer_norm]
    if type(model.norms) is not nn.ModuleList or len(model.norms) != wanted:
        yield f"norms holds {len(model.norms)} modules, layer_norm = {model.config.layer_norm!r} asks for {wanted}"
    for i, norm in enumerate(model.norms):
        if type(norm) is not nn.LayerNorm:
            yield f"norms.{i} is of type {_name(norm)}: LayerNorm is modelled"
        elif norm.eps != EPS:
            yield f"norms.{i}.eps = {norm.eps}: {EPS} is modelled, set it so"
        elif not norm.elementwise_affine or norm.bias is None or len(norm.normalized_shape) != 1:
            yield f"norms.{i} is {norm}: one axis, with weight and bias, is modelled"


def _gate(name: str, gate: Gate) -> Iterator[str]:
    if type(gate) is TableGate:
        if (found := [part for part, _ in (*gate.named_parameters(), *gate.named_buffers())]) != ["table"]:
            yield f"{name} holds {', '.join(found) or 'nothing'}: a table gate is its table alone"
        return
    if type(gate) is not Gate:
        yield f"{name} is of type {_name(gate)}: Gate and TableGate are modelled"
    kinds = [type(part) for part in gate.children()]
    if kinds != [nn.Linear, nn.ReLU, nn.Linear]:
        yield f"{name} is {'–'.join(kind.__name__ for kind in kinds)}: Linear–ReLU–Linear is modelled"
    elif any(part.bias is None for part in gate.children() if isinstance(part, nn.Linear)):
        yield f"{name} lacks a bias: set it to zero instead"


def _tampering(name: str, module: nn.Module) -> Iterator[str]:
    """What makes a module do other than its class says."""
    if hooks := [kind for kind in _HOOKS if getattr(module, f"_{kind}")]:
        yield f"{name} has {', '.join(hooks)}: remove them before judging, whatever they do is not modelled"
    if parametrize.is_parametrized(module):
        yield f"{name} is parametrized: bake it in (torch.nn.utils.parametrize.remove_parametrizations)"
    taken = sorted(attribute for attribute in vars(module) if hasattr(type(module), attribute))
    if taken:
        yield f"{name} has its own {', '.join(taken)} in place of its class's: delete it"


def _numbers(model: LRNN) -> Iterator[str]:
    tensors = [*model.named_parameters(), *model.named_buffers()]
    if odd := [name for name, tensor in tensors if type(tensor) not in (Tensor, nn.Parameter)]:
        yield f"{odd[0]} is of a type of its own, {_name(dict(tensors)[odd[0]])}: a plain tensor is modelled"
    kinds = {tensor.dtype for _, tensor in tensors if tensor.is_floating_point()}
    if len(kinds) > 1 or len({tensor.device for _, tensor in tensors}) > 1:
        yield f"its tensors are of the dtypes {_listed(kinds)}, or on several devices: convert it to one"


def _global_hooks() -> Iterator[str]:
    for kind in _HOOKS:
        if getattr(torch_module, f"_global_{kind}", None):
            yield f"torch has {kind} for all modules: remove them before judging"


def _listed(kinds: Iterable[torch.dtype]) -> str:
    return ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))


def _name(thing: object) -> str:
    return type(thing).__name__
