"""Results are read with the types that they have, and what is none is named."""

import json

import pytest

from experiments.studies.keep_models import MODELS
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.extra.distributed.results import KeptModelOrigin, RunResult, SweepLine, parse_result, read_result

SHARE = {"accuracy": 0.5, "interval": [0.25, 0.75]}
LENGTH = {"length": 40, "words": 4, "whole": 2, "last": 2, "whole_word": SHARE, "last_position": SHARE}
RESULT = {"seed": 3, "end": "steps", "step": 20, "last_checkpoint": [LENGTH]}
RESULT |= {"paper_protocol": {"accuracy": None, "looks": 0}}
LINE = RESULT | {"folder": "x", "judged": {"lengths": [40], "words": 4, "letters": 9}, "task": "task:parity"}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (RunResult, RESULT),
        (SweepLine, LINE),
        (RunResult, {"seed": 0, "end": "diverged", "error": "why"}),
        (RunResult, RESULT | {"x": 1}),
    ],
)
def test_what_is_read_is_the_object_as_it_stands(kind, value):
    assert parse_result(kind, json.dumps(value), "r") == value


@pytest.mark.parametrize(
    "path", sorted(MODELS.rglob("*.json"))[::5], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_kept_models_say_where_they_come_from(path):
    assert read_result(path, KeptModelOrigin)["task"].startswith("task:")


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (RunResult, [], r"r is no result of a run .the result = \[\] must be an object.: remove it"),
        (RunResult, RESULT | {"seed": True}, "the result.seed = True must be a whole number"),
        (RunResult, RESULT | {"end": None}, "the result.end = None must be text"),
        (RunResult, RESULT | {"step": 2.0}, "the result.step = 2.0"),
        (RunResult, RESULT | {"last_checkpoint": [{}]}, r"last_checkpoint\[0\].length is missing"),
        (
            RunResult,
            RESULT | {"last_checkpoint": [LENGTH | {"whole_word": {"accuracy": "1", "interval": []}}]},
            "accuracy = '1'",
        ),
        (
            RunResult,
            RESULT | {"paper_protocol": {"accuracy": 1e999, "looks": 1}},
            "accuracy = inf must be a finite",
        ),
        (SweepLine, RESULT, "the result.folder is missing; the result.judged is missing"),
        (KeptModelOrigin, RESULT, "the result.task is missing"),
    ],
)
def test_what_is_no_result_is_named(kind, value, reason):
    with pytest.raises(CheckpointError, match=reason):
        parse_result(kind, json.dumps(value), "r")


def test_files_are_named(tmp_path):
    (tmp_path / "result.json").write_bytes(b"{")
    with pytest.raises(CheckpointError, match=r"result.json is no result of a run .*: line 1, column 2"):
        read_result(tmp_path / "result.json")
