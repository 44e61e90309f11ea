"""Every public name is documented, and every name in the documentation exists."""

import ast
import importlib
import inspect
import re
from functools import cache, reduce
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LISTS = re.compile(r"^__all__ =", re.MULTILINE)
ROOMS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "fsa2lrnn").rglob("*.py")
    if LISTS.search(path.read_text(encoding="utf-8"))
)
SHOWN = set(
    re.findall(r"^::: (\S+)$", "".join(p.read_text("utf-8") for p in (ROOT / "docs" / "reference").glob("*.md")), re.M)
)
# As a whole, with all that it holds.
WHOLE = {"fsa2lrnn.testing.strategies", "fsa2lrnn.errors"}


def found(name):
    """What a dotted name stands for: a module, or something in one."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        return importlib.import_module(name)


@cache
def told():
    """Names of data that a string below their assignment describes."""
    names = set()
    for path in (ROOT / "fsa2lrnn").rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for line, below in pairwise(body):
            if isinstance(line, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr):
                target = line.targets[0] if isinstance(line, ast.Assign) else line.target
                if isinstance(below.value, ast.Constant) and isinstance(target, ast.Name):
                    names.add(target.id)
    return names


def is_told(value, name):
    """Whether a public value says what it is: in its docstring, or below the line that makes it."""
    if inspect.ismodule(value) or inspect.isclass(value) or callable(value):
        doc = value.__doc__ or ""
        if doc and not doc.startswith(f"{name}("):  # that of a dataclass without one
            return True
    return name in told()


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_its_place(room):
    """Under the room's own name, or under another that stands for the same."""
    module = importlib.import_module(room)
    shown = {(last, id(found(name))) for name in SHOWN if (last := name.rpartition(".")[2]) in module.__all__}
    lacking = [name for name in module.__all__ if (name, id(getattr(module, name))) not in shown]
    assert [name for name in lacking if not inspect.ismodule(getattr(module, name))] == []
    assert [name for name in module.__all__ if not is_told(getattr(module, name), name)] == []


def test_what_is_shown_is_there():
    assert len(SHOWN) > 200
    assert SHOWN >= WHOLE
    assert all(found(name) is not None for name in SHOWN)


def test_a_name_that_nothing_tells_is_seen():
    assert not is_told(7, "SOMETHING_NEW")
    assert is_told(7, "WORK")


PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
ROOMS_OF_PROSE = "fsa2lrnn|verify|experiments|tests|docs"
# From the root; or in backticks, from any folder, as in `families/channels.py`.
ROOTED = re.compile(rf"(?<![\w/.])(?:{ROOMS_OF_PROSE})/[\w./*-]*[\w/*]")
NAMED = re.compile(r"`([\w./-]+(?:/|\.(?:py|md|toml|json|cff)))`")
DOTTED = re.compile(r"(?<![\w./])(?:fsa2lrnn|verify|experiments)(?:\.\w+)+")
CODE = re.compile(r"\bCode: (.*?)(?=\bTests?:|\n\n|\Z)", re.DOTALL)  # what stands there may leave its rooms out
FILES = [
    path for room in ROOMS_OF_PROSE.split("|") for path in (ROOT / room).rglob("*") if "__pycache__" not in path.parts
]
PLACES = {f"/{path.relative_to(ROOT).as_posix()}" for path in [*FILES, *ROOT.iterdir()]}
PACKAGES = [path.parent for path in FILES if path.name == "__init__.py"]
INSIDE = ["fsa2lrnn.", *(".".join(package.relative_to(ROOT).parts) + "." for package in PACKAGES)]
# What users make themselves, and what runs leave.
THEIRS = {
    "sweep.toml", "summary.json", "machine.json", "my_layers.py", "test_mine.py", "runs/", "config.json",
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "result.json", "learn.json",
    "learned.json", "settings.json",
}  # fmt: skip


def missing(text):
    """The names in a text that lead nowhere, but those of files that stand at an earlier commit."""
    text = re.sub(r"commit [0-9a-f]{8}\b[^)]*\)", "", text)
    for name in ROOTED.findall(text):
        if not list(ROOT.glob(name.rstrip("/"))):
            yield name
    for name in set(NAMED.findall(text)) - THEIRS:
        if not any(place.endswith("/" + name.rstrip("/")) for place in PLACES):
            yield name
    yield from (name for name in DOTTED.findall(text) if not is_there(name))
    for sentence in CODE.findall(text):
        for name in re.findall(r"`([\w.]+)`", re.sub(r"\(.*?\)", "", sentence, flags=re.DOTALL)):
            if not name.endswith(".py") and not any(is_there(f"{room}{name}") for room in INSIDE):
                yield name


def is_there(name):
    """Whether a dotted name is a module of ours, or something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:n])
        if place.with_suffix(".py").exists() or (place / "__init__.py").exists():
            try:
                reduce(getattr, parts[n:], import_module(".".join(parts[:n])))
            except AttributeError:
                return False
            return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page):
    assert list(missing(page.read_text(encoding="utf-8"))) == []


def test_what_is_not_there_is_named():
    gone = [
        "tests/verify/test_equivalence.py", "fsa2lrnn/extract/", "fsa2lrnn.training.grid.FAMILIES", "docs/*.rst",
    ]  # fmt: skip
    there = "`families/channels.py`, fsa2lrnn.training.data.TaskWords, `python -m verify`, docs/theory.md, tests/*.py"
    assert list(missing(there + "".join(f" ({name})." for name in gone))) == [*gone[:2], gone[3], gone[2]]
    assert list(missing("`families/replay.py` and `fsa2lrnn/compile/`")) == ["families/replay.py"]
    assert list(missing("Code: `bound`, `refine.fibre_code`, `refine.fibre` (`x`).\nTests: `y`")) == ["refine.fibre"]
