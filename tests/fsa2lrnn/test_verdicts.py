"""One vocabulary: no verdict is a truth value, each says its scope; how results are shown."""

import json

import pytest

from fsa2lrnn import (
    MooreMachine,
    certify,
    check,
    choose,
    classify,
    compile_machine,
    compile_recurrence,
    decompose,
    extract,
    extract_learned,
    falsify,
    prove_equivalent,
    repair,
    represent,
    zoo,
)
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verdicts import (
    Accepted,
    Counterexample,
    Coverage,
    Proved,
    Refuted,
    Scope,
    SearchRecord,
    Undecided,
)

WORD = Counterexample(("a", ("b", 1)), (0, True), (0, "NaN"), (False, True), float("-inf"), ("sequential", "pscan"))
SEARCH = SearchRecord("beam", "beam of 2", 10, 2, 20, 0.1, None, False)
VERDICTS = [
    Proved(3, 6, Coverage("float32", ("sequential",), "every", None), Scope(3, empty_word=True), "0f"),
    Refuted(WORD, 0, Scope(5, 2, ("?", None)), "beam", (SEARCH,)),
    Undecided(3, Scope(5), 10),
    Accepted(None, Scope(5), Coverage("float64", ("pscan",), "every", None)),
    Accepted(7, Scope(5), Coverage("float32", ("sequential",), "letters", 1, ("x86",), ("mine:Layer",))),
]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verdict_is_no_truth_value_and_names_itself(verdict):
    name = type(verdict).__name__
    with pytest.raises(TypeError, match=f"{name} is not a truth value: ask isinstance"):
        bool(verdict)
    written = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert written["verdict"] == verdict.kind == name.lower()
    assert written["scope"] == json.loads(json.dumps(verdict.scope.to_json()))


def test_the_json_of_a_refutation():
    assert json.loads(json.dumps(VERDICTS[1].to_json())) == {
        "verdict": "refuted",
        "failure": {
            "length": 2,
            "word": ["a", {"tuple": ["b", 1]}],
            "wanted": [0, True],
            "given": [0, "NaN"],
            "counts": [False, True],
            "margin": None,
            "scans": ["sequential", "pscan"],
        },
        "checked_length": 0,
        "is_shortest": False,
        "scope": {"states": 5, "ignored_states": 2, "ignored": ["?", None], "empty_word": False},
        "found_by": "beam",
        "searches": [
            {"name": "beam", "what": "beam of 2", "length": 10, "words": 2, "letters": 20, "seconds": 0.1,
             "found": None, "finished": False}
        ],
    }  # fmt: skip


def test_a_failing_word_comes_back_from_json():
    plain = Counterexample(("a",), (0,), (1,))
    empty, longer = (
        Counterexample((), ("x",), ("y",)),
        Counterexample(("a", "b"), (0, 1), (0, 0), None, -0.5, ("fused",)),
    )
    for word in (plain, empty, longer):
        assert Counterexample.from_json(json.loads(json.dumps(word.to_json()))) == word
    assert (
        Counterexample.from_json({"word": ["a"], "wanted": [0], "given": [1]}) == plain
    )  # as reports wrote them before
    assert WORD.as_text() == Counterexample(
        ("a", "('b', 1)"), ("0", "True"), ("0", "NaN"), *list(vars(WORD).values())[3:]
    )


def test_the_position_is_that_of_the_first_wrong_output_that_counts_whatever_the_length_says():
    word = ("a", "b", "a", "b")
    assert Counterexample(word, "0100", "0010").position == 2
    assert Counterexample(word, "0100", "0010", [True, False, True, True]).position == 3
    assert Counterexample((), ("x",), ("y",)).position == 0
    with pytest.raises(UnsupportedFormat, match="needs an output that counts and differs"):
        _ = Counterexample(word, word, word).position
    written = Counterexample(("a", "b"), (0, 1), (0, 0)).to_json()
    assert Counterexample.from_json(written).position == written["length"] == 2
    with pytest.raises(UnsupportedFormat, match="failure: length 3, but the first wrong output stands at 2"):
        Counterexample.from_json({**written, "length": 3})


@pytest.mark.parametrize(("changes", "reason"), [
    ({"extra": 1}, "failure.extra is not known: remove it"),
    ({"wanted": [0]}, "failure: 2 letters, but 1 and 2 outputs"),
    ({"counts": [True]}, "failure: 2 letters"),
    ({"word": None}, "failure.word = None must be a list"),
    ({"given": [[1], [2]]}, "is not a symbol"),
    ({"margin": "0"}, "failure.margin = '0' must be a finite number or null"),
])  # fmt: skip
def test_what_is_no_failing_word_is_refused(changes, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        Counterexample.from_json({**WORD.to_json(), **changes})
    for value, missing in (({"word": [], "wanted": [0]}, "failure.given is missing"), (3, "failure = 3 must be an")):
        with pytest.raises(UnsupportedFormat, match=missing):
            Counterexample.from_json(value)


def test_a_scope_says_what_is_left_out():
    assert str(Scope(5, empty_word=True)) == "every output counts"
    assert str(Scope(5)) == "every output counts but that of the empty word"
    assert str(Scope(1_200, 1_001, ("?", True), True)) == "outputs of 1,001 of 1,200 states do not count: ?, accept"
    many = Scope(20, 10, tuple(range(10)))
    assert str(many) == (
        "outputs of 10 of 20 states do not count: 0, 1, 2, 3, 4, 5, 6, 7 and 2 more; nor does that of the empty word"
    )


@pytest.fixture(scope="module")
def results():
    machine = zoo.group("S3")
    model = compile_machine(machine)
    parity = zoo.sum_mod(2)
    other = MooreMachine(machine.delta, machine.outputs[::-1], machine.start, machine.alphabet)
    certificate = certify(model, machine)
    return {
        "proved": prove_equivalent(model, machine), "refuted": prove_equivalent(model, other),
        "undecided": falsify(model, machine), "certificate": certificate, "accepted": check(certificate, model),
        "classification": classify(machine), "repaired": repair(compile_machine(parity), parity),
        "witness": represent(parity, "diagonal[-1,1]"), "impossibility": represent(machine, "diagonal[-1,1]"),
        "extraction": extract_learned(compile_machine(parity)), "machine": extract(model),
        "recurrence": compile_recurrence(machine), "choice": choose(machine), "decomposition": decompose(machine),
        "cascade": decompose(machine).cascade,
    }  # fmt: skip


@pytest.mark.long
def test_results_are_short_and_say_their_claim(results):
    texts = {name: (repr(value), str(value)) for name, value in results.items()}
    assert {name: len(text) for name, (text, _) in texts.items() if len(text) > 200 or "\n" in text} == {}
    assert {name: text for name, (_, text) in texts.items() if "\n" in text} == {}
    assert all(repr(results[name]).startswith(kind.__name__ + "(") for name, kind in
               {"proved": Proved, "refuted": Refuted, "undecided": Undecided}.items())  # fmt: skip
    assert str(results["proved"]).startswith("proved: on every word of every length")
    failure = results["refuted"].failure
    assert str(results["refuted"]).endswith(f"the output is {failure.given[-1]}, not {failure.wanted[-1]}")
    assert str(results["certificate"]).startswith("certificate, to be checked: right on every word of ")
    assert str(results["impossibility"]).startswith("one diagonal[-1,1] layer: no. ")
    assert str(results["classification"]).startswith("group: MooreMachine(6 states")
