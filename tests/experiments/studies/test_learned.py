"""Studies of learned models and cascades."""

import json

import pytest

from experiments import results_io
from experiments.studies import cascades as cascade_table
from experiments.studies.cascades import MACHINES, RANDOM, REFERENCES
from experiments.studies.keep_models import MODELS
from experiments.studies.learned import summary, table
from fsa2lrnn.automata import zoo
from verify import mutants

COMMITTED = results_io.read("learned")["results"]


def test_the_committed_summary_is_that_of_its_rows_and_certificates_end_before_failures():
    for name, row in COMMITTED["models"].items():
        for run in row.get("runs", []):
            assert run["certified"] == row["certified"], name
    assert COMMITTED["summary"] == json.loads(json.dumps(summary(COMMITTED["models"])))
    assert table(COMMITTED["models"]).row_count == len(COMMITTED["models"]) >= 20
    import hashlib

    paths = {str(path.relative_to(MODELS).with_suffix("")): path for path in MODELS.rglob("*.safetensors")}
    assert set(paths) == set(COMMITTED["models"])
    for name, path in paths.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == COMMITTED["models"][name]["file_sha256"], name
    for name, row in COMMITTED["models"].items():
        if row["failure"] is not None:
            assert row["certified"] != "all lengths", name
            assert row["certified"] < row["failure"]["length"], name


RESULTS = results_io.read("cascade_table")["results"]
ROWS = {row["machine"]: row for kind in ("machines", "random") for row in RESULTS[kind]}
# The slow ones are those whose cascades have many layers.
QUICK = [source for source, row in ROWS.items() if "limit" not in row and row["joint_states"] <= 24]
FORMS = {(row["machine"], row["max_block"], row["token_shift_allowed"]): row for row in RESULTS["references"]}


def timeless(row):
    return {name: value for name, value in row.items() if name != "seconds"}


def test_the_table_is_whole_and_every_reference_met():
    assert list(FORMS) == [(r.source, r.max_block, r.token_shift) for r in REFERENCES]
    assert list(ROWS) == [*MACHINES, *RANDOM]
    assert {source for source, _, _ in FORMS} | set(MACHINES) >= set(zoo.ZOO)
    assert {row["reference"]["result"] for row in FORMS.values()} == {"met", "beaten"}
    for row in FORMS.values():
        assert row["largest"] <= row["reference"]["largest"]
        assert row["layers"] <= (row["reference"]["layers"] or row["layers"])
    for row in [*FORMS.values(), *ROWS.values()]:
        if "limit" in row:
            assert "more than 10,000 sets" in row["limit"]
            continue
        for dtype, proof in row["proofs"].items():
            assert proof.startswith("equal on all words: ") or (dtype == "bfloat16" and "only to 256" in proof)
        assert row["bound"]["largest_permuted"] >= row["bound"]["prime"]
        assert row["cost"]["scan"] <= row["cost"]["scan_padded"]
        total = row["cost"]["scan"] + row["cost"]["units"] + 256 * row["layers"]
        assert row["cost"]["total"] == total
    assert [(row["machine"], row["token_shift_allowed"]) for row in RESULTS["mod_arith"]] == [
        ("mod_arith(5, completion=register)", True),
        ("mod_arith(5, completion=register)", False),
        ("mod_arith(5, completion=eager)", False),
    ]
    for row in RESULTS["mod_arith"]:
        assert (row["expressions"], row["digits_right"]) == (18_080, "71,030 of 71,030")
        assert row["digits_right_of_499_letters"] == "16,000 of 16,000"
        assert row["digits_right_of_99999_letters"] == "50,000 of 50,000"


@pytest.mark.long_cases("group(A4)")
@pytest.mark.parametrize("source", QUICK[::3])
def test_a_row_is_regenerated_as_it_stands(source):
    assert timeless(cascade_table.row(source)) == timeless(ROWS[source])


@pytest.mark.slow
def test_the_whole_table_is_regenerated_as_it_stands():
    assert [timeless(cascade_table.reference_row(r)) for r in REFERENCES] == list(map(timeless, FORMS.values()))
    assert [timeless(cascade_table.row(source)) for source in ROWS] == list(map(timeless, ROWS.values()))


@pytest.mark.long_cases("reference0", "reference1", "reference2")
@pytest.mark.parametrize("reference", [r for r in REFERENCES if r.source.startswith("mod_arith")])
def test_expressions_are_evaluated_and_a_wrong_digit_is_seen(monkeypatch, reference):
    monkeypatch.setattr(cascade_table, "OPERANDS", 3)
    monkeypatch.setattr(cascade_table, "LENGTHS", {499: 64, 9_999: 1})
    row = cascade_table.mod_arith(reference)
    assert [row[f"digits_right{of}"] for of in ("", "_of_499_letters", "_of_9999_letters")] == [
        "3,530 of 3,530", "16,000 of 16,000", "5,000 of 5,000",
    ]  # fmt: skip
    compiled = cascade_table.compile_machine
    monkeypatch.setattr(cascade_table, "compile_machine", lambda *given: mutants.swap_outputs(compiled(*given), 0, 1))
    with pytest.raises(SystemExit, match=r"a digit of \S+ is evaluated wrongly"):
        cascade_table.mod_arith(reference)


@pytest.mark.long
def test_runs_are_proved_or_refused_and_missed_references_stop_the_table():
    parity = cascade_table.row("parity")
    reference = REFERENCES[0]._replace(source="parity", largest=1, layers=1)
    assert cascade_table.compare(parity, reference) == "met"
    assert cascade_table.compare(parity, reference._replace(largest=2)) == "beaten"
    assert cascade_table.compare(parity, reference._replace(largest=2, layers=None)) == "met"
    for missed in (reference._replace(largest=0), reference._replace(layers=0.5), reference._replace(heads=0.5)):
        with pytest.raises(SystemExit, match="the reference for parity is missed: blocks"):
            cascade_table.compare(parity, missed)
    with pytest.raises(SystemExit, match="no cascade for parity: too many"):
        cascade_table.compare({"limit": "too many"}, reference)
