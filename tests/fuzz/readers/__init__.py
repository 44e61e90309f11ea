"""The readers of files, each with valid files and with what makes hostile ones of them."""

from __future__ import annotations

from tests.fuzz.mutate import Reader
from tests.fuzz.readers import certificates, machines, models, training, weighted

READERS: dict[str, Reader] = (
    machines.READERS | models.READERS | certificates.READERS | training.READERS | weighted.READERS
)
