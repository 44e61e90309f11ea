"""The pytest plugin: a fixture `assert_exact`, loaded by pytest in every run, so it imports torch only when used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(name="assert_exact")
def assert_exact_fixture() -> Callable[..., Any]:
    """Return `fsa2lrnn.extra.probes.assert_exact`."""
    from .assertion import assert_exact

    return assert_exact
