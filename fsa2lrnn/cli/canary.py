"""`fsa2lrnn canary`: exact tests of whole inference stacks by models whose every token is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from fsa2lrnn.cli import console
from fsa2lrnn.cli.options import NO, JsonOption
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import check_file, check_folder, write_atomically
from fsa2lrnn.layers import released_model

Folder = Annotated[Path, typer.Argument(help="a folder of `fsa2lrnn canary make`", metavar="FOLDER")]


def make(
    model: Annotated[str, typer.Option(metavar="MODEL", help="a released model, such as qwen3_next or olmo_hybrid")],
    output: Annotated[Path, typer.Option("--output", "-o", help="write the model into this folder")],
    dtype: Annotated[Literal["float32", "bfloat16"], typer.Option(help="arithmetic of the model")] = "float32",
    kind: Annotated[
        Literal["track", "generate"],
        typer.Option(help="put out what the layers hold, or the next letter of a long known sequence"),
    ] = "track",
    as_json: JsonOption = False,
) -> None:
    """Write a model of transformers whose every next token is known, and prove it on the installed version."""
    layer = released_model(model)
    check_folder(output)
    from fsa2lrnn.canary.write_model import make as make_model

    verdict = make_model(layer, output, dtype, kind == "generate")
    facts = {"model": layer, "kind": kind, "dtype": dtype, "saved": str(output)}
    if as_json:
        console.emit_json({"model": facts, "proof": verdict.to_json()})
        return
    console.facts("canary", [*facts.items(), ("states", f"{verdict.pairs:,}")])
    console.out.print(f"{verdict}\ncovers: {verdict.covers}")


def run(
    folder: Folder,
    path: Annotated[
        Path | None,
        typer.Option(metavar="SITE", help="run the transformers in this folder of packages"),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="test a server with an OpenAI interface, http://localhost:8000/v1")
    ] = None,
    gguf: Annotated[
        Path | None, typer.Option(metavar="FILE", help="run llama.cpp on this file of `canary gguf`")
    ] = None,
    patterns: Annotated[str, typer.Option(metavar="NAMES", help="patterns of calls, separated by commas")] = "all",
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="also write the report as JUnit XML")] = None,
    scripts: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write a script of 15 lines for each wrong pattern")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a canary by every pattern of calls: with a cache, in chunks, padded, packed, taken back, generating.

    The exit code is 0 if every pattern is exact or refused with a message, and 1 if a token is wrong.
    """
    if sum(option is not None for option in (path, url, gguf)) > 1:
        raise UnsupportedFormat("--path, --url and --gguf: give one of them")
    if junit is not None:
        check_file(junit)
    if url is not None:
        from fsa2lrnn.canary.server import check_server

        report = check_server(folder, url, patterns)
    elif gguf is not None:
        from fsa2lrnn.canary.gguf import check_gguf

        report = check_gguf(folder, gguf, patterns)
    elif path is not None:
        from fsa2lrnn.canary.report import check_elsewhere

        report = check_elsewhere(folder, path, patterns)
    else:
        from fsa2lrnn.canary.report import check_model

        report = check_model(folder, patterns)
    if scripts is not None:
        scripts.mkdir(parents=True, exist_ok=True)
        for name, text in report.scripts.items():
            write_atomically(scripts / f"{name}.py", text.encode())
    if junit is not None:
        write_atomically(junit, report.to_junit().encode())
    if as_json:
        console.emit_json(report.to_json())
    else:
        table = Table("pattern", "answer", "remark")
        for row in report.rows():
            table.add_row(*map(console.markup, row))  # messages of the stack may hold brackets
        console.out.print(table)
        versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
        counts = f"{len(report.exact)} exact, {len(report.refused)} refused, {len(report.wrong)} wrong"
        console.out.print(f"{versions}: {counts}")
    if report.wrong:
        raise typer.Exit(NO)


def gguf(
    folder: Folder,
    llama_cpp: Annotated[Path, typer.Option(metavar="CHECKOUT", help="a folder with the source of llama.cpp")],
    output: Annotated[Path, typer.Option("--output", "-o", help="write this file")],
    dtype: Annotated[Literal["f32", "bf16"], typer.Option(help="type of the weights")] = "f32",
) -> None:
    """Convert a canary by the converter of llama.cpp, for `canary run --gguf` and for llama.cpp's server."""
    from fsa2lrnn.canary.gguf import convert

    convert(folder, llama_cpp, output, dtype)
    console.facts("canary", [("folder", str(folder)), ("type", dtype), ("saved", str(output))])
