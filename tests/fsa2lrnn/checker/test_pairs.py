"""Proofs by enumeration, replayed: exact steps are accepted, and no changed field is."""

import json
import resource
import time
from contextlib import suppress
from functools import reduce

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from fsa2lrnn import MooreMachine, Proved, compile_machine, compile_recurrence, save, zoo
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.checker.errors import InvalidCertificate, UnsupportedInput
from fsa2lrnn.checker.pairs import steps_exactly
from fsa2lrnn.checker.program import main, proved
from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verification import prove_equivalent

MACHINES = {"parity": zoo.parity(), "flip_flop": zoo.flip_flop(), "sum_mod(7)": zoo.sum_mod(7), "S3": zoo.group("S3")}


def written(folder, model, machine, **options):
    """Paths of a certificate, its model and its machine."""
    paths = [folder / name for name in ("certificate.safetensors", "model.safetensors", "machine.json")]
    assert isinstance(prove_equivalent(model, machine, certificate=paths[0], **options), Proved)
    save(model, paths[1])
    paths[2].write_text(json_file.to_json(machine))
    return paths


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    machine = zoo.sum_mod(3)
    return written(tmp_path_factory.mktemp("pairs"), compile_machine(machine), machine)


def parts(path):
    with safe_open(path, framework="np") as source:
        arrays = {name: source.get_tensor(name) for name in source.keys()}  # noqa: SIM118
        return arrays, json.loads(source.metadata()["certificate"])


def changed(files, folder, arrays=None, **fields):
    """The files, with some arrays and fields of the certificate replaced; a field of `...` is removed."""
    tensors, value = parts(files[0])
    value = {name: part for name, part in (value | fields).items() if part is not ...}
    tensors = {name: part for name, part in (tensors | (arrays or {})).items() if part is not ...}
    path = folder / "changed.safetensors"
    save_file(tensors, path, {"certificate": json.dumps(value)})
    return [path, *files[1:]]


@pytest.mark.long_cases("S3-cascade-dtype0", "S3-cascade-dtype1", "parity-cascade-dtype0", "parity-cascade-dtype1")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("name", "form"), [*((name, "onehot") for name in MACHINES), ("parity", "cascade"), ("S3", "cascade")]
)
def test_proofs_of_compiled_tables_are_accepted(tmp_path, name, dtype, form):
    machine = MACHINES[name]
    model = compile_machine(machine, form=form, dtype=dtype)
    paths = written(tmp_path, model, machine)
    if len(model.recurrences) > 1 or form == "cascade":
        with suppress(UnsupportedInput):  # several layers, or gates that add up
            assert proved(*paths).startswith("the model gives")
        return
    line = "the model gives the machine's output after each letter of every word of any length, the empty one too"
    assert proved(*paths) == line


def test_a_valid_proof_by_the_command(files, capsys):
    assert main(list(map(str, files))) == 0
    assert capsys.readouterr().out.startswith("valid: the model gives the machine's output")


def test_the_empty_word_may_not_count(tmp_path):
    machine = zoo.sum_mod(3)
    paths = written(tmp_path, compile_machine(machine), machine, empty_word=False)
    assert proved(*paths).endswith("every word of any length")


def test_a_model_that_rounds_is_not_covered(tmp_path):
    """A decay by a third towards one: the float32 states close, and exact numbers would not."""
    machine = MooreMachine([[0]], ["yes"], 0, "a")
    from .test_hostile import model_of, one_number

    model = model_of(one_number([1 / 3], [1.0], 0.0, [1.0, -1.0], [1.0, 0.0], "a", ("yes", "no")))
    paths = written(tmp_path, model, machine)
    with pytest.raises(UnsupportedInput, match=r"the proof is for the environment .* covers exact steps only"):
        proved(*paths)
    with pytest.raises(UnsupportedInput, match=r"a step of these tables may round: the order of sums counts.* certify"):
        proved(*changed(paths, tmp_path, environment=[]))


ROLLED = ("states", "machine_states", "successors", "outputs")


@pytest.mark.parametrize("name", ROLLED)
@pytest.mark.parametrize("change", ["roll", "minus", "plus", "huge", "flat", "short", "type", "gone", "zero"])
def test_no_changed_array_is_accepted(files, tmp_path, name, change):
    arrays, _ = parts(files[0])
    x = arrays[name]
    info = np.iinfo(x.dtype)
    other = {
        "roll": np.roll(x, 1, 0), "minus": x - x.dtype.type(1), "plus": x + x.dtype.type(1),
        "huge": np.full_like(x, info.max), "flat": x.reshape(-1)[None], "short": x[:-1], "gone": ...,
        "type": x.astype(np.int64 if x.dtype == np.uint8 else np.uint8), "zero": np.zeros((0, *x.shape[1:]), x.dtype),
    }[change]  # fmt: skip
    with pytest.raises((InvalidCertificate, UnsupportedInput)):
        proved(*changed(files, tmp_path, {name: other}))


def test_no_single_changed_entry_is_accepted(files, tmp_path):
    arrays, _ = parts(files[0])
    for name in ("machine_states", "successors", "outputs"):
        for place in np.ndindex(arrays[name].shape):
            for step in (-1, 1):
                x = arrays[name].copy()
                x[place] += step
                with pytest.raises(InvalidCertificate):
                    proved(*changed(files, tmp_path, {name: x}))
    for row, column in np.ndindex(arrays["states"].shape):
        if column % 4 == 3:  # the sign and the exponent of an entry
            x = arrays["states"].copy()
            x[row, column] ^= 0x40
            with pytest.raises((InvalidCertificate, UnsupportedInput)):
                proved(*changed(files, tmp_path, {"states": x}))


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "fsa2lrnn-horizon-certificate"}, {"version": 2}, {"dtype": "float64"}, {"sha256": "0" * 64},
        {"scans": ["pscan"]}, {"scans": []}, {"environment": ["AVX2"]}, {"empty_word": False}, {"ignore": [0]},
        {"machine": json.loads(json_file.to_json(zoo.sum_mod(4)))}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_no_changed_field_is_accepted_as_the_same_proof(files, tmp_path, fields):
    try:
        line = proved(*changed(files, tmp_path, **fields))
    except (InvalidCertificate, UnsupportedInput):
        return
    # Less is claimed of the empty word, which some other word leads back to: true, and said so.
    assert "empty_word" in fields
    assert "empty" not in line


@pytest.mark.parametrize("value", [None, True, -1, 10**30, 1.5, "", "x", [], [[1]], {}, {"a": 1}, ...])
def test_whatever_a_field_becomes_no_other_exception_is_raised(files, tmp_path, value):
    for name, part in parts(files[0])[1].items():
        if value == part and type(value) is type(part):
            continue
        with pytest.raises((InvalidCertificate, UnsupportedInput)):
            proved(*changed(files, tmp_path, **{name: value}))


def test_a_wrong_model_is_refused_though_its_digest_is_forged(files, tmp_path):
    """The certificate of one machine for the model of another, with all names of the model corrected."""
    machine = zoo.sum_mod(3)
    wrong = compile_machine(
        MooreMachine(machine.delta, (*machine.outputs[1:], machine.outputs[0]), 0, machine.alphabet)
    )
    other = written(tmp_path, wrong, MooreMachine(machine.delta, (1, 2, 0), 0, machine.alphabet))
    forged = changed(files, tmp_path, sha256=parts(other[0])[1]["sha256"])
    with pytest.raises(InvalidCertificate):
        proved(forged[0], other[1], files[2])


def test_large_files_are_refused_by_the_bound(files, tmp_path):
    size = 1 << 26
    big = changed(files, tmp_path, {"states": np.zeros((1, size), np.uint8)})
    with pytest.raises(UnsupportedInput, match="bytes: certificates of up to 33,554,432 are read"):
        proved(*big)


@pytest.mark.long
def test_many_pairs_are_refused_by_the_bound_or_checked_in_time(files, tmp_path):
    """As many pairs as a file may hold, each the first one: they close, and what refuses them takes no 5 s."""
    arrays, _ = parts(files[0])
    N = 600_000
    many = {name: np.repeat(part[:1], N, 0) for name, part in arrays.items()}
    begun = time.process_time()
    with pytest.raises((InvalidCertificate, UnsupportedInput)):
        proved(*changed(files, tmp_path, many))
    assert time.process_time() - begun < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20  # KB, torch and all of pytest among them


def test_exact_tables_have_no_certificate(tmp_path):
    with pytest.raises(UnsupportedFormat, match="certificates are of modules"):
        prove_equivalent(compile_recurrence(zoo.parity()), zoo.parity(), certificate=tmp_path / "c.safetensors")


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_exact_steps_of_many_scales_round_in_no_order(kind):
    rng, fmt, counts = np.random.default_rng(0), FloatFormat.of(kind), {True: 0, False: 0}
    for _ in range(300):
        scale = lambda: 2.0 ** rng.integers(-12, 12)  # noqa: E731
        A, v, x = (rng.integers(-9, 9, shape) * scale() for shape in ((2, 2, 3, 3), (2, 2, 3), (5, 2, 3)))
        A, v = (part * 2.0 ** rng.integers(-4, 4, size=(2, 2, *[3] + [1] * (part.ndim - 3))) for part in (A, v))  # rows
        x = x * 2.0 ** rng.integers(-9, 9, size=(5, 1, 1))
        exact = steps_exactly(A, v, x, fmt)
        counts[exact] += 1
        products = (A * x[:, None, :, None]).astype(kind)
        terms = np.concatenate([products, np.broadcast_to(v, products.shape[:-1])[..., None].astype(kind)], -1)
        forth, back = (reduce(np.add, np.moveaxis(each, -1, 0)) for each in (terms, terms[..., ::-1]))
        assert not exact or np.array_equal(forth, back)
    assert min(counts.values()) > 5 or kind == "float64"
    assert not steps_exactly(A, v, x * np.nan, fmt)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_rows_and_states_may_be_of_different_size(kind):
    """Each row has its own unit: a constant with all digits beside rows of small numbers, small and large states."""
    fmt = FloatFormat.of(kind)
    A, v, x = (
        np.zeros((1, 1, 2, 2)), np.array([[[1 + 2 * fmt.u, 2.0**-30]]]), np.array([[[1.0, 3.0]], [[2.0**20, 0.0]]]),
    )  # fmt: skip
    A[..., 1, :] = 2.0**-40
    assert steps_exactly(A, v, x, fmt)
    A[..., 0, 0] = fmt.u  # one digit more than the mantissa of the first row holds
    assert not steps_exactly(A, v, x, fmt)
