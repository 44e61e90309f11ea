"""The list of kinds, of which help and readers speak alike."""

from fsa2lrnn.automata import formats
from fsa2lrnn.cli import app, options
from fsa2lrnn.source_kinds import FORMATS, endings


def test_help_names_every_ending():
    files = [ending for known in FORMATS if known.is_file for ending in known.endings]
    assert endings().split() == files
    assert endings(for_writing=True).split() == [e for known in FORMATS if known.writes for e in known.endings]
    assert options.WRITTEN.endswith(endings(for_writing=True))
    assert str(app.info.epilog).endswith(f"a file: {endings()}")


def test_prefixes_stand_in_place_of_endings():
    assert [known.endings for known in FORMATS if not known.is_file] == [("regex:",), ("task:",), ("mlregtest:",)]
    assert formats.FORMATS is FORMATS
