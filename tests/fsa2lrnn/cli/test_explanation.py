"""What `explain` tells, shows and writes."""

import json

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.cli import cascades, explanation
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import FAMILIES, recheck

ANY = cascades.CascadeRequest()


def explained(capsys, machine, families=(), folder=None, wanted=ANY):
    explanation.main(machine, list(families), folder, wanted, as_json=True)
    return json.loads(capsys.readouterr().out)


@pytest.mark.extra("block_size")
def test_the_families_of_ab_star(capsys):
    facts = explained(capsys, zoo.ab_star())
    answers = {name: family["answer"] for name, family in facts["families"].items()}
    assert set(answers) == set(FAMILIES)
    assert answers["diagonal-complex"] == answers["lti"] == "no"
    assert answers["block(8)"] == "yes"
    assert answers["liquid-s4"] == "unknown"
    assert facts["monoid"]["kind"] == "aperiodic"
    assert facts["costs"]["block_sizes"] == [3]
    assert facts["blocks"]["real"] == {"lower": 2, "upper": 2, "note": ""}
    assert facts["blocks"]["any_depth"]["upper"] == 1


def test_subtraction_gives_four_words_no_longer_than_the_papers(capsys):
    facts = explained(capsys, zoo.subtraction(5), ["lti", "diagonal-complex"])
    for family in facts["families"].values():
        words = family["four_words"]
        assert len(words["u"]) <= len("0-1")
        assert len(words["prefix"]) <= len("0-")


def test_layers_are_known_by_name(capsys):
    layers = explained(capsys, zoo.sum_mod(5))["layers"]
    assert layers["s4"]["answer"] == layers["rwkv4"]["answer"] == "no"
    assert layers["liquid_s4:polyb"]["answer"] == "no recurrence"
    facts = explained(capsys, zoo.sum_mod(5), ["lru"])
    assert (list(facts["layers"]), facts["families"]) == (["lru"], {})
    explanation.main(zoo.sum_mod(5), ["s4d"], None, ANY, as_json=False)
    out = capsys.readouterr().out
    assert "layers by name" in out
    assert "which layer should" not in out


def test_certificates_are_written_and_accepted(capsys, tmp_path):
    explained(capsys, zoo.sum_mod(5), folder=tmp_path / "new" / "folder")
    files = sorted((tmp_path / "new" / "folder").glob("*.json"))
    assert len(files) == 6
    for file in files:
        recheck(json.loads(file.read_text()))


@pytest.mark.extra("block_size")
def test_the_table_for_people(capsys, monkeypatch):
    monkeypatch.setattr(explanation.console.out, "width", 500)
    explanation.main(zoo.ab_star(), [], None, ANY, as_json=False)
    out = capsys.readouterr().out
    for piece in (
        "locally testable",
        "which layer should I use?",
        "Gated DeltaNet, β ≤ 2     no",
        "least size of blocks, with one vector a state",
        "real blocks                       2 (proved), since no fewer functions",
        "one-hot layer",
        "cascade",
    ):
        assert piece in out
    explanation.main(zoo.ab_star(), ["mamba"], None, ANY, as_json=False)
    assert '"bab" and "bba" must agree' in capsys.readouterr().out


@pytest.mark.extra("block_size")
def test_blocks_of_large_machines_are_not_looked_for_nor_those_of_any_where_families_are_named(capsys, monkeypatch):
    monkeypatch.setattr(
        "fsa2lrnn.extra.block_size.sentences.too_large", lambda minimal: "large" if minimal.n_states > 4 else ""
    )
    assert explained(capsys, zoo.sum_mod(5))["blocks"] is None
    assert explained(capsys, zoo.sum_mod(2), ["lti"])["blocks"] is None


def test_an_unknown_family_is_named():
    with pytest.raises(UnsupportedFormat, match="family 'lstm' is not known"):
        explanation.main(zoo.parity(), ["lstm"], None, ANY, as_json=True)


def test_the_cascade_is_part_of_the_facts(capsys, tmp_path):
    drawing = tmp_path / "rooms.dot"
    facts = explained(capsys, zoo.mod_arith(5, "eager"), ["lti"], wanted=cascades.CascadeRequest(8, False, drawing))
    assert facts["cascade"]["block_sizes"] == [[1, 1], [1, 4], [5]]
    assert facts["cascade"]["reads"] == "after the letter"
    assert facts["costs"]["block_sizes"] == [75]
    assert drawing.read_text().startswith("digraph {")
