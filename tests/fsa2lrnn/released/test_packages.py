"""Packages of others: missing, or there and quiet."""

import sys

import pytest

from fsa2lrnn.errors import MissingPackage
from fsa2lrnn.released import packages


def test_the_line_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackage, match=r'pip install "fsa2lrnn\[hf\]"'), packages.transformers():
        pass


def test_what_was_said_before_is_said_again():
    package = pytest.importorskip("transformers")
    before = package.utils.logging.get_verbosity()
    with packages.transformers() as same:
        assert same is package
        assert package.utils.logging.get_verbosity() > before
    assert package.utils.logging.get_verbosity() == before


def test_versions_are_those_that_are_loaded():
    package = pytest.importorskip("transformers")
    assert packages.versions()["transformers"] == package.__version__


def test_fla_is_out_of_sight_only_while_their_file_is_imported(monkeypatch, tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "fla").mkdir()
    (tmp_path / "fla" / "__init__.py").write_text("raise RuntimeError('no GPU here')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "transformers.models.olmo_hybrid.modeling_olmo_hybrid", raising=False)
    assert packages.modeling("olmo_hybrid").__name__.endswith("modeling_olmo_hybrid")
    assert "fla" not in sys.modules
