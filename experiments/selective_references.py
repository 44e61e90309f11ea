"""The published modules of the selective layers, read from checkouts and run in double precision on any machine.

Kernels for GPUs are replaced by the reference implementations of the same repositories.
"""

from __future__ import annotations

import ast
import math
import types
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, KEYS, LENGTH = 8, 2, 4, 11  # of the numbers; `use` changes them for measurements
_IS_DOUBLE = True
_ANNOTATIONS = 1 << 24  # the compiler flag of `from __future__ import annotations`


def use(width: int, heads: int, keys: int, length: int) -> None:
    """Build the modules that follow in these sizes and in single precision."""
    globals().update(WIDTH=width, HEADS=heads, KEYS=keys, LENGTH=length, _IS_DOUBLE=False)


def _dtype() -> torch.dtype:
    return torch.float64 if _IS_DOUBLE else torch.float32


class Reference(NamedTuple):
    """A published module, our layer of the same weights, and how the names of parameters change (None: they do not)."""

    layer: str
    options: dict[str, Any]
    repository: str
    build: Callable[[Path], nn.Module]
    names: Callable[[str, Tensor], tuple[str, Tensor]] | None = None


def defined(path: Path, *names: str, **scope: Any) -> dict[str, Any]:
    """Return the classes and functions of these names in a Python file, in double precision, run in this scope."""
    text = path.read_text("utf-8")
    if _IS_DOUBLE:
        for single, double in (
            ("torch.float32", "torch.float64"), ("dtype=torch.float)", "dtype=torch.float64)"),
            (".float()", ".double()"), ("to(torch.float)", "to(torch.float64)"), ("torch.float,", "torch.float64,"),
        ):  # fmt: skip
            text = text.replace(single, double)
    wanted = (ast.FunctionDef, ast.ClassDef)
    body = [n for n in ast.walk(ast.parse(text)) if isinstance(n, wanted) and n.name in names]
    # a definition in a branch for a GPU comes before the one for others
    last = {node.name: node for node in body}
    assert set(last) == set(names), f"{path} lacks {set(names) - set(last)}"
    tree = ast.Module(list(last.values()), [])
    import einops  # pyright: ignore[reportMissingImports] - a package that only the making of numbers needs

    of_einops = {"rearrange": einops.rearrange, "repeat": einops.repeat, "einsum": einops.einsum}
    space: dict[str, Any] = (
        {
            "torch": torch,
            "t": torch,
            "nn": nn,
            "F": functional,
            "math": math,
            "warnings": warnings,
        }
        | of_einops
        | scope
    )
    exec(compile(tree, str(path), "exec", _ANNOTATIONS), space)
    return space


# flash-linear-attention


class ShortConvolution(nn.Module):
    """The causal convolution of each channel by itself, and what a caller reads of it."""

    backend, kernel_size = "torch", (4,)

    def __init__(self, hidden_size: int, kernel_size: int, bias: bool, activation: str) -> None:
        super().__init__()
        assert not bias
        self.activation = activation
        self.weight = nn.Parameter(torch.randn(hidden_size, 1, kernel_size))

    def forward(self, x: Tensor, **_: Any) -> tuple[Tensor, None]:
        return convolution(x, self.weight.squeeze(1), None, self.activation)


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str, **_: Any) -> tuple[Tensor, None]:
    """Convolve (B, T, D) by (D, W)."""
    y = functional.conv1d(
        functional.pad(x.mT, (weight.shape[-1] - 1, 0)), weight.unsqueeze(1), bias, groups=len(weight)
    ).mT
    assert activation == "silu"
    return functional.silu(y), None


class GatedNorm(nn.Module):
    """RMS norm times a gate's activation."""

    def __init__(self, size: int, eps: float, activation: str = "swish", **_: Any) -> None:
        super().__init__()
        self.weight, self.eps, self.activation = nn.Parameter(torch.ones(size)), eps, activation

    def forward(self, x: Tensor, gate: Tensor | None = None) -> Tensor:
        y = functional.rms_norm(x, x.shape[-1:], self.weight, self.eps)
        if gate is None:
            return y
        return y * (gate.sigmoid() if self.activation == "sigmoid" else functional.silu(gate))


def _unit(x: Tensor) -> Tensor:
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def _delta_rule(naive: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, beta: Tensor, **given: Any) -> Any:
    """Call a reference implementation as the layers call its kernel."""
    if given.pop("use_beta_sigmoid_in_kernel", False):
        beta = beta.sigmoid() * (2 if given["allow_neg_eigval"] else 1)
    g = given.pop("g")
    if given.pop("use_gate_in_kernel", False):
        rate = given["A_log"].exp()
        g = -(rate if g.ndim == 3 else rate[:, None]) * functional.softplus(g + given["dt_bias"].view(g.shape[2:]))
    assert given.pop("use_qk_l2norm_in_kernel")
    extra = {"num_householder": given["num_householder"], "cu_seqlens": None} if "num_householder" in given else {}
    scale = q.shape[-1] ** -0.5
    if extra:  # this reference does not scale queries
        q, extra["scale"] = _unit(q) * scale, None
        return naive(q=q, k=_unit(k), v=v, g=g, beta=beta, **extra)
    return naive(q=_unit(q), k=_unit(k), v=v, g=g, beta=beta, scale=scale)


def _gdn2_rule(
    naive: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, w: Tensor, **_: Any
) -> Any:
    return naive(_unit(q), _unit(k), v, g, b, w, scale=q.shape[-1] ** -0.5)


def fla(module: str, classname: str, naive: str, function: str, kernel: str, folder: Path, **options: Any) -> nn.Module:
    """Return a layer of flash-linear-attention, its kernel replaced by its reference implementation."""
    reference = defined(folder / f"fla/ops/{naive}/naive.py", function)[function]
    wrapper = partial(_gdn2_rule if kernel == "gdn2" else _delta_rule, reference)
    space = defined(
        folder / f"fla/layers/{module}.py", classname,
        ShortConvolution=ShortConvolution, causal_conv1d=convolution, FusedRMSNormGated=GatedNorm, RMSNorm=GatedNorm,
        get_layer_cache=lambda *_: None, update_layer_cache=lambda *_, **__: None,
        unpad_hidden_states=lambda x, cu, *_: (x, None, cu), repad_hidden_states=lambda x, *_: x,
        **{f"chunk_{kernel}": wrapper},
    )  # fmt: skip
    sizes = {"hidden_size": WIDTH, "head_dim": KEYS, "num_heads": HEADS}
    return space[classname](**sizes, **options).train()


gdn = partial(fla, "gated_deltanet", "GatedDeltaNet", "gated_delta_rule", "naive_recurrent_gated_delta_rule",
              "gated_delta_rule")  # fmt: skip
gdp = partial(fla, "gated_deltaproduct", "GatedDeltaProduct", "gated_delta_product",
              "naive_recurrent_gated_delta_product", "gated_delta_product")  # fmt: skip
kda = partial(fla, "kda", "KimiDeltaAttention", "kda", "naive_recurrent_kda", "kda")
gdn2 = partial(fla, "gdn2", "GatedDeltaNet2", "gdn2", "naive_recurrent_gdn2", "gdn2")


def rwkv7_fla(folder: Path) -> nn.Module:
    """Return RWKV7Attention as a first layer, its kernels replaced by the recurrence of generalised delta rules."""
    path = folder / "fla/ops/generalized_delta_rule/dplr/naive.py"
    naive = defined(path, "dplr_recurrence")["dplr_recurrence"]

    def chunk(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, **_: Any) -> tuple[Tensor, None]:
        parts = (x.transpose(1, 2) for x in (r * r.shape[-1] ** 0.5, k, v, a, b, w))  # it scales queries
        return naive(*parts)[0].transpose(1, 2), None

    def shift(x: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        return functional.pad(x, (0, 0, 1, -1)) - x, None

    def corrected(o: Tensor, r: Tensor, k: Tensor, r_k: Tensor, v: Tensor, g: Tensor) -> Tensor:
        return (o + ((r * k * r_k).sum(-1, keepdim=True) * v).flatten(-2)) * g

    space = defined(
        folder / "fla/layers/rwkv7.py", "RWKV7Attention", LoRA=defined(folder / "fla/layers/rwkv6.py", "LoRA")["LoRA"],
        get_layer_cache=lambda *_: None, update_layer_cache=lambda *_, **__: None, token_shift=shift,
        fused_addcmul_rwkv7=lambda x, delta, *mu: [x + delta * part for part in mu],
        fused_k_rwkv7=lambda k, a, k_a: k * (1 + (a - 1) * k_a), chunk_rwkv7=chunk, gate_output_correction=corrected,
    )  # fmt: skip
    sizes = {"hidden_size": WIDTH, "head_dim": KEYS, "layer_idx": 0, "num_hidden_layers": 2}
    ranks = {"decay_low_rank_dim": 3, "a_low_rank_dim": 3, "gate_low_rank_dim": 5}
    return space["RWKV7Attention"](**sizes, **ranks).train()


# The others


def rwkv7(folder: Path) -> nn.Module:
    """Return the time mixing of a first block."""
    scope = {
        "MyModule": nn.Module,
        "MyFunction": lambda f: f,
        "HEAD_SIZE": KEYS,
        "DTYPE": torch.float64 if _IS_DOUBLE else torch.float32,
    }
    scope |= {f"D_{gate}_LORA": 3 for gate in ("DECAY", "AAA", "MV", "GATE")}
    space = defined(folder / "RWKV-v7/rwkv_v7_demo.py", "RWKV7_OP", "RWKV_Tmix_x070", **scope)
    module = space["RWKV_Tmix_x070"](types.SimpleNamespace(head_size_a=KEYS, dim_att=WIDTH, n_embd=WIDTH), 0)
    module.ln_x.eps = KEYS * 1e-5  # 64·10⁻⁵ is for heads of 64
    for name, weight in module.named_parameters():
        if not name.startswith(("ln_x", "receptance", "key", "value", "output")):
            nn.init.normal_(weight, std=0.5)
        if name in ("v0", "v1", "v2"):
            weight.requires_grad_(False)
    module.forward = partial(module.forward, v_first=None)
    return module


def of_rwkv7(key: str, value: Tensor) -> tuple[str, Tensor]:
    """Return fla's name of a parameter of BlinkDL's; "." for one that a first block does not use."""
    lora = {"1": "lora.0.weight", "2": "lora.2.weight", "0": "lora.2.bias"}
    names = {"receptance": "r_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj", "ln_x": "g_norm"}
    first, _, rest = key.partition(".")
    if first in names:
        return f"{names[first]}.{rest}", value
    if len(key) == 2 and key[1] in lora:
        return (f"{key[0]}_lora.{lora[key[1]]}", value.flatten() if key[1] == "0" else value.T) if key[0] != "v" else (
            ".", value
        )  # fmt: skip
    return key, value.flatten() if key in ("k_k", "k_a") else value


class Mamba2(nn.Module):
    """Mamba2Simple by its slower path, with the minimal discrete SSD of the same repository."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        minimal = defined(folder / "mamba_ssm/modules/ssd_minimal.py", "segsum", "ssd_minimal_discrete")[
            "ssd_minimal_discrete"
        ]

        def scan(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, **_: Any) -> Tensor:
            B, C = (y.expand(-1, -1, x.shape[2], -1) for y in (B, C))
            chunk = max(n for n in range(1, 65) if LENGTH % n == 0)
            return minimal(x * dt.unsqueeze(-1), A * dt, B, C, chunk)[0] + D[:, None] * x

        def norm(size: int, eps: float, **_: Any) -> nn.Module:
            module = GatedNorm(size, eps)
            plain = module.forward
            module.forward = lambda x, gate=None: plain(x if gate is None else x * functional.silu(gate))
            return module

        space = defined(
            folder / "mamba_ssm/modules/mamba2_simple.py", "Mamba2Simple",
            causal_conv1d_fn=None, RMSNormGated=norm, mamba_chunk_scan_combined=scan,
        )  # fmt: skip
        self.inner = space["Mamba2Simple"](WIDTH, KEYS, headdim=2 * KEYS, use_mem_eff_path=False)

    def forward(self, u: Tensor) -> Tensor:
        return self.inner(u)


def of_mamba2(key: str, value: Tensor) -> tuple[str, Tensor]:
    """Return our name of a parameter of Mamba2Simple."""
    names = {"conv1d.weight": "xBC_conv1d.weight", "conv1d.bias": "conv_bias"}
    return names.get(key.removeprefix("inner."), key.removeprefix("inner.")), value


def mamba3(folder: Path) -> nn.Module:
    """Return Mamba-3 without MIMO, its kernel replaced by the recurrence of the kernel's tests."""
    step = defined(folder / "tests/ops/triton/test_mamba3_siso.py", "mamba3_siso_step_ref",
                   Optional=Any, Tuple=Any)["mamba3_siso_step_ref"]  # fmt: skip

    def kernel(**given: Any) -> Tensor:
        for name in ("chunk_size", "Input_States", "return_final_states", "cu_seqlens"):
            del given[name]
        return step(**given)[0]

    space = defined(
        folder / "mamba_ssm/modules/mamba3.py", "heavy_tail_activation", "Mamba3",
        RMSNormGated=GatedNorm, mamba3_siso_combined=kernel,
    )  # fmt: skip
    return space["Mamba3"](WIDTH, KEYS, headdim=2 * KEYS, rope_fraction=0.5)


def pd_ssm(folder: Path) -> nn.Module:
    """Return PD_Block."""
    import numpy as np

    path = folder / "state_tracking_PyTorch/models/pdssm.py"
    space = defined(path, "PD_Block", np=np, device="cpu")
    return space["PD_Block"](WIDTH, HEADS * KEYS, 3, dropout_rate=0.0)


def slice_of(folder: Path, **options: Any) -> nn.Module:
    """Return LinearCDE, its mask applied in each pass, and its transform as a product with its own matrix."""

    def transform(x: Tensor, scale: float) -> Tensor:  # noqa: ARG001 - the matrix is scaled already
        return x @ module.hadamard.T

    path = folder / "models/slcde.py"
    space = defined(path, "LinearCDE", "hadamard_matrix", hadamard_transform=transform)
    space["torch"] = types.SimpleNamespace(**{**vars(torch), "device": lambda _: torch.device("cpu")})
    module = space["LinearCDE"](WIDTH, HEADS * KEYS, **options)
    if not options.get("diagonal"):
        module.vf_A.forward = lambda x: functional.linear(x, module.vf_A.weight * module.mask)
    return module


def of_slice(key: str, value: Tensor) -> tuple[str, Tensor]:
    """Return our name: only a sparse A has a mask."""
    return "." if key == "mask" else key, value


def of_sparse(key: str, value: Tensor) -> tuple[str, Tensor]:
    """Return this library's name of a parameter and its value, with A and its mask transposed to (inputs, outputs)."""
    return {"vf_A.weight": "vf_A"}.get(key, key), value.T if key in ("vf_A.weight", "mask") else value


def mingru(folder: Path) -> nn.Module:
    """Return minGRU in logarithms."""
    names = ("exists", "default", "heinsen_associative_scan_log", "g", "log_g", "minGRU")
    scope = {"Module": nn.Module, "Linear": nn.Linear, "Identity": nn.Identity}
    return defined(folder / "minGRU_pytorch/minGRU.py", *names, **scope)["minGRU"](WIDTH)


def slstm(folder: Path) -> nn.Module:
    """Return sLSTMLayer with its cell in plain torch."""
    import sys

    sys.path.insert(0, str(folder))
    from xlstm.blocks.slstm.layer import (  # pyright: ignore[reportMissingImports]
        sLSTMLayer,
        sLSTMLayerConfig,
    )

    config = sLSTMLayerConfig(
        embedding_dim=WIDTH, num_heads=HEADS, backend="vanilla", dtype="float32", enable_automatic_mixed_precision=False
    )
    return sLSTMLayer(config).double() if _IS_DOUBLE else sLSTMLayer(config)


def of_slstm(key: str, value: Tensor) -> tuple[str, Tensor]:
    """Return our name, and matrices (H, c, 4, c), biases (H, 4, c)."""
    if key == "slstm_cell._recurrent_kernel_":
        return "recurrent_kernel", value.view(HEADS, 4, KEYS, KEYS).permute(0, 3, 1, 2)
    if key == "slstm_cell._bias_":
        return "bias", value.view(4, HEADS, KEYS).permute(1, 0, 2)
    return {"group_norm.weight": "norm_weight"}.get(key, key), value


FLA, CDE = "flash-linear-attention", "structured-linear-cdes"
REFERENCES: dict[str, Reference] = {
    "gated_deltanet": Reference("gated_deltanet", {}, FLA, gdn),
    "gated_deltanet_negative": Reference(
        "gated_deltanet",
        {"neg_eigval": True, "conv": 0, "gate": False, "expand_v": 1.0},
        FLA,
        partial(gdn, allow_neg_eigval=True, use_short_conv=False, use_gate=False, expand_v=1),
    ),
    "deltaproduct": Reference(
        "deltaproduct", {"factors": 3}, FLA, partial(gdp, use_forget_gate=False, num_householder=3, expand_v=1)
    ),
    "gated_deltaproduct": Reference(
        "gated_deltaproduct",
        {"factors": 2, "neg_eigval": False},
        FLA,
        partial(gdp, num_householder=2, allow_neg_eigval=False, expand_v=1),
    ),
    "kda": Reference("kda", {"neg_eigval": True}, FLA, partial(kda, allow_neg_eigval=True)),
    "gdn2": Reference("gdn2", {}, FLA, gdn2),
    "rwkv7_fla": Reference("rwkv7", {"rank": 3, "gate_rank": 5}, FLA, rwkv7_fla),
    "rwkv7": Reference("rwkv7", {"rank": 3}, "RWKV-LM", rwkv7, of_rwkv7),
    "mamba2": Reference("mamba2", {}, "mamba", Mamba2, of_mamba2),
    "mamba3": Reference("mamba3", {"rope": 0.5}, "mamba", mamba3),
    "pd_ssm": Reference(
        "pd_ssm",
        {"dictionary": 3},
        "expressive-sparse-state-space-model",
        pd_ssm,
        lambda key, value: (key.replace("readout", "to_out"), value),
    ),
    "slice_block": Reference("slice", {}, CDE, partial(slice_of, diagonal=True, block_size=KEYS), of_slice),
    "slice_diagonal": Reference("slice", {"form": "diagonal"}, CDE, partial(slice_of, diagonal=True), of_slice),
    "slice_sparse": Reference("slice", {"form": "sparse"}, CDE, partial(slice_of, sparsity=0.4), of_sparse),
    "slice_hadamard": Reference(
        "slice", {"form": "hadamard"}, CDE, partial(slice_of, diagonal=True, fwht=True), of_slice
    ),
    "mingru": Reference("mingru", {}, "minGRU-pytorch", mingru),
    "slstm": Reference("slstm", {}, "xlstm", slstm, of_slstm),
}
