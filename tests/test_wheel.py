"""The wheel beside a researcher's own folders: verify, experiments and tests are theirs, and everything works."""

import os
import shutil
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import typer

from fsa2lrnn import cli

ROOT = Path(__file__).parent.parent
VERBS = sorted(typer.main.get_command(cli.app).commands)
MINE = 'print("the researcher\'s own")\nMINE = True\n'
SUITE = """
import verify
from fsa2lrnn import compile_machine, extract, prove_equivalent
from fsa2lrnn.verification import Proved
from fsa2lrnn.testing import strategies
from hypothesis import given, settings

@settings(max_examples=10, deadline=None)
@given(strategies.machines(max_states=3, max_letters=2))
def test_compiled_machines_come_back(machine):
    model = compile_machine(machine)
    assert isinstance(prove_equivalent(model, machine), Proved)
    assert extract(model) == machine.minimise()

def test_my_folders_are_mine():
    import experiments
    assert verify.MINE and experiments.MINE
"""


class Place:
    """An environment with the wheel, and a folder of a researcher who has the same names in it."""

    def __init__(self, folder):
        source, self.work, self.env = folder / "source", folder / "work", folder / "env"
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, source / name)
        shutil.copytree(ROOT / "fsa2lrnn", source / "fsa2lrnn", ignore=shutil.ignore_patterns("__pycache__"))
        offline = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
        pip = [sys.executable, "-m", "pip"]
        subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "-w", folder, source], check=True)
        (self.wheel,) = folder.glob("*.whl")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.env], check=True)
        self.python = self.env / "bin" / "python"
        subprocess.run([*pip, "--python", self.python, "install", *offline, self.wheel], check=True)
        # What the wheel depends on is taken from here; an editable fsa2lrnn stays out, since no .pth file is followed.
        packages = next(self.env.glob("lib/*/site-packages"))
        (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
        for name in ("verify.py", "verify/__init__.py", "experiments/__init__.py", "fsa.py"):
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(MINE)
        (self.work / "tests").mkdir()
        (self.work / "tests" / "__init__.py").touch()
        (self.work / "tests" / "test_mine.py").write_text(SUITE)

    def run(self, *command):
        """Run a command in the researcher's folder, with that folder on the path: what it printed."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"PYTHONPATH": str(self.work), "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=self.work, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The wheel, built and installed."""
    return Place(tmp_path_factory.mktemp("wheel"))


@pytest.mark.long
def test_the_wheel_holds_the_library_alone(place):
    names = zipfile.ZipFile(place.wheel).namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"fsa2lrnn"}
    assert "fsa2lrnn/py.typed" in names
    assert len(top) == 2
    where = place.run(place.python, "-c", "import fsa2lrnn; print(fsa2lrnn.__file__)")
    assert where.startswith(str(place.env))


@pytest.mark.long
def test_every_verb_is_there_beside_folders_of_the_same_names(place):
    lines = ["import sys, fsa2lrnn, fsa2lrnn.cli", "[getattr(fsa2lrnn, name) for name in fsa2lrnn.__all__]"]
    lines += [f"for verb in {VERBS}:", "    try: fsa2lrnn.cli.main([verb, '--help'])"]
    lines += ["    except SystemExit as end: assert not end.code, verb"]
    lines += ["assert not {'verify', 'experiments', 'tests'} & set(sys.modules)"]
    said = place.run(place.python, "-c", "\n".join(lines))
    assert said.count("Usage:") == len(VERBS)
    assert "Usage: fsa2lrnn" in place.run(place.env / "bin" / "fsa2lrnn", "--help")


@pytest.mark.slow
def test_every_verb_works_beside_folders_of_the_same_names(place):
    models = ROOT / "experiments" / "models"
    even, total = models / "even5" / "seed-4.safetensors", models / "sum2" / "seed-0.safetensors"
    few = ["--words", "5", "--lengths", "5"]
    lines = {
        "compile": ["regex:(ab)*", "-o", "ab.safetensors"],
        "run": ["ab.safetensors", "abab"],
        "verify": ["ab.safetensors", "regex:(ab)*"],
        "explain": ["task:parity"],
        "extract": ["ab.safetensors", "-o", "ab.dot"],
        "convert": ["ab.dot", "-o", "ab.json"],
        "draw": ["ab.dot", "ab.safetensors", "-o", "ab.html"],
        "export": ["task:parity", "--layer", "olmo-hybrid", "-o", "parity"],
        "gates": ["parity"],
        "tasks": [],
        "train": ["task:parity", "--preset", "quick", "--steps", "2", "--output", "runs", "--seeds", "0,1", *few],
        "sweep": ["few.toml", "--engine", "serial", "--output", "swept"],
        "learn": ["task:parity", "-o", "learned"],
        "compare": [even, "task:even_pair(5)", "--max-seconds", "1", "--plot", "plot.svg", *few],
        "falsify": ["task:parity", "task:parity"],
        "certify": [even, "task:even_pair(5)", "--memory", "2"],
        "repair": [total, "task:sum_mod(2)", "--mode", "dyadic", "-o", "repaired.safetensors"],
        "demo": ["-o", "demo"],
    }
    (place.work / "few.toml").write_text(
        'preset = "quick"\ntasks = ["task:parity"]\nwords = 5\nlengths = [5]\n[settings.few]\nsteps = 2\n'
    )
    assert set(VERBS) <= set(lines), "say here how a new verb is called"
    for i, (verb, line) in enumerate((verb, line) for verb, line in lines.items() if verb in VERBS):
        door = [place.env / "bin" / "fsa2lrnn"] if i % 2 else [place.python, "-m", "fsa2lrnn"]
        assert "the researcher's own" not in place.run(*door, verb, *line)


@pytest.mark.slow
def test_a_suite_of_the_researchers_own_uses_the_strategies(place):
    assert "3 passed" in place.run(place.python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
