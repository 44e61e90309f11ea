"""The canary on a server: one of the standard library that answers as the canary does, with faults put in."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fsa2lrnn.canary.machines import exchange, held, long_cycle, words
from fsa2lrnn.canary.server import PATTERNS, Server, check_server
from fsa2lrnn.canary.write_model import record
from fsa2lrnn.errors import UnsupportedFormat

CANARY = exchange(3)
CANARY = replace(CANARY, follows=long_cycle(CANARY))


@contextmanager
def served(fault=None):
    """Serve the canary; `fault` maps (prompt, number of open requests, prompts so far) to the letters really read."""
    follows, busy, seen = dict(CANARY.follows), [0], []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self._say({"data": [{"id": "canary"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = [CANARY.letters.index(letter) for letter in body["prompt"]]
            busy[0] += 1
            read = fault(prompt, busy[0], list(seen)) if fault else prompt
            seen.append(prompt)
            *_, state = CANARY.run(CANARY.start, read)
            out = ""
            for _ in range(body["max_tokens"]):
                letter = follows[held(state)]
                out, state = out + CANARY.letters[letter], CANARY.step(state, letter)
            busy[0] -= 1
            if not body.get("stream"):
                self._say({"choices": [{"text": out}]})
                return
            self.send_response(200)
            self.end_headers()
            try:
                for letter in out:
                    self.wfile.write(b"data: " + json.dumps({"choices": [{"text": letter}]}).encode() + b"\n\n")
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:  # the client has left
                pass

        def _say(self, value):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def folder(tmp_path):
    value = record(CANARY, "olmo-hybrid", "float32", True) | {"words": words(CANARY, 8, 64)}
    (tmp_path / "canary.json").write_text(json.dumps(value))
    return tmp_path


def test_a_right_server_is_exact(folder):
    with served() as url:
        assert check_server(folder, url).exact == tuple(name for name in PATTERNS if name != "endurance")


def test_a_prefix_kept_for_another_request_is_seen_and_explained(folder):
    """The server goes on from the state of the last prompt that begins alike, though that is longer."""

    def fault(prompt, _, seen):
        longer = [other for other in seen if other[: len(prompt)] == prompt and len(other) > len(prompt)]
        return longer[-1] if longer else prompt

    with served(fault) as url:
        report = check_server(folder, url, "one-by-one,shared-prefix")
    assert (report.exact, report.wrong) == (("one-by-one",), ("shared-prefix",))


def test_prompts_that_lose_their_first_letters_are_seen(folder):
    with served(lambda prompt, *_: prompt[3:] or prompt) as url:
        assert check_server(folder, url, "long").wrong == ("long",)


def test_an_answer_that_ends_early_is_refused(folder, monkeypatch):
    body = Server._body
    with served() as url:
        monkeypatch.setattr(Server, "_body", lambda self, prompt, n, **more: body(self, prompt, min(n, 50), **more))
        report = check_server(folder, url, "one-by-one,streaming")
    assert (report.exact, report.refused) == ((), ("one-by-one", "streaming"))
    assert "the answer ends after 50 of 200 letters" in report.messages["streaming"]


def test_what_is_no_server_or_no_canary_for_one_is_refused(folder):
    with pytest.raises(UnsupportedFormat, match="does not answer"):
        check_server(folder, "http://127.0.0.1:9/v1")
    with pytest.raises(UnsupportedFormat, match=r"nonnumeric port: 'x'.*: give its"):
        check_server(folder, "http://127.0.0.1:x/v1")
    with served() as url, pytest.raises(UnsupportedFormat, match="'all-of-it' is not known"):
        check_server(folder, url, "all-of-it")
    (folder / "canary.json").write_text(json.dumps(record(exchange(3), "olmo-hybrid", "float32", False)))
    with pytest.raises(UnsupportedFormat, match="make the canary with --kind generate"):
        check_server(folder, "http://127.0.0.1:9/v1")
