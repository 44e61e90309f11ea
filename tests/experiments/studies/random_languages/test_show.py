import pytest

from experiments.studies.random_languages import show


def run(machine, arm, whole_40, fails_at, whole_500=900):
    judged = {"last_40": 1_000, "whole_40": whole_40, "last_500": 1_000, "whole_500": whole_500, "fails_at": fails_at}
    return {
        "machine": machine,
        "arm": arm,
        "seed": 0,
        "end": "steps",
        "steps": 300,
        "proved": False,
        "seconds": 2.0,
    } | judged


@pytest.fixture
def document():
    theory = {arm: {"answer": answer, "why": ""} for arm, answer in (("a", "yes"), ("b", "no"))}
    kinds = ("group", "mixed")
    size = {"states": 5, "letters": 2, "definite_order": None, "constant_40": 0.5, "constant_500": 0.625}
    machines = [{"number": i, "kind": kinds[i], **size, "theory": theory} for i in range(2)]
    runs = [run(0, "a", 1_000, None, 1_000), run(1, "a", 999, 7), run(0, "b", 1_000, 31)]
    runs.append({"machine": 1, "arm": "b", "seed": 0, "end": "diverged", "proved": False, "seconds": 1.0})
    protocol = {"words": 1_000, "search_seconds": 4.0}
    asked = {"machines": 3, "seeds": 2, "arms": ["a", "b"]}
    return {"asked": asked, "protocol": protocol, "titles": {"a": "A", "b": "B"}, "machines": machines, "runs": runs}


def test_learned_against_representable(document):
    lines = show.table(document).splitlines()
    assert lines[2] == "| A | 2 | 1 of 2 | – | – | 1 | 1 | 0 | 2.0 |"
    assert lines[3] == "| B | 2 | – | 1 of 2 | – | 0 | 0 | 0 | 1.5 |"
    assert "4 of 12 cells have been run, on 2 of 3 machines (1 group, 0 aperiodic, 1 mixed)" in "\n".join(lines)


def test_an_exception_is_named_with_its_failing_word(document):
    assert show.exceptions(document) == [
        "- B on group 0 (5 states, 2 letters), seed 0: 900 of 1,000 words of 500 letters are right; a word of 31 "
        "letters fails."
    ]
    assert show.exceptions(document)[0] in show.notes(document)
    document["machines"][0]["definite_order"] = 3
    assert show.exceptions(document)[0].endswith("31 letters fails, and the last 3 letters decide the state.")
    document["runs"] = [line for line in document["runs"] if line["arm"] == "a"]
    assert "No run has learned what theory says its layer cannot represent." in show.notes(document)


def test_classes_beside_a_constant_answer(document):
    lines = show.classes(document).splitlines()
    assert lines[2] == "| A | 1 of 1 | 1.000 / 1.000 | 0 of 0 | – | 0 of 1 | 1.000 / 1.000 |"
    assert lines[3] == "| B | 1 of 1 | 1.000 / 1.000 | 0 of 0 | – | 0 of 1 | – |"
    assert lines[4] == "| a constant answer |  | 0.500 / 0.625 |  | – |  | 0.500 / 0.625 |"


def test_what_could_be_learned_and_was_not_is_named(document):
    assert show.missed(document) == ["- A: mixed 1 (5)."]
    document["runs"].append({**run(1, "a", 1_000, None), "seed": 1})
    assert show.missed(document) == ["- A: mixed 1 (5) with seed 0."]
    assert "- A: mixed 1 (5) with seed 0." in show.table(document)


def test_figures_are_reproducible(document, tmp_path):
    for name in ("one", "two"):
        show.figure(document, tmp_path / f"{name}.svg")
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"<svg" in one
