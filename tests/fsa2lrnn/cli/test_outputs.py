"""Where verbs write is tried before there is anything to write, and left as it was."""

from pathlib import Path

import pytest

from fsa2lrnn.cli import outputs
from fsa2lrnn.errors import UnsupportedFormat

CHECKS = {
    "model.safetensors": outputs.check_model,
    "machine.dot": outputs.check_machine,
    "machine.fst.txt": outputs.check_machine,
    "certificate.json": outputs.check_certificate,
    "page.html": outputs.check_page,
    "drawing.gv": outputs.check_drawing,
    "plot.pdf": outputs.check_plot,
}


@pytest.mark.parametrize(("name", "check"), CHECKS.items())
def test_places_and_endings(tmp_path, name, check):
    check(tmp_path / name)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UnsupportedFormat, match=r"file ending in|its kind is not known"):
        check(tmp_path / "file.xyz")
    with pytest.raises((OSError, UnsupportedFormat), match="no such folder, make it first"):
        check(tmp_path / "none" / name)
    (tmp_path / name).mkdir()
    with pytest.raises((OSError, UnsupportedFormat), match="this is a folder, give a file"):
        check(tmp_path / name)


def test_no_path_is_no_question():
    for check in {*CHECKS.values(), outputs.check_runs} - {outputs.check_page}:
        check(None)


def test_messages_name_the_ending():
    with pytest.raises(UnsupportedFormat, match=r"output m\.pt: a model is written to a file ending in \.safetensors$"):
        outputs.check_model(Path("m.pt"))
    with pytest.raises(UnsupportedFormat, match=r"a plot is written to a file ending in \.svg or \.png or \.pdf$"):
        outputs.check_plot(Path("m.pt"))


def test_folders_of_runs(tmp_path):
    outputs.check_runs(tmp_path / "to" / "be" / "made")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="this is a file, give a folder"):
        outputs.check_runs(tmp_path / "file")
