"""The machine's methods find what they lead to, however the machine was come by."""

import re
import subprocess
import sys
from pathlib import Path

from fsa2lrnn.automata import MooreMachine, doors, machine, zoo
from fsa2lrnn.automata.formats import automata_lib, dot, json_file, networkx_graph


def test_every_door_is_there_and_used():
    source = Path(machine.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r"return doors\.(\w+)\(", source)) == set(doors.__all__)
    assert machine.doors is doors


def test_the_doors_lead_to_the_formats():
    parity = zoo.parity()
    assert doors.to_dot(parity) == dot.to_dot(parity) == parity.to_dot()
    assert doors.to_json(parity) == json_file.to_json(parity) == parity.to_json()
    assert doors.to_automata(parity) == automata_lib.to_automata(parity) == parity.to_automata()
    assert dict(doors.to_networkx(parity).adj) == dict(networkx_graph.to_networkx(parity).adj)
    assert doors.from_automata(parity.to_automata()) == MooreMachine.from_automata(parity.to_automata())
    assert doors.from_networkx(parity.to_networkx()) == MooreMachine.from_networkx(parity.to_networkx())


def test_a_machine_that_is_imported_or_unpickled_alone_has_them():
    code = "from fsa2lrnn.automata.machine import MooreMachine; print(MooreMachine.from_source('regex:a').n_states)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "3\n"
