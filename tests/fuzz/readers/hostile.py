"""What makes hostile files of valid ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.mutate import encoded, in_bytes, in_json, in_text, json_text


def of_text(valid: Callable[[], list[bytes]], pieces: tuple[str, ...]) -> Callable[[random.Random], bytes]:
    """Half the files changed in their bytes, half in their text."""

    def hostile(rng: random.Random) -> bytes:
        content = rng.choice(valid())
        if rng.random() < 0.5:
            return in_bytes(content, rng)
        return encoded(in_text(content.decode(errors="replace"), rng, pieces))

    return hostile


def either(
    first: Callable[[random.Random], bytes], second: Callable[[random.Random], bytes], share: float
) -> Callable[[random.Random], bytes]:
    """Files of the second kind, as a share of all, and else of the first."""
    return lambda rng: second(rng) if rng.random() < share else first(rng)


def of_json(valid: Callable[[], list[bytes]], own: Callable[[], list[Any]] = list) -> Callable[[random.Random], bytes]:
    """One file in five changed in its bytes, the others in their values, `own` among what these become."""

    def hostile(rng: random.Random) -> bytes:
        content = rng.choice(valid())
        if rng.random() < 0.2:
            return in_bytes(content, rng)
        return encoded(json_text(in_json(json.loads(content), rng, own()), rng))

    return hostile
