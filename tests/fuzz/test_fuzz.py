"""Every reader refuses hostile files by name, in bounded time and memory; and a reader that does not is found out."""

import json
import os
import random

import pytest

from tests.fuzz.readers import READERS
from tests.fuzz.run import COUNTS, fuzz, fuzz_all

INPUTS = int(os.environ.get("FUZZ_INPUTS", "100000"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))


@pytest.mark.long_cases("certificate", "family certificate")
@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_read_and_some_hostile_ones_are_refused_by_name(name, tmp_path):
    reader = READERS[name]
    path = tmp_path / f"file{reader.ending}"
    for content in reader.valid():
        path.write_bytes(content)
        reader.read(path)
    refused = 0
    for i in range(12):
        content, again = (reader.hostile(random.Random(f"a few {i}")) for _ in range(2))
        assert content == again
        path.write_bytes(content)
        try:
            reader.read(path)
        except reader.refuses as error:
            refused += bool(str(error))
    assert refused


FAULTS = {
    "raises": "KeyError: 'foreign'", "hangs": "Hang", "allocates": "MemoryError", "allocates in Python": "MemoryError",
    "dies": "the process ended with 3",
}  # fmt: skip


@pytest.mark.long_cases("hangs-Hang")
@pytest.mark.parametrize(("name", "fault"), FAULTS.items())
def test_what_is_looked_for_is_found(name, fault):
    tally = fuzz(name, 8, seed=1, module="tests.fuzz.broken", seconds=0.3)
    assert tally["ends"]["read"]
    assert tally["faults"]
    assert all(fault in found["fault"] for found in tally["faults"])


@pytest.mark.parametrize("name", ["sound", "allocates what it may"])
def test_what_keeps_to_the_limits_is_no_fault(name):
    tally = fuzz(name, 8, seed=1, module="tests.fuzz.broken")
    assert (sum(tally["ends"].values()), tally["faults"]) == (8, [])


def test_the_committed_counts_hold_no_fault():
    readers = json.loads(COUNTS.read_bytes())["readers"]
    assert all(row["ends"]["read"] and not row["faults"] for row in readers.values())


@pytest.mark.slow
def test_no_reader_fails_otherwise_hangs_or_takes_memory(capsys):
    """By `make fuzz`, which shows the counts."""
    with capsys.disabled():
        print()
        tallies = fuzz_all(INPUTS, SEED)
    assert sum(sum(tally["ends"].values()) for tally in tallies.values()) >= INPUTS
    assert all(tally["ends"].get("read") for tally in tallies.values())
    assert [fault for tally in tallies.values() for fault in tally["faults"]] == []
