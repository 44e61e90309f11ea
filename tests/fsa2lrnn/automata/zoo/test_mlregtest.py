"""Languages of MLRegTest by name: read from the user's folder, and errors that name the remedy."""

import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.zoo.mlregtest import FOLDER, parse_name
from fsa2lrnn.errors import UnsupportedFormat


def test_a_name_is_read_from_the_folder_and_missing_transitions_reject(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "04.04.SL.2.1.0.att").write_text("0\t0\tb\tb\n0\t1\ta\ta\n1\t0\tb\tb\n0\n1\n")
    machine = MooreMachine.from_source("mlregtest:04.04.SL.2.1.0")
    assert [machine.accepts(word) for word in ("", "ab", "aba", "aa", "aab")] == [True, True, True, False, False]
    with pytest.raises(UnsupportedFormat, match=rf"04.04.SL.2.1.1.att cannot be read .*set {FOLDER}"):
        MooreMachine.from_source("mlregtest:04.04.SL.2.1.1")


def test_a_folder_that_is_not_set_and_names_of_another_form_are_refused(monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(UnsupportedFormat, match=f"set {FOLDER} to that folder"):
        MooreMachine.from_source("mlregtest:04.04.SL.2.1.0")
    for name in ("", "SL", "04.04.XX.2.1.0", "04.04.SL.2.1", "../../a.SL.2.1.0", "04.04.SL.²2.1.0"):
        with pytest.raises(UnsupportedFormat, match="does not name a language"):
            parse_name(name)
