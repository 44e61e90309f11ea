"""The table of layers in use: answers that are known, and no contradiction between contained layers."""

import time

import numpy as np
import pytest

from fsa2lrnn import FAMILIES, represent
from fsa2lrnn.automata import MooreMachine, classify, zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families import in_use
from fsa2lrnn.families.in_use import IN_USE, Decision, carried, contradictions, decide


def answers(machine, stacks=None):
    return {name: (row.one, row.stack) for name, row in decide(machine, classify(machine), stacks).items()}


def test_answers_that_are_known():
    flip_flop, parity, s3 = (answers(machine) for machine in (zoo.flip_flop(), zoo.parity(), zoo.group("S3")))
    assert {flip_flop[name] for name in IN_USE if name not in ("s4", "pd-ssm", "slstm", "attention")} == {
        ("yes", "yes")
    }
    assert [parity[name][0] for name in ("s4", "mamba", "gated-deltanet", "gated-deltanet-negative")] == [
        "no", "no", "no", "yes"
    ]  # fmt: skip
    assert (s3["gated-deltanet-negative"][0], s3["deltaproduct"][0]) == ("no", "yes")
    assert (flip_flop["attention"][1], parity["attention"][1]) == ("yes", "no")


@pytest.mark.extra("huggingface")
def test_stacks_come_from_the_constructions_of_external_layers():
    from fsa2lrnn.extra.huggingface.stacks import decide_stack

    rows = answers(zoo.ab_star(), decide_stack)
    assert (rows["mamba"], rows["pd-ssm"], rows["rwkv-7"]) == (("no", "yes"), ("yes", "yes"), ("unknown", "yes"))
    assert answers(zoo.parity(), decide_stack)["kda"] == ("no", "no")


@pytest.mark.extra("huggingface")
def test_no_layer_holds_more_than_one_that_contains_it():
    from fsa2lrnn.extra.huggingface.stacks import decide_stack

    rng = np.random.default_rng(1)
    for kind in range(20):
        n = int(rng.integers(2, 6))
        rows = [rng.permutation(n) if kind % 2 else np.sort(rng.integers(n, size=n)) for _ in range(2)]
        machine = MooreMachine(rows, rng.integers(2, size=n).astype(bool).tolist())
        found = decide(machine, classify(machine), decide_stack)  # raises an error for a contradiction
        assert contradictions(found) == []
        assert all(row.stack == "yes" for row in found.values() if row.one == "yes")
        assert all(row.one != "yes" for row in found.values() if row.stack == "no")


@pytest.mark.extra("huggingface")
def test_what_is_not_decided_in_time_is_unknown_for_that_reason():
    from fsa2lrnn.extra.huggingface.stacks import decide_stack

    machine = zoo.mod_arith(3)
    kind = classify(machine)
    begun = time.monotonic()
    late = decide(machine, kind, decide_stack, max_seconds=1e-6)
    assert time.monotonic() - begun < 20
    row = late["gated-deltanet-negative"]
    assert (row.stack, row.is_out_of_time) == ("unknown", True)
    assert "time limit" in row.why
    unhurried = decide(zoo.parity(), classify(zoo.parity()), decide_stack)
    assert not any(row.is_out_of_time for row in unhurried.values())


def test_a_contradiction_is_an_error(monkeypatch):
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["kda"] = Decision("yes", "yes"), Decision("no", "no")
    assert contradictions(rows) == [
        "Mamba-2 represents the machine as one layer, and KDA does not",
        "Mamba-2 represents the machine as a stack, and KDA does not",
    ]
    monkeypatch.setattr(in_use, "_one_layer", lambda _machine, name, *_: rows[name])
    with pytest.raises(NotExact, match="Mamba-2 represents the machine as one layer, and KDA does not"):
        decide(zoo.parity(), classify(zoo.parity()))


def test_answers_are_carried_along_containment():
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["rwkv-7"] = Decision("yes", "yes", "1 dimension"), Decision("unknown", "unknown")
    assert carried(rows)["rwkv-7"] == Decision("yes", "yes", "as Mamba-2: 1 dimension")
    rows = {name: Decision() for name in IN_USE}
    rows["kda"] = Decision("no", "no")
    assert {name for name, row in carried(rows).items() if row.stack == "no"} == {
        "mamba", "mamba-2", "gated-deltanet", "kda"
    }  # fmt: skip


def test_families_know_the_names_of_layers():
    assert represent(zoo.flip_flop(), "mamba").family == "diagonal[0,1]"
    assert represent(zoo.group("S3"), "deltaproduct").answer == "yes"
    assert "gated-deltanet" in FAMILIES
    assert FAMILIES["mamba"] == FAMILIES["diagonal[0,1]"]
    assert "mamba" not in set(FAMILIES)
    with pytest.raises(KeyError):
        FAMILIES["nothing"]
