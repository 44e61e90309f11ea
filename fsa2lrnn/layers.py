"""The one table of layers: their names, recurrences, containments, and what this library does with each.

`DESCRIPTIONS` has the families, sets of layers by the form of their transitions, which `fsa2lrnn.families` decides;
`LAYERS` the layers of papers and of released models. What takes the name of a layer takes every spelling of it:

>>> of_name("mamba2").name, of_name("Kimi-Linear").name, of_name("rwkv_7").name
('mamba-2', 'kda', 'rwkv-7')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fsa2lrnn.errors import UnsupportedFormat, meant
from fsa2lrnn.reading import shown

DESCRIPTIONS = {
    "lti": "input-independent, dense A: S4 and any linear time-invariant layer",
    "lti-diagonalisable": "input-independent, diagonalisable A: S4D, S5, LRU",
    "diagonal[0,1]": "input-dependent diagonal A with entries in [0, 1]: Mamba, RWKV",
    "diagonal[-1,1]": "input-dependent diagonal A with entries in [-1, 1]",
    "diagonal-complex": "input-dependent diagonal A with complex entries",
    "liquid-s4-diagonal": "A + diag(Bu) with diagonal A and Bu added: Liquid-S4",
    "liquid-s4": "A + diag(Bu) with dense A and Bu added: Liquid-S4",
    "householder": "products of factors I - beta k k^T: DeltaNet, DeltaProduct; householder(2): at most 2 per letter",
    "block(8)": "input-dependent blocks of size 8 with real entries, any size in brackets",
}
"""The families, with the form of A in each; the sizes in brackets are examples."""
BLOCK = re.compile(r"block\(([1-9][0-9]{0,8})\)")
FACTORS = re.compile(r"householder\(([1-9][0-9]{0,8})\)")


def is_family(name: object) -> bool:
    """Return whether a value is the name of a family; `block` and `householder` take any size in brackets.

    >>> is_family("diagonal[0,1]"), is_family("block(3)"), is_family("diag")
    (True, True, False)
    """
    return isinstance(name, str) and bool(name in DESCRIPTIONS or BLOCK.fullmatch(name) or FACTORS.fullmatch(name))


@dataclass(frozen=True)
class LayerRow:
    """A layer of a paper or of a released model.

    Args:
        name: the canonical name.
        title: the name in tables.
        recurrence: the recurrence of a head, with the range of its transitions.
        paper: the authors, the year and the arXiv number; "" for layers of this library.
        spellings: further names; upper case, "-", "_" and "." do not count (`of_name`).
        family: the family that contains one such layer; "" if none does, or none is known that is not all of them.
        is_family: whether one such layer represents whatever the family does, so that a "yes" for the family holds.
        is_shifted: whether it reads each letter together with the previous one.
        within: the layers that contain it: they represent whatever it does, as one layer or as a stack.
        theorem: the theorem (docs/theory.md) that proves these containments; "" if they are evident.
        decided_as: the row of the table of `explain` that has its answer: a layer's name; "" for no row.
        confused_by: the kind of `export.confused_words.confused` that decides its stacks; "" for none.
        is_searched_last: whether stacks are searched only if nothing else implies a "yes": for layers whose search is
            long and for which no argument proves impossibility.
        trained_by: the name in `fsa2lrnn.nn.layers.LAYERS` of the class that trains it; "" for none.
        setting: the setting of that class that makes it this layer.
        exported_to: the released models into which `export` writes it, the first by default.
    """

    name: str
    title: str
    recurrence: str
    paper: str = ""
    spellings: tuple[str, ...] = ()
    family: str = ""
    is_family: bool = False
    is_shifted: bool = False
    within: tuple[str, ...] = ()
    theorem: str = ""
    decided_as: str = ""
    confused_by: str = ""
    is_searched_last: bool = False
    trained_by: str = ""
    setting: str = ""
    exported_to: tuple[str, ...] = ()

    @property
    def abilities(self) -> str:
        """What the library does with the layer, as a clause."""
        setting = f" --set {self.setting}" if self.setting else ""
        able = [
            *([f"trains (`train --layer {self.trained_by}{setting}`)"] if self.trained_by else []),
            *(["is decided (`explain --layer`)"] if self.decided_as or self.confused_by else []),
            *([f"is a special case of the family {self.family} (`explain --family`)"] if self.family else []),
            *([f"is exported to {', '.join(self.exported_to)}"] if self.exported_to else []),
        ]
        *first, last = able or ["is only named"]
        return f"{self.name} {', '.join(first)}{' and ' if first else ''}{last}"


_ROWS = (
    LayerRow(
        "s4d", "S4D", "x' = Λ x + B u, one diagonal Λ, stable", "Gu et al. 2022, 2206.11893",
        family="lti-diagonalisable", decided_as="s5", trained_by="s4d",
    ),
    LayerRow(
        "s5", "S5", "x' = Λ x + B u, one complex diagonal Λ, |λ| < 1", "Smith et al. 2023, 2208.04933",
        family="lti-diagonalisable", within=("s4", "complex-diagonal"), decided_as="s5", trained_by="s5",
    ),
    LayerRow(
        "lru", "LRU", "x' = Λ x + B u, one complex diagonal Λ, |λ| < 1", "Orvieto et al. 2023, 2303.06349",
        family="lti-diagonalisable", decided_as="s5", trained_by="lru",
    ),
    LayerRow(
        "s4", "S4", "x' = A x + B u, one matrix A, stable", "Gu et al. 2022, 2111.00396",
        family="lti", within=("deltaproduct",), theorem="T57", decided_as="s4", trained_by="s4",
    ),
    LayerRow(
        "mamba", "Mamba", "x' = exp(Δ A) x + Δ B u, diagonal, entries in [0, 1]", "Gu & Dao 2023, 2312.00752",
        spellings=("mamba1", "s6", "zamba"), family="diagonal[0,1]", is_family=True,
        within=("mamba-2", "mamba-3", "mingru", "gated-deltanet", "kda", "gdn-2", "rwkv-7", "mamba-negative"),
        decided_as="mamba", exported_to=("mamba", "falcon-mamba", "jamba"),
    ),
    LayerRow(
        "mamba-2", "Mamba-2", "S' = a S + v kᵀ, one a in [0, 1] per head", "Dao & Gu 2024, 2405.21060",
        spellings=("ssd",), family="diagonal[0,1]", is_family=True, within=("mamba",), decided_as="mamba-2",
        trained_by="mamba2",
        exported_to=("mamba-2", "bamba", "falcon-h1", "granite-moe-hybrid", "nemotron-h", "zamba2"),
    ),
    LayerRow(
        "mamba-3", "Mamba-3", "S' = a R S + trapezoidal input of any rank, a in [0, 1], rotations R of coordinates",
        "Lahoti et al. 2026", spellings=("mamba-3-mimo",), family="diagonal[0,1]", is_family=True, within=("mamba",),
        theorem="T57", decided_as="mamba-3", trained_by="mamba3",
    ),
    LayerRow(
        "mingru", "minGRU", "x' = (1 − z) x + z u, z in [0, 1]", "Feng et al. 2024, 2410.01201",
        family="diagonal[0,1]", is_family=True, within=("mamba",), theorem="T57", decided_as="mingru",
        trained_by="mingru",
    ),
    LayerRow(
        "mamba-negative", "Mamba in [−1, 1]", "as Mamba, entries in [−1, 1]", "Grazzi et al. 2025, 2411.12537",
        family="diagonal[-1,1]", is_family=True, within=("gated-deltanet-negative", "complex-diagonal"),
        decided_as="mamba-negative",
    ),
    LayerRow(
        "slice-diagonal", "diagonal SLiCE", "x' = diag(W u) x", "Walker et al. 2025, 2505.17761",
        within=("slice-hadamard",), theorem="T59", decided_as="slice-diagonal",
    ),
    LayerRow(
        "slice-hadamard", "Walsh–Hadamard SLiCE", "x' = (I + H diag(W u)) x", "Walker et al. 2025, 2505.17761",
        within=("slice", "slice-sparse"), decided_as="slice-hadamard",
    ),
    LayerRow(
        "complex-diagonal", "complex diagonal", "x' = Λ(u) x + B u, complex diagonal, |λ| ≤ 1",
        family="diagonal-complex", is_family=True, within=("pd-ssm", "block"), decided_as="complex-diagonal",
    ),
    LayerRow(
        "gated-deltanet", "Gated DeltaNet, β ≤ 1", "S' = a S (I − β k kᵀ) + β v kᵀ, a and β in [0, 1]",
        "Yang et al. 2025, 2412.06464", spellings=("gdn", "gated-delta-net", "qwen4-exp"),
        family="diagonal[0,1]", is_family=True,
        within=("mamba", "gated-deltanet-negative", "precond-kda"), theorem="T54", decided_as="gated-deltanet",
        trained_by="gated_deltanet", exported_to=("qwen3-next", "qwen3.5", "qwen3.5-moe", "lara-mini"),
    ),
    LayerRow(
        "gated-deltanet-negative", "Gated DeltaNet, β ≤ 2", "S' = a S (I − β k kᵀ) + β v kᵀ, a in [0, 1], β in [0, 2]",
        "Grazzi et al. 2025, 2411.12537", within=("deltaproduct", "gdn-2-negative"),
        decided_as="gated-deltanet-negative",
        is_searched_last=True, trained_by="gated_deltanet", setting="neg_eigval=true", exported_to=("olmo-hybrid",),
    ),
    LayerRow(
        "deltaproduct", "DeltaProduct, n steps", "S' = S ∏ (I − βⱼ kⱼ kⱼᵀ) + …, βⱼ in [0, 2], n factors",
        "Siems et al. 2025, 2502.10297", family="householder", is_family=True, within=("block",),
        decided_as="deltaproduct", trained_by="deltaproduct",
    ),
    LayerRow(
        "kda", "KDA", "S' = S diag(a) (I − β k kᵀ) + β v kᵀ, a and β in [0, 1]", "Kimi team 2025, 2510.26692",
        spellings=("kimi-delta-attention",), family="diagonal[0,1]", is_family=True,
        within=("mamba", "gdn-2", "deltaproduct"), theorem="T57", decided_as="kda", trained_by="kda",
        exported_to=("kimi-linear",),
    ),
    LayerRow(
        "kda-bounded", "bounded KDA", "as KDA, log α = −5σ(·), so that α ≥ e⁻⁵ and only β = 1 erases",
        spellings=("glm5-next",), family="diagonal[0,1]", is_family=True, within=("kda",), decided_as="kda",
        exported_to=("bailing-hybrid",),
    ),
    LayerRow(
        "rg-lru", "RG-LRU", "x' = a x + √(1 − a²) u, a = exp(−8 r softplus(λ)) in [0, 1]", "De et al. 2024, 2402.19427",
        spellings=("griffin", "recurrent-gemma"), family="diagonal[0,1]", is_family=True, within=("mamba",),
        decided_as="mamba",
    ),
    LayerRow(
        "gdn-2", "GDN-2, b ≤ 1", "S' = S diag(a) (I − (b ⊙ k) kᵀ) + (w ⊙ v) kᵀ, rates b in [0, 1] per key entry",
        "Hatamizadeh, Choi & Kautz 2026, 2605.22791", spellings=("gated-deltanet-2",), within=("gdn-2-negative",),
        decided_as="gdn-2", trained_by="gdn2",
    ),
    LayerRow(
        "gdn-2-negative", "KDA, GDN-2, b ≤ 2", "as GDN-2, rates b in [0, 2]; KDA has one rate per head",
        "Hatamizadeh, Choi & Kautz 2026, 2605.22791", spellings=("kda-negative",), theorem="T57",
        decided_as="gdn-2-negative", trained_by="gdn2", setting="neg_eigval=true",
    ),
    LayerRow(
        "precond-kda", "preconditioned GDN, KDA, β ≤ 1",
        "S' = S diag(a) (I − β k (m ∘ k)ᵀ) + β v (m ∘ k)ᵀ, m in (½, 2) by the sum of keys",
        "Tumma, Loo & Rus 2026, 2604.21100", spellings=("precond-gdn", "precond-gated-deltanet"), theorem="T63",
        decided_as="precond-kda",
    ),
    LayerRow(
        "rwkv-7", "RWKV-7", "S' = S (diag(w) − κ̂ (a ⊙ κ̂)ᵀ) + v kᵀ, w in [0.545, 1], a in [0, 1]",
        "Peng et al. 2025, 2503.14456", spellings=("goose",), within=("block",), decided_as="rwkv-7",
        trained_by="rwkv7", exported_to=("rwkv-7",),
    ),
    LayerRow(
        "pd-ssm", "PD-SSM", "x' = diag(d(u)) P(u) x + B u, rows of P one-hot, |d| ≤ 1",
        "Terzić et al. 2025, 2509.22284", decided_as="pd-ssm", trained_by="pd_ssm",
    ),
    LayerRow(
        "slstm", "sLSTM", "gates of u and of the output before: not linear", "Beck et al. 2024, 2405.04517",
        decided_as="slstm", trained_by="slstm",
    ),
    LayerRow(
        "block", "block-diagonal", "x' = A(u) x + v(u), real blocks; columns bounded in a p-norm where asked",
        "Fan, Chi & Rudnicky 2023, 2309.07412", family="block(8)", is_family=True, within=("slice", "slice-sparse"),
        decided_as="block", trained_by="block",
    ),
    LayerRow(
        "slice", "SLiCE, blocks", "x' = W(u) x, dense blocks, nothing added", "Walker et al. 2025, 2505.17761",
        decided_as="slice", trained_by="slice",
    ),
    LayerRow(
        "slice-sparse", "sparse SLiCE", "x' = W(u) x, sparse, nothing added", "Walker et al. 2025, 2505.17761",
        decided_as="slice-sparse",
    ),
    LayerRow(
        "attention", "attention (masked, hard)", "no recurrence: the last or first largest score counts",
        "Yang et al. 2024, 2310.13897", decided_as="attention",
    ),
    # Below: layers that are decided by their family alone, or not at all.
    LayerRow(
        "lightning-attention", "lightning attention", "S' = a S + k vᵀ, one fixed a in (0, 1) per head",
        "Qin et al. 2024, 2401.04658", spellings=("minimax",), family="lti-diagonalisable", theorem="T62",
        confused_by="last-letter-stack",
    ),
    LayerRow(
        "mlstm", "mLSTM", "C' = f C + exp(i) v kᵀ, n' = f n + exp(i) k, f = σ(·) capped to (0, 1)",
        "Beck et al. 2024, 2405.04517", spellings=("xlstm",), family="diagonal[0,1]", theorem="T62",
        confused_by="last-letter-stack",
    ),
    LayerRow(
        "rwkv-4", "RWKV-4", "x' = w x + exp(k) v, one decay w in (0, 1) per channel, token shift",
        "Peng et al. 2023, 2305.13048", spellings=("rwkv",), family="lti-diagonalisable", is_shifted=True,
        theorem="T62", confused_by="ends-stack", trained_by="rwkv4",
    ),
    LayerRow(
        "liquid-s4", "Liquid-S4", "x' = (A + diag(B u)) x + B u, as its paper says (T6)",
        "Hasani et al. 2023, 2209.12951", family="liquid-s4", trained_by="liquid_s4",
    ),
    LayerRow(
        "liquid-s4:polyb", "Liquid-S4, released", "not that recurrence, and not causal",
        "Hasani et al. 2023, 2209.12951", trained_by="liquid_s4", setting="kernel=polyb",
    ),
    LayerRow(
        "liquid-s4:kb", "Liquid-S4, released", "not that recurrence, and not causal",
        "Hasani et al. 2023, 2209.12951", trained_by="liquid_s4", setting="kernel=kb",
    ),
    LayerRow(
        "vanilla", "linear RNN", "x' = A x + B u, one matrix A for all letters", family="lti", is_family=True,
        trained_by="vanilla",
    ),
    LayerRow(
        "vanilla:diagonal", "diagonal linear RNN", "x' = d x + B u, one real diagonal for all letters",
        family="lti-diagonalisable", trained_by="vanilla", setting="diagonal=true",
    ),
    LayerRow(
        "deltanet", "DeltaNet, β ≤ 1", "S' = S (I − β k kᵀ) + β v kᵀ, β in [0, 1]", "Yang et al. 2024, 2406.06484",
        family="diagonal[0,1]", is_family=True,
    ),
    LayerRow(
        "gated-deltaproduct", "Gated DeltaProduct", "S' = a S ∏ (I − βⱼ kⱼ kⱼᵀ) + …, a in [0, 1], βⱼ in [0, 2]",
        "Siems et al. 2025, 2502.10297", trained_by="gated_deltaproduct",
    ),
    LayerRow(
        "householder", "Householder factors", "x' = ∏ (I − βⱼ kⱼ kⱼᵀ) x + v, βⱼ in [0, 2]", family="householder",
        trained_by="householder",
    ),
    LayerRow("hard-channels", "hard channels", "x' = a x + v, a in {0, 1}: an automaton", trained_by="hard_channels"),
    LayerRow(
        "hard-reflections", "hard reflections", "exchanges and resets of points: an automaton",
        trained_by="hard_reflections",
    ),
    LayerRow("hard-pd-ssm", "hard PD-SSM", "maps of points: an automaton", trained_by="hard_pd_ssm"),
    LayerRow(
        "hard-deltaproduct", "hard DeltaProduct", "exchanges of points: an automaton", trained_by="hard_deltaproduct"
    ),
    LayerRow("hard-slice", "hard SLiCE", "maps of points: an automaton", trained_by="hard_slice"),
)  # fmt: skip
LAYERS = {row.name: row for row in _ROWS}
"""The layers by canonical name; those of the table of `explain` come first, in its order."""
TRAINED = tuple(dict.fromkeys(row.trained_by for row in _ROWS if row.trained_by))
"""The names of the classes that train, as configurations and files have them (`fsa2lrnn.nn.layers.LAYERS`)."""
EXPORTED = tuple(model for row in _ROWS for model in row.exported_to)
"""The released models into which `export` writes."""


def _key(name: str) -> str:
    return re.sub(r"[-_. ]", "", name).lower()


_NAMES = {
    _key(spelling): row
    for row in reversed(_ROWS)  # a class that trains two rows names the first
    for spelling in (row.name, *row.spellings, *row.exported_to, *([row.trained_by] if row.trained_by else []))
}


def of_name(name: str) -> LayerRow:
    """Return the row of a layer by any of its names; raise `UnsupportedFormat` for an unknown one.

    The name of a released model stands for the layer in it.

    >>> of_name("qwen3-next").abilities
    'gated-deltanet trains (`train --layer gated_deltanet`), is decided (`explain --layer`), is a special case of the \
family diagonal[0,1] (`explain --family`) and is exported to qwen3-next, qwen3.5, qwen3.5-moe, \
lara-mini'
    """
    row = _NAMES.get(_key(name)) if isinstance(name, str) else None
    if row is None:
        near = meant(str(name), [*LAYERS, *EXPORTED])
        raise UnsupportedFormat(f"layer {shown(name)} is not known: {near}choose one of {', '.join(LAYERS)}")
    return row


def is_layer(name: object) -> bool:
    """Return whether a value is a name of a layer, in any spelling."""
    return isinstance(name, str) and _key(name) in _NAMES


def released_model(name: str) -> str:
    """Return the released model into which a layer is exported: the one that is named, or the layer's first.

    Raises `UnsupportedFormat` for an unknown name, and for a layer without one, with what there is.

    >>> released_model("kda"), released_model("Qwen3.5")
    ('kimi-linear', 'qwen3.5')
    """
    row = of_name(name)
    named = [model for model in row.exported_to if _key(model) == _key(name)]
    if not row.exported_to:
        raise UnsupportedFormat(
            f"{row.abilities}; no released model with it can be exported to: choose one of {', '.join(EXPORTED)}"
        )
    return (named or row.exported_to)[0]


def trained_name(name: str) -> str:
    """Return the name of the class that trains a layer, as configurations and files have it.

    Raises `UnsupportedFormat` for an unknown name, and for a layer without a class, with what there is.

    >>> trained_name("mamba-2"), trained_name("qwen3-next")
    ('mamba2', 'gated_deltanet')
    """
    row = of_name(name)
    if _key(name) == _key(row.trained_by) or (row.trained_by and not row.setting):
        return row.trained_by
    if row.setting:
        raise UnsupportedFormat(f"layer {name!r} is {row.trained_by} with a setting: {row.abilities}")
    raise UnsupportedFormat(f"layer {name!r} cannot be trained: {row.abilities}; choose one of {', '.join(TRAINED)}")
