"""The README does what it says: its code runs, its commands work, CONTRIBUTING gives a reason for every dependency."""

import re
import shlex
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


def test_the_python_example_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) == 5
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "[1, None, 3, None, 0, None, 1]" in printed
    assert "proved: on every word of every length" in printed


def test_the_commands_work_in_turn(call):
    lines = [line for text in blocks("console") for line in text.splitlines()]
    commands = [line.removeprefix("$ fsa2lrnn ") for line in lines if line.startswith("$ fsa2lrnn ")]
    assert len(commands) >= 5
    for command in commands:
        code, out, err = call(*shlex.split(command))
        assert code == 0, f"{command}: {out}{err}"


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z0-9-]+)", README):
        assert f"\n{target}:" in makefile


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = contributing.split("## Dependencies")[1]
    rows = re.findall(r"^\| ([a-z][a-z, -]*) \| ", section, re.MULTILINE)
    assert set(", ".join(rows).split(", ")) - {"package", "extra"} == names(project["dependencies"])
    extras = dict(re.findall(r"^\| `([a-z]+)` \| ([a-z0-9, -]*) \| ", section, re.MULTILINE))
    wanted = project["optional-dependencies"]
    assert {extra: set(row.split(", ")) for extra, row in extras.items()} == {
        extra: names(wanted[extra]) for extra in wanted.keys() - {"dev"}
    }
    every, *others = wanted["dev"]
    assert every == f"fsa2lrnn[{','.join(sorted(extras.keys() - {'wandb'}))}]"
    assert all(name in section for name in names(others))


def names(requirements):
    return {re.split(r"[<>=;\[]", text)[0] for text in requirements}


def test_links_lead_somewhere_wherever_it_is_read():
    """On a package index the README stands alone, and a path of the repository would lead nowhere."""
    targets = re.findall(r"\]\(([^)]*)\)|\bsrc=\"([^\"]*)\"", README)
    assert all(target.startswith(("https://", "#")) for found in targets for target in found if target)
