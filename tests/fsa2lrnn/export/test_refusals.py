"""What layers can hold: answers, refusals and their certificates, forged ones too, and the theorem in numbers."""

import copy
import json
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.export import recheck as checker
from fsa2lrnn.export import target
from fsa2lrnn.export.recheck import ARGUMENTS, RejectedRefusal, recheck
from fsa2lrnn.export.recheck import LAYERS as ARGUED
from fsa2lrnn.export.refuse import answer, refuse
from fsa2lrnn.layers import EXPORTED, LAYERS


@pytest.mark.parametrize(("task", "layer", "kind"), [
    ("parity", "olmo-hybrid", "yes"), ("parity", "qwen3-next", "no"), ("length_mod(29)", "olmo-hybrid", "unknown"),
    ("mod_arith(2)", "rwkv-7", "unknown"),
])  # fmt: skip
def test_kinds(task, layer, kind):
    found = answer(zoo.from_task(task), layer)
    assert found.kind == kind
    assert (found.refusal is not None and found.refusal.is_of_stacks) == (kind == "no")
    assert ("certificate" in found.to_json()) == (found.refusal is not None)


@pytest.mark.parametrize("layer", EXPORTED)
@pytest.mark.parametrize("seed", range(20))
def test_no_construction_where_there_is_a_refusal(layer, seed):
    machine = zoo.random_dfa(3, 2, seed, minimal=True)
    refusal = refuse(machine, layer)
    if refusal is not None and refusal.is_of_stacks:
        with pytest.raises(NotExpressible):
            target(layer).plan(machine)
    elif refusal is not None:
        found = answer(machine, layer)
        assert found.plan is None or found.plan.n_layers > 1


def test_a_refusal_of_one_layer_makes_no_claim_about_stacks():
    found = answer(zoo.sum_mod(4), "olmo-hybrid")
    assert (found.kind, found.plan.n_layers) == ("yes", 2)
    assert "one layer alone cannot hold it" in found.why
    assert found.to_json()["certificate"]["repeated"] == [1]
    found = answer(zoo.length_mod(29), "olmo-hybrid")
    assert (found.kind, found.plan) == ("unknown", None)
    assert found.why.startswith("no stack of the known constructions was found")
    assert "one layer alone cannot hold it: After" in found.why
    assert recheck(found.to_json()["certificate"]).startswith("impossible: one layer of olmo-hybrid")


def test_words_and_arguments_of_refusals():
    with pytest.raises(UnsupportedFormat, match="model 'gpt' is not known: choose one of mamba"):
        target("gpt")
    assert (
        refuse(zoo.mod_arith(2), "qwen3-next").explain().startswith('After "1+" again and again, and then "0", states')
    )
    told = refuse(zoo.sum_mod(3), "olmo-hybrid").explain()
    assert told.startswith('After "1" again and again, states of one layer have period 1 or 2 in the end')
    assert set(checker.LAYERS) == {row.exported_to[0] for row in LAYERS.values() if row.exported_to}
    assert set(checker.LAYERS.values()) <= set(ARGUMENTS)


ROOT_HALF = np.sqrt(0.5)
KEYS = [(1, 0), (0, 1), (ROOT_HALF, ROOT_HALF), (ROOT_HALF, -ROOT_HALF), (0.6, 0.8), (0.5, 0)]
SMALL = (
    "parity", "sum_mod(3)", "flip_flop", "length_mod(3)", "ab_star", "tomita(1)", "tomita(6)", "length_mod(2)",
    "all_maps(3)", "elevator(3)", "resettable_counter(3)", "remainder(3)", "count_mod(2)", "shift_register(1)",
)  # fmt: skip


def transitions(layer):
    """Matrices and vectors of two numbers, with gates at their ends, at half and between, that a letter may have."""
    if layer in ("mamba-2", "mamba"):
        for decays, v in product(product((0, 0.25, 0.5, 1), repeat=2), product((-1, 0, 1), repeat=2)):
            yield np.diag(decays).astype(float), np.array(v, float)
        return
    for key in np.array(KEYS, float):
        if layer == "rwkv-7":
            for w, a, v in product(product((0.545239, 1), repeat=2), product((0, 0.5, 1), repeat=2), (0, 1)):
                yield np.diag(w) - np.outer(key, np.array(a) * key), v * np.eye(2)[0]
            continue
        if layer == "kimi-linear":
            for decays, beta, v in product(product((0, 0.5, 1), repeat=2), (0, 0.5, 1), (0, 1, -1)):
                yield (np.eye(2) - beta * np.outer(key, key)) @ np.diag(decays), beta * v * key
            continue
        largest = 2 if layer == "olmo-hybrid" else 1
        for alpha, beta, v in product((0, 0.5, 1), (0, 0.5 * largest, largest, 0.75 * largest), (0, 1, -1)):
            yield alpha * (np.eye(2) - beta * np.outer(key, key)), beta * v * key


def recurs(machine, letters, moves, start, limit=24):
    """Whether what these moves reach is finite and tells the machine's outputs after each letter."""
    first = tuple(np.round(start, 9) + 0.0), machine.start
    seen, queue, shown = {first}, [first], {}
    for x, q in queue:  # grows
        for a, (A, v) in zip(letters, moves, strict=True):
            after = tuple(np.round(A @ np.array(x) + v, 9) + 0.0), int(machine.delta[a, q])
            if shown.setdefault(after[0], machine.outputs[after[1]]) != machine.outputs[after[1]]:
                return False
            if after not in seen:
                seen.add(after)
                queue.append(after)
                if len(seen) > limit:
                    return False
    return True


def is_found(machine, layer, letters, starts, rng, tries):
    """Whether a search over all moves, or over drawn pairs of them, meets one that follows the machine."""
    known = list(transitions(layer))
    choices = [(move,) for move in known] if len(letters) == 1 else None
    for _ in range(tries if choices is None else 1):
        for moves in choices or [tuple(known[i] for i in rng.integers(len(known), size=len(letters)))]:
            if any(recurs(machine, letters, moves, np.array(start, float)) for start in starts):
                return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("layer", ARGUED)
@pytest.mark.parametrize("task", SMALL)
def test_what_is_refused_is_not_found(task, layer):
    """Of the letters that a refusal names, from any of some starts, and of all of them."""
    machine, rng = zoo.from_task(task).minimise(), np.random.default_rng(0)
    if (refusal := refuse(machine, layer)) is None:
        pytest.skip("it is not refused")
    # From where the word before leads, the machine over these letters alone has no moves either.
    q = machine.start
    for a in refusal.before:
        q = int(machine.delta[a, q])
    here = MooreMachine(machine.delta, machine.outputs, q, machine.alphabet)
    letters = sorted(set(refusal.repeated))
    starts = list(product((0, 1, -1, 0.3), repeat=2)) if len(letters) == 1 else [(0, 0)]
    assert not is_found(here, layer, letters, starts, rng, 20_000)
    assert not is_found(machine, layer, list(range(len(machine.alphabet))), [(0, 0)], rng, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "layer"), [
    ("parity", "olmo-hybrid"), *(("flip_flop", layer) for layer in ARGUED), ("length_mod(2)", "olmo-hybrid"),
])  # fmt: skip
def test_the_search_finds_what_is_there(task, layer):
    machine, rng = zoo.from_task(task).minimise(), np.random.default_rng(0)
    starts = product((0, 1, -1, 0.3), repeat=2) if len(machine.alphabet) == 1 else [(0, 0)]
    assert is_found(machine, layer, list(range(len(machine.alphabet))), list(starts), rng, 200_000)


def good():
    return refuse(zoo.parity(), "qwen3-next").to_json()


@pytest.mark.parametrize(("field", "value", "message"), [
    ("format", "fsa2lrnn-family-certificate", "is not a certificate that this file can read"),
    ("version", True, "is not a certificate"),
    ("layer", "gpt", "layer 'gpt' is not known"),
    ("layer", "olmo-hybrid", "the argument 'positive' does not hold for olmo-hybrid"),
    ("argument", "symmetric", "does not hold for qwen3-next"),
    ("repeated", [], "no word is repeated"),
    ("repeated", [0], "have period 1 in the end"),
    ("repeated", [2], "a letter that is none of the machine's"),
    ("repeated", [True], "a letter that is none of the machine's"),
    ("repeated", [1, 1], "have period 1 in the end"),
    ("before", None, "a word is not a list"),
    ("more", 1, "the fields are not"),
    ("machine.delta", [[0, 1], [1, 2]], "is not a complete table"),
    ("machine.delta", [[0, 1]], "no states or no letters"),
    ("machine.outputs", [False, False], "have period 1 in the end"),
    ("machine.outputs", [1, True], "have period 1 in the end"),  # one number to Python
    ("machine.outputs", [[1], 2], "an output is not a symbol"),
    ("machine.outputs", [{"frozenset": [1, 2]}, {"frozenset": [2, 1]}], "have period 1 in the end"),
    ("machine.outputs", "01", "alphabet, delta, outputs are lists"),
    ("machine.alphabet", "ab", "alphabet, delta, outputs are lists"),
    ("machine.alphabet", ["a", "a"], "a letter stands twice"),
    ("machine.alphabet", ["a", ["b"]], "a letter or an output is not a symbol"),
    ("machine.start", 2, "the start is not a state"),
])  # fmt: skip
def test_forged(field, value, message):
    certificate = copy.deepcopy(good())
    name = field.removeprefix("machine.")
    (certificate["machine"] if field != name else certificate)[name] = value
    with pytest.raises(RejectedRefusal, match=message):
        checker.recheck(certificate)


def test_a_cycle_of_two_is_nothing_to_a_symmetric_layer_nor_is_a_longer_word():
    four = MooreMachine([[1, 2, 3, 0]], [0, 1, 0, 1])
    certificate = {**refuse(zoo.sum_mod(4), "olmo-hybrid").to_json(), "repeated": [1]}
    machine = {"alphabet": [0], "delta": four.delta.tolist(), "outputs": list(four.outputs), "start": 0}
    with pytest.raises(RejectedRefusal, match="have period 2 in the end"):
        checker.recheck({**certificate, "machine": machine, "repeated": [0]})
    with pytest.raises(RejectedRefusal, match="the word that is repeated is one letter"):
        checker.recheck({**certificate, "repeated": [1, 1, 1]})


@pytest.mark.parametrize("value", [None, [], {}, {"format": 1}, {**good(), "machine": {"outputs": 3}}])
def test_anything_else_is_rejected(value):
    with pytest.raises(RejectedRefusal):
        checker.recheck(value)


def test_a_field_that_stands_twice_is_refused(tmp_path):
    """Who reads the first of the two would read another certificate than was checked."""
    text = json.dumps(good())
    (tmp_path / "c.json").write_text(text.replace('"before"', '"before": [0], "before"', 1))
    with pytest.raises(SystemExit, match="rejected: a field stands twice in one object"):
        checker.main([str(tmp_path / "c.json")])


def test_the_file_stands_alone_and_costs_are_bounded(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(good()))
    command = [sys.executable, "-I", checker.__file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("impossible: one layer or a stack of them without attention of qwen3-next")
    path.write_text(json.dumps({**good(), "repeated": [0]}))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("rejected: ")) == (1, True)
    assert checker.recheck(cycle(100_000)).startswith("impossible")
    machine = {**good()["machine"], "outputs": [0, 2**61 * 8]}
    with pytest.raises(RejectedRefusal, match="has 64 bits or more"):
        checker.recheck({**good(), "machine": machine})


def cycle(n):
    """A certificate of a cycle of n states, read letter by letter."""
    machine = {"alphabet": [0], "delta": [[(q + 1) % n for q in range(n)]], "outputs": [q % 2 for q in range(n)]}
    return {**good(), "machine": {**machine, "start": 0}, "before": [], "repeated": [0], "after": []}


@pytest.mark.parametrize("long", ["repeated", "after"])
def test_certificates_that_ask_for_much_reading_are_refused_with_the_bound(long):
    certificate = {**cycle(50), long: [0] * 51}
    with pytest.raises(RejectedRefusal, match=r"or more, its bound is 1,000: .* a larger `most_read`"):
        checker.recheck(certificate, most_read=1_000)
    assert checker.recheck(certificate).startswith("impossible")
    assert checker.MOST_READ == 2**24
