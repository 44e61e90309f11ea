"""A zoo of named machines: the paper's tasks, related ones, and hard cases of the theory.

Each function documents why its machine is included, its origin, its minimal number of states, and whether it is a group
or aperiodic. Labels describe the states; they are tuples if a state has parts. `ZOO` lists examples with facts that the
tests check; `from_task` builds a machine from text such as "mod_arith(5, completion=register)".

>>> from fsa2lrnn.automata import zoo
>>> zoo.sum_mod(5) == zoo.from_task("sum_mod(5)")
True
"""

from fsa2lrnn.automata.zoo.groups import group
from fsa2lrnn.automata.zoo.languages import ab_star, contains, dyck, tomita
from fsa2lrnn.automata.zoo.paper import even_pair, mod_arith, subtraction, sum_mod
from fsa2lrnn.automata.zoo.sampling import random_dfa, random_moore
from fsa2lrnn.automata.zoo.small_machines import (
    all_maps,
    arbiter,
    cerny,
    count_mod,
    cycle_navigation,
    elevator,
    even_pairs,
    flip_flop,
    length_mod,
    parity,
    remainder,
    resettable_counter,
    shift_register,
)
from fsa2lrnn.automata.zoo.task_table import TASKS, ZOO, TaskFacts, from_task

__all__ = [
    "sum_mod",
    "even_pair",
    "mod_arith",
    "subtraction",
    "parity",
    "even_pairs",
    "cycle_navigation",
    "tomita",
    "dyck",
    "ab_star",
    "contains",
    "group",
    "length_mod",
    "count_mod",
    "resettable_counter",
    "elevator",
    "remainder",
    "flip_flop",
    "shift_register",
    "cerny",
    "all_maps",
    "arbiter",
    "random_dfa",
    "random_moore",
    "TaskFacts",
    "TASKS",
    "ZOO",
    "from_task",
]
