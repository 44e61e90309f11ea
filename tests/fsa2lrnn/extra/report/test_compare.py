"""The constructed model stands beside the learned ones, on the same words."""

import io
import json
import sys

import pytest
import torch
from matplotlib.figure import Figure
from rich.console import Console

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import MissingPackage, UnsupportedFormat
from fsa2lrnn.extra.report import compare as comparison
from fsa2lrnn.extra.report.compare import CONSTRUCTED, compare, plot, table
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig

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
    assert list(document["models"]) == ["untrained", CONSTRUCTED]
    learned, constructed = ([found["last"] for found in model["lengths"]] for model in document["models"].values())
    assert constructed == [200, 200]
    assert all(40 < right < 100 for right in learned)  # a guess among three
    assert json.loads(json.dumps(document))["models"][CONSTRUCTED]["lengths"][1]["length"] == 30


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
    assert CONSTRUCTED in drawing
    plot(document, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawing
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("lengths", "named"), [((12,), ["12"]), ((1200, 1000, 1100), ["1,000", "1,200"])])
def test_lengths_that_are_close_are_named_apart(document, tmp_path, lengths, named):
    """Of one length, or of some within a power of ten, the ticks overlapped: 4.92 × 10⁰ and the like."""
    model = document["models"][CONSTRUCTED]
    close = model | {"lengths": [model["lengths"][0] | {"length": length} for length in lengths]}
    plot(document | {"models": {CONSTRUCTED: close}}, tmp_path / "plot.svg")
    drawing = (tmp_path / "plot.svg").read_text()
    assert [drawing.count(f">{name}<") for name in named] == [2] * len(named)
    assert "mathdefault" not in drawing
    assert "×" not in drawing


def test_the_plot_has_a_line_a_model_with_its_accuracies(document, tmp_path, monkeypatch):
    figures = []
    save_figure = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, *a, **k: figures.append(figure) or save_figure(figure, *a, **k)
    )
    plot(document, tmp_path / "plot.svg")
    (figure,) = figures
    assert [axes.get_title() for axes in figure.axes] == ["last output right", "whole word right"]
    for axes, key in zip(figure.axes, ("last_position", "whole_word"), strict=True):
        constant = ["best constant answer"] * (key == "last_position")
        assert [line.get_label() for line in axes.lines] == ["untrained", CONSTRUCTED, *constant]
        for line, band, model in zip(axes.lines[:2], axes.collections, document["models"].values(), strict=True):
            assert line.get_xdata().tolist() == pytest.approx([4, 30], rel=0.02)
            shift = line.get_xdata()[0] / 4
            assert line.get_ydata().tolist() == [found[key]["accuracy"] for found in model["lengths"]]
            corners = {(x, y) for x, y in band.get_paths()[0].vertices.tolist()}
            ends = {(found["length"] * shift, end) for found in model["lengths"] for end in found[key]["interval"]}
            assert corners == ends
        first, second = axes.lines[:2]
        assert first.get_xdata()[0] < 4 < second.get_xdata()[0]
        assert first.get_marker() != second.get_marker()
    legend = [text.get_text() for text in figure.legends[0].texts]
    assert legend == ["untrained", CONSTRUCTED, "best constant answer"]


def test_matplotlib_is_asked_for(document, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = r'a plot .* needs matplotlib, which is not installed: pip install "fsa2lrnn\[plot\]"'
    with pytest.raises(MissingPackage, match=message):
        plot(document, tmp_path / "plot.svg")


def test_models_of_other_machines_are_refused():
    with pytest.raises(
        UnsupportedFormat, match=r"model 'x' reads .*'3'.* and task:sum_mod\(3\) .*: take models of one"
    ):
        compare(SOURCE, {"x": compile_machine(zoo.sum_mod(4))})
    with pytest.raises(UnsupportedFormat, match="output 2 of the machine is none of 0, 1"):
        compare("task:sum_mod(3)", {"x": compile_machine(zoo.even_pair(3))})


def test_no_model_takes_the_place_of_the_constructed_one(untrained):
    with pytest.raises(UnsupportedFormat, match="'constructed' is the name of the compiled machine"):
        compare(SOURCE, {CONSTRUCTED: untrained})


def test_the_limits_are_passed_on(monkeypatch):
    seen = []
    monkeypatch.setattr(comparison, "evaluate", lambda *given: seen.append(given[2:]) or [])
    compare(SOURCE, {}, lengths=(7,), n_words=5, letters=9, seed=4)
    assert seen == [(4, (7,), 5, 9)]


@pytest.mark.parametrize("length", [2_000_001, 99_999_999_999_999, 10**30])
def test_words_that_no_time_would_do_for_are_refused_before_anything_is_made(monkeypatch, length):
    """Of a length at least one word was read, however long: this did not end."""
    monkeypatch.setattr(comparison, "compile_machine", None)
    with pytest.raises(UnsupportedFormat, match=r"longer than the 2,000,000 letters|too many to be meant"):
        compare(SOURCE, {}, lengths=(4, length), letters=2_000_000)
