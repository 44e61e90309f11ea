"""The runner, its audit and what it measures."""

import json
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.nn.scans import sequential
from verify import audit, free, measured, propositions, runner
from verify.free import Depth, RingTensor, Word
from verify.propositions import REGISTRY, Outcome, Proved, Refuted, Undecided
from verify.stability import FORMATS, growth_bound, measured_overflow, overflow_length, overflow_threshold, witness

QUICK = ["worked-examples", "p-1.2-stable", "liquid-s4-dense"]


def outcomes(*answers):
    chosen = propositions.select(propositions.REGISTRY, ["worked-examples"])
    return [Outcome(chosen[0], answer) for answer in answers]


@pytest.mark.long
def test_lines_json_and_a_summary(capsys):
    runner.main(False, False, QUICK, as_json=False)
    out = capsys.readouterr().out
    assert "worked-examples        proved    3 cases" in out
    assert "float32 256" in out
    assert "instead: p = 1 stabilises" in out
    assert "3 propositions: 2 proved, 1 refuted, all as expected; 5 cases, fast profile (150 examples" in out
    runner.main(False, False, QUICK, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["counts"], document["unexpected"]) == ({"proved": 2, "refuted": 1}, [])
    stable = next(p for p in document["propositions"] if p["id"] == "p-1.2-stable")
    assert stable["data"]["overflow"]["float32"] == 256
    assert stable["instead"]
    assert stable["expected"]
    runner.main(True, False, [*QUICK, "growth-bound"], as_json=True)
    found = [p["id"] for p in json.loads(capsys.readouterr().out)["propositions"]]
    assert sorted(found) == sorted(QUICK)
    runner.main(False, False, ["worked-examples", "prop-1-words"], as_json=False)
    assert "2 propositions: 2 proved, all as expected" in capsys.readouterr().out


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_not_expected_exits_with_one(monkeypatch, capsys, as_json):
    monkeypatch.setattr(propositions, "run", lambda chosen, effort: iter(outcomes(Undecided("a second"))))  # noqa: ARG005
    with pytest.raises(SystemExit) as stop:
        runner.main(False, False, ["worked-examples"], as_json)
    assert stop.value.code == 1
    out = capsys.readouterr().out
    assert '"unexpected": [\n    "worked-examples"' in out if as_json else "unexpected: proved was expected" in out


@pytest.mark.long
def test_threads_brackets_and_the_page():
    before = torch.get_num_threads()
    runner.main(False, False, ["worked-examples"], as_json=True)
    assert torch.get_num_threads() == before
    (outcome,) = outcomes(Undecided("[bold]"))
    assert "\\[bold]" in runner.summary([outcome], propositions.FAST)
    assert "3 cases" in runner.line(outcomes(Proved("so", 3))[0])
    command = [sys.executable, "-m", "verify", "--only", "eq-8"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "proposition 'eq-8' is not in the registry" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert audit.FILE.read_text(encoding="utf-8") == audit.page()
    named = {name for claim in audit.CLAIMS for name in claim.by}
    assert named <= set(PROPOSITIONS)
    assert {name for name, proposition in PROPOSITIONS.items() if proposition.is_of_paper} <= named


PROPOSITIONS = {proposition.id: proposition for proposition in REGISTRY}


def test_a_claim_is_reproduced_by_what_holds_and_refuted_by_what_does_not():
    for claim in audit.CLAIMS:
        refuted = [name for name in claim.by if PROPOSITIONS[name].expects is Refuted]
        if claim.kind == "reproduced":
            assert not refuted, claim.text
        if claim.kind == "refuted":
            assert refuted, claim.text
        assert (claim.measured is None) == (claim.command == "")


def test_without_results_everything_measured_is_unfinished(monkeypatch, tmp_path):
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    assert {claim.measured().kind for claim in audit.CLAIMS if claim.measured} == {"unfinished"}


letters = st.builds(Word.letter, st.sampled_from("Avx"), st.integers(0, 3))
elements = st.recursive(letters, lambda e: st.builds(Word.__add__, e, e) | st.builds(Word.__mul__, e, e), max_leaves=4)


@given(elements, elements, elements)
def test_the_laws_of_a_ring(x, y, z):
    assert (x + y) + z == x + (y + z)
    assert x + y == y + x
    assert (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert (x + y) * z == x * z + y * z
    assert 0 + x == x + 0 == x
    assert (0 * x).terms == (x * 0).terms == {}


def test_rings_do_not_commute_and_count_depth():
    A1, A2 = Word.letter("A", 1), Word.letter("A", 2)
    assert A1 * A2 != A2 * A1
    assert repr(A2 * A1 + A1 * A2 + A1 * A2) == "A2A1 + 2A1A2"
    assert hash(A1 + A2) == hash(A2 + A1)
    assert Depth(3) * Depth(1) == 4
    assert Depth(3) + Depth(1) == Depth(3) + 0 == 3
    assert (Depth(0) * Depth(0)) * (Depth(0) * Depth(0)) == 2
    array = np.arange(12).reshape(1, 3, 4)
    ring, tensor = RingTensor(array.astype(object)), torch.from_numpy(array)
    for change in (
        lambda x: x.unsqueeze(1).squeeze(1).reshape(2, 6),
        lambda x: x.expand(5, 3, 4).unbind(2)[1].clone(),
        lambda x: torch.cat([torch.stack([x, x], dim=-1)] * 2, dim=1),
        lambda x: torch.nn.functional.pad(x, (0, 1, 2, 0)),
    ):
        assert change(ring).entries.tolist() == change(tensor).tolist()
    ring = free.words_of(2)[1]
    with pytest.raises(TypeError, match=r"exp is not known to RingTensor: add it to verify\.free"):
        torch.exp(ring)
    with pytest.raises(TypeError, match="padding of mode 'constant' with 1: a ring has no constant but 0"):
        torch.nn.functional.pad(ring, (0, 1), value=1)


@given(st.integers(1, 3), st.integers(0, 4), st.integers(1, 3))
def test_integers_in_a_ring_tensor_scan_as_in_torch(b, length, heads):
    generator = np.random.default_rng(b + 10 * length + 100 * heads)
    arrays = [
        generator.integers(-3, 4, shape) for shape in [(2, length, heads, b, b), (2, length, heads, b), (2, heads, b)]
    ]
    exact = sequential(*(RingTensor(array.astype(object)) for array in arrays))
    floating = sequential(*(torch.from_numpy(array).double() for array in arrays))
    assert exact.shape == floating.shape
    assert exact.entries.astype(float).tolist() == floating.tolist()


TASK = "task:sum_mod(5)"
WHOLE = {"seeds": 5, "is_finished": True}


def cell(column, look, at_40=0.5, seeds=1, is_finished=False):
    last = [{"length": length, "mean": at_40, "least": at_40, "most": at_40} for length in (40, 500)]
    own = {"task": TASK, "column": column, "paper": 0.27, "seeds": [0] * seeds, "is_finished": is_finished}
    return {**own, "best_look": look, "last": last}


@pytest.fixture
def table(monkeypatch, tmp_path):
    monkeypatch.setattr(measured, "RESULTS", tmp_path)

    def write(*cells):
        chance = {TASK: {"interval": [0.264, 0.297], "deviation": 0.02}}
        columns = {each["column"]: {"title": each["column"], "seeds": 5} for each in cells}
        results = {"chance": chance, "columns": columns, "cells": list(cells)}
        (tmp_path / "table2.json").write_text(json.dumps({"results": results}))

    return write


def test_levels_and_printed_numbers(table):
    table(cell("s4", 0.33))
    assert measured.others().kind == "unfinished"
    assert "above chance level: 0 of 1 cells" in measured.others().why
    table(cell("s4", 0.29, **WHOLE))
    assert measured.others().kind == "at chance level"
    table(cell("s4", 0.33, **WHOLE))
    assert measured.others().kind == "not reproduced"
    table(cell("s4", 0.29, **WHOLE), cell("s4d", 0.5))
    assert measured.others().kind == "not reproduced"
    table({**cell("ours", 0.27), "paper": 0.27})
    assert measured.ours().kind == "reproduced"
    table({**cell("ours", 0.25), "paper": 0.27})
    assert measured.ours().kind == "not reproduced"


def test_failures_are_placed(table):
    table(cell("ours", 1.0, 1.0))
    assert measured.same_length().kind == "unfinished"
    table(cell("ours", 1.0, 1.0), cell("s4", 0.3, 0.4))
    assert measured.same_length().kind == "unfinished"
    table(cell("ours", 1.0, 1.0), cell("s4", 0.3, 0.4, **WHOLE))
    assert measured.same_length().kind == "not reproduced"
    assert measured.same_length().why.endswith("Unfinished: 1 of 2 cells (ours)")
    table(cell("ours", 1.0, 1.0, **WHOLE), cell("s4", 0.3, 1.0, **WHOLE))
    assert measured.same_length().kind == "reproduced"
    table(cell("s4", 0.3), cell("rwkv4", 0.2))
    assert measured.behind().kind == "unfinished"
    table(cell("s4", 0.3), cell("rwkv4", 0.2, **WHOLE), cell("vanilla", 0.3))
    assert measured.behind().kind == "unfinished"
    table(cell("s4", 0.3), cell("rwkv4", 0.2, **WHOLE), cell("vanilla", 0.3, **WHOLE))
    assert measured.behind().kind == "reproduced"
    table(cell("s4", 0.3), cell("rwkv4", 0.2), cell("vanilla", 0.4))
    assert measured.behind().kind == "unfinished"
    table(cell("s4", 0.3), cell("rwkv4", 0.2), cell("vanilla", 0.4, **WHOLE))
    assert measured.behind().kind == "not reproduced"


def test_speeds_on_a_cpu_settle_nothing_and_those_on_a_gpu_do(table, tmp_path):
    assert table is not None
    row = {"what": "inference", "block": 8, "sequential_over_pscan": 0.5, "paper_sequential_over_pscan": 1.0}

    def write(name, device, **changes):
        rows = [{**row, "best_over_ours": 9.0, **changes}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": {"device": device, "rows": rows}}))
        return measured.speed("inference", 8)().kind

    assert (write("paper_speed", "CPU"), write("paper_speed_gpu", "card")) == ("unfinished", "not reproduced")
    assert write("paper_speed_gpu", "card", sequential_over_pscan=1.2) == "reproduced"
    assert write("paper_speed_gpu", "card", sequential_over_pscan=9.0) == "not reproduced"
    faster = {"sequential_over_pscan": 9.0, "paper_sequential_over_pscan": 2.5}
    assert write("paper_speed_gpu", "card", **faster) == "reproduced"  # what is claimed is that one is the faster


def test_numbers_of_the_theory():
    with pytest.raises(ValueError, match="b = 5: the centred witness has as many \\+1 as −1, give an even size"):
        witness(5, 1.2, centred=True)
    assert (round(growth_bound(8, 1.2), 3), overflow_length(8, 1.2, torch.float32)) == (1.414, 256)
    assert overflow_length(8, 1, torch.float16) is None
    assert overflow_length(1, 1.2, torch.float16) is None
    assert measured_overflow(8, 1.0, torch.float16, longest=600) is None
    lengths = {measured_overflow(8, 1.2, torch.float32, longest=300, method=m) for m in ("sequential", "pscan")}
    assert lengths <= {255, 256, 257}


@pytest.mark.parametrize("name", FORMATS)
def test_the_threshold_is_where_a_format_rounds_to_infinity(name):
    dtype = FORMATS[name]
    if dtype is torch.float64:
        with pytest.raises(OverflowError):
            float(overflow_threshold(dtype))
        return
    at = torch.tensor(float(overflow_threshold(dtype)), dtype=torch.float64)
    assert at.to(dtype).isinf()
    assert (at * (1 - 2**-20)).to(dtype).isfinite()  # nearer, and torch rounds twice on the way to 16 bits


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("b", [2, 3, 5, 8, 64])
def test_the_length_is_the_first_power_beyond_the_threshold(b, p):
    for dtype in FORMATS.values():
        k = overflow_length(b, p, dtype)
        exponent = 1 - 1 / Fraction(str(p))
        steps = math.log2(overflow_threshold(dtype)) / (float(exponent) * math.log2(b))
        assert k is not None
        assert k - 1 - 1e-9 < steps <= k + 1e-9
