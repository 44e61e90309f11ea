"""Hold what the driver saw against the canary: each pattern is exact, refused, or wrong at a token, with the cause."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from fsa2lrnn.canary.faults import Deviation, compare, tokens_of
from fsa2lrnn.canary.machines import WINDOW, Canary, Head
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.optional import require
from fsa2lrnn.reading import parse_json, read_text

FORMAT, VERSION, FILE = "fsa2lrnn-canary", 1, "canary.json"
_SECONDS = 600  # of a subprocess
_MOST_LETTERS = 64
Done = Mapping[str, Any]  # what the driver says of one pattern


@dataclass(frozen=True)
class CanaryReport:
    """What a stack did with a canary, pattern by pattern.

    Args:
        exact: the patterns in which every token was right.
        refused: those that the stack refused with a message.
        wrong: those with a wrong token.
        explanations: for each wrong pattern its cause in words, "" if no fault of the model explains it.
        messages: for each refused pattern the stack's message.
        deviations: for each wrong pattern the first wrong token of each run that has one; the runs with the fault
            that explains the most are the first.
        versions: the packages that ran, by name.
        seconds: the time of each pattern.
        scripts: for wrong patterns a program that shows the fault with transformers and the canary's folder alone.
    """

    exact: tuple[str, ...]
    refused: tuple[str, ...]
    wrong: tuple[str, ...]
    explanations: Mapping[str, str]
    messages: Mapping[str, str] = field(default_factory=dict)
    deviations: Mapping[str, tuple[Deviation, ...]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return not self.wrong

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (pattern, answer, remark) in the order of the driver."""
        remark = {**self.messages, **{name: self._remark(name) for name in self.wrong}}
        answers = dict.fromkeys(self.exact, "exact") | dict.fromkeys(self.refused, "refused")
        answers |= dict.fromkeys(self.wrong, "wrong")
        return [(name, answers[name], remark.get(name, "")) for name in self.seconds]

    def _remark(self, name: str) -> str:
        first = self.deviations[name][0]
        where = f"{first.run}: " if first.run else ""
        why = first.explanation or "no fault of the model explains it"
        return f"{where}token after letter {first.position} is {first.found}, not {first.expected}; {why}"

    def to_json(self) -> dict[str, Any]:
        """Return the report as values that JSON has."""
        return {
            "versions": dict(self.versions),
            "patterns": {
                name: {
                    "answer": answer, "remark": remark, "seconds": self.seconds[name],
                    "wrong": [vars(one) for one in self.deviations.get(name, ())],
                    **({"script": self.scripts[name]} if name in self.scripts else {}),
                }
                for name, answer, remark in self.rows()
            },
        }  # fmt: skip

    def to_junit(self) -> str:
        """Return the report as JUnit XML: a wrong pattern is a failure, a refused one is skipped."""
        suite = Xml.Element(
            "testsuite", name="fsa2lrnn canary", tests=str(len(self.seconds)), failures=str(len(self.wrong)),
            skipped=str(len(self.refused)),
        )  # fmt: skip
        for name, answer, remark in self.rows():
            case = Xml.SubElement(suite, "testcase", classname="canary", name=name, time=f"{self.seconds[name]:.2f}")
            if answer != "exact":
                text = "".join(c if c.isprintable() else " " for c in remark)  # XML has no control characters
                Xml.SubElement(case, "failure" if answer == "wrong" else "skipped", message=text)
        return Xml.tostring(suite, encoding="unicode")


def read_record(folder: Path) -> dict[str, Any]:
    """Return what `canary.json` of a folder holds; raise `CheckpointError` for another folder."""
    path = folder / FILE
    if not path.is_file():
        raise CheckpointError(
            f"{folder} holds no {FILE}: make a canary by `fsa2lrnn canary make --model … -o {folder}`"
        )
    try:
        value = parse_json(read_text(path), str(path))
        if (value["format"], value["version"]) != (FORMAT, VERSION):
            raise CheckpointError(f"{path} is of another format or version: make it again by `fsa2lrnn canary make`")
        canary_of(value)
    except CheckpointError:
        raise
    except UnsupportedFormat as fault:
        raise CheckpointError(f"{fault}: make it again by `fsa2lrnn canary make`") from None
    except (OSError, KeyError, TypeError, ValueError, IndexError) as fault:
        raise CheckpointError(f"{path} is damaged ({fault!r}): make it again by `fsa2lrnn canary make`") from None
    return value


def canary_of(value: Mapping[str, Any]) -> Canary:
    """Return the canary that a record describes; raise `CheckpointError` if its tables do not fit together."""
    layers = tuple(
        tuple(Head(tuple(map(tuple, head["table"])), head["lag"]) for head in heads) for heads in value["layers"]
    )
    follows = tuple((tuple(values), letter) for values, letter in value["follows"])
    letters, n = tuple(value["letters"]), len(value["letters"])

    def among(values: Iterable[object], size: int) -> bool:
        return all(type(x) is int and 0 <= x < size for x in values)

    heads = [head for heads in layers for head in heads]
    fits = (
        0 < n <= _MOST_LETTERS and among((head.lag for head in heads), WINDOW + 1) and among(dict(follows).values(), n)
    )
    fits = fits and all(type(letter) is str and len(letter) == 1 for letter in letters)
    for head in heads:
        sizes = {len(row) for row in head.table}
        fits = fits and len(head.table) == n and len(sizes) == 1 and all(among(row, *sizes) for row in head.table)
    fits = fits and all(among(word, n) for word in value["words"]) and type(value["padding"]) is int
    if not fits:
        raise CheckpointError("the canary's tables, letters and words do not fit together: make it again")
    return Canary(str(value["kind"]), letters, layers, follows)


def _kind(deviation: Deviation) -> str:
    """Return the fault without numbers of letters and sequences, which differ from run to run."""
    return re.sub(r"\d+", "", deviation.fault)


_SCRIPT = """\
import torch
from transformers import AutoModelForCausalLM
model, cache, out = AutoModelForCausalLM.from_pretrained({folder!r}), None, []
calls = {calls}
for tokens, more in calls:
    if isinstance(tokens, str):
        getattr(cache, tokens)(*[torch.tensor(value) if isinstance(value, list) else value for value in more])
        continue
    more = {{name: torch.tensor(value) if isinstance(value, list) else value for name, value in more.items()}}
    answer = model(torch.tensor(tokens), use_cache={uses}, **more, **({{{cache!r}: cache}} if cache else {{}}))
    cache, rows = answer.get({cache!r}), answer.logits.argmax(-1).tolist()
    out += rows[{row}] if {row} < len(rows) else []
right = {right}
assert out[-len(right) :] == right, out[-len(right) :]
"""


def script(canary: Canary, run: Done, folder: Path) -> str:
    """Return a program that makes the calls of a run and fails as the stack did; "" if it cannot be written."""
    calls, token = run.get("calls") or [None], tokens_of(canary)
    if None in calls:
        return ""
    right = [token(state) for state in canary.run(canary.start, run["word"])][run["first"] :]
    return _SCRIPT.format(
        folder=str(folder), calls=calls, cache=run["cache"], row=run.get("row", 0), right=right, uses=len(calls) > 1
    )


def report(
    canary: Canary, done: Iterable[Done], versions: Mapping[str, str], folder: Path | None = None
) -> CanaryReport:
    """Return the report of what the driver saw, with scripts if the canary's folder is given."""
    scripts = dict[str, str]()
    exact, refused, wrong = list[str](), list[str](), list[str]()
    messages, deviations = dict[str, str](), dict[str, tuple[Deviation, ...]]()
    seconds = dict[str, float]()
    for one in done:
        name = str(one["pattern"])
        seconds[name] = float(one["seconds"])
        found = tuple(deviation for run in one["runs"] if (deviation := compare(canary, run)) is not None)
        if found:  # before a refusal, if there was one
            wrong.append(name)
            runs = [run for run in one["runs"] if folder is not None and run["name"] in {each.run for each in found}]
            if made := [text for run in runs if (text := script(canary, run, folder or Path()))]:
                scripts[name] = min(made, key=len)
            votes = Counter(_kind(deviation) for deviation in found if deviation.fault)
            deviations[name] = tuple(sorted(found, key=lambda deviation: -votes[_kind(deviation)]))
        elif one["status"] == "refused":
            refused.append(name)
            messages[name] = str(one["message"])
        else:
            exact.append(name)
    why = {name: found[0].explanation for name, found in deviations.items()}
    return CanaryReport(
        tuple(exact), tuple(refused), tuple(wrong), why, messages, deviations, versions, seconds, scripts
    )


def chosen(patterns: str | Sequence[str], known: Iterable[str], generates: bool = True) -> list[str]:
    """Return the names of all known patterns that suit the canary, or those given.

    Raises `UnsupportedFormat` for an unknown pattern, or none.
    """
    known = list(known)
    if patterns == "all":
        return [name for name in known if generates or not name.startswith("generate")]
    names = [name.strip() for name in patterns.split(",")] if isinstance(patterns, str) else list(patterns)
    if odd := [name for name in names or [""] if name not in known]:
        raise UnsupportedFormat(f"pattern {odd[0]!r} is not known: choose among {', '.join(known)}")
    return list(dict.fromkeys(names))


def check_model(model: Any, patterns: str | Sequence[str] = "all", folder: Path | None = None) -> CanaryReport:
    """Run a canary by every pattern of calls and return what the stack did.

    Args:
        model: a folder of `fsa2lrnn canary make`, or a model that was loaded from one.
        patterns: "all", or names of patterns.
        folder: the folder of a model that is given as an object; None for where it says that it was loaded from.

    Raises:
        CheckpointError: if the folder holds no canary.
        UnsupportedFormat: for an unknown pattern.
    """
    is_folder = isinstance(model, str | os.PathLike)
    place = Path(model) if is_folder else folder or Path(model.config.name_or_path)
    value = read_record(place)
    require("torch", None, "a canary")
    require("transformers", "hf", "a canary")

    import torch

    from fsa2lrnn.canary import driver
    from fsa2lrnn.export.packages import refusing, transformers

    names = chosen(patterns, driver.PATTERNS, value["generates"])
    with transformers() as package:
        if is_folder:
            with refusing(f"{place} does not load with transformers {package.__version__}"):
                model = driver.load(package.AutoModelForCausalLM, place)
        done = list(driver.drive(model, value["words"], value["generates"], value["padding"], names))
    return report(canary_of(value), done, {"transformers": package.__version__, "torch": torch.__version__}, place)


def check_elsewhere(folder: Path, site: Path, patterns: str | Sequence[str] = "all") -> CanaryReport:
    """Run a canary by the transformers in a folder of packages, in a process that imports nothing of this library.

    Raises:
        CheckpointError: if the folder holds no canary, the site no transformers, or the process ends with an error.
        UnsupportedFormat: for an unknown pattern.
    """
    value = read_record(folder)
    require("torch", None, "a canary")

    from fsa2lrnn.canary import driver

    names = chosen(patterns, driver.PATTERNS, value["generates"])
    driver_file = Path(__file__).with_name("driver.py")
    with tempfile.TemporaryDirectory() as empty:  # the driver is run from where nothing of this library lies
        copy = Path(empty) / "canary_driver.py"
        copy.write_bytes(driver_file.read_bytes())
        environment = {"PYTHONPATH": os.pathsep.join(map(str, site_paths(site)))}
        first, *rest = in_process(
            [str(copy), str(folder.absolute())], names, f"the packages of {site}", environment, empty
        )
    return report(canary_of(value), rest, first["versions"], folder)


def in_process(
    program: list[str], names: list[str], what: str, environment: Mapping[str, str], place: str | None = None
) -> list[dict[str, Any]]:
    """Return the lines of JSON that a program in Python prints, the first and one for each pattern.

    Raises `CheckpointError` if it does not end in time, or ends before.
    """
    try:
        done = subprocess.run(
            [sys.executable, *program, *names], capture_output=True, text=True, cwd=place, timeout=_SECONDS,
            check=False, env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CheckpointError(f"the driver took more than {_SECONDS} s with {what}") from None
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) != 1 + len(names):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        where = f"pattern {names[len(lines) - 1]} ends the process" if lines else "the canary does not load"
        raise CheckpointError(f"{where} with {what} (exit code {done.returncode}: {last[:300]})")
    return lines


def site_paths(site: Path) -> Iterator[Path]:
    """Yield a folder of packages, then its folder `dependencies`, if it has one.

    Raises `CheckpointError` for a folder without transformers, as the installed ones would be run instead.
    """
    if not (site / "transformers").is_dir():
        raise CheckpointError(
            f"{site} holds no transformers: `pip install --no-deps --target {site} transformers==VERSION` installs them"
        )
    yield from (path for path in (site.absolute(), site.absolute() / "dependencies") if path.is_dir())
