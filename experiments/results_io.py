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
    write_atomically(path, (_text(document) + "\n").encode())
    return path


def read(name: str) -> dict[str, Any]:
    """Return the document that `write` wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _text(value: Any, indent: str = "") -> str:
    """Return a JSON text with one line per record: an object or list of at most 120 characters or without parts."""
    line = json.dumps(value, ensure_ascii=False)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(line) <= 120 or not any(isinstance(part, dict | list) for part in parts):
        return line
    inner = indent + " "
    texts = [_text(part, inner) for part in parts]
    if isinstance(value, dict):
        texts = [f"{json.dumps(key)}: {text}" for key, text in zip(value, texts, strict=True)]
        return "{\n" + ",\n".join(inner + text for text in texts) + "\n" + indent + "}"
    return "[\n" + ",\n".join(inner + text for text in texts) + "\n" + indent + "]"
