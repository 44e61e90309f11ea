"""Every reader refuses hostile files by name, in bounded time and memory; and a reader that does not is found out."""

import json
import os
import random
from collections import Counter

import pytest

from tests.fuzz.readers import READERS
from tests.fuzz.run import COUNTS, SHARES, Tally, counted, fuzz, fuzz_all

INPUTS = int(os.environ.get("FUZZ_INPUTS", "100000"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))


def test_every_reader_gets_its_share():
    assert READERS.keys() == SHARES.keys()
    assert sum(SHARES.values()) == 100


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
        path.write_bytes(reader.hostile(random.Random(f"a few {i}")))
        try:
            reader.read(path)
        except reader.refuses as error:
            refused += bool(str(error))
    assert refused


@pytest.mark.long
def test_hostile_files_are_the_same_again():
    for reader in READERS.values():
        first, again = (reader.hostile(random.Random("again")) for _ in range(2))
        assert first == again


@pytest.mark.long_cases("hangs-Hang")
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("raises", "KeyError: 'foreign'"),
        ("hangs", "Hang"),
        ("allocates", "MemoryError"),
        ("allocates in Python", "MemoryError"),
        ("dies", "the process ended with 3"),
    ],
)
def test_what_is_looked_for_is_found(name, fault):
    tally = fuzz(name, 8, seed=1, module="tests.fuzz.broken", seconds=0.3)
    assert tally.ends["read"]
    assert tally.faults
    assert all(fault in found["fault"] for found in tally.faults)


@pytest.mark.parametrize("name", ["sound", "allocates what it may"])
def test_what_keeps_to_the_limits_is_no_fault(name):
    tally = fuzz(name, 8, seed=1, module="tests.fuzz.broken")
    assert (tally.inputs, tally.faults) == (8, [])


def test_counts_go_on_where_they_ended(tmp_path, monkeypatch):
    asked = []

    def fuzzed(inputs, _seed, _processes, names, done):
        asked.append((inputs, names))
        for name in names[:2]:
            done(name, Tally(Counter(read=1), [{"input": 3, "fault": "KeyError"}], 0.5, 2.0))
        if len(asked) == 1:
            raise KeyboardInterrupt
        for name in names[2:]:
            done(name, Tally(Counter(read=2)))

    monkeypatch.setattr("tests.fuzz.run.fuzz_all", fuzzed)
    path, names = tmp_path / "counts.json", list(SHARES)
    with pytest.raises(KeyboardInterrupt):
        counted(1_000, 7, 1, path)
    tallies = counted(1_000, 7, 1, path)
    rest = sum(SHARES.values()) - SHARES[names[0]] - SHARES[names[1]]
    assert asked == [(1_000, names), (10 * rest, names[2:])]
    assert (tallies[names[0]].faults, tallies[names[-1]].inputs) == ([{"input": 3, "fault": "KeyError"}], 2)
    assert counted(1_000, 7, 1, path) == tallies
    assert len(asked) == 2


def test_the_committed_counts_hold_no_fault():
    readers = json.loads(COUNTS.read_bytes())["readers"]
    assert readers.keys() <= SHARES.keys()
    assert all(row["ends"]["read"] and not row["faults"] for row in readers.values())


@pytest.mark.slow
def test_no_reader_fails_otherwise_hangs_or_takes_memory(capsys):
    """By `make fuzz`, which shows the counts."""
    with capsys.disabled():
        print()
        tallies = fuzz_all(INPUTS, SEED, processes=os.cpu_count() or 1)
    assert sum(tally.inputs for tally in tallies.values()) >= INPUTS
    assert all(tally.ends["read"] for tally in tallies.values())
    assert [fault for tally in tallies.values() for fault in tally.faults] == []
