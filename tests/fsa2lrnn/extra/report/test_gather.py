import json
from dataclasses import asdict

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.extra.report.align import align
from fsa2lrnn.extra.report.compare import compare
from fsa2lrnn.extra.report.facts import FAR, NEAR
from fsa2lrnn.extra.report.gather import accuracy_of, inside, machine_facts, plane
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.specification import specification_of


def test_a_machine_as_text():
    found = machine_facts(zoo.even_pair(2))
    assert found.states[0] == "None, other"  # labels that are tuples
    assert found.delta == zoo.even_pair(2).minimise().delta.tolist()
    assert machine_facts(MooreMachine([[0, 1, 2], [1, 2, 0]], ["x", "y", "x"])).states == ["0", "1", "2"]


def test_a_constructed_model_from_within():
    machine = zoo.sum_mod(3)
    model = compile_machine(machine)
    alignment = align(model, machine)
    found = inside(model, machine, alignment)
    assert found.blocks == switched(model).A.tolist()
    assert np.array(found.eigenvalues).shape == (3, 1, 3, 2)
    assert found.carrying == alignment.carrying == [0]
    json.dumps(asdict(found))


def centres(points, when):
    return {q: np.mean([p[:2] for p in points if p[2] == q and p[3] == when], axis=0) for q in {p[2] for p in points}}


@pytest.mark.parametrize("source", ["sum_mod(5)", "tomita(5)", "sum_mod(2)"])
def test_the_plane_parts_the_states(source):
    machine = zoo.from_task(source)
    tables = switched(compile_machine(machine, dtype=torch.float64))
    points = plane(tables, specification_of(tables, machine))
    near, far = centres(points, NEAR), centres(points, FAR)
    for q in near:
        np.testing.assert_allclose(near[q], far[q], atol=1e-2)
        assert all(np.linalg.norm(near[q] - near[p]) > 0.1 for p in near if p != q)
    assert max(abs(x) for point in points for x in point[:2]) == pytest.approx(1, abs=1e-2)


def test_a_plane_turned_to_match_another():
    machine = zoo.sum_mod(5)
    tables = switched(compile_machine(machine))
    angles = 2 * np.pi * 2 * np.arange(5) / 5
    like = [[float(np.cos(t)), float(np.sin(t)), q, NEAR] for q, t in enumerate(angles)]
    found = centres(plane(tables.to(torch.float64), specification_of(tables, machine), like), NEAR)
    for q, t in enumerate(angles):
        np.testing.assert_allclose(found[q], [np.cos(t), np.sin(t)], atol=1e-2)


def test_accuracies_of_a_comparison():
    document = compare("task:sum_mod(2)", {}, lengths=(4,), n_words=10)
    (found,) = accuracy_of(document, "constructed")
    assert found == json.loads(json.dumps(found))
    assert found["whole_word"]["accuracy"] == 1
