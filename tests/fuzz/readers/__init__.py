"""The readers of files, each with valid files and with what makes hostile ones of them."""

from __future__ import annotations

from tests.fuzz.base import Reader
from tests.fuzz.readers import certificates, learning, machines, models, released, training

ROOMS = (machines, models, certificates, training, learning, released)
READERS: dict[str, Reader] = {name: reader for room in ROOMS for name, reader in room.READERS.items()}
