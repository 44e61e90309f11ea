"""Export a machine as a folder that its package, such as transformers, loads, after a proof of the written model.

The proof enumerates, on the package's own code, all states that the model reaches one token at a time. The first letter
is read by a call without a cache, every other letter by a call of one token from a state. States are compared bit for
bit. When no new state appears, every computation that is possible in this way has been done, whatever the length of the
word. The layer's `Code` checks first that a state determines all later outputs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

from fsa2lrnn import symbols
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import CheckpointError, NotExact, NotExpressible, UnsupportedFormat, counted, shortened
from fsa2lrnn.export import target
from fsa2lrnn.export.folder import DTYPES, FILE, ExportedModel, check_files, load, save
from fsa2lrnn.export.huggingface import HuggingFace, is_prefix_free
from fsa2lrnn.export.packages import State
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.export.refuse import answer
from fsa2lrnn.files import begin, check_folder, remove_leftovers, umask, write_atomically
from fsa2lrnn.layers import released_model
from fsa2lrnn.verdicts import LETTERS, Coverage, Proved, Refuted, Undecided
from fsa2lrnn.verification.coverage import environment
from fsa2lrnn.verification.equivalence import PairsTable, explore_pairs
from fsa2lrnn.verification.extraction import NOT_A_NUMBER
from fsa2lrnn.verification.specification import specification_of


@dataclass(frozen=True, eq=False)
class ExportResult(Brief):
    """The plan of an exported model, the proof of the model as loaded from its folder, and its number of parameters."""

    plan: StagePlan
    verdict: Proved
    n_parameters: int


def export(machine: MooreMachine, layer: str, folder: Path, dtype: str = "float32") -> ExportResult:
    """Write a machine as a whole external model, load it as a user would, prove it, and move it to a folder.

    `folder` is unchanged until the proof has succeeded. `dtype` is "float32" or "bfloat16".

    Raises:
        NotExpressible: if no stack of the layer can represent the machine, or no construction is known; the message
            says which.
        BudgetExceeded: if the machine is too large for a whole model.
        UnsupportedFormat: for an unknown layer or dtype, or letters that a tokenizer cannot distinguish.
        CheckpointError: if the folder holds other files, which a package may read instead of those written.
        MissingPackage: if the package of the layer is not installed.
        NotExact: if the proof fails on the installed code.
        OSError: if the folder cannot be written.
    """
    if dtype not in DTYPES:
        raise UnsupportedFormat(
            f"dtype {dtype}: weights are written for {' and '.join(DTYPES)}, whose range holds gates of 512 and "
            "letters of 1,024 squared; choose one of these"
        )
    layer = released_model(layer)
    into = target(layer)
    decided = answer(machine, layer)
    if decided.kind == "no":
        raise NotExpressible(f"no stack of {layer} layers without attention can hold this machine: {decided.why}")
    try:
        plan = into.plan(machine) if decided.plan is None else decided.plan  # the former says what is missing
    except NotExpressible as fault:
        raise NotExpressible(decided.why) from fault
    model = into.build(plan, DTYPES[dtype])
    with folder_written_whole(folder, FILE) as place:
        save(model, layer, plan, place)
        if folder.exists():
            check_files(folder, [path.name for path in place.iterdir()])
        loaded = load(place)
        verdict = prove(loaded)
        if not isinstance(verdict, Proved):
            raise NotExact(
                f"{layer} does not run this machine on the code that is installed ({verdict}), and nothing is written: "
                f"install {into.tried}, for which it was made, and tell the authors"
            )
        n_parameters = into.code.n_parameters(loaded.model)
        write_atomically(place / "README.md", model_card(plan, layer, dtype, verdict).encode())
        del loaded  # its tensors may be mapped to files, which some systems then do not move
    return ExportResult(plan, verdict, n_parameters)


def model_card(plan: StagePlan, layer: str, dtype: str, verdict: Proved) -> str:
    """Return the model card, in Markdown, of a plan written into a layer and proved by `verdict`."""
    machine, into = plan.machine, target(layer)
    use, model = "", layer
    if isinstance(into.code, HuggingFace):
        model = into.code.kind
        word = machine.alphabet[:3]
        expected = [f"={symbols.show(output)}" for output in machine.transduce(word)]
        is_split = symbols.is_character_alphabet(machine.alphabet) or is_prefix_free(list(map(str, machine.alphabet)))
        spaces = "Spaces between letters change nothing." if is_split else "Letters are separated by spaces."
        use = _text("card_use.md").format(word=" ".join(map(str, word)), expected=expected, spaces=spaces)
    return _text("card.md").format(
        layer=layer, states=counted(machine.n_states, "state"), letters=counted(len(machine.alphabet), "letter"),
        alphabet=_listed(machine.alphabet), outputs=_listed(plan.outputs), how=plan.how,
        model=f"{model}, {dtype}; {into.tried}", pairs=counted(verdict.pairs, "joint state"),
        transitions=counted(verdict.transitions, "transition"), covers=verdict.covers, scope=verdict.scope,
        digest=verdict.digest, use=use,
    )  # fmt: skip


def _listed(values: Iterable[Hashable]) -> str:
    return shortened(symbols.listed(values), 200).replace("|", "\\|")


def _text(name: str) -> str:
    return files("fsa2lrnn.export").joinpath(name).read_text(encoding="utf-8")


@contextmanager
def folder_written_whole(path: Path, mark: str) -> Iterator[Path]:
    """Open an empty temporary folder, and move its files to `path` if the block ends without an error.

    Until then `path` is unchanged; its files of other names remain. `mark` is the file by which readers recognise the
    folder. It is removed first and written last, so that no reader accepts a mixture of old and new files.
    """
    check_folder(path)
    path = path.absolute()
    # The temporary folder is inside `path` if it exists, otherwise in its closest ancestor that exists.
    place = next(folder for folder in (path, *path.parents) if folder.exists())
    remove_leftovers(place, path.name)
    with ExitStack() as stack:
        handle, temporary = begin(place / path.name, _make_folder)
        stack.callback(os.close, handle)
        stack.callback(shutil.rmtree, temporary, ignore_errors=True)
        yield temporary
        for file in temporary.iterdir():
            with file.open("r+b") as content:
                os.fsync(content.fileno())
        if path.exists():
            (path / mark).unlink(missing_ok=True)
            for file in sorted(temporary.iterdir(), key=lambda file: file.name == mark):
                file.replace(path / file.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.chmod(0o777 & ~umask())  # mkdtemp makes folders that only their owner reads
            temporary.replace(path)


def _make_folder(**names: str) -> tuple[int, str]:
    while True:
        folder = tempfile.mkdtemp(**names)
        with suppress(FileNotFoundError):  # another process may have removed it as a leftover
            return os.open(folder, os.O_RDONLY), folder


BUDGET = 20_000  # joint states of the model and the machine


@torch.no_grad()
def prove(
    exported: ExportedModel,
    machine: MooreMachine | None = None,
    budget: int = BUDGET,
    seconds: float | Deadline | None = None,
) -> Proved | Refuted | Undecided:
    """Prove that a model has the machine's output after every non-empty word, with letters read one at a time.

    Args:
        exported: the model.
        machine: the target; None for the machine from which the model was written.
        budget: the most joint states of the model and the machine; beyond it the result is `Undecided`.
        seconds: the limit of processor time after which the result is `Undecided`; None for no limit.

    Raises:
        InvalidMachine: if the machine has other letters.
        UnsupportedFormat: for a model whose states do not determine all later outputs, or are not finite.
        CheckpointError: if no counterexample exists, but weights differ from those that `export` writes. The result of
            reading several letters in one call is then neither proved nor tested.
    """
    code, model, system = exported.code, exported.model, _TokenSystem(exported, Deadline.of(seconds))
    code.check(model)
    goal = specification_of(system, exported.machine if machine is None else machine)
    result = explore_pairs(system, goal, budget, system.deadline)
    if not isinstance(result, PairsTable):
        return result
    if exported.changed:
        raise CheckpointError(
            "every word is answered rightly that is read one token per call, but calls of several tokens may answer "
            f"otherwise, as weights differ from those that `export` writes ({shortened(', '.join(exported.changed))}): "
            "export it again"
        )
    covers = Coverage(exported.dtype, (code.describe(model),), LETTERS, torch.get_num_threads(), environment())
    return Proved(len(result.states), result.letters, covers, goal.scope, exported.digest)


class _TokenSystem:
    """An exported model as a transition system whose states are numbered, int64 (N,) as rows of eight bytes each.

    State 0 is that before the first letter, without a cache. Tokens that stand for no output are `NOT_A_NUMBER`.
    """

    def __init__(self, exported: ExportedModel, deadline: Deadline) -> None:
        self.alphabet, self.outputs, self.deadline = exported.machine.alphabet, exported.outputs, deadline
        self._code, self._model = exported.code, exported.model
        self._states: list[State | None] = [None]
        self._number: dict[bytes, int] = {}

    def initial_output(self) -> int:
        return NOT_A_NUMBER  # no token is put out before the first letter

    def start(self) -> np.ndarray:
        return np.zeros((1, 8), np.uint8)

    def fan(self, states: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = np.ascontiguousarray(states).view(np.int64)[:, 0]
        pairs = [self._step(int(before[i]), a) for i, a in np.argwhere(live).tolist()]
        outputs, after = np.array(pairs, np.int64).reshape(-1, 2).T
        return outputs, after[:, None].copy().view(np.uint8)

    def _step(self, number: int, letter: int) -> tuple[int, int]:
        """Return the numbers of the output and of the state after a letter."""
        self.deadline.check("stepping the exported model")
        state = self._states[number]
        cache = None if state is None else self._code.cache(self._model, state)
        # One letter per call, as in the claim of the proof.
        put_out, cache = self._code.read(self._model, torch.tensor([letter]), cache)
        after, output = self._code.state(self._model, cache), int(put_out[-1]) - len(self.alphabet)
        if not all(torch.isfinite(part).all() for part in after):
            raise UnsupportedFormat(f"the model keeps numbers that are not finite after token {letter}")
        # Two states are the same exactly if all their bits are (T8).
        key = b"".join(part.reshape(-1).view(torch.uint8).numpy().tobytes() for part in after)
        if key not in self._number:
            self._number[key] = len(self._states)
            self._states.append(after)
        return output if 0 <= output < len(self.outputs) else NOT_A_NUMBER, self._number[key]

    def pick(self, states: np.ndarray, places: np.ndarray) -> np.ndarray:
        return states[places]

    def rows(self, states: np.ndarray) -> np.ndarray:
        return states
