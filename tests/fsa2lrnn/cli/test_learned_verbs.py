"""The verbs for learned models refuse what does not go together; what they do is in test_learned and test_train."""

from pathlib import Path

import pytest

SUM2 = str(Path(__file__).parents[3] / "experiments" / "models" / "sum2" / "seed-0.safetensors")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("certify", SUM2, "task:sum_mod(2)", "--check", "c.json", "--memory", "2"), "goes with neither --memory nor"),
        (("certify", SUM2, "task:sum_mod(2)", "--check", "c.json"), "No such file or directory: 'c.json'"),
        (("repair", SUM2, "task:sum_mod(2)", "--snap", "--mode", "dyadic"), "--snap replaces the model"),
        (("repair", SUM2, "task:sum_mod(2)", "-o", "x.pt"), "a model is written to a file ending in"),
        (("report", SUM2, "--against", "task:sum_mod(2)", "-o", "x.pdf"), "ending in .html"),
        (("compare", SUM2, SUM2, "--against", "task:sum_mod(2)"), "one is given twice"),
    ],
)
def test_bad_input_says_what_to_do(call, arguments, said):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
