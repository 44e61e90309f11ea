"""Packages of others: missing, or there and quiet."""

import sys

import pytest

from fsa2lrnn.errors import MissingPackage, UnsupportedFormat
from fsa2lrnn.extra.huggingface import packages


def test_the_line_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackage, match=r'pip install "fsa2lrnn\[hf\]"'), packages.transformers():
        pass


def test_warnings_are_shown_and_bars_are_not():
    package = pytest.importorskip("transformers")
    logging = package.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with packages.transformers() as same:
        assert same is package
        assert logging.get_verbosity() == before[0]
        assert not logging.is_progress_bar_enabled()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_version_without_the_layer_is_named():
    pytest.importorskip("transformers")
    with pytest.raises(UnsupportedFormat, match=r"transformers \d.* has no other_layer: install transformers==5"):
        packages.modeling("other_layer")


def test_versions_are_those_that_are_loaded():
    package = pytest.importorskip("transformers")
    assert packages.versions()["transformers"] == package.__version__


def test_fla_is_out_of_sight_only_while_their_file_is_imported(monkeypatch, tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "fla").mkdir()
    (tmp_path / "fla" / "__init__.py").write_text("raise RuntimeError('no GPU here')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "transformers.models.olmo_hybrid.modeling_olmo_hybrid", raising=False)
    assert packages.hides_fla()
    assert packages.modeling("olmo_hybrid").__name__.endswith("modeling_olmo_hybrid")
    assert "fla" not in sys.modules
