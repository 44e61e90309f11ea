"""From the records of runs to the cells of Table 2."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.studies.table2.chance import level
from experiments.studies.table2.columns import COLUMNS, FIRST_SEED, LENGTHS, TASKS, rates_of

Record = Mapping[str, Any]


ENDED = ("steps", "stop_at", "diverged")  # how runs end that went as far as they were meant to


def choice(records: Sequence[Record], task: str, name: str) -> str | None:
    """Return the rate of a cell, or None until all rates have been tried.

    It is the rate whose first seed's last checkpoint is more often right at the training length; on ties the layer's
    own.
    """
    rates = rates_of(name)
    found = {rate: find(records, task, name, rate, FIRST_SEED) for rate in rates}
    if len(rates) == 1:
        return rates[0]
    if any(record is None for record in found.values()):
        return None
    return max(rates, key=lambda rate: _short(found[rate]))


def find(records: Sequence[Record], task: str, name: str, rate: str, seed: int) -> Record | None:
    """Return the record of a run that has ended, or None."""
    wanted = (task, name, rate, seed)
    names = ("task", "network", "setting", "seed")
    return next((r for r in records if tuple(r[n] for n in names) == wanted and r["end"] in ENDED), None)


def trained_before(results: Sequence[Record]) -> list[Record]:
    """Return records of our column from results/training.json, which has the same protocol."""
    return [
        {**seed, "task": task["task"], "network": "ours", "setting": "paper", "settings": task["settings"]}
        for task in results
        for seed in task["seeds"]
    ]


def _short(record: Record | None) -> float:
    """Return the accuracy at the training length, −1 for a run without a last checkpoint."""
    if record is None or "last_checkpoint" not in record:
        return -1.0
    return record["last_checkpoint"][0]["last_position"]["accuracy"]


def document(records: Sequence[Record]) -> dict[str, Any]:
    """Return the content of results/table2.json: chance levels by task, columns, and a cell per task and column."""
    chance = {task: level(task, LENGTHS[-1]).to_json() for task in TASKS}
    columns = {
        name: {"title": column.title, "note": column.note, "seeds": column.seeds} for name, column in COLUMNS.items()
    }
    cells = [cell(records, task, name) for task in TASKS for name in COLUMNS]
    return {"chance": chance, "columns": columns, "lengths": list(LENGTHS), "cells": cells}


def cell(records: Sequence[Record], task: str, name: str) -> dict[str, Any]:
    """Return one cell: the paper's number, the chosen rate, and each seed whose run has ended.

    Before a rate is chosen, the cell shows the better of those that were tried.
    """
    column, chosen = COLUMNS[name], choice(records, task, name)
    tried = {r: record for r in rates_of(name) if (record := find(records, task, name, r, FIRST_SEED))}
    shown = chosen or max(tried, key=lambda r: _short(tried[r]), default=None)
    found = [find(records, task, name, shown, seed) for seed in range(column.seeds)] if shown else []
    seeds = [_seed(record) for record in found if record is not None]
    own: dict[str, Any] = {
        "task": task,
        "column": name,
        "paper": column.paper[TASKS.index(task)] if column.paper else None,
        "rate": shown,
        "at_40_by_rate": {rate: _short(record) for rate, record in tried.items()},
        "seeds": seeds,
        "is_finished": chosen is not None and len(seeds) == column.seeds,
    }
    judged = [seed for seed in seeds if seed["last"]]
    if judged:
        own["best_look"] = statistics.mean(seed["best_look"] for seed in judged)
        own["last"] = [
            {"length": lines[0]["length"], **_spread([line["accuracy"] for line in lines])}
            for lines in zip(*(seed["last"] for seed in judged), strict=True)
        ]
    return own


def _seed(record: Record) -> dict[str, Any]:
    protocol = record.get("paper_protocol") or {}
    last = [
        {"length": line["length"], "words": line["words"], **line["last_position"]}
        for line in record.get("last_checkpoint", [])[: len(LENGTHS)]
    ]
    return {
        "seed": record["seed"],
        "end": record["end"],
        "step": record.get("step"),
        "learning_rate": record["settings"]["learning_rate"],
        "device": record["settings"]["device"],
        "best_look": protocol.get("accuracy"),
        "best_step": protocol.get("step"),
        "looks": protocol.get("looks", 0),
        "last": last,
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.mean(values), "least": min(values), "most": max(values)}
