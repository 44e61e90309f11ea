"""`fsa2lrnn gates`: which eigenvalues, norms and rates the layers of a released model can take."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fsa2lrnn.cli import console
from fsa2lrnn.cli.options import JsonOption, whole_numbers
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.optional import require
from fsa2lrnn.reading import read_text

if TYPE_CHECKING:
    import numpy as np

_QUANTITIES = ("decay", "beta", "key", "eigenvalue", "norm")
_ROWS = 64  # the most heads of which each has a row; of more, the heads of a layer share one
_TOKENIZER = "tokenizer.json"


def gates(
    folder: Annotated[
        Path,
        typer.Argument(help="a model of OLMo-Hybrid, Qwen3-Next, Qwen3.5, Mamba-2 or RWKV-7", metavar="FOLDER"),
    ],
    text: Annotated[
        Path | None,
        typer.Option(help="a text file, read by the folder's tokenizer, or as letters of an exported model"),
    ] = None,
    tokens: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="tokens to read in place of a text: 0,5,2")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the ranges of decays, eigenvalues and norms of a model's layers, per head.

    Without a text, they enclose the values for all inputs; with one, they are the values at its tokens. Parity and
    permutations need negative eigenvalues.
    """
    if text is not None and tokens is not None:
        raise UnsupportedFormat("--text and --tokens: give one of them")
    from fsa2lrnn.export.eigenvalues import eigenvalues

    word = None if tokens is None else whole_numbers(tokens, "--tokens")
    report = eigenvalues(folder, word if text is None else encode(folder, read_text(text)))
    if as_json:
        console.emit_json(asdict(report))
        return
    over = f"{report.n_tokens:,} tokens" if report.n_tokens else "all inputs (enclosures)"
    console.facts(report.layer, [("model", report.model), ("over", over), ("answer", report.explain())])
    is_by_head = len(report.heads) <= _ROWS
    rows = dict[str, list[dict[str, tuple[float, float]]]]()
    for head in report.heads:
        name = f"{head.layer}.{head.head}" if is_by_head else str(head.layer)
        rows.setdefault(name, []).append({**(head.observed or head.possible)})
    table = Table(box=None, pad_edge=False)
    for title in ("layer.head" if is_by_head else "layer", *_QUANTITIES):
        table.add_column(title, justify="right", overflow="fold")
    for name, heads in rows.items():
        cells = ([head[quantity] for head in heads if quantity in head] for quantity in _QUANTITIES)
        table.add_row(name, *map(_range, cells))
    console.out.print(table)


def _range(intervals: list[tuple[float, float]]) -> str:
    """Return the least and the largest number of some intervals as text, once if they agree; "" for no interval."""
    ends = [end(x) for end, x in zip((min, max), zip(*intervals, strict=True), strict=False)]
    return " … ".join(dict.fromkeys(f"{x:.3g}" for x in ends))


def encode(folder: Path, text: str) -> np.ndarray:
    """Return the tokens of a text, int64 (T,), by the tokenizer of a folder or the alphabet of an exported model.

    Raises `CheckpointError` for a folder without a readable tokenizer, `InvalidWord` for a letter outside the alphabet.
    """
    import numpy as np

    from fsa2lrnn import symbols
    from fsa2lrnn.export.folder import FILE, described

    if (folder / FILE).is_file():
        return np.concatenate(
            [np.zeros(0, np.int64), *symbols.encode_text([text.strip()], described(folder)[0].alphabet)]
        )
    path = folder / _TOKENIZER
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {_TOKENIZER}, which makes tokens of a text: give --tokens")
    tokenizers = require("tokenizers", "hf", "a tokenizer")
    try:
        return np.array(tokenizers.Tokenizer.from_file(str(path)).encode(text).ids, np.int64)
    except Exception as fault:  # the package raises plain exceptions
        raise CheckpointError(f"{path} is not a tokenizer that can be read ({str(fault)[:200]})") from None
