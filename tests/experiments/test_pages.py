"""Pages, README, docstrings and notebooks run."""

import ast
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer
import yaml
from typer.testing import CliRunner

from experiments import coverage, notebooks, pages, readme, results_io, script
from experiments.docstrings import as_markdown
from fsa2lrnn import cli

ROOT = pages.ROOT


def test_examples_end_and_formulas_become_mathml():
    pytest.importorskip("latex2mathml")
    text = "```\n$a$\n```\n`$b$`, 5 $ and 6 $, is $x_k$:\n$$\\frac{1}{2}$$\n"
    made = pages.formulas(text)
    assert "```\n$a$\n```\n`$b$`, 5 $ and 6 $, is <span><math" in made
    assert made.count("<math") == 2
    assert 'display="block"' in made
    assert "<mfrac>" in made
    text = "Adds.\n\n>>> add(\n...     1, 1)\n2\n>>> add(2, 2)\n4\n\nArgs:\n    x: one."
    assert as_markdown(text) == (
        "Adds.\n\n```pycon\n>>> add(\n...     1, 1)\n2\n>>> add(2, 2)\n4\n```\n\nArgs:\n    x: one."
    )
    assert as_markdown("Args:\n    A: A[a][q] of it.") == "Args:\n    A: A[a]\\[q] of it."


def test_every_verb_section_script_and_result_is_shown():
    text = pages.verbs()
    for name, verb in typer.main.get_command(cli.app).commands.items():
        assert f"\n## {name}\n" in f"\n{text}"
        assert all(option in text for parameter in verb.params for option in parameter.opts if option.startswith("-"))
    text = "".join(path.read_text(encoding="utf-8") for path in readme.FILES)
    assert {name for _, name, _ in readme.SECTION.findall(text)} == set(readme.SECTIONS)
    for section in readme.SECTIONS.values():
        for results in section.results:
            name = readme.WRITERS[results].split()[0].replace(".", "/")
            path = SOURCES / name / "__main__.py" if (SOURCES / name).is_dir() else SOURCES / f"{name}.py"
            written = re.findall(r'results_io\.write\(\s*f?"([^"]+)"', path.read_text("utf-8"))
            assert any(re.fullmatch(re.sub(r"{\w+}", r"\\w+", each), results) for each in written), results
    rows = re.findall(r"^\| (`.*`) \| ", readme.FILES[1].read_text(encoding="utf-8"), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([\w/.]+)`", row)]
    assert len(names) > 10
    assert [name for name in names if not (SOURCES / name).exists()] == []
    for path in results_io.RESULTS.glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert document["command"].startswith("python -m experiments."), path.name
        assert {"fsa2lrnn", "python", "torch", "numpy"} <= document["versions"].keys()


class Links(HTMLParser):
    """What a page names, and the places in it that can be named."""

    def __init__(self, path):
        super().__init__()
        self.links, self.fetched, self.places = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.add(found["href"])
        fetched = found.get("src") or (tag == "link" and found.get("rel") != "canonical" and found.get("href"))
        if fetched:
            self.fetched.add(fetched)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", "docs/site/mkdocs.yml", "--site-dir", folder],
        cwd=ROOT,
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    return {path: Links(path) for path in folder.rglob("*.html")}


@pytest.mark.slow
def test_every_link_leads_to_a_place(site):
    assert len(site) > 25
    lost = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            is_there = target.exists() and (not parts.fragment or unquote(parts.fragment) in site[target].places)
            lost += [] if is_there else [f"{path.name}: {link}"]
    assert lost == []


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site):
    for path, page in site.items():
        assert [link for link in page.fetched if urlsplit(link).scheme not in ("", "data")] == [], path
    (styles,) = {path.parent for path in site if path.name == "404.html"}
    for path in styles.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import )[\"']?https?:", path.read_text(encoding="utf-8")) == [], path


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_site_opens_from_disk(site, browser, width):
    """Search, which needs a worker that browsers refuse there, finds; nothing is wider than a phone, or complains."""
    view = browser.new_page(viewport={"width": width, "height": 844}, color_scheme="dark")
    said, asked = [], []
    view.on("console", lambda message: said.append(message.text))
    view.on("pageerror", lambda error: said.append(str(error)))
    view.on("request", lambda request: asked.append(request.url))
    for path in site:
        if path.name == "404.html":  # what a server shows for any address: its own are from the root
            continue
        view.goto(path.as_uri())
        assert view.evaluate("document.documentElement.scrollWidth") <= width, path
    view.goto(next(path for path in site if path.name == "glossary.html").as_uri())
    view.keyboard.press("s")
    view.wait_for_selector(".md-search__input:focus")
    view.keyboard.type("dyadic")
    view.wait_for_selector(".md-search-result__item")
    view.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_every_page_has_its_place():
    """In the navigation, which a strict build asks for too: here without one."""
    text = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    there |= {f"notebooks/{path.stem}.md" for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    assert named == there | set(pages.FROM)
    assert yaml.safe_load(text)["theme"]["font"] is False
    assert all((Path(ROOT) / source).exists() for source in pages.FROM.values())


SOURCES = Path(readme.__file__).parent


@pytest.mark.parametrize("path", readme.FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_measurements_are_regenerated_as_they_stand(path):
    text = path.read_text(encoding="utf-8")
    assert readme.regenerated(text) == text


def test_a_wrong_number_would_be_corrected():
    text = "<!-- results: scan_lengths, experiments.readme -->\n| 1 |\n<!-- end of results -->\nrest"
    made = readme.regenerated(text)
    first = results_io.read("bench_scan_lengths")["results"][0]
    assert f"\n|{first['length']:,}|{first['nanoseconds_a_letter']:.0f}|" in made
    assert made.endswith("<!-- end of results -->\nrest")
    assert readme.regenerated(made) == made


BOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))


def read(path):
    return json.loads(path.read_bytes())


def test_notebooks_are_three_and_their_output_is_read():
    assert len(BOOKS) == 3
    outputs = [
        {"output_type": "stream", "text": ["a\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["1"]}},
    ]
    assert notebooks.printed({"cells": [{"cell_type": "code", "outputs": outputs}, {"cell_type": "markdown"}]}) == [
        "a\n1",
        "",
    ]
    assert coverage.FILE.read_text(encoding="utf-8") == coverage.page()
    assert len(SCRIPTS) >= 12
    assert set(FOUND.values()) == {"script.run(main)"}


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_run_whole(path):
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
    assert sum(map(bool, notebooks.printed(read(path)))) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_stands_in_it(path):
    pytest.importorskip("nbclient")
    again, before = notebooks.printed(notebooks.executed(path)), notebooks.printed(read(path))
    if path.stem == "learned":  # floats that another processor adds up in another order
        again, before = ([re.sub(r"\d+", "0", text) for text in texts] for texts in (again, before))
    assert again == before


ROOT_OF_SCRIPT = Path(script.__file__).parents[1]


def guarded(path):
    """What a module does when it is run: the code under `if __name__ == "__main__"`, None if it is no script."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return "; ".join(map(ast.unparse, node.body))
    return None


FOUND = {
    path: code for path in sorted((ROOT_OF_SCRIPT / "experiments").rglob("*.py")) if (code := guarded(path)) is not None
}
SCRIPTS = [".".join(path.relative_to(ROOT_OF_SCRIPT).with_suffix("").parts) for path in FOUND]


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_says_what_a_script_does_and_does_nothing(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results_io, "RESULTS", tmp_path / "results")
    main = import_module(name).main
    for option in ("--help", "-h"):
        asked = CliRunner().invoke(script.app(main), [option], env={"COLUMNS": "200"})
        assert asked.exit_code == 0
        assert main.__doc__.splitlines()[0].rstrip(".") in " ".join(asked.output.split())
    wrong = CliRunner().invoke(script.app(main), ["--no-such-option"])
    assert wrong.exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_script_is_run_as_a_module(tmp_path):
    command = [sys.executable, "-m", "experiments.studies.training", str(tmp_path / "runs")]
    asked = subprocess.run(command, cwd=ROOT_OF_SCRIPT, capture_output=True, text=True, check=False)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert asked.stderr.startswith("error: No such file or directory")
