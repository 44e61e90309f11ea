"""Certificates that the checker accepts, forged ones that it refuses, and the theorem that it rests on, in numbers."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.extra.huggingface import LAYERS, recheck
from fsa2lrnn.extra.huggingface.recheck import ARGUMENTS, RejectedRefusal
from fsa2lrnn.extra.huggingface.refuse import refuse


def good():
    return refuse(zoo.parity(), "qwen3-next").to_json()


def test_arguments_are_of_layers_that_are_known():
    assert set(LAYERS) - set(recheck.LAYERS) == {"pd-ssm", "slstm", "delta-product"}
    assert set(recheck.LAYERS) < set(LAYERS)
    assert set(recheck.LAYERS.values()) <= set(ARGUMENTS)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "fsa2lrnn-family-certificate", "is no certificate that this file can read"),
        ("version", True, "is no certificate"),
        ("layer", "gpt", "layer 'gpt' is not known"),
        ("layer", "olmo-hybrid", "the argument 'positive' does not hold for olmo-hybrid"),
        ("argument", "symmetric", "does not hold for qwen3-next"),
        ("repeated", [], "no word is repeated"),
        ("repeated", [0], "have period 1 in the end"),
        ("repeated", [2], "a letter that is none of the machine's"),
        ("repeated", [True], "a letter that is none of the machine's"),
        ("repeated", [1, 1], "have period 1 in the end"),
        ("before", None, "a word is no list"),
        ("more", 1, "the fields are not"),
    ],
)
def test_forged(field, value, message):
    with pytest.raises(RejectedRefusal, match=message):
        recheck.recheck({**good(), field: value})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("delta", [[0, 1], [1, 2]], "no complete table"),
        ("delta", [[0, 1]], "no states or no letters"),
        ("outputs", [False, False], "have period 1 in the end"),
        ("outputs", [1, True], "have period 1 in the end"),  # one number to Python
        ("outputs", [[1], 2], "an output is no symbol"),
        ("outputs", [{"frozenset": [1, 2]}, {"frozenset": [2, 1]}], "have period 1 in the end"),
        ("outputs", "01", "alphabet, delta, outputs are lists"),
        ("alphabet", "ab", "alphabet, delta, outputs are lists"),
        ("alphabet", ["a", "a"], "a letter stands twice"),
        ("alphabet", ["a", ["b"]], "a letter or an output is no symbol"),
        ("start", 2, "the start is no state"),
    ],
)
def test_forged_machines(field, value, message):
    certificate = copy.deepcopy(good())
    certificate["machine"][field] = value
    with pytest.raises(RejectedRefusal, match=message):
        recheck.recheck(certificate)


def test_a_cycle_of_two_is_nothing_to_a_symmetric_layer_nor_is_a_longer_word():
    four = MooreMachine([[1, 2, 3, 0]], [0, 1, 0, 1])
    certificate = {**refuse(zoo.sum_mod(4), "olmo-hybrid").to_json(), "repeated": [1]}
    machine = {"alphabet": [0], "delta": four.delta.tolist(), "outputs": list(four.outputs), "start": 0}
    with pytest.raises(RejectedRefusal, match="have period 2 in the end"):
        recheck.recheck({**certificate, "machine": machine, "repeated": [0]})
    with pytest.raises(RejectedRefusal, match="the word that is repeated is one letter"):
        recheck.recheck({**certificate, "repeated": [1, 1, 1]})


@pytest.mark.parametrize("value", [None, [], {}, {"format": 1}, {**good(), "machine": {"outputs": 3}}])
def test_anything_else_is_rejected(value):
    with pytest.raises(RejectedRefusal):
        recheck.recheck(value)


def test_a_field_that_stands_twice_is_refused(tmp_path):
    """Who reads the first of the two would read another certificate than was checked."""
    text = json.dumps(good())
    (tmp_path / "c.json").write_text(text.replace('"before"', '"before": [0], "before"', 1))
    with pytest.raises(SystemExit, match="rejected: a field stands twice in one object"):
        recheck.main([str(tmp_path / "c.json")])


def test_the_file_stands_alone(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(good()))
    command = [sys.executable, "-I", recheck.__file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("impossible: one layer or a stack of them without attention of qwen3-next")
    path.write_text(json.dumps({**good(), "repeated": [0]}))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("rejected: ")) == (1, True)


@pytest.mark.parametrize(("largest", "length", "period"), [(1, 1, 1), (1, 4, 1), (2, 1, 2)])
def test_the_theorem_in_numbers(largest, length, period):
    """Of drawn words, gates at their ends among them: eigenvalues of modulus 1 are roots of unity of that order."""
    rng, met = np.random.default_rng(largest + length), 0
    for _ in range(500):
        A = np.eye(6)
        for _ in range(length):
            k = rng.choice([0.0, 0.5, 1.0, -1.0], size=6)
            k /= max(np.linalg.norm(k), 1)
            A = rng.choice([0.5, 1, 1, 1]) * (np.eye(6) - rng.choice([0, 0.7, 1, largest]) * np.outer(k, k)) @ A
        values = np.linalg.eigvals(A)
        on_circle = values[np.abs(values) > 1 - 1e-9]
        met += len(on_circle)
        assert np.allclose(on_circle**period, 1, atol=1e-6)
    assert met > 100


def test_with_twice_the_range_two_letters_do_not_settle():
    """Why the symmetric argument is of one letter: two reflections at 36° turn by 72°."""
    angle = np.pi / 5
    keys = np.array([[1, 0], [np.cos(angle), np.sin(angle)]])
    turn = (np.eye(2) - 2 * np.outer(keys[1], keys[1])) @ (np.eye(2) - 2 * np.outer(keys[0], keys[0]))
    assert np.allclose(np.linalg.matrix_power(turn, 5), np.eye(2))
    assert not np.allclose(np.linalg.matrix_power(turn, 2), np.eye(2))


def cycle(n):
    """A certificate of a cycle of n states, read letter by letter."""
    machine = {"alphabet": [0], "delta": [[(q + 1) % n for q in range(n)]], "outputs": [q % 2 for q in range(n)]}
    return {**good(), "machine": {**machine, "start": 0}, "before": [], "repeated": [0], "after": []}


def test_long_cycles_are_followed_in_linear_time():
    assert recheck.recheck(cycle(100_000)).startswith("impossible")


@pytest.mark.parametrize("long", ["repeated", "after"])
def test_certificates_that_ask_for_much_reading_are_refused_with_the_bound(long):
    certificate = {**cycle(5_000), long: [0] * 5_001}
    with pytest.raises(RejectedRefusal, match=r"or more, its bound is 16,777,216: .* a larger `most_read`"):
        recheck.recheck(certificate)
    assert recheck.recheck(certificate, most_read=10**8).startswith("impossible")


def test_long_integers_whose_hashes_collide_are_refused():
    machine = {**good()["machine"], "outputs": [0, 2**61 * 8]}
    with pytest.raises(RejectedRefusal, match="has 64 bits or more"):
        recheck.recheck({**good(), "machine": machine})
