"""The checker as a program: exit codes, forged files, no torch, and the folder alone."""

import base64
import copy
import json
import re
import shutil
import subprocess
import sys
import zlib
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import fsa2lrnn.checker
from fsa2lrnn import LRNN, MooreMachine, certify, check, compile_machine, save, zoo
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.checker import files as files_of
from fsa2lrnn.checker.errors import InvalidCertificate, UnsupportedInput
from fsa2lrnn.checker.files import Unpacking, read_automaton, read_certificate, read_tables, symbol
from fsa2lrnn.checker.program import difference, main, proved
from fsa2lrnn.nn.switched import as_tables, switched
from tests.fsa2lrnn.checker.test_hostile import HOSTILE, paths

FOLDER = Path(fsa2lrnn.checker.__file__).parent


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of a certificate, its model and its machine; "model" is the model itself."""
    folder, machine = tmp_path_factory.mktemp("files"), zoo.parity()
    model = compile_machine(machine)
    paths = [folder / name for name in ("certificate.json", "model.safetensors", "machine.json")]
    certificate = certify(model, machine, ignore="lacked")
    check(certificate, model, "lacked")
    certificate.save(paths[0])
    save(model, paths[1])
    paths[2].write_text(json_file.to_json(machine))
    return paths


def arguments(paths):
    return [str(path) for path in paths]


def changed(path, folder, change):
    """A copy of a JSON file with its value changed."""
    value = json.loads(path.read_text())
    change(value)
    (folder / "changed.json").write_text(json.dumps(value))
    return folder / "changed.json"


@pytest.mark.long
def test_the_tables_are_those_that_the_library_makes(files, tmp_path):
    torch.manual_seed(0)
    gated = LRNN(compile_machine(zoo.sum_mod(3)).config)
    assert read_tables(files[1]).sha256 == switched(compile_machine(zoo.parity())).sha256
    save(gated, tmp_path / "gated.safetensors")
    with pytest.raises(UnsupportedInput, match="save its tables"):
        read_tables(tmp_path / "gated.safetensors")
    save(as_tables(gated), tmp_path / "tables.safetensors")
    read, made = read_tables(tmp_path / "tables.safetensors"), switched(gated)
    assert read.sha256 == made.sha256
    assert (read.alphabet, read.outputs) == (made.alphabet, tuple(map(symbol, made.outputs)))
    assert read.dtype == "float32"
    assert np.array_equal(read.numbers["A"], made.A.numpy())


@pytest.mark.long_cases("<lambda>-of a model with sha256 000")
@pytest.mark.parametrize(("change", "message"), [
    (lambda value: value.update(sha256="0" * 64), "of a model with sha256 000"),
    (lambda value: value.update(dtype="float64"), "of a model with dtype float64"),
    (lambda value: value.update(scans=["pscan"]), "pscan: the bounds on rounding are for"),
    (lambda value: value.update(horizon=10**6, tube={**value["tube"], "tail": []}), r"for a horizon of|1000000"),
    (lambda value: value["machine"].update(outputs=value["machine"]["outputs"][::-1]), "of another machine"),
    (lambda value: value.update(ignore=[True]), "it claims less: the outputs"),
    (lambda value: value["tube"].update(start=60), "60 of 2 letters ask for"),
    (lambda value: value["tube"].update(memory=0), "they must be in order"),
])  # fmt: skip
def test_forged_certificates_are_not_valid(files, tmp_path, capsys, change, message):
    forged = changed(files[0], tmp_path, change)
    assert main(arguments([forged, *files[1:]])) == 1
    with pytest.raises(InvalidCertificate, match=message):
        proved(forged, *files[1:])
    assert capsys.readouterr().out.startswith("not valid: ")


@pytest.mark.parametrize("name", ["memory", "frame_memory", "start"])
def test_numbers_of_letters_are_whole_numbers(files, tmp_path, name):
    for number in (True, 2.0, "2", None, 2**63, -(2**63), [2]):
        with pytest.raises(UnsupportedInput, match=f"^{name} = .* is not an integer"):
            read_certificate(
                changed(files[0], tmp_path, lambda value, number=number: value["tube"].update({name: number}))
            )


def test_an_array_has_sizes_and_may_fill_its_file_to_the_last_byte(monkeypatch):
    packed = lambda shape, entries: {  # noqa: E731
        "dtype": "bool", "shape": shape, "data": base64.b64encode(zlib.compress(entries)).decode(),
    }  # fmt: skip
    for shape in ([-1, -1], [-1], [1.0], [True], [1] * 9):
        with pytest.raises(UnsupportedInput, match="is not a valid shape"):
            Unpacking().unpack(packed(shape, b"\0"), "it")
    whole = packed([5_000], bytes(5_000))
    for spare, is_read in ((5_000 - 16 * len(whole["data"]), True), (4_999 - 16 * len(whole["data"]), False)):
        monkeypatch.setattr(files_of, "SPARE", spare + 10_000)
        reader = Unpacking()
        reader._left -= 10_000
        if is_read:
            assert not reader.unpack(whole, "it").any()
        else:
            with pytest.raises(UnsupportedInput, match="which no file of ours does"):
                reader.unpack(whole, "it")


def test_another_model_and_another_machine_are_refused(files, tmp_path):
    save(compile_machine(zoo.flip_flop()), tmp_path / "other.safetensors")
    with pytest.raises(InvalidCertificate, match="of a model with sha256"):
        proved(files[0], tmp_path / "other.safetensors", files[2])
    other = MooreMachine([[0, 1], [1, 0]], [False, True])
    longer = MooreMachine([[0, 1, 2, 3], [1, 2, 3, 0]], [False, True, False, False], alphabet=zoo.parity().alphabet)
    for machine, message in (
        (other, "it is for the letters"),
        (longer, r"they differ after the word \['1', '1', '1'\]"),
    ):
        (tmp_path / "machine.json").write_text(json_file.to_json(machine))
        with pytest.raises(InvalidCertificate, match=message):
            proved(*files[:2], tmp_path / "machine.json")


def test_machines_are_compared_whatever_the_order_of_letters_and_states(tmp_path):
    machine = zoo.sum_mod(5)
    turned = MooreMachine(machine.delta[::-1], machine.outputs, machine.start, machine.alphabet[::-1])
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, one in zip(paths, (machine, turned), strict=True):
        path.write_text(json_file.to_json(one))
    assert difference(*map(read_automaton, paths)) is None


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1, "a": 1}', b"[" * 100_000, b"9" * 5_000, b"\xff"])
def test_bad_input_is_named_without_a_traceback(files, tmp_path, capsys, which, content):
    (tmp_path / "bad").write_bytes(content)
    paths = list(files)
    paths[which] = tmp_path / "bad"
    assert main(arguments(paths)) == 2
    out, err = capsys.readouterr()
    assert (out, err[:11], err.count("\n")) == ("", "bad input: ", 1)
    assert len(err) < 2_000


# 17 and the 19 values have no common divisor: each field meets one or two of them, and neighbours meet others.
@pytest.mark.long_cases("17")
@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_field_is_changed_no_other_exception_is_raised(files, tmp_path, every):
    """Each field of a certificate, exchanged for each of these, or removed; the quick test takes every 17th."""
    plain, refused = json.loads(files[0].read_text()), 0
    for (*way, last), other in list(product(paths(plain, are_arrays_whole=False), (*HOSTILE, ...)))[::every]:
        value = copy.deepcopy(plain)
        holder = value
        for key in way:
            holder = holder[key]
        if other is ...:
            del holder[last]
        else:
            holder[last] = other
        (tmp_path / "c.json").write_text(json.dumps(value))
        with suppress(InvalidCertificate, UnsupportedInput):
            proved(tmp_path / "c.json", *files[1:])
            continue
        refused += 1
    assert refused > 300 / every


def test_the_number_of_arguments(capsys):
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: python -m fsa2lrnn.checker CERTIFICATE")


def test_the_program_needs_neither_torch_nor_the_rest_of_the_library(files, tmp_path):
    """The folder copied out of the library, under another name, where torch and fsa2lrnn can't be imported."""
    shutil.copytree(FOLDER, tmp_path / "judge", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("torch", "fsa2lrnn", "numba", "networkx"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not here')")
    command = [sys.executable, str(tmp_path / "judge"), *arguments(files)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    line = r"valid: the model gives the machine's output after each letter of every word of at most [\d,]+ letters\n"
    assert re.fullmatch(line, done.stdout)


def test_as_a_module_of_the_library_it_does_not_import_torch(files):
    code = (
        "import sys, runpy\nsys.argv = ['checker', *sys.argv[1:]]\n"
        "try: runpy.run_module('fsa2lrnn.checker', run_name='__main__')\n"
        "except SystemExit as end: code = end.code\n"
        "roots = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not roots & {'torch', 'numba', 'networkx', 'scipy'}, roots\n"
        "own = {name for name in sys.modules if name.startswith('fsa2lrnn')}\n"
        "assert all(name == 'fsa2lrnn' or name.startswith('fsa2lrnn.checker') for name in own), own\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments(files)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_certificate_is_read_as_the_library_reads_it(files):
    from fsa2lrnn.verification.certificate import Certificate

    ours, theirs = read_certificate(files[0]), Certificate.load(files[0])
    assert ours.claim.horizon == theirs.horizon
    assert np.array_equal(ours.claim.margins, theirs.margins)
    assert np.array_equal(ours.claim.tube.basis, theirs.tube.basis)
    assert ours.machine.outputs == tuple(map(symbol, theirs.machine.outputs))
