"""`demo`: the story of the compiled machine."""

import json


def test_the_demo_tells_the_story(call):
    code, out, _ = call("demo", "--no-learned")
    assert code == 0
    for piece in (
        "ModArith(5)",
        "1+2-3*4 = 1 (mod 5); integers: 1  equal",
        "10,000 digits",
        "51 joint states",
        "bfloat16",
        "5. Three rooms.",
        "layer 3, accumulator",
        "2 lanes · 1 block of 5 · 1 block of 5, and 39 hidden units, instead of a block of 75",
        "75 joint states, 600 transitions, closed",
        "6. And back.",
    ):
        assert piece in out
    code, out, _ = call("demo", "--no-learned", "--json")
    facts = json.loads(out)
    assert facts["extracted_machine_is_the_source"]
    assert [e["model"] == e["integers"] for e in facts["evaluated"]] == [True, True]
    assert [layer["block_sizes"] for layer in facts["rooms"]["layers"]] == [[1, 1], [5], [5]]
    assert {proof["verdict"] for proof in facts["rooms"]["proofs"].values()} == {"proved"}


def test_the_folder_is_tried_first(call, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = call("demo", "--output", "file")
    assert (code, out) == (2, "")
    assert "this is a file, give a folder: 'file'" in err
