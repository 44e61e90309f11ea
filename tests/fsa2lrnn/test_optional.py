"""What an installation without extras can do, and what it says where it can't."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fsa2lrnn.errors import MissingPackage
from fsa2lrnn.optional import is_installed, require

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
PACKAGES = {
    extra: [re.split(r"[<>=;\[]", text)[0] for text in texts] for extra, texts in EXTRAS.items() if extra != "dev"
}
OPTIONAL = {package for packages in PACKAGES.values() for package in packages}
VERBS = ("compile", "run", "explain", "verify", "extract", "train", "compare", "certify", "repair", "report", "demo")

ALONE = f"""
import sys

class Less:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        is_missing = name.partition(".")[0] in {OPTIONAL | {"pydot", "tensorboard"}!r}
        return None if is_missing else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):  # what importlib.metadata asks finders for
        return getattr(self.finder, name)

sys.meta_path[:] = map(Less, sys.meta_path)
"""


def test_what_is_there_is_imported():
    assert require("json.decoder", "test", "this test").JSONDecoder().decode("[1]") == [1]
    assert is_installed("json")


def test_what_is_missing_is_refused_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    monkeypatch.delitem(sys.modules, "cvxpy.atoms", raising=False)  # another test may have imported it
    assert not is_installed("cvxpy")
    with pytest.raises(MissingPackage) as caught:
        require("cvxpy.atoms", "repair", "this test", "none at all")
    wanted = 'this test needs cvxpy, which is not installed: pip install "fsa2lrnn[repair]", or none at all'
    assert str(caught.value) == wanted
    with pytest.raises(MissingPackage, match=r"this test needs cvxpy, which is not installed: pip install cvxpy$"):
        require("cvxpy", None, "this test")
    assert isinstance(caught.value, ImportError)


def test_an_error_inside_a_package_that_is_there_passes_through(tmp_path, monkeypatch):
    (tmp_path / "half_here.py").write_text("import not_here_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_here_at_all") as caught:
        require("half_here", "test", "this test")
    assert not isinstance(caught.value, MissingPackage)


@pytest.mark.extra("baselines", "block_size", "distributed", "huggingface", "learning", "report")
def test_every_extra_that_is_named_brings_what_is_asked_of_it():
    asked = [
        [ast.literal_eval(beginning(argument)) for argument in call.args[:2]]
        for path in (ROOT / "fsa2lrnn").rglob("*.py")
        if re.search(r"from fsa2lrnn.optional import .*\b(require|missing)\b", text := path.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("require", "missing")
    ]
    assert {extra for _, extra in asked} >= {"gpu", "hf", "learn", "plot", "repair", "sweep", "test"}
    for module, extra in asked:
        assert extra is None or module.partition(".")[0] in PACKAGES[extra], (module, extra)


def beginning(text):
    """The literal that a text begins with."""
    return text.values[0] if isinstance(text, ast.JoinedStr) else text


def test_no_optional_package_is_imported_where_it_may_be_missing():
    """A module imports one at its head only if whoever imports that module has asked for the package before."""
    asks_first = {"fsa2lrnn/extraction/lstar.py", "fsa2lrnn/extra/gpu/kernels.py"}
    found = set()
    for path in (ROOT / "fsa2lrnn").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for inner in ast.walk(node) if isinstance(node, ast.Try) else [node]:
                names = [alias.name for alias in inner.names] if isinstance(inner, ast.Import) else []
                names += [inner.module or ""] if isinstance(inner, ast.ImportFrom) else []
                if any(name.partition(".")[0] in OPTIONAL for name in names):
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == asks_first


@pytest.mark.extra("baselines", "block_size", "distributed", "huggingface", "learning", "report")
def test_a_core_installation_does_the_work_or_names_the_extra(tmp_path):
    models = ROOT / "experiments" / "models"
    even, total = models / "even5" / "seed-4.safetensors", models / "sum2" / "seed-0.safetensors"
    few = ["--words", "5", "--lengths", "5"]
    against, parity, source = ["task:even_pair(5)"], "task:parity", "task:sum_mod(2)"
    works = [
        *([verb, "--help"] for verb in VERBS),
        ["compile", "regex:(ab)*", "-o", "ab.safetensors"],
        ["compile", parity, "--form", "cascade"],
        ["run", "ab.safetensors", "abab"],
        ["verify", "ab.safetensors", "regex:(ab)*"],
        ["explain", parity],
        ["extract", "ab.safetensors", "-o", "ab.dot"],
        ["extract", str(total), "--method", "suffixes"],
        ["train", parity, "--preset", "quick", "--steps", "2", "--output", "runs", *few],
        ["compare", str(even), *against, *few, "--max-seconds", "0.5"],
        ["repair", str(total), source, "--mode", "dyadic", "-o", "repaired.safetensors"],
    ]
    refused = [
        (["certify", str(even), "task:even_pair(5)"], "repair"),
        (["repair", str(total), source], "repair"),
        (["repair", str(total), source, "--columns", "p<=1"], "repair"),
        (["report", str(total), source, "-o", "page.html"], "repair"),
        (["demo"], "repair"),
        (["extract", str(total), "--method", "lstar"], "learn"),
        (["compare", str(even), *against, *few, "--plot", "plot.svg"], "plot"),
    ]
    code = f"""{ALONE}
import contextlib, io
import fsa2lrnn, fsa2lrnn.cli
for name in fsa2lrnn.__all__:
    getattr(fsa2lrnn, name)

def call(arguments):
    out, err = io.StringIO(), io.StringIO()
    fsa2lrnn.cli.console.out.file, fsa2lrnn.cli.console.err.file = out, err
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            fsa2lrnn.cli.main(arguments)
        except SystemExit as end:
            return end.code or 0, out.getvalue(), err.getvalue()

from fsa2lrnn.cli import console
for arguments in {works!r}:
    code, out, err = call(arguments)
    assert code == 0, (arguments, code, out, err)
for arguments, extra in {refused!r}:
    code, out, err = call(arguments)
    assert (code, err.count("\\n")) == (2, 1), (arguments, code, out, err)
    assert f'not installed: pip install "fsa2lrnn[{{extra}}]"' in err, (arguments, err)

from fsa2lrnn.errors import MissingPackage
from fsa2lrnn.extra.distributed.engines import on_ray
from fsa2lrnn.training.train import Stop
asks = dict(test=lambda: __import__("fsa2lrnn.testing.strategies"), sweep=lambda: on_ray(Stop()).__enter__())
for extra, ask in asks.items():
    try:
        ask()
    except MissingPackage as error:
        assert f'not installed: pip install "fsa2lrnn[{{extra}}]"' in str(error)
    else:
        raise AssertionError("nothing is missed")
import fsa2lrnn.testing.mutants
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
