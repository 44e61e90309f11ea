"""The parts of the site beyond the files of docs/: notebooks, pages from elsewhere, formulas. mkdocs calls it.

`make docs` builds the site; `hooks` in docs/site/mkdocs.yml names this file.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from experiments import results_io
from fsa2lrnn.cli import console

ROOT = Path(__file__).parent.parent
# Pages that stand elsewhere in the repository, and what their links to files outside the site become.
FROM = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md", "experiments.md": "experiments/README.md"}
FENCED = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
CELL = re.compile(r"<t[hd](?: [^>]*)?>.*?</t[hd]>", re.DOTALL)
OPTION = re.compile(r"<code>(?=--?\w[^<\n]{0,27}</code>)")
# A word of up to 30 characters outside tags, code included.
HYPHENATED = re.compile(r"(?<![^\s>(])\(?(?=[^\s<>]{3,30}(?:[\s<]))[^\s<>&]*(?:\w[-–]|--)[\w.]+[^\s<>&]*(?![^<>]*>)")
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\w$])", re.DOTALL)


_progress = ExitStack()  # lines that say which page is made, while the site is built


def on_pre_build(**_: Any) -> None:
    """Show the progress of the build."""
    _progress.enter_context(console.displayed("docs", quiet=False, progress=False))


def on_post_build(**_: Any) -> None:
    """End the display of the progress."""
    _progress.close()


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages; mkdocs calls this with the files of docs/."""
    from mkdocs.structure.files import File

    for name, source in FROM.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    for path in sorted((ROOT / "experiments" / "results").glob("*.svg")):
        files.append(File.generated(config, f"figures/{path.name}", content=path.read_bytes()))
    files.append(File.generated(config, "explorer.html", content=explorer()))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        itself = f"[This page as a notebook]({path.name})"
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=f"{notebook(path)}\n{itself}\n"))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Convert formulas to MathML, and add the commands to the page on the command line."""
    console.note(page.file.src_uri)
    if page.file.src_uri == "reference/cli.md":
        markdown = f"{markdown}\n{verbs()}"
    return formulas(at_home(markdown, "../" * page.file.src_uri.count("/")))


def on_page_content(html: str, **_: Any) -> str:
    """Keep options whole, and in tables, which scroll where they are too wide, words with hyphens and ranges."""
    html = OPTION.sub('<code class="whole">', html)
    return CELL.sub(lambda cell: HYPHENATED.sub(r'<span class="whole">\g<0></span>', cell[0]), html)


def explorer() -> str:
    """Return the page of a learned and the compiled model of Sum(5), with the counterexample in the results."""
    from fsa2lrnn import MooreMachine, compile_machine, load, symbols
    from fsa2lrnn.draw.explorer import SceneModel, build, compiled

    name = "sum5/seed-0"
    row = results_io.read("learned")["results"]["models"][name]
    word = [symbols.from_json(letter) for letter in row["failure"]["word"]]
    least = "the shortest" if row["is_shortest"] else "the shortest found"
    said = f"Fails on a word of {len(word)} letters, {least}."
    learned, machine = (
        load(ROOT / "experiments" / "models" / f"{name}.safetensors"),
        MooreMachine.from_source(row["task"]),
    )
    models = {
        name: SceneModel(learned, "learned", said, (word,)),
        "compiled": compiled(compile_machine(machine), machine),
    }
    return build(row["task"], machine, models)


def at_home(text: str, up: str = "") -> str:
    """Return a page of the repository as one of the site: links to files of the repository lead to their pages.

    >>> at_home("![c](../experiments/results/table2.svg), ![d](results/table2.svg)")
    '![c](figures/table2.svg), ![d](figures/table2.svg)'
    >>> at_home("[a](../docs/results.md), [b](../../experiments/README.md#what)", "../")
    '[a](../results.md), [b](../experiments.md#what)'
    """
    text = re.sub(r"\]\((?:\.\./)*docs/", f"]({up}", text)
    for name, source in FROM.items():
        text = re.sub(rf"\]\((?:\.\./)*{re.escape(source)}", f"]({up}{name}", text)
    return re.sub(r"\]\((?:(?:\.\./)*experiments/)?results/(\w+\.svg)", rf"]({up}figures/\1", text)


def formulas(markdown: str) -> str:
    """Convert $…$ and $$…$$ outside code to MathML, which browsers render without a script."""
    parts, end = [], 0
    for code in FENCED.finditer(markdown):
        parts += [FORMULA.sub(_mathml, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, FORMULA.sub(_mathml, markdown[end:])])


def _mathml(found: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    if found[1]:
        return convert(found[1], display="block")
    # Markdown takes <math> at the beginning of a line for a block, and ends the paragraph before it.
    return f"<span>{convert(found[2], display='inline')}</span>"


def notebook(path: Path) -> str:
    """Return a notebook as a page: its cells, and their outputs when `experiments.notebooks` last ran them."""
    lines: list[str] = []
    for cell in json.loads(path.read_bytes())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [text, ""]
            continue
        lines += ["```python", text, "```", ""]
        for output in cell["outputs"]:
            lines += [_shown(output), ""]
    return "\n".join(lines)


def _shown(output: dict[str, Any]) -> str:
    """Return one output of a cell in the richest form that needs no script."""
    if output["output_type"] == "stream":
        return _plain(output["text"])
    data = output["data"]
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            return f'<div class="output">{"".join(data[kind])}</div>'
    return _plain(data["text/plain"])


def _plain(text: list[str] | str) -> str:
    return f"```text\n{''.join(text).rstrip()}\n```"


@cache
def verbs() -> str:
    """Return every command of the command line with its arguments, options and help texts."""
    import typer

    from fsa2lrnn import cli

    lines: list[str] = []
    for name, verb in typer.main.get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        about, *more = (verb.help or "").strip().split("\n\n")
        usage = " ".join(p.metavar or p.name.upper() for p in verb.params if p.param_type_name == "argument")
        lines += [f"## {name}", "", f"`fsa2lrnn {name} {usage}`".replace(" `", "`"), "", about, "", *more, ""]
        lines += ["| option | what | default |", "|---|---|---|"]
        for parameter in verb.params:
            lines.append(_row(parameter))
        lines.append("")
    return "\n".join(lines)


def _row(parameter: Any) -> str:
    """Return one argument or option as a row."""
    names = (parameter.metavar or parameter.name.upper(),)
    if parameter.param_type_name == "option":
        names = (*parameter.opts, *parameter.secondary_opts)
    default = parameter.default
    shown = "required" if parameter.required else "" if default in (None, False, (), []) else _whole(default)
    about = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("\n", " ")
    return f"| {' '.join(map(_whole, names))} | {about.replace('<', '&lt;')} | {shown} |"


def _whole(text: object) -> str:
    """Return text as code that is not broken into lines."""
    return f"`{text}`{{ .whole }}"
