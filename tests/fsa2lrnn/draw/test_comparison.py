"""Accuracies of models compared with those of the compiled one, as data, as a table and as a chart."""

import io
import json

import pytest
import torch
from rich.console import Console

from fsa2lrnn import LRNN, compile_machine, zoo
from fsa2lrnn.cli.compare import table
from fsa2lrnn.draw import comparison
from fsa2lrnn.draw.comparison import COMPILED, compare, plot
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import BlockLayerConfig, LRNNConfig

SOURCE = "task:sum_mod(3)"


@pytest.fixture(scope="module")
def untrained():
    torch.manual_seed(0)
    layer = BlockLayerConfig((2, 2), 4, 4)
    return LRNN(LRNNConfig(("0", "1", "2"), (0, 1, 2), (layer,), embedding_dim=4, readout_hidden=4))


@pytest.fixture(scope="module")
def document(untrained):
    return compare(SOURCE, {"untrained": untrained}, lengths=(4, 30), n_words=200)


def test_the_document(document):
    assert list(document["models"]) == ["untrained", COMPILED]
    learned, compiled = ([found["last"] for found in model["lengths"]] for model in document["models"].values())
    assert compiled == [200, 200]
    assert all(40 < right < 100 for right in learned)  # a guess among three
    assert json.loads(json.dumps(document))["models"][COMPILED]["lengths"][1]["length"] == 30


def test_the_table_and_the_plot(document, tmp_path):
    shown = table(document)
    assert shown.row_count == 9  # a name and two lengths, of each model and of the best constant answer
    printed = io.StringIO()
    Console(file=printed, width=80).print(shown)
    assert "…" not in printed.getvalue()
    assert max(map(len, printed.getvalue().splitlines())) <= 80
    for ending in ("svg", "png"):
        plot(document, tmp_path / f"plot.{ending}")
    drawing = (tmp_path / "plot.svg").read_text()
    assert "untrained" in drawing
    assert COMPILED in drawing
    plot(document, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawing
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_other_machines_and_names_are_refused(untrained):
    with pytest.raises(
        UnsupportedFormat, match=r"model 'x' reads .*'3'.* and task:sum_mod\(3\) .*: take models of one"
    ):
        compare(SOURCE, {"x": compile_machine(zoo.sum_mod(4))})
    with pytest.raises(UnsupportedFormat, match="output 2 of the machine is none of 0, 1"):
        compare("task:sum_mod(3)", {"x": compile_machine(zoo.even_pair(3))})
    with pytest.raises(UnsupportedFormat, match="'compiled' is the name of the compiled machine"):
        compare(SOURCE, {COMPILED: untrained})


@pytest.mark.parametrize("length", [2_000_001, 99_999_999_999_999, 10**30])
def test_words_that_no_time_would_do_for_are_refused_before_anything_is_made(monkeypatch, length):
    """Of a length at least one word was read, however long: this did not end."""
    monkeypatch.setattr(comparison, "compile_machine", None)
    with pytest.raises(UnsupportedFormat, match=r"longer than the 2,000,000 letters|too many to be meant"):
        compare(SOURCE, {}, lengths=(4, length), letters=2_000_000)
