"""The numbers in the READMEs, and in the page on block sizes, are those of the results."""

import json
import re
from pathlib import Path

import pytest

from experiments import readme, results_io

SOURCES = Path(readme.__file__).parent


@pytest.mark.parametrize("path", readme.FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_measurements_are_regenerated_as_they_stand(path):
    text = path.read_text(encoding="utf-8")
    assert readme.regenerated(text) == text


def test_every_section_stands_somewhere():
    text = "".join(path.read_text(encoding="utf-8") for path in readme.FILES)
    assert {name for _, name, _ in readme.SECTION.findall(text)} == set(readme.SECTIONS)


def test_a_wrong_number_would_be_corrected():
    text = "<!-- results: scan_lengths, by python -m experiments.readme -->\n| 1 |\n<!-- end of results -->\nrest"
    made = readme.regenerated(text)
    first = results_io.read("bench_scan_lengths")["results"][0]
    assert f"\n|{first['length']:,}|{first['nanoseconds_a_letter']:.0f}|" in made
    assert made.endswith("<!-- end of results -->\nrest")
    assert readme.regenerated(made) == made


def test_what_was_not_measured_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    assert readme.shown("gpu") == "Not measured yet: `python -m experiments.benchmarks.gpu` would write the numbers.\n"
    assert "`python -m experiments.studies.training FOLDER…`" in readme.shown("training")
    (tmp_path / "bench_scans.json").write_text("{}")
    commands = re.findall(r"experiments\.([\w.]+)`", readme.shown("measurements"))
    assert commands == ["benchmarks.machines", "benchmarks.words"]


def test_every_command_is_a_script():
    for section in readme.SECTIONS.values():
        for results in section.results:
            name = readme.WRITERS[results].split()[0].replace(".", "/")
            path = SOURCES / name / "__main__.py" if (SOURCES / name).is_dir() else SOURCES / f"{name}.py"
            written = re.findall(r'results_io\.write\(\s*f?"([^"]+)"', path.read_text("utf-8"))
            assert any(re.fullmatch(re.sub(r"{\w+}", r"\\w+", each), results) for each in written), results


def test_the_table_of_scripts_names_real_ones():
    rows = re.findall(r"^\| (`.*`) \| ", readme.FILES[1].read_text(encoding="utf-8"), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([\w/.]+)`", row)]
    assert len(names) > 10
    assert [name for name in names if not (SOURCES / name).exists()] == []


def test_results_say_how_they_came_about():
    for path in results_io.RESULTS.glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert document["command"].startswith("python -m experiments."), path.name
        assert {"fsa2lrnn", "python", "torch", "numpy"} <= document["versions"].keys()
