"""The pages that are followed do what they say: each block runs, in the order of the page, and prints what is shown.

A block with a title is a file of that name. In the others, `print(…)  # this` and the lines below a command are what is
printed, with … for what may differ; lines of comments after a loop are what the loop prints.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from fsa2lrnn.nn.layers import LAYERS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r'^( *)```(\w+)(?: title="([^"]+)")?\n(.*?)^\1```$', re.DOTALL | re.MULTILINE)
ENDS = {"  # exits with 1": {1}, "  # exits with 1 where it finds one": {0, 1}, "": {0}}
# Pages that train, search or start processes for longer than a few seconds.
LONG = {
    "guides/test-your-inference-stack.md", "results.md", "related-work.md", "which-layer.md", "tutorials/quickstart.md",
    "tutorials/train-and-repair.md", "tutorials/hugging-face.md", "tutorials/course.md",
    "guides/export-to-hugging-face.md", "guides/verify-a-checkpoint.md", "guides/verify-your-model.md",
    "guides/sweeps.md", "guides/certificates-in-ci.md", "guides/test-with-strategies.md", "guides/add-a-layer.md",
}  # fmt: skip
# A page of a model that is hardly trained: a counterexample, or states without end, is an answer there too.
UNTRAINED = "guides/add-a-layer.md"


def blocks(text):
    """Language, title and text of each block, without the indentation of the list that it stands in."""
    for indent, language, title, body in BLOCK.findall(text):
        yield language, title, re.sub(f"^{indent}", "", body, flags=re.MULTILINE)


def said(code):
    """The lines that a block of Python says it prints: after a `print`, and in the comments at its end."""
    yield from re.findall(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE)
    end = re.search(r"(?:^# .*\n)*\Z", code, re.MULTILINE)
    yield from (line.removeprefix("# ") for line in end[0].splitlines())


def lacking(printed, wanted):
    """The first wanted line that is not among those printed, after those before it; None where all are."""
    lines = (" ".join(line.split()) for line in printed.splitlines())
    for want in wanted:
        form = re.compile(".*".join(map(re.escape, " ".join(want.split()).split("…"))))
        if not any(form.match(line) for line in lines):
            return want
    return None


def is_followed(path):
    """Whether a page has code to run here."""
    return any(language in ("python", "console") for language, *_ in blocks(path.read_text(encoding="utf-8")))


PAGES = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")) if is_followed(path)]


class Follower:
    """Someone who follows a page in an empty folder."""

    def __init__(self, folder, call, is_untrained=False):
        self.folder, self.call, self.names, self.is_untrained = folder, call, {}, is_untrained

    def follow(self, text):
        for language, title, body in blocks(text):
            if title:
                (self.folder / title).write_text(body, encoding="utf-8")
            elif language == "python":
                self.run_python(body)
            elif language == "console":
                for entry in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                    self.run_command(*entry.splitlines())
            else:
                assert language in ("sh", "text"), f"nothing says how to follow a block of {language}"

    def run_python(self, code):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "page", "exec"), self.names)
        assert lacking(printed.getvalue(), said(code)) is None, f"{code}\nprinted\n{printed.getvalue()}"

    def run_command(self, line, *wanted):
        line, mark = re.fullmatch(r"(.*?)(  # exits.*)?", line).groups("")
        command, *arguments = shlex.split(line)
        if command == "cp":
            shutil.copy(ROOT / arguments[0], self.folder / arguments[1])
            return
        if command == "fsa2lrnn":
            with mock.patch.dict(LAYERS.loaded):  # as if in a process of its own: a layer is forgotten after it
                code, out, err = self.call(*arguments)
        else:
            module = {"pytest": ["-m", "pytest", "-p", "no:cacheprovider"], "python": []}[command]
            ended = subprocess.run(
                [sys.executable, *module, *arguments], cwd=self.folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            code, out, err = ended.returncode, ended.stdout, ended.stderr
        assert code in ENDS[mark] | ({1} if self.is_untrained else set()), f"{line}: {out}{err}"
        assert lacking(out, wanted) is None, f"{line} printed\n{out}\nand nowhere: {lacking(out, wanted)}"


@pytest.mark.long_cases("guides/automata-and-data.md", "kernel-probes.md")
@pytest.mark.parametrize("page", [pytest.param(p, marks=[pytest.mark.slow] * (p in LONG)) for p in PAGES])
@pytest.mark.filterwarnings("ignore:the answer 'reject' alone")
def test_a_page_can_be_followed(page, call, tmp_path):
    Follower(tmp_path, call, page == UNTRAINED).follow((DOCS / page).read_text(encoding="utf-8"))


def test_the_lists_of_pages_name_real_ones():
    assert set(PAGES) > LONG


def test_what_a_page_must_not_say(call, tmp_path):
    follower = Follower(tmp_path, call)
    for wrong in (
        "```python\nprint(1 + 1)  # 3\n```\n",
        "```python\nfor i in range(2):\n    print(i)\n# 0\n# 2\n```\n",
        "```console\n$ fsa2lrnn run regex:a a\nFalse\n```\n",
        "```console\n$ fsa2lrnn run regex:a a  # exits with 1\n```\n",
        "```rust\n```\n",
    ):
        with pytest.raises(AssertionError):
            follower.follow(wrong)
    follower.follow(
        '```text title="a"\nb\n```\n```python\nimport pathlib\nprint(pathlib.Path("a").read_text())  # b\n```\n'
    )
