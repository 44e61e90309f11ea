"""Run the notebooks of docs/notebooks/ as a whole, each in its own kernel: `python -m experiments.notebooks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments import script
from fsa2lrnn.files import write_atomically
from fsa2lrnn.optional import require

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
SECONDS = 900  # for a cell


def executed(path: Path) -> dict[str, Any]:
    """Return a notebook with the current outputs of its cells instead of the earlier ones.

    Raises:
        nbclient.exceptions.CellExecutionError: with the traceback of a cell that fails.
        MissingPackage: without nbclient.
    """
    client, form = require("nbclient", "docs", "running notebooks"), require("nbformat", "docs", "running notebooks")
    book = form.read(path, as_version=4)
    where = {"metadata": {"path": path.parent}}
    client.NotebookClient(book, timeout=SECONDS, record_timing=False, resources=where).execute()
    found = json.loads(form.writes(book))
    found["metadata"]["language_info"] = {"name": "python"}
    for cell in found["cells"]:
        cell["metadata"] = {}
        if "outputs" in cell:  # progress bars and their like are no results
            cell["outputs"] = [output for output in cell["outputs"] if output.get("name") != "stderr"]
    return found


def printed(book: dict[str, Any]) -> list[str]:
    """Return the printed text and last values of a notebook's cells, one text per cell."""
    return [
        "".join(
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell.get("outputs", ())
        )
        for cell in book["cells"]
    ]


def main() -> None:
    """Run the notebooks and store their outputs."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        write_atomically(path, (json.dumps(executed(path), indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    script.run(main)
