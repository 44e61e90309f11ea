"""Every file, folder, module and test that the prose names is there."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
ROOMS = "fsa2lrnn|verify|experiments|tests|docs"
# From the root; or in backticks, from any folder, as in `families/lanes.py`.
ROOTED = re.compile(rf"(?<![\w/.])(?:{ROOMS})/[\w./*-]*[\w/*]")
NAMED = re.compile(r"`([\w./-]+(?:/|\.(?:py|md|toml|json|cff)))`")
DOTTED = re.compile(r"(?<![\w./])(?:fsa2lrnn|verify|experiments)(?:\.\w+)+")
CODE = re.compile(r"\bCode: (.*?)(?=\bTests?:|\n\n|\Z)", re.DOTALL)  # what stands there may leave its rooms out
FILES = [path for room in ROOMS.split("|") for path in (ROOT / room).rglob("*") if "__pycache__" not in path.parts]
PLACES = {f"/{path.relative_to(ROOT).as_posix()}" for path in [*FILES, *ROOT.iterdir()]}
PACKAGES = [path.parent for path in FILES if path.name == "__init__.py"]
INSIDE = ["fsa2lrnn.", *(".".join(package.relative_to(ROOT).parts) + "." for package in PACKAGES)]
# What users make themselves, and what runs leave.
THEIRS = {
    "sweep.toml", "summary.json", "machine.json", "my_layers.py", "test_mine.py", "runs/", "config.json",
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "result.json", "learn.json",
    "learned.json", "film.json", "settings.json",
}  # fmt: skip


def missing(text):
    """The names in a text that lead nowhere."""
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
        "tests/verify/test_equivalence.py",
        "fsa2lrnn/extract/",
        "fsa2lrnn.extra.distributed.grid.FAMILIES",
        "docs/*.rst",
    ]
    there = "`families/lanes.py`, fsa2lrnn.training.data.TaskWords, `python -m verify`, docs/theory.md, tests/*.py"
    assert list(missing(there + "".join(f" ({name})." for name in gone))) == [*gone[:2], gone[3], gone[2]]
    assert list(missing("`families/replay.py` and `fsa2lrnn/gates/`")) == ["families/replay.py"]
    assert list(missing("Code: `bound`, `refine.fibre_code`, `refine.fibre` (`x`).\nTests: `y`")) == ["refine.fibre"]


def test_the_documentation_keeps_to_its_length():
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md"))
    assert words <= 42_400  # to be lowered to 38,000
