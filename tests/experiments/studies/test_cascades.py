"""The committed table of cascades is what the code says today, and its rows say what they should."""

import pytest

from experiments import results_io
from experiments.studies import cascades as cascade_table
from experiments.studies.cascades import MACHINES, RANDOM, REFERENCES
from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.testing import mutants

RESULTS = results_io.read("cascade_table")["results"]
ROWS = {row["machine"]: row for kind in ("machines", "random") for row in RESULTS[kind]}
# The slow ones are those whose cascades have many layers.
QUICK = [source for source, row in ROWS.items() if "limit" not in row and row["joint_states"] <= 50]
FORMS = {(row["machine"], row["max_block"], row["token_shift_allowed"]): row for row in RESULTS["references"]}


def timeless(row):
    return {name: value for name, value in row.items() if name != "seconds"}


def test_the_table_has_every_machine_once():
    assert list(FORMS) == [(r.source, r.max_block, r.token_shift) for r in REFERENCES]
    assert list(ROWS) == [*MACHINES, *RANDOM]
    assert {source for source, _, _ in FORMS} | set(MACHINES) >= set(zoo.ZOO)


# These take longer, and are left to the whole table: dyck(2, 4) and dyck(2, 5) are of the kind of dyck(2, 3).
LONG = ("dyck(2, 4)", "dyck(2, 5)", "group(Z60)")


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param(r, marks=pytest.mark.slow if r.token_shift else ())  # some of them take seconds
        for r in REFERENCES
        if r.source not in LONG
    ],
    ids=lambda r: f"{r.source}, token_shift={r.token_shift}",
)
def test_a_reference_is_met_today(reference):
    row = FORMS[reference.source, reference.max_block, reference.token_shift]
    assert timeless(cascade_table.reference_row(reference)) == timeless(row)


@pytest.mark.parametrize("source", QUICK[::3])
def test_a_row_is_regenerated_as_it_stands(source):
    assert timeless(cascade_table.row(source)) == timeless(ROWS[source])


@pytest.mark.slow
def test_the_whole_table_is_regenerated_as_it_stands():
    assert [timeless(cascade_table.reference_row(r)) for r in REFERENCES] == list(map(timeless, FORMS.values()))
    assert [timeless(cascade_table.row(source)) for source in ROWS] == list(map(timeless, ROWS.values()))


def test_every_reference_is_met_or_beaten():
    assert {row["reference"]["result"] for row in FORMS.values()} == {"met", "beaten"}
    for row in FORMS.values():
        assert row["largest"] <= row["reference"]["largest"]
        assert row["layers"] <= (row["reference"]["layers"] or row["layers"])


def test_every_cascade_is_proved_or_a_limit_is_named():
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


def test_mod_arith_is_right_at_every_digit():
    assert [(row["machine"], row["token_shift_allowed"]) for row in RESULTS["mod_arith"]] == [
        ("mod_arith(5, completion=register)", True),
        ("mod_arith(5, completion=register)", False),
        ("mod_arith(5, completion=eager)", False),
    ]
    for row in RESULTS["mod_arith"]:
        assert row["expressions"] == 18_080
        assert row["digits_right"] == "71,030 of 71,030"
        assert row["digits_right_of_499_letters"] == "16,000 of 16,000"
        assert row["digits_right_of_99999_letters"] == "50,000 of 50,000"


def test_a_reference_that_is_missed_stops_the_table():
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


def test_a_network_that_is_wrong_stops_the_table(monkeypatch):
    lower = cascade_table.lower
    monkeypatch.setattr(cascade_table, "lower", lambda *args: mutants.swap_outputs(lower(*args), 0, 1))
    with pytest.raises(SystemExit, match="in float32 is not proved: refuted"):
        cascade_table.row("parity")


def test_a_dtype_that_is_refused_is_named(monkeypatch):
    lower = cascade_table.lower

    def refuse(recurrence, *dtype):
        if dtype:
            raise NotExact("too large for it")
        return lower(recurrence)

    monkeypatch.setattr(cascade_table, "lower", refuse)
    proofs = cascade_table.row("parity")["proofs"]
    assert proofs["bfloat16"] == "refused: too large for it"
    assert proofs["float32"] == "equal on all words: 2 joint states, 4 transitions"
