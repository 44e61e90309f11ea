"""What the site shows beside the files of docs/; the site itself, built as `make docs` builds it."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer
import yaml

from experiments import pages
from fsa2lrnn import cli

ROOT = pages.ROOT


def test_formulas_become_mathml_outside_code():
    pytest.importorskip("latex2mathml")
    text = "```\n$a$\n```\n`$b$`, 5 $ and 6 $, is $x_k$:\n$$\\frac{1}{2}$$\n"
    made = pages.formulas(text)
    assert "```\n$a$\n```\n`$b$`, 5 $ and 6 $, is <math" in made
    assert made.count("<math") == 2
    assert 'display="block"' in made
    assert "<mfrac>" in made


def test_every_verb_and_option_is_shown():
    text = pages.verbs()
    for name, verb in typer.main.get_command(cli.app).commands.items():
        assert f"\n## {name}\n" in f"\n{text}"
        assert all(option in text for parameter in verb.params for option in parameter.opts if option.startswith("-"))


def test_a_notebook_becomes_a_page(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# One\n", "two"]},
        {
            "cell_type": "code",
            "source": ["1 + 1"],
            "outputs": [
                {"output_type": "stream", "text": ["said\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"text/plain": ["x"], "image/svg+xml": ["<svg/>"]}},
            ],
        },
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    assert pages.notebook(tmp_path / "a.ipynb") == (
        "# One\ntwo\n\n```python\n1 + 1\n```\n\n```text\nsaid\n```\n\n```text\n2\n```\n\n"
        '<div class="output"><svg/></div>\n'
    )


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
