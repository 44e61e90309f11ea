"""Writes aalpy_*.dot with AALpy, in an environment of its own: `pip install aalpy==2.0.0 && python make_aalpy.py`."""

from pathlib import Path

from aalpy.automata import Dfa, MealyMachine, MooreMachine  # type: ignore[import-not-found]
from aalpy.utils import save_automaton_to_file  # type: ignore[import-not-found]

HERE = Path(__file__).parent

# Even number of a's; a coffee machine; the parity of ones with words for outputs.
MACHINES = {
    "aalpy_dfa": Dfa.from_state_setup({"q0": (True, {"a": "q1", "b": "q0"}), "q1": (False, {"a": "q0", "b": "q1"})}),
    "aalpy_mealy": MealyMachine.from_state_setup(
        {
            "idle": {"coin": ("ok", "paid"), "button": ("beep", "idle")},
            "paid": {"coin": ("coin back", "paid"), "button": ("coffee", "idle")},
        }
    ),
    "aalpy_moore": MooreMachine.from_state_setup({"e": ("even", {0: "e", 1: "o"}), "o": ("odd", {0: "o", 1: "e"})}),
}

for name, machine in MACHINES.items():
    save_automaton_to_file(machine, HERE / name, "dot")
