"""Inputs of the kinds that public issues and files show are read as meant, or refused by name (`public_inputs`)."""

from pathlib import Path

import pytest

from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.errors import Fsa2LrnnError
from tests.fsa2lrnn.automata.formats.public_inputs import INPUTS


@pytest.mark.parametrize(("ending", "text", "right"), [i[1:] for i in INPUTS], ids=[i[0] for i in INPUTS])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_public_inputs(ending, text, right, tmp_path):
    source = f"regex:{text}" if ending == "regex" else tmp_path / f"m{ending}"
    if isinstance(source, Path):
        source.write_text(text)
    if isinstance(right, str):
        with pytest.raises(Fsa2LrnnError) as refused:
            read_source(source)
        assert right in str(refused.value)
        return
    machine = read_source(source)
    for word, output in right:
        assert (machine.transduce(word) or [machine.outputs[machine.start]])[-1] == output, word
