"""Results as JSON files, written atomically, with the command and versions that made them."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.files import write_atomically
from fsa2lrnn.verification.coverage import versions

RESULTS = Path(__file__).parent / "results"


def write(name: str, results: Any, command: str) -> Path:
    """Write `results/NAME.json` with the command and the versions that made it."""
    document = {
        "command": command,
        "versions": versions(),
        "processor": platform.machine(),
        "torch_threads": torch.get_num_threads(),
        "results": results,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    write_atomically(path, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def read(name: str) -> dict[str, Any]:
    """Return the document that `write` wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
