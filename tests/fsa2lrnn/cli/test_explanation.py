"""Explanations, cascades and the console."""

import io
import json
import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, explain, zoo
from fsa2lrnn.cli import console
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import FAMILIES, recheck


def explained(machine, families=()):
    return json.loads(json.dumps(explain(machine, families, decide_all=True).to_json()))


@pytest.mark.long
def test_the_families_of_ab_star():
    facts = explained(zoo.ab_star())
    answers = {name: family["answer"] for name, family in facts["families"].items()}
    assert set(answers) == set(FAMILIES)
    assert answers["diagonal-complex"] == answers["lti"] == "no"
    assert (answers["block(8)"], answers["liquid-s4"], facts["monoid"]["kind"]) == ("yes", "unknown", "aperiodic")
    assert (facts["costs"]["block_sizes"], facts["blocks"]["real"]) == ([3], {"lower": 2, "upper": 2, "note": ""})
    assert facts["blocks"]["any_depth"]["upper"] == 1


@pytest.mark.long
def test_families_have_certificates_and_layers_their_names(call, tmp_path):
    facts = explained("task:sum_mod(5)", ["lru"])
    assert (list(facts["layers"]), list(facts["families"])) == (["lru"], ["lti-diagonalisable"])
    out = str(explain(zoo.sum_mod(5), ["s4d"]))
    assert "layers by name" in out
    assert "which layer should" not in out
    with pytest.raises(UnsupportedFormat, match=r"family 'lstm' is not known: did you mean (s|m)lstm\? choose"):
        explain(zoo.parity(), ["lstm"])
    code, out, _ = call("explain", "task:sum_mod(5)", "--json", "--certificates", str(tmp_path / "new" / "folder"))
    layers = json.loads(out)["layers"]
    assert (code, layers["s4"]["answer"], layers["rwkv-4"]["answer"]) == (0, "no", "no")
    files = sorted((tmp_path / "new" / "folder").glob("*.json"))
    assert len(files) == 6
    for file in files:
        recheck(json.loads(file.read_text()))


@pytest.mark.long
def test_the_table_for_people(monkeypatch):
    monkeypatch.setattr(console.out, "width", 500)
    out = str(explain("task:ab_star"))
    for piece in (
        "aperiodic (star-free)",
        "which layer should I use?",
        "Gated DeltaNet, β ≤ 2           no",
        "Mamba-3, minGRU, KDA, bounded KDA: Mamba, RG-LRU contains it (T3, T57)",
        "Mamba in [−1, 1]",
        "Gated DeltaNet, β ≤ 2: not in one layer (T3)",
        "attention (masked, hard): not in one layer (T56)",
        "`explain --layer NAME` for mamba, mamba-2, gated-deltanet, gated-deltanet-negative, kda, kda-bounded,",
        "least size of blocks, with one vector per state",
        "real blocks                       2 (proved), since smaller ones give states",
        "one-hot layer",
    ):
        assert piece in out
    assert '"bab" and "bba" must agree' in str(explain("task:ab_star", ["mamba"]))


@pytest.mark.long
def test_the_smallest_groups_are_decided_within_ten_seconds_of_the_processor():
    for name in ("S3", "D4", "Q8", "A4"):
        found = explain(f"task:group({name})", max_seconds=10.0)
        facts = [*found.blocks.blocks.values(), found.blocks.depth, found.blocks.factors]
        assert all(fact.lower == fact.upper for fact in facts), name
        assert all(fact.value is not None for fact in found.classification.facts.values())
        assert not any("unknown" in (row.one, row.stack) for row in found.in_use.values()), name


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_is_said_once(monkeypatch):
    monkeypatch.setattr(console.out, "width", 500)
    out = str(explain(zoo.group("S3"), max_seconds=7.0))
    assert out.count("--max-seconds") == 1
    assert "the time limit passed before all questions were decided: allow more seconds, as --max-seconds 14\n" in out
    assert "give more seconds" not in out
    assert re.search(r"\nelements of the monoid +undecided \(unknown: time limit", out)


# A tick may fall into a callback of the garbage collector (hypothesis has one), which ignores it; the next one counts.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_hostile_machines_end_at_the_limit_and_the_rest_is_printed(monkeypatch):
    monkeypatch.setattr(console.out, "width", 500)
    rng = np.random.default_rng(0)
    machine = MooreMachine(rng.integers(0, 300, (2, 300)), rng.integers(0, 2, 300).astype(bool).tolist())
    out = str(explain(machine, max_seconds=0.2))
    for piece in (
        "elements of the monoid",
        "undecided (unknown: time limit",
        "which layer",
        "one-hot layer",
    ):
        assert piece in out


def test_a_layer_is_found_under_the_option_that_takes_it(call):
    code, _, err = call("explain", "task:parity", "--family", "rwkv-7")
    assert (code, "rwkv-7 is described by no family: rwkv-7 trains" in err) == (2, True)
    code, out, _ = call("explain", "task:parity", "--layer", "kda", "--layer", "gated-deltanet-negative")
    assert (code, "kimi-linear  no: After" in out, "olmo-hybrid  yes: one layer, one head" in out) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("task:parity",), 0),
        (("task:parity", "--layer", "olmo-hybrid"), 0),
        (("task:parity", "--layer", "mamba-2"), 1),
        (("task:parity", "--layer", "olmo-hybrid", "--layer", "qwen3-next", "--json"), 1),
        (("task:parity", "--family", "diagonal[-1,1]"), 0),
        (("task:parity", "--family", "diagonal[0,1]"), 1),
        (("task:parity", "--family", "mamba"), 1),
        (("task:flip_flop", "--family", "mamba"), 0),
    ],
)
def test_the_exit_code_is_1_where_an_answer_is_no(call, arguments, code):
    assert call("explain", *arguments)[0] == code


def test_a_released_model_is_explained_by_its_configuration(call, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "minimax", "num_hidden_layers": 4, "allow_neg_eigval": true}')
    code, out, _ = call("explain", "--model", str(tmp_path))
    assert (code, "ARAR (A attention, R recurrent)" in out, "can hold" in out, "smallest: regex:b*a(a|b)*" in out) == (
        (0, True, True, True)
    )  # fmt: skip
    assert re.search(r"ignored by the code +allow_neg_eigval", out)
    folder = tmp_path / "c"
    code, out, _ = call("explain", "regex:b*a(a|b)*", "--model", str(path), "--json", "--certificates", str(folder))
    found = json.loads(out)
    assert (code, found["answer"], found["model"]["layers"][0]) == (1, "no", {"kind": "attention"})
    assert recheck(json.loads((folder / "minimax.json").read_text())).startswith("impossible: no network of the kind")
    for arguments, fault in (
        ((), "give a SOURCE, or --model"),
        (("task:parity", "--model", str(path), "--layer", "kda"), "without --family and --layer"),
        (("--model", str(tmp_path / "none")), "no such configuration"),
    ):
        code, _, err = call("explain", *arguments)
        assert (code, fault in err) == (2, True)


def test_blocks_of_large_machines_are_not_looked_for_nor_those_of_any_where_families_are_named(monkeypatch):
    monkeypatch.setattr(
        "fsa2lrnn.families.block_sizes.needs.too_large", lambda minimal: "large" if minimal.n_states > 4 else ""
    )
    assert explained(zoo.sum_mod(5))["blocks"] is None
    assert explained(zoo.sum_mod(2), ["lti"])["blocks"] is None


@pytest.mark.long
@given(st.text())
def test_only_what_prints_is_left(text):
    plain = console.plain(text)
    assert all(c.isprintable() or c == "\n" for c in plain)
    assert console.plain(plain) == plain
    if text.isprintable():
        assert plain == text


def test_the_console_escapes_what_streams_can_not_write(capsys, monkeypatch):
    console.error("error", "x" * 100_000 + ": repair it [bold]")
    err = capsys.readouterr().err
    assert err.startswith("error: xxx")
    assert err.endswith("x: repair it [bold]\n")
    left_out = int(re.search(r"…\(([\d,]+) characters\)…", err)[1].replace(",", ""))
    assert left_out == 100_000 - err.count("x")
    console.facts("title\x07", [("name", "[bold]\x1b[0m")])
    out = capsys.readouterr().out
    assert r"title\x07" in out
    assert r"[bold]\x1b[0m" in out
    console.error("error", "regex:a, regex:b: two")
    assert capsys.readouterr().err == "error: regex:a, regex:b: two\n"
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    console.emit_json({"value": "×"})
    stream.flush()
    assert json.loads(stream.buffer.getvalue()) == {"value": "×"}
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    console.tolerate_any_text()
    print("×")
    stream.flush()
    assert stream.buffer.getvalue() == b"\\xd7\n"


@given(st.text(), st.integers(1, 3_000))
def test_no_error_is_longer_than_2000_characters(text, times):
    """A message of 60 lines was up to 36,000, one whose echo is escaped longer."""
    with console.err.capture() as captured:
        console.error("error", text * times)
    shown = captured.get().removesuffix("\n")
    assert len(shown) <= 2_000
    if len(console.plain(text)) * times <= 1_990:
        assert shown == f"error: {console.plain(text) * times}"


@given(st.recursive(st.text() | st.floats() | st.integers() | st.none() | st.booleans(), st.lists))
def test_json_is_json_whatever_is_in_it(value):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        console.emit_json({"value": value})
    stream.flush()
    text = stream.buffer.getvalue().decode()
    assert all(c.isprintable() or c == "\n" for c in text)

    def no_constant(name):
        raise AssertionError(name)

    def finite(x):
        if isinstance(x, list):
            return [finite(y) for y in x]
        return str(x) if isinstance(x, float) and not math.isfinite(x) else x

    assert json.loads(text, parse_constant=no_constant)["value"] == finite(value)
