"""Write a report: a page that opens from disk in any browser, and the same facts as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from fsa2lrnn.extra.report.facts import ReportFacts
from fsa2lrnn.extra.report.page import build
from fsa2lrnn.files import write_atomically


def write(facts: ReportFacts, path: Path) -> tuple[Path, Path]:
    """Write the page to `path` and the facts to the .json file of the same name; return both paths."""
    data = path.with_suffix(".json")
    write_atomically(data, (json.dumps(facts.to_json(), indent=1, ensure_ascii=False) + "\n").encode())
    write_atomically(path, build(facts, data.name).encode())
    return path, data
