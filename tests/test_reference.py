"""The reference holds every public name: those that `fsa2lrnn` and its rooms list, each with a docstring."""

import ast
import importlib
import inspect
import re
from functools import cache
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
WHOLE = {"fsa2lrnn.testing.strategies", "fsa2lrnn.testing.mutants", "fsa2lrnn.errors"}


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
