"""The 23 model folders of transformers 5.24.0 with a linear recurrence: fields that decide ranges, layers and sizes.

Each row was read from the folder's code. Ranges are what that code computes in float32 over all weights and inputs:
exp(−softplus(x)) underflows to 0, so 0 is in the range; exp(−5·σ(x)) is at least e⁻⁵. A field counts only if the code
reads it: of `time_step_min` in Mamba-2, for example, only Nemotron-H and Zamba2 make a limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.layers import EXPORTED
from fsa2lrnn.reading import Allowed, read, shown, whole

READ_FROM = "transformers 5.24.0"
MAX_LAYERS, MAX_SIZE = 1_024, 1 << 24
ALL, COUNTER_FREE, ENDS, LAST = "all", "counter-free", "ends", "last"  # classes of machines (`configuration.CLASSES`)
Interval = tuple[float, float]


@dataclass(frozen=True)
class Ranges:
    """The closed ranges of a layer's decay and of the eigenvalues of its transitions, and the class that it holds."""

    decay: Interval = (0.0, 1.0)
    eigenvalue: Interval = (0.0, 1.0)
    holds: str = COUNTER_FREE


class Fields:
    """The fields of a configuration under the names that its folder's code reads.

    Args:
        config: the configuration.
        aliases: further names of fields; inside an object as "object.field".
    """

    def __init__(self, config: Mapping[str, Any], aliases: Mapping[str, str]) -> None:
        self.config, self.used = dict(config), {*aliases, *aliases.values()}
        for old, name in aliases.items():
            place, _, inner = old.rpartition(".")
            holder = self.config.get(place) or {} if place else self.config
            if not isinstance(holder, dict):
                raise UnsupportedFormat(f"{place} = {shown(holder)} must be an object")
            if (inner or old) in holder:
                value = holder[inner or old]
                if self.config.get(name, value) != value:
                    raise UnsupportedFormat(f"{old} and {name} differ: give one of them")
                self.config[name] = value

    def get(self, name: str, default: Any, kind: Any) -> Any:
        """Return a field after a check against its type, or its default if it is missing, null or "auto"."""
        self.used.add(name)
        value = self.config.get(name)
        return default if value is None or value == "auto" else read(kind, value, name)

    def size(self, name: str, default: int, most: int = MAX_SIZE, least: int = 1) -> int:
        return self.get(name, default, Annotated[int, whole(least, most)])

    def number(self, name: str, default: float, condition: Allowed) -> float:
        return self.get(name, default, Annotated[float, condition])

    def types(self, default: Sequence[str], name: str = "layer_types") -> list[str]:
        """Return the types of layers, with the old spellings that transformers replaces."""
        given: tuple[str, ...] = self.get(name, tuple(default), tuple[str, ...])
        kinds = [_OLD.get(kind, kind) for kind in given]
        odd = next((kind for kind in kinds if kind not in KINDS), None)
        if odd is not None or not 0 < len(kinds) <= MAX_LAYERS:
            fault = f"{shown(odd)} is not known" if odd is not None else f"{len(kinds):,} are given"
            raise UnsupportedFormat(f"{name}: {fault}: give 1 to {MAX_LAYERS:,} of {', '.join(KINDS)}")
        return kinds


_OLD = {"mamba": "linear_attention", "attention": "full_attention", "recurrent": "linear_attention"}
_ATTENTION = ("full_attention", "sliding_attention", "indexed_attention")
KINDS = {
    "linear_attention": "recurrent", "hybrid": "recurrent and attention", **dict.fromkeys(_ATTENTION, "attention"),
    **dict.fromkeys(("mlp", "moe"), "units"),
}  # fmt: skip
_AT_LEAST_0 = Allowed("a number from 0 on", lambda value: value >= 0)
_ABOVE_0 = Allowed("a number above 0", lambda value: value > 0)
_AT_MOST_0 = Allowed("a number of at most 0", lambda value: value <= 0)
# exp(−x) in float32 is 1 up to the first number, and 0 from the second one on.
_ROUNDS_TO_1, _UNDERFLOWS = 2.0**-25, 104.0
Types = Callable[[Fields, int], list[str]]
Gate = Callable[[Fields, int, int], tuple[Ranges, str]]  # of the fields, the number of a layer and of layers


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """A model folder of transformers.

    Args:
        folder: its name, which is also its `model_type`; that of the text part of a larger model ends in "_text".
        layer: the name of its recurrence in `fsa2lrnn.layers`.
        gate: a function that returns the ranges of a layer and a note on what they depend on.
        depth: the default number of layers.
        types: a function that returns the types of that many layers by default.
        sizes: for each of "hidden", "heads", "key", "value", "taps" and "units" the field and its default, which may be
            a function of the sizes before; a field "" for a size that no field has.
        mixers_a_stage: how many mixers a stage of a plan takes: 2 where none has an MLP behind it.
        aliases: further names of fields.
    """

    folder: str
    layer: str
    gate: Gate
    depth: int
    types: Types
    sizes: Mapping[str, tuple[str, int | float | Callable[[dict[str, Any]], int]]]
    mixers_a_stage: int = 1
    aliases: Mapping[str, str] | None = None

    @property
    def export(self) -> str:
        """The released model of `export` of this name; "" for none."""
        return next((name for name in EXPORTED if re.sub(r"[-.]", "", name) == self.folder.replace("_", "")), "")

    def fields(self, config: Mapping[str, Any]) -> Fields:
        """Return the fields of a configuration under this folder's names."""
        return Fields(config, {"layers_block_type": "layer_types", **(self.aliases or {})})

    def layer_types(self, f: Fields) -> list[str]:
        """Return the types of the layers in order."""
        n = f.size("num_hidden_layers", self.depth, MAX_LAYERS)
        return self.types(f, n)

    def sizes_of(self, f: Fields) -> dict[str, int]:
        """Return the sizes by name."""
        found: dict[str, Any] = {"key": 1, "taps": 1}
        for name, (field, default) in self.sizes.items():
            if isinstance(default, float):  # a factor of later sizes
                found[name] = f.number(field, default, _ABOVE_0)
                continue
            size = max(default(found), 1) if callable(default) else default
            found[name] = f.size(field, size) if field else size
        return found


def _given(default: Types, f: Fields, n: int) -> list[str]:
    """Return the first n of the types in the configuration, or the default ones."""
    kinds = f.types(default(f, n))
    if len(kinds) < n and "num_hidden_layers" in f.config:
        raise UnsupportedFormat(f"num_hidden_layers = {n}, and {len(kinds)} types of layers are given: give as many")
    return kinds[:n]


def _recurrent(_f: Fields, n: int) -> list[str]:
    return ["linear_attention"] * n


def _hybrid(_f: Fields, n: int) -> list[str]:
    return ["hybrid"] * n


def _every(period: int, offset: int, kind: str = "full_attention") -> Types:
    """Return a function of types of which every `period`-th attends, from number `offset` on."""
    return partial(_given, lambda _f, n: [kind if i % period == offset else "linear_attention" for i in range(n)])


def _interval(kind: str, f: Fields, n: int, field: str = "full_attention_interval", default: int = 4) -> list[str]:
    every = f.size(field, default)
    return _every(every, every - 1, kind)(f, n)


def _olmo_types(_f: Fields, n: int) -> list[str]:
    kinds = ["full_attention" if i % 4 == 3 else "linear_attention" for i in range(n)]
    return kinds if n > 3 else [*kinds[:-1], "full_attention"]


def _kimi_types(f: Fields, n: int) -> list[str]:
    attend, others = (f.get(name, (), tuple[int, ...]) for name in ("full_attn_layers", "kda_layers"))  # from 1 on
    if not attend or not others:
        attend = range(5, n + 1, 4)
    elif sorted([*attend, *others]) != list(range(1, n + 1)):
        raise UnsupportedFormat(f"full_attn_layers and kda_layers must share the layers 1 to {n} out")
    return ["full_attention" if i + 1 in attend else "linear_attention" for i in range(n)]


def _bamba_types(f: Fields, n: int) -> list[str]:
    attend = set(f.get("attn_layer_indices", (), tuple[int, ...]))
    return ["full_attention" if i in attend else "linear_attention" for i in range(n)]


def _jamba_types(f: Fields, n: int, period: int = 8, kind: str = "full_attention") -> list[str]:
    period, offset = f.size("attn_layer_period", period), f.size("attn_layer_offset", 4, least=0)
    return [kind if i % period == offset else "linear_attention" for i in range(n)]


def _zamba_types(f: Fields, n: int) -> list[str]:
    return ["linear_attention", "linear_attention", "hybrid", *_jamba_types(f, n - 3, 6, "hybrid")]


def _zamba2_types(_f: Fields, _n: int) -> list[str]:
    return [{"m": "linear_attention", "h": "hybrid"}[kind] for kind in "m" + "mmmmmh" * 7 + "mmmmhmmmhmm"]


def _nemotron_types(f: Fields, _n: int) -> list[str]:
    letters = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
    pattern: str = f.get("hybrid_override_pattern", "ME*-", str)
    return f.types([letters.get(letter, letter) for letter in pattern])


def _gemma_types(f: Fields, n: int) -> list[str]:
    return (f.types(["recurrent", "recurrent", "attention"], "block_types") * 100)[:n]


def _exp(x: float) -> float:
    return float(np.float32(math.exp(x)))


def _delta(_f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    return Ranges(), ""


def _olmo_gate(f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    is_negative = f.get("linear_allow_neg_eigval", True, bool)
    return (Ranges(eigenvalue=(-1.0, 1.0), holds=ALL), "β = 2σ") if is_negative else (Ranges(), "β = σ")


def _bounded(lower: float) -> tuple[Ranges, str]:
    """Return the ranges for log α = `lower`·σ(·): α = 1 keeps, and β = 1 erases along the key."""
    decay = _exp(lower), 1.0
    return Ranges(decay), f"α is at least {decay[0]:.3g}, so that only β = 1 erases, along a key" if decay[0] else ""


def _glm_gate(f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    lower = f.number("linear_lower_bound", -5.0, _AT_MOST_0)
    if f.config.get("linear_lower_bound", lower) is None and not (
        f.config.get("linear_attn_config") and f.get("safe_gate", True, bool)
    ):
        return Ranges(), ""
    return _bounded(lower)


def _bailing_gate(f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    lower = f.number("kda_lower_bound", -5.0, _AT_MOST_0)
    return _bounded(lower) if f.get("kda_safe_gate", True, bool) else (Ranges(), "")


def _step(low: float, high: float) -> tuple[Ranges, str]:
    """Return the ranges of Mamba-2 for Δ in [low, high]: a head keeps if Δe^A is about 0, forgets if it is large."""
    if (low, high) == (0, math.inf):
        return Ranges(), ""
    can_both = low == 0 or high / low >= _UNDERFLOWS / _ROUNDS_TO_1
    how = "a head keeps only where its decay rounds to 1" if can_both else "no head both keeps (1) and forgets (0)"
    note = f"calls of several tokens limit Δ to [{low:g}, {high:g}], a call of one token does not"
    return Ranges(holds=COUNTER_FREE if can_both else ENDS), f"{note}; in the former {how}" if low else note


def _step_limit(f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    f.used.add("time_step_limit")
    value = f.config.get("time_step_limit")
    ends = [0.0, math.inf] if value is None else value if isinstance(value, list) else []
    # As transformers writes infinity.
    ends = [math.inf if end == {"__float__": "Infinity"} else end for end in ends]
    if len(ends) != 2 or any(type(end) not in (int, float) for end in ends) or not 0 <= ends[0] <= ends[1] != 0:
        raise UnsupportedFormat(f"time_step_limit = {shown(value)} must be two ascending numbers from 0 on")
    return _step(*ends)


def _least_step(f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    return _step(f.number("time_step_min", 0.001, _AT_LEAST_0), math.inf)


def _slope(f: Fields, i: int, n: int) -> tuple[Ranges, str]:
    """Return the decays of layer i of n of lightning attention, exp(−2^(−8h/H)·(1 − i/(n − 1))) for head h of H."""
    factor = 1 - i / (n - 1 + 1e-5) + 1e-5
    decay = _exp(-factor * 2 ** (-8 / f.size("num_attention_heads", 32))), _exp(-factor * 2.0**-8)
    return Ranges(decay, decay, LAST), "one decay per head, the same for all weights and inputs"


def _mlstm(f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    cap = f.number("gate_soft_cap", 15.0, _ABOVE_0)
    rest = math.log1p(math.exp(-cap))
    decay = _exp(-cap - rest), _exp(-rest)  # σ(∓cap), as exp(logsigmoid(·)) computes it
    return Ranges(decay, decay, COUNTER_FREE if decay == (0, 1) else LAST), f"the forget gate is σ, capped at ±{cap:g}"


def _fixed(_f: Fields, _i: int, _n: int) -> tuple[Ranges, str]:
    return Ranges(holds=ENDS), "one decay per channel, exp(−exp(w)), for all inputs"


def _linear(depth: int, hidden: int, key_heads: int, units: str, **more: Any) -> dict[str, Any]:
    """Return the sizes of Qwen's Gated DeltaNets and of their siblings."""
    sizes = {
        "hidden": ("hidden_size", hidden), "heads": ("linear_num_key_heads", key_heads),
        "key": ("linear_key_head_dim", 128), "value": ("linear_value_head_dim", 128),
        "taps": ("linear_conv_kernel_dim", 4), "units": (units, 12_288 if units == "intermediate_size" else 512),
    }  # fmt: skip
    return {"depth": depth, "types": partial(_interval, "full_attention"), "sizes": sizes} | more


def _kda(depth: int, hidden: int, heads: int, units: int, **more: Any) -> dict[str, Any]:
    sizes = {
        "hidden": ("hidden_size", hidden), "heads": ("linear_num_heads", heads), "key": ("linear_head_dim", 128),
        "value": ("linear_head_dim", 128), "taps": ("linear_conv_kernel_dim", 4),
        "units": ("moe_intermediate_size", units),
    }  # fmt: skip
    inner = {"head_dim": "linear_head_dim", "num_heads": "linear_num_heads",
             "short_conv_kernel_size": "linear_conv_kernel_dim", **more.pop("inner", {})}  # fmt: skip
    aliases = {f"linear_attn_config.{old}": name for old, name in inner.items()}
    return {"depth": depth, "sizes": sizes, "aliases": aliases, **more}


def _ssd(names: str, hidden: int, heads: int, units: Any, gate: Gate = _step_limit, **more: Any) -> dict[str, Any]:
    """Return the sizes of Mamba-2, whose fields are `names`: of heads, taps, and of the factor to the channels."""
    of_heads, taps, expand = names.split()
    sizes = {
        "hidden": ("hidden_size", hidden), "heads": (of_heads, heads), "taps": (taps, 4), "expand": (expand, 2),
        "value": ("", lambda s: s["expand"] * s["hidden"] // s["heads"]), "units": units,
    }  # fmt: skip
    return {"gate": gate, "sizes": sizes, **more}


def _ssm(
    names: str, hidden: int, units: Any = ("", lambda s: s["value"]), of: Any = ("", 1), **more: Any
) -> dict[str, Any]:
    """Return the sizes of Mamba: channels as one value, and as many heads as Δ has ranks."""
    taps, expand, rank = names.split()
    sizes = {
        "hidden": ("hidden_size", hidden), "taps": (taps, 4), "expand": (expand, 2), "groups": of,
        "value": ("", lambda s: s["expand"] * s["hidden"] // s["groups"]),
        "heads": (rank, lambda s: -(-s["hidden"] // 16)), "units": units,
    }  # fmt: skip
    return {"gate": _delta, "sizes": sizes, **more}


_OLMO = {
    "hidden": ("hidden_size", 3_840), "attention": ("num_attention_heads", 30),
    "heads": ("linear_num_key_heads", lambda s: s["attention"]),
    "key": ("linear_key_head_dim", lambda s: int(0.75 * s["hidden"] / s["heads"])),
    "value": ("linear_value_head_dim", lambda s: 2 * s["key"]), "taps": ("linear_conv_kernel_dim", 4),
    "units": ("intermediate_size", 11_008),
}  # fmt: skip
_BAILING_TYPES = partial(_interval, "full_attention", field="layer_group_size", default=6)
_BAILING = {  # a file that transformers saved has its own head_dim, and the mixers' sizes under other names
    "hidden": ("hidden_size", 2_560), "of_head": ("head_dim", 128), "kernel": ("short_conv_kernel_size", 4),
    "attention": ("num_attention_heads", 32), "heads": ("linear_num_heads", lambda s: s["attention"]),
    "key": ("linear_head_dim", lambda s: s["of_head"]), "value": ("linear_head_dim", lambda s: s["key"]),
    "taps": ("linear_conv_kernel_dim", lambda s: s["kernel"]), "units": ("moe_intermediate_size", 768),
}  # fmt: skip
_GEMMA = {
    "hidden": ("hidden_size", 2_560), "groups": ("num_attention_heads", 10),
    "heads": ("lru_width", lambda s: s["hidden"]), "value": ("", lambda s: s["heads"] // s["groups"]),
    "taps": ("conv1d_width", 4), "units": ("intermediate_size", 7_680),
}  # fmt: skip
_MINIMAX = {
    "hidden": ("hidden_size", 4_096), "heads": ("num_attention_heads", 32),
    "key": ("head_dim", lambda s: s["hidden"] // s["heads"]), "value": ("head_dim", lambda s: s["key"]),
    "units": ("intermediate_size", 14_336),
}  # fmt: skip
_XLSTM = {
    "hidden": ("hidden_size", 4_096), "heads": ("num_heads", 8),
    "of_key": ("qk_dim_factor", 0.5), "of_value": ("v_dim_factor", 1.0), "of_units": ("ffn_proj_factor", 2.667),
    "key": ("", lambda s: int(s["hidden"] * s["of_key"]) // s["heads"]),
    "value": ("", lambda s: int(s["hidden"] * s["of_value"]) // s["heads"]),
    "units": ("", lambda s: int(s["hidden"] * s["of_units"])),
}  # fmt: skip
_RWKV = {
    "hidden": ("hidden_size", 4_096), "heads": ("", 1), "value": ("attention_hidden_size", lambda s: s["hidden"]),
    "taps": ("", 2), "units": ("intermediate_size", lambda s: 4 * s["hidden"]),
}  # fmt: skip
_OWN = ("", lambda s: s["value"] * s["heads"])  # units are channels of a second mixer
_LARA = ["linear_attention", "sliding_attention", "linear_attention", "full_attention", "sliding_attention"]
_HYBRID, _S6 = "mamba_n_heads mamba_d_conv mamba_expand", "mamba_d_conv mamba_expand mamba_dt_rank"
_ALONE = {"types": _recurrent, "mixers_a_stage": 2}
_NEMOTRON = {"mamba_d_conv": "conv_kernel", "mamba_dt_min": "time_step_min"}
_MOE = "moe_intermediate_size"

_ROWS = (
    ModelFolder(
        "olmo_hybrid", "gated-deltanet-negative", _olmo_gate, 32, partial(_given, _olmo_types), _OLMO
    ),
    ModelFolder("qwen3_next", "gated-deltanet", _delta, **_linear(48, 2048, 16, _MOE)),
    ModelFolder("qwen3_5", "gated-deltanet", _delta, **_linear(32, 4096, 16, "intermediate_size")),
    ModelFolder("qwen3_5_moe", "gated-deltanet", _delta, **_linear(40, 2048, 16, _MOE)),
    ModelFolder(
        "qwen4_exp", "gated-deltanet", _delta,
        **_linear(40, 2048, 16, _MOE, types=partial(_interval, "indexed_attention")),
    ),
    ModelFolder(
        "lara_mini", "gated-deltanet", _delta,
        **_linear(34, 1024, 8, _MOE, types=partial(_given, lambda _f, n: [_LARA[i % 5] for i in range(n)])),
    ),
    ModelFolder(
        "kimi_linear", "kda", _delta,
        **_kda(27, 2304, 32, 1024, types=partial(_given, _kimi_types),
               inner={name: name for name in ("full_attn_layers", "kda_layers")}),
    ),
    ModelFolder(
        "glm5_next", "kda-bounded", _glm_gate,
        **_kda(45, 4096, 64, 2048, types=_every(4, 3, "indexed_attention"),
               inner={"gate_lower_bound": "linear_lower_bound", "safe_gate": "safe_gate"}),
    ),
    ModelFolder("bailing_hybrid", "kda-bounded", _bailing_gate, 42, _BAILING_TYPES, _BAILING),
    ModelFolder("mamba2", "mamba-2", depth=64, **_ALONE,
                **_ssd("num_heads conv_kernel expand", 4096, 128, _OWN)),
    ModelFolder("bamba", "mamba-2", depth=32, types=_bamba_types,
                **_ssd(_HYBRID, 4096, 128, ("intermediate_size", 14_336))),
    ModelFolder("zamba2", "mamba-2", depth=54, types=partial(_given, _zamba2_types), mixers_a_stage=2,
                **_ssd("n_mamba_heads mamba_d_conv mamba_expand", 2560, 8, _OWN, _least_step)),
    ModelFolder("granitemoehybrid", "mamba-2", depth=32, types=partial(_given, _recurrent),
                **_ssd(_HYBRID, 4096, 128, ("shared_intermediate_size", 1024))),
    ModelFolder("falcon_h1", "mamba-2", depth=32, types=_hybrid,
                **_ssd(_HYBRID, 4096, 128, ("intermediate_size", 14_336))),
    ModelFolder("nemotron_h", "mamba-2", depth=4, types=_nemotron_types, aliases=_NEMOTRON,
                **_ssd("mamba_num_heads conv_kernel expand", 4096, 128, ("intermediate_size", 21_504), _least_step)),
    ModelFolder("mamba", "mamba", depth=32, **_ALONE,
                **_ssm("conv_kernel expand time_step_rank", 768)),
    ModelFolder("falcon_mamba", "mamba", depth=32, **_ALONE,
                **_ssm("conv_kernel expand time_step_rank", 768)),
    ModelFolder("jamba", "mamba", depth=32, types=_jamba_types,
                **_ssm(_S6, 4096, ("intermediate_size", 14_336))),
    ModelFolder("zamba", "mamba", depth=76, types=partial(_given, _zamba_types), mixers_a_stage=2,
                **_ssm(_S6, 3712, of=("n_mamba_heads", 2))),
    ModelFolder("recurrent_gemma", "rg-lru", _delta, 26, _gemma_types, _GEMMA),
    ModelFolder("minimax", "lightning-attention", _slope, 32, _every(2, 0), _MINIMAX),
    ModelFolder("xlstm", "mlstm", _mlstm, 32, _recurrent, _XLSTM),
    ModelFolder("rwkv", "rwkv-4", _fixed, 32, _recurrent, _RWKV),
)  # fmt: skip
FOLDERS = {row.folder: row for row in _ROWS}
"""The folders by `model_type`."""
RANGE_FIELDS = {
    "allow_neg_eigval", "linear_allow_neg_eigval", "use_neg_eigval", "linear_lower_bound", "gate_lower_bound",
    "kda_lower_bound", "kda_safe_gate", "safe_gate", "time_step_limit", "time_step_min", "gate_soft_cap",
}  # fmt: skip
"""Fields that name a range in some folder or package; the code of the other folders does not read them."""
