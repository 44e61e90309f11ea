"""Results as JSON files, written atomically, with the command and versions that made them.

A list of `_MANY` records or more is stored as a table, an object of `columns` and `rows`: a row has the values of a
record in the order of the columns, and `_ABSENT` where the record lacks one. A column of records that all have the
same keys is a pair of its name and its own columns.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.files import write_atomically
from fsa2lrnn.verification.coverage import versions

RESULTS = Path(__file__).parent / "results"
_MANY, _ABSENT = 100, {}
Column = str | list[Any]


def write(name: str, results: Any, command: str) -> Path:
    """Write `results/NAME.json` with the command and the versions that made it."""
    document = {
        "command": command,
        "versions": versions(),
        "processor": platform.machine(),
        "torch_threads": torch.get_num_threads(),
        "results": _packed(results),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    write_atomically(path, (_text(document) + "\n").encode())
    return path


def read(name: str | Path) -> dict[str, Any]:
    """Return the document that `write` wrote under that name or to that path."""
    path = name if isinstance(name, Path) else RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"), object_hook=_unpacked)


def _packed(value: Any) -> Any:
    """Return a value with tables in place of long lists of records."""
    if isinstance(value, dict):
        return {key: _packed(part) for key, part in value.items()}
    if isinstance(value, list) and len(value) >= _MANY and all(isinstance(part, dict) for part in value):
        columns = _columns(value)
        return {"columns": columns, "rows": [_row(record, columns) for record in value]}
    return value


def _columns(records: Sequence[dict[str, Any]]) -> list[Column]:
    columns = list[Column]()
    for key in dict.fromkeys(key for record in records for key in record):
        parts = [record[key] for record in records if key in record]
        has_records = all(isinstance(part, dict) and part for part in parts) and len(set(map(tuple, parts))) == 1
        columns.append([key, _columns(parts)] if has_records else key)
    return columns


def _row(record: dict[str, Any], columns: Sequence[Column]) -> list[Any]:
    row = list[Any]()
    for column in columns:
        key, inner = column if isinstance(column, list) else (column, None)
        value = record.get(key, _ABSENT)
        row.append(_row(value, inner) if inner and value != _ABSENT else value)
    return row


def _unpacked(value: dict[str, Any]) -> Any:
    """Return the records of a table, any other object as it is."""
    return [_record(row, value["columns"]) for row in value["rows"]] if value.keys() == {"columns", "rows"} else value


def _record(row: Sequence[Any], columns: Sequence[Column]) -> dict[str, Any]:
    record = dict[str, Any]()
    for column, value in zip(columns, row, strict=True):
        key, inner = column if isinstance(column, list) else (column, None)
        if value != _ABSENT:
            record[key] = _record(value, inner) if inner else value
    return record


def _text(value: Any, indent: str = "") -> str:
    """Return a JSON text with one line per row of a table and per record.

    A record is an object or a list of at most 120 characters, or without parts.
    """
    line = json.dumps(value, ensure_ascii=False)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(line) <= 120 or not any(isinstance(part, dict | list) for part in parts):
        return line
    inner = indent + " "
    if isinstance(value, dict) and value.keys() == {"columns", "rows"}:
        rows = ",\n".join(f"{inner} {json.dumps(row, ensure_ascii=False)}" for row in value["rows"])
        columns = json.dumps(value["columns"], ensure_ascii=False)
        return f'{{\n{inner}"columns": {columns},\n{inner}"rows": [\n{rows}\n{inner}]\n{indent}}}'
    texts = [_text(part, inner) for part in parts]
    if isinstance(value, dict):
        texts = [f"{json.dumps(key)}: {text}" for key, text in zip(value, texts, strict=True)]
        return "{\n" + ",\n".join(inner + text for text in texts) + "\n" + indent + "}"
    return "[\n" + ",\n".join(inner + text for text in texts) + "\n" + indent + "]"
