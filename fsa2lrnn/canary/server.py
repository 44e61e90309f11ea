"""Run a canary on a server with an OpenAI-compatible interface: standard library alone, nothing of torch.

The canary generates: greedy decoding must put out one known sequence of letters after every prompt, whatever other
requests the server answers at the same time. Prompts are text. The server has loaded the folder.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fsa2lrnn.canary.machines import Canary
from fsa2lrnn.canary.report import CanaryReport, canary_of, chosen, read_record, report
from fsa2lrnn.errors import UnsupportedFormat

_SECONDS = 120  # of a request, and a third of one more for each token
_CLIENTS, _TOKENS = 8, 200
# What a connection raises, and an answer that is not of this interface.
_NO_ANSWER = (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError)


class Server:
    """A server and the name of the model that it serves: the first that it lists, or the canary's folder."""

    def __init__(self, url: str, canary: Canary, words: Sequence[Sequence[int]], folder: Path) -> None:
        self.url, self.canary, self.words = url.rstrip("/"), canary, words
        try:
            models = self._send("models", None)["data"]
        except urllib.error.HTTPError:  # some servers list what they have downloaded alone, and fail without that
            models = []
        self.model = str(models[0]["id"] if models else folder.absolute())

    def _send(self, path: str, body: Any) -> Any:
        with self._open(path, body) as answer:
            return json.loads(answer.read())

    def _open(self, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": "application/json"})
        return urllib.request.urlopen(request, timeout=_SECONDS + (body or {}).get("max_tokens", 0) / 3)

    def _body(self, prompt: Sequence[int], n: int, **more: Any) -> dict[str, Any]:
        text = "".join(self.canary.letters[a] for a in prompt)
        return {"model": self.model, "prompt": text, "max_tokens": n, "temperature": 0, **more}

    def complete(self, prompt: Sequence[int], n: int = _TOKENS) -> list[int]:
        """Return the letters put out after a prompt; −1 for anything else."""
        return self._letters(self._send("completions", self._body(prompt, n))["choices"][0]["text"], n)

    def stream(self, prompt: Sequence[int], n: int = _TOKENS, stop_after: int | None = None) -> list[int]:
        """Return the letters of a streamed answer; leave after some events if asked to."""
        text, events = "", 0
        with self._open("completions", self._body(prompt, n, stream=True)) as answer:
            for line in answer:
                if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
                    continue
                text += json.loads(line[6:])["choices"][0].get("text") or ""
                events += 1
                if events == stop_after:
                    break
        return self._letters(text, n if stop_after is None else 0)

    def _letters(self, text: str, least: int) -> list[int]:
        """Return the letters of a text; raise `ValueError` if there are too few, which would be right ones."""
        found = [self.canary.letters.index(c) if c in self.canary.letters else -1 for c in text.replace(" ", "")]
        if len(found) < least and -1 not in found:
            raise ValueError(
                f"the answer ends after {len(found)} of {least} letters: raise the server's limit of tokens"
            )
        return found

    def run(self, name: str, prompt: Sequence[int], out: Sequence[int], others: Sequence[Sequence[int]] = ()) -> Any:
        """Return a run of the driver's form."""
        word, n = [*prompt, *out[:-1]], len(prompt)
        word = [max(letter, 0) for letter in word]
        return {
            "name": name, "word": word, "first": n - 1, "outputs": list(out), "events": list(range(n, len(word))),
            "others": [list(other) for other in others],
        }  # fmt: skip


def _one(server: Server) -> Iterator[Any]:
    """One request after the other."""
    for word in server.words[:3]:
        yield server.run("", word[:20], server.complete(word[:20]))


def _together(server: Server, prompts: Sequence[Sequence[int]], n: int = _TOKENS) -> Iterator[Any]:
    with ThreadPoolExecutor(_CLIENTS) as pool:
        for i, out in enumerate(pool.map(lambda prompt: server.complete(prompt, n), prompts)):
            yield server.run(f"client {i}", prompts[i], out, [*prompts[:i], *prompts[i + 1 :]])


def _parallel(server: Server) -> Iterator[Any]:
    """Eight clients at once, with prompts of different lengths."""
    yield from _together(server, [word[: 3 + 7 * i] for i, word in enumerate(server.words[:_CLIENTS])])


def _shared_prefix(server: Server) -> Iterator[Any]:
    """Prompts that begin alike: a server may keep the state of the prefix."""
    prefix = list(server.words[0][:100])
    prompts = [[*prefix, *word[: 1 + 5 * i]] for i, word in enumerate(server.words[1:_CLIENTS])]
    for prompt in (prefix, *prompts, prefix):
        yield server.run(f"{len(prompt)} letters", prompt, server.complete(prompt, 60), [prefix])
    yield from _together(server, prompts, 60)


def _streaming(server: Server) -> Iterator[Any]:
    """Answers in pieces."""
    yield server.run("", server.words[1][:30], server.stream(server.words[1][:30]))


def _cancelled(server: Server) -> Iterator[Any]:
    """A client leaves in the middle of its answer, and others go on and begin."""
    leaving, staying = server.words[2][:25], server.words[3][:25]
    with ThreadPoolExecutor(2) as pool:
        kept = pool.submit(server.complete, staying)
        server.stream(leaving, stop_after=5)
        yield server.run("beside", staying, kept.result(), [leaving])
    yield server.run("after", staying, server.complete(staying), [leaving])


def _long(server: Server) -> Iterator[Any]:
    """A long prompt and a long answer."""
    prompt = [letter for word in server.words for letter in word]
    yield server.run(f"{len(prompt)} letters", prompt, server.complete(prompt, 1_000))


def _endurance(server: Server) -> Iterator[Any]:
    """Eight clients at once, with 10,000 tokens each; run only if it is named."""
    yield from _together(server, [word[: 3 + 7 * i] for i, word in enumerate(server.words[:_CLIENTS])], 10_000)


PATTERNS: dict[str, Callable[[Server], Iterator[Any]]] = {
    "one-by-one": _one, "parallel": _parallel, "shared-prefix": _shared_prefix, "streaming": _streaming,
    "cancelled": _cancelled, "long": _long, "endurance": _endurance,
}  # fmt: skip


def check_server(folder: Path, url: str, patterns: str | Sequence[str] = "all") -> CanaryReport:
    """Run a canary by every pattern of requests on the server at `url`, such as http://localhost:8000/v1.

    Raises:
        CheckpointError: if the folder holds no canary.
        UnsupportedFormat: for a canary that only tracks, an unknown pattern, or a server that does not answer.
    """
    value = read_record(folder)
    if not value["generates"]:
        raise UnsupportedFormat(f"{folder} only tracks: make the canary with --kind generate, and serve that folder")
    names = chosen(patterns, PATTERNS) if patterns != "all" else [name for name in PATTERNS if name != "endurance"]
    canary = canary_of(value)
    try:
        server = Server(url, canary, value["words"], folder)
    except _NO_ANSWER as fault:
        raise UnsupportedFormat(f"{url} does not answer as a server of models ({fault}): give its …/v1") from None

    def done() -> Iterator[dict[str, Any]]:
        for name in names:
            began = time.perf_counter()
            one: dict[str, Any] = {"pattern": name, "status": "ran", "message": "", "runs": []}
            try:
                one["runs"] += PATTERNS[name](server)
            except urllib.error.HTTPError as fault:
                said = fault.read(300).decode(errors="replace")
                one |= {"status": "refused", "message": f"{fault.code}: {said}"}
            except _NO_ANSWER as fault:
                one |= {"status": "refused", "message": f"{type(fault).__name__}: {fault}"}
            yield one | {"seconds": round(time.perf_counter() - began, 2)}

    return report(canary, done(), {"server": url, "model": server.model})
