"""Delete each extra and run the tests of the core: `make test-deletion`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fsa2lrnn import registry

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
EXTRAS = sorted(path.name for path in (ROOT / "fsa2lrnn/extra").iterdir() if (path / "__init__.py").exists())


@pytest.fixture(params=EXTRAS)
def without(request, tmp_path):
    """A copy of the tree without one extra and its tests, and the name of the extra."""
    for name in ("fsa2lrnn", "verify", "experiments", "tests", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    shutil.rmtree(tmp_path / "fsa2lrnn/extra" / request.param)
    shutil.rmtree(tmp_path / "tests/fsa2lrnn/extra" / request.param)
    return tmp_path, request.param


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_core_passes_its_tests_without_an_extra(without):
    folder, _ = without
    core = ("tests/fsa2lrnn", "--ignore", "tests/fsa2lrnn/extra")
    done = run(folder, "-m", "pytest", "-q", "-n", "auto", "-m", "not slow", *core)
    assert done.returncode == 0, done.stdout[-5_000:]


def test_what_an_extra_offered_is_refused_by_name(without):
    folder, extra = without
    points = {
        kind: [name for name, point in registry.declared(kind).items() if registry.missing_extra(point) is None]
        for kind in ("commands", "layers")
    }
    belongs = f"fsa2lrnn.extra.{extra}."
    commands = [n for n in points["commands"] if f"{registry.declared('commands')[n].module}.".startswith(belongs)]
    layers = [n for n in points["layers"] if f"{registry.declared('layers')[n].module}.".startswith(belongs)]
    shown = run(folder, "-m", "fsa2lrnn", "--help")
    assert shown.returncode == 0
    for name in commands:
        assert f"│ {name} " not in shown.stdout
        refused = run(folder, "-m", "fsa2lrnn", name, "task:parity")
        assert (refused.returncode, f"the extra '{extra}'" in refused.stderr) == (2, True), refused.stderr
    for name in layers:
        refused = run(folder, "-m", "fsa2lrnn", "train", "task:parity", "-o", "runs", "--layer", name)
        assert (refused.returncode, f"the extra '{extra}'" in refused.stderr) == (2, True), refused.stderr
    if not commands and not layers:
        code = f"from fsa2lrnn import registry\nregistry.require({extra + '.anything'!r}, 'this')"
        assert f"the extra '{extra}'" in run(folder, "-c", code).stderr
