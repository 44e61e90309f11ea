"""Provide the pytest fixture `assert_exact` as a plugin.

Write `pytest_plugins = ["fsa2lrnn.probes.plugin"]` in a conftest.py. The plugin is not an entry point, because
pytest would load that in every run of every project, and fail if this extra is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(name="assert_exact")
def assert_exact_fixture() -> Callable[..., Any]:
    """Return `fsa2lrnn.probes.assert_exact`."""
    from .assertion import assert_exact

    return assert_exact
