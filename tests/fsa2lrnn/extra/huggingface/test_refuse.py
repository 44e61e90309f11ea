"""Refusals: found, in words, and none where there is a construction."""

from itertools import product

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.extra.huggingface.recheck import LAYERS
from fsa2lrnn.extra.huggingface.refuse import refuse

ROOT_HALF = np.sqrt(0.5)
KEYS = [(1, 0), (0, 1), (ROOT_HALF, ROOT_HALF), (ROOT_HALF, -ROOT_HALF), (0.6, 0.8), (0.5, 0)]
SMALL = (
    "parity", "sum_mod(3)", "flip_flop", "length_mod(3)", "ab_star", "tomita(1)", "tomita(6)", "length_mod(2)",
    "all_maps(3)", "elevator(3)", "resettable_counter(3)", "remainder(3)", "count_mod(2)", "shift_register(1)",
)  # fmt: skip


@pytest.mark.parametrize("task", ["parity", "sum_mod(5)", "group(S3)", "group(S3, transpositions)", "tomita(3)"])
def test_qwen_next_refuses_groups(task):
    found = refuse(zoo.from_task(task), "qwen3-next")
    assert found.check().startswith("impossible: one layer or a stack of them without attention of qwen3-next")


@pytest.mark.parametrize(("task", "is_refused"), [("sum_mod(3)", True), ("group(S3)", True), ("parity", False)])
def test_olmo_hybrid_refuses_letters_of_period_three(task, is_refused):
    found = refuse(zoo.from_task(task), "olmo-hybrid")
    assert (found is not None) == is_refused
    assert found is None or found.check().startswith("impossible: one layer of olmo-hybrid")


@pytest.mark.parametrize("layer", ["olmo-hybrid", "qwen3-next"])
@pytest.mark.parametrize("task", ["flip_flop", "ab_star", "shift_register(3)", "dyck(2, 3)", "contains(abaab)"])
def test_what_has_no_group_is_not_refused(task, layer):
    assert refuse(zoo.from_task(task), layer) is None


def test_in_words():
    assert (
        refuse(zoo.mod_arith(2), "qwen3-next").explain().startswith('After "1+" again and again, and then "0", states')
    )
    told = refuse(zoo.sum_mod(3), "olmo-hybrid").explain()
    assert told.startswith('After "1" again and again, states of one layer have period 1 or 2 in the end')


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
@pytest.mark.parametrize("layer", LAYERS)
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
@pytest.mark.parametrize(
    ("task", "layer"),
    [("parity", "olmo-hybrid"), *(("flip_flop", layer) for layer in LAYERS), ("length_mod(2)", "olmo-hybrid")],
)
def test_the_search_finds_what_is_there(task, layer):
    machine, rng = zoo.from_task(task).minimise(), np.random.default_rng(0)
    starts = product((0, 1, -1, 0.3), repeat=2) if len(machine.alphabet) == 1 else [(0, 0)]
    assert is_found(machine, layer, list(range(len(machine.alphabet))), list(starts), rng, 200_000)
