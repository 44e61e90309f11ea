"""Functions of a module, replaced for a moment."""

from types import SimpleNamespace

import pytest

from fsa2lrnn.extra.huggingface.observed.observer import replaced


def test_what_was_there_is_there_again():
    file = SimpleNamespace(f=1, g=2)
    with replaced(file, f=3, g=4):
        assert (file.f, file.g) == (3, 4)
    assert (file.f, file.g) == (1, 2)


def test_after_an_error_too():
    file = SimpleNamespace(f=1)
    with pytest.raises(ZeroDivisionError), replaced(file, f=3):
        _ = 1 / 0
    assert file.f == 1


def test_a_name_that_is_not_there_replaces_none():
    file = SimpleNamespace(f=1)
    with pytest.raises(AttributeError), replaced(file, f=3, g=4):
        pass
    assert vars(file) == {"f": 1}
