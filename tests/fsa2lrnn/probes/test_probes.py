"""Exact probes at their public door: correct kernels pass, each fault is refused with its class and first wrong bit."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

import fsa2lrnn
from fsa2lrnn.probes import OPERATORS, InexactKernel, assert_exact, cases, reference
from fsa2lrnn.probes.calls import Caller
from fsa2lrnn.probes.cases import SIZES, word
from fsa2lrnn.probes.plugin import assert_exact_fixture  # noqa: F401

FORMS = [(op, form) for op, operator in OPERATORS.items() for form in (*operator.forms, "sequential")][::2]
chunked = reference("gated_delta_rule", "chunked, inverse by blocks")


def is_quick(op, form):
    """The chunked forms of the other operations are those that the propositions `probe-NAME` run too."""
    return op == "gated_delta_rule" or not form.startswith("chunked")


@pytest.mark.long_cases("delta_product-sequential")
@pytest.mark.parametrize(
    ("op", "form"), [pytest.param(*each, marks=() if is_quick(*each) else pytest.mark.slow) for each in FORMS]
)
def test_correct_kernels_are_exact(op, form):
    coverage = assert_exact(reference(op, form), op=op, dtypes=(torch.bfloat16,), lengths=(1, 65))
    assert coverage.omitted == []
    assert {kind for kind, _ in coverage.cases} >= {"whole sequence", "carried state", "packed sequences", "gradients"}


def truncated(x, bits):
    """Round to `bits` explicit bits of a float32's mantissa, as TF32 does with 10."""
    return (x.view(torch.int32) & -(1 << (23 - bits))).view(torch.float32)


def tf32(q, k, v, g, beta, **options):
    return chunked(*(truncated(x, 10) for x in (q, k, v)), g, beta, **options)


def one_token_late(q, k, v, g, beta, **options):
    return chunked(q, k, v, torch.cat([g[:, :1] * 0, g[:, :-1]], 1), beta, **options)


def no_carry(q, k, v, g, beta, **options):
    return chunked(q, k, v, g, beta, **{**options, "initial_state": None})


def forgets_second_chunk(q, k, v, g, beta, **options):
    o, S = chunked(q, k, v, g, beta, **options)
    o[:, 64:65] = 0
    return o, S


def leaks(q, k, v, g, beta, cu_seqlens=None, **options):
    o, S = chunked(q, k, v, g, beta, **options)
    return o, S if cu_seqlens is None else S.repeat(len(cu_seqlens) - 1, 1, 1, 1)


def unstable(q, k, v, g, beta, **options):
    o, S = chunked(q, k, v, g, beta, **options)
    return o + torch.rand_like(o), S


def stops_gradients(q, k, v, g, beta, **options):
    return chunked(q, k.detach() + 0 * k, v, g, beta, **options)


def final_state_of_padding(q, k, v, g, beta, **options):
    o, S = chunked(q, k, v, g, beta, **options)
    return o, S * (0.0 if q.shape[1] % 64 else 1.0)


def wrong_base(q, k, v, g, beta, **options):
    return reference("gated_delta_rule")(q, k, v, g * 0.6931, beta, **options)


def slightly_stronger(q, k, v, g, beta, **options):
    return chunked(q, k, v, g * 1.01, beta, **options)


def factorised(q, k, v, g, beta, **options):
    """Multiply each token's write by exp(−G) and divide by it afterwards, within the whole sequence."""
    G = g.cumsum(1)[..., None]
    one = chunked(q * G.exp(), k, v, g * 0, beta, **options)[0] * (-G).exp()
    o, S = chunked(q, k, v, g, beta, **options)
    return o + 0 * one, S


def lacks_beta(q, k, v, g, beta, scale, initial_state=None):
    """Erase kᵀS in place of β kᵀS."""
    S = initial_state if initial_state is not None else torch.zeros(q.shape[0], q.shape[2], 16, 16)
    outputs = []
    for t in range(q.shape[1]):
        S = S * g[:, t].exp()[..., None, None]
        read = (k[:, t, ..., None] * S).sum(-2)
        S = S + k[:, t, ..., None] * (beta[:, t, ..., None] * v[:, t] - read)[..., None, :]
        outputs.append((q[:, t, ..., None] * S).sum(-2) * scale)
    return torch.stack(outputs, 1), S


def no_carry_alone(q, k, v, g, beta, **options):
    return (no_carry if q.shape[0] == 1 else chunked)(q, k, v, g, beta, **options)


FAULTS = [
    (lambda q, k, v, g, beta, **o: chunked(q, k, v, g, -beta, **o), "as if beta were negated"),
    (lambda q, k, v, g, beta, **o: chunked(q, k, v, g, beta.clamp(max=1), **o), "as if beta were clamped"),
    (lambda q, k, v, g, beta, **o: chunked(q, k, v, -g, beta, **o), "from decays of the wrong sign"),
    (lambda q, k, v, g, beta, **o: chunked(q, k, v, 0 * g, beta, **o), "wrong decay: as if g were 0"),
    (
        lambda q, k, v, g, beta, **o: chunked(q, k, v, g, beta, **{**o, "scale": 0.25}),
        "scale: as if the scale were 0.25",
    ),
    (one_token_late, "wrong decay: as if g acted one token late"),
    (wrong_base, "wrong decay: where g is -128, a decay is not 0"),
    (slightly_stronger, "wrong decay: gates other than 0 and 1"),
    (factorised, "range of gates: infinities or NaN where g is not 0"),
    (lacks_beta, "no definition that was tried explains it"),
    (no_carry_alone, "as if the initial state were dropped, but only in a batch of one"),
    (lambda *x, **o: (chunked(*x, **o)[0][:, :, :1], chunked(*x, **o)[1]), "shape: o has shape (2, 64, 1, 16)"),
    (no_carry, "state carry: as if the initial state were dropped"),
    (forgets_second_chunk, "chunk boundary: the first wrong token, 64,"),
    (final_state_of_padding, "state carry: every output is correct"),
    (leaks, "variable lengths"),
    (tf32, "accumulation dtype"),
    (unstable, "non-determinism"),
    (stops_gradients, "backward pass: outputs and final state are correct, the gradient of k is not"),
]


@pytest.mark.long_cases(
    "accumulation dtype", "as if beta were clamped", "chunk boundary: the first wrong token, 64,", "variable lengths",
    "wrong decay: as if g acted one token late", "wrong decay: as if g were 0",
)  # fmt: skip
@pytest.mark.parametrize(("kernel", "fault"), FAULTS, ids=[fault for _, fault in FAULTS])
def test_faults_are_refused_with_their_class(kernel, fault):
    gradients = fault.startswith("backward")
    with pytest.raises(InexactKernel) as caught:
        assert_exact(kernel, op="gated_delta_rule", dtypes=(torch.float32,), lengths=(64, 65), gradients=gradients)
    assert fault in caught.value.fault
    assert fault in str(caught.value)


@pytest.mark.long
def test_borders_of_longer_chunks_are_crossed_where_their_size_is_known(monkeypatch):
    monkeypatch.setattr("fsa2lrnn.probes.diagnose.SECONDS", 0.1)

    def kernel(q, k, v, g, beta, chunk_size=96, **options):
        o, S = chunked(q, k, v, g, beta, **options)
        o[:, chunk_size : chunk_size + 1] = 0
        return o, S

    few = {"op": "gated_delta_rule", "gradients": False, "initial_state": False, "gates": False}
    narrow = {**few, "dtypes": (torch.bfloat16,), "lengths": (1, 65), "variable_lengths": False}
    short = assert_exact(kernel, chunk_sizes=(96,), **narrow)
    assert (short.crossed, short.omitted) == (set(), ["not tried: words of more than a chunk of 96"])
    assert "across the borders" not in str(short)
    exact = assert_exact(reference("gated_delta_rule"), **narrow)
    assert str(exact).splitlines()[0].endswith("across the borders of chunks of 64")
    with pytest.raises(InexactKernel, match="at a border of chunks of 96") as caught:  # by the kernel's signature
        assert_exact(kernel, dtypes=(torch.float32,), **few)
    assert re.search(r"\n    token 96: q", str(caught.value))


def test_a_report_names_the_bit_and_a_short_word():
    def kernel(q, k, v, beta, **options):
        o, S = reference("delta_rule")(q, k, v, beta, **options)
        return torch.where((o == 3) | (o == -3), o * 2, o), S

    with pytest.raises(InexactKernel, match=r"token .* head .* entry") as caught:
        assert_exact(kernel, op="delta_rule", dtypes=(torch.bfloat16,), lengths=(65,), initial_state=False)
    error = caught.value
    assert {error.difference.expected_bits, error.difference.computed_bits} in (
        {"0x4040", "0x40c0"}, {"0xc040", "0xc0c0"},
    )  # fmt: skip
    assert OPERATORS["delta_rule"].length(error.case.inputs) <= 2
    assert "shortest word found" in str(error)


@pytest.mark.long_cases("nan")
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_wrong_and_zeros_have_no_sign(value):
    def shifted(by):
        def kernel(*tensors, **options):
            o, S = reference("delta_rule")(*tensors, **options)
            return torch.where(o == 0, by, o), S

        return kernel

    few = {"op": "delta_rule", "dtypes": (torch.float32,), "lengths": (65,), "gradients": False}
    assert_exact(shifted(-0.0), **few)
    with pytest.raises(InexactKernel, match="infinities or NaN"):
        assert_exact(shifted(value), **few)


@pytest.mark.parametrize(("options", "message"), [
    ({"op": "attention"}, "choose from"),
    ({"dtypes": (torch.float64,)}, "float64"),
    ({"lengths": (0,)}, "at least one"),
    ({"gates": (-80, 1)}, r"\(low, 0\)"),
    ({"head_dim": 8}, "at least 16"),
    ({"head_dim": 32, "op": "causal_conv1d"}, "keys and values alone"),
])  # fmt: skip
def test_bad_arguments_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        assert_exact(**{"kernel": chunked, "op": "delta_rule", **options})


@pytest.mark.long_cases("delta_product", "gated_delta_rule", "kda", "rwkv7")
@pytest.mark.parametrize("op", ["gated_delta_rule", "delta_product", "kda", "rwkv7"])
def test_wider_heads(op):
    short = {"op": op, "dtypes": (torch.float32,), "lengths": (65,)}
    assert assert_exact(reference(op), **short, head_dim=40).omitted == []

    def run(*tensors, fault, **options):
        o, S = reference(op)(*tensors, **options)
        change = torch.zeros(o.shape[-1])
        change[fault::40] = 1
        return (o + change, S) if o.shape[-1] == 40 else (o, S)

    for column, what in ((39, "o is wrong"), (38, "not zero in a coordinate")):  # 15 and none of the probes' own
        kernel = partial(run, fault=column)
        assert_exact(kernel, **short)
        with pytest.raises(InexactKernel, match=what):
            assert_exact(kernel, **short, head_dim=40)


def test_a_kernel_without_packed_sequences_or_gradients_says_so():
    def kernel(q, k, v, beta, scale, initial_state=None, output_final_state=False):
        assert output_final_state
        with torch.no_grad():
            return reference("delta_rule")(
                q, k, v, beta, scale=scale, initial_state=initial_state, output_final_state=True
            )

    few = {"op": "delta_rule", "dtypes": (torch.float32,), "lengths": (3,)}
    hidden = assert_exact(lambda *tensors, **options: kernel(*tensors, **options), gradients=False, **few)
    assert hidden.omitted == ["not tried: packed sequences: the kernel does not take cu_seqlens"]
    coverage = assert_exact(kernel, gradients=False, chunk_sizes=(16,), **few)
    assert coverage.omitted == ["not tried: chunk_size, which the kernel does not take", *hidden.omitted]
    with pytest.raises(InexactKernel, match="pass gradients=False"):
        assert_exact(kernel, **few)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_kernel_is_probed_with_the_keywords_that_it_has(hidden):
    few = {"dtypes": (torch.float32,), "lengths": (3,)}

    def outputs(q, k, v, beta):
        return reference("delta_rule")(q, k, v, beta)[0]

    kernel = (lambda *tensors, **options: outputs(*tensors, **options)) if hidden else outputs
    if hidden:  # a kernel behind **options says by a TypeError what it does not take, but has to return a state
        kernel = lambda *x, **o: (outputs(*x, **o), reference("delta_rule")(*x, output_final_state=True)[1])  # noqa: E731
    coverage = assert_exact(kernel, op="delta_rule", **few)
    assert {kind for kind, _ in coverage.cases} == {"whole sequence", "left padding", "right padding", "gradients"}
    told = " ".join(coverage.omitted)
    assert all(f"does not take {name}" in told for name in ("scale", "initial_state", "cu_seqlens"))
    assert ("outputs alone" in told) != hidden
    with pytest.raises(InexactKernel, match="o is wrong"):
        assert_exact(lambda q, k, v, beta: outputs(q, k, v, -beta), op="delta_rule", **few)

    def convolution(x, weight, bias, initial_state=None):
        return reference("causal_conv1d")(x, weight, bias, initial_state=initial_state, output_final_state=True)

    assert "not passed: activation=None" in assert_exact(convolution, op="causal_conv1d", **few).omitted[0]


@pytest.mark.parametrize("name", ["q", "k", "v", "g", "beta", "initial_state"])
def test_a_write_into_an_input_is_named_and_shrunk(name):
    def kernel(q, k, v, g, beta, initial_state=None, **options):
        results = chunked(q, k, v, g, beta, initial_state=initial_state, **options)
        given = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "initial_state": initial_state}[name]
        if given is not None and not given.requires_grad:
            given.add_(1)
        return results

    with pytest.raises(
        InexactKernel, match=rf"wrote into its argument {name}.*\n  shortest word found: 1 token\n"
    ) as e:
        assert_exact(kernel, op="gated_delta_rule", dtypes=(torch.float32,), lengths=(3,))
    assert e.value.fault == "in-place write"
    assert [entry.name for entry in e.traceback.filter(e)][-1] != "_check"


def test_a_kernel_for_a_range_of_gates_is_probed_within_it():
    few = {"op": "gated_delta_rule", "dtypes": (torch.float32,), "lengths": (65,), "gates": (-80, 0)}
    coverage = assert_exact(factorised, **few)
    assert coverage.omitted[0].startswith("not tried: resets")
    with pytest.raises(InexactKernel, match="certified bounds"):
        assert_exact(wrong_base, **few)
    few |= {"op": "simple_gla", "lengths": (3, 10**6), "gradients": False}
    assert "not periodic" in assert_exact(reference("simple_gla"), **few).omitted[1]
    for op in ("kda", "rwkv7", "simple_gla", "state_passing"):
        case = word(OPERATORS[op], 1, replace(SIZES[torch.float32], resets=False), 99, batch=1, heads=1, state=True)
        assert not any(bool(case.inputs[name].any()) for name in OPERATORS[op].wide)


@pytest.mark.parametrize("form", OPERATORS["kda"].forms)
def test_decays_within_the_triangular_inverse_show(form):
    """Overlapping keys on either side of a gate: K D Kᵀ is not 0, and a decay of 1 % more is outside of the bound."""
    operator = OPERATORS["kda"]
    case = cases.gate_case(operator, 0)
    k = case.inputs["k"][0, :, 0]
    assert int(((k @ k.T).tril(-1) != 0).sum()) >= 6
    result = Caller(operator, reference("kda", form, 16)).run(case, torch.float32)
    assert cases.outside_bound(operator, case, result, torch.float32) is None
    stronger = replace(case, inputs={**case.inputs, "g": case.inputs["g"] * 1.01})
    result = Caller(operator, reference("kda", form, 16)).run(stronger, torch.float32)
    assert "expected" in cases.outside_bound(operator, case, result, torch.float32)


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from fsa2lrnn.probes import assert_exact, reference
assert_exact(reference("delta_rule"), op="delta_rule", lengths=(1, 17), gradients=False)
assert not [m for m in sys.modules if m.startswith("fsa2lrnn.") and not m.startswith("fsa2lrnn.probes")]
assert not {{"numpy", "numba", "networkx"}} & {{m for m in sys.modules if "." not in m}} - set(before)
"""
# What torch itself requires.
TORCH = "torch torchgen functorch typing_extensions.py sympy mpmath networkx jinja2 markupsafe fsspec filelock"


@pytest.mark.long
def test_torch_alone_is_enough(tmp_path):
    """An environment that holds torch, what torch requires, and this package."""
    site = Path(torch.__file__).parents[1]
    for name in [*TORCH.split(), *(path.name for path in site.glob("torch-*.dist-info"))]:
        (tmp_path / name).symlink_to(site / name)
    (tmp_path / "fsa2lrnn").symlink_to(Path(fsa2lrnn.__file__).parent)
    code = SCRIPT.format(paths=[str(tmp_path)]).replace(
        "from fsa2lrnn", "import torch\nbefore = [*sys.modules]\nfrom fsa2lrnn", 1
    )
    subprocess.run([sys.executable, "-I", "-S", "-W", "ignore", "-c", code], check=True)


def test_the_fixture_is_the_function(assert_exact):
    assert assert_exact is sys.modules["fsa2lrnn.probes.assertion"].assert_exact
