"""A cascade as people look at it: a table of its components in words, and a drawing."""

from __future__ import annotations

from fsa2lrnn.decomposition.cascade import Cascade, Component


def describe(cascade: Cascade) -> list[tuple[str, str]]:
    """Each component's place and name, and what it is, for a list of facts.

    >>> import numpy as np
    >>> from fsa2lrnn.automata import MooreMachine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> flip = Component(2, 0, (), 0, np.array([[0], [1]]), np.array([[0, 1], [1, 0]]))
    >>> describe(Cascade(parity, (flip,)))
    [('layer 1, component 1', '2 states, permutation: a signed lane; reads the letter')]
    """
    rows: list[tuple[str, str]] = []
    for i, component in enumerate(cascade.components):
        reads = " and ".join(["the letter", *(_title(cascade, j) for j in component.reads)])
        when = " after it" if cascade.reads_now and component.reads else ""
        rows.append(
            (
                f"layer {component.layer + 1}, {_title(cascade, i)}",
                f"{component.n_states} states, {component.kind}: {blocks_of(component)}; reads {reads}{when}",
            )
        )
    return rows


def blocks_of(component: Component) -> str:
    """What a component becomes in the network."""
    if not component.is_lanes:
        return f"a one-hot block of {component.n_states}"
    if component.kind == "reset":
        return "a diagonal lane" if component.n_states == 2 else f"{component.n_states - 1} diagonal lanes"
    return "a signed lane"


def to_dot(cascade: Cascade) -> str:
    """DOT text that draws the cascade: a box a component, a row a layer, an arrow to each from what it reads."""
    lines = ["digraph {", "  rankdir=BT", '  node [shape=box fontname="sans-serif"]']
    lines.append('  letter [shape=plaintext label="letter"]')
    for layer in range(cascade.n_layers):
        here = [i for i, component in enumerate(cascade.components) if component.layer == layer]
        lines.append(f"  subgraph cluster_{layer} {{")
        lines.append(f'    label="layer {layer + 1}" labeljust=l fontname="sans-serif" color=gray style=rounded')
        for i in here:
            component = cascade.components[i]
            text = f"{_title(cascade, i)}\\n{component.n_states} states, {component.kind}\\n{blocks_of(component)}"
            lines.append(f'    c{i} [label="{text}"]')
        lines.append("  }")
    lines.append('  output [shape=plaintext label="output"]')
    for i, component in enumerate(cascade.components):
        lines += [f"  c{j} -> c{i}" for j in component.reads]
        lines.append(f"  letter -> c{i} [color=gray]")
        if i in cascade.output_reads:
            lines.append(f"  c{i} -> output [color=gray]")
    return "\n".join([*lines, "}", ""])


def _title(cascade: Cascade, i: int) -> str:
    component = cascade.components[i]
    same = [j for j, other in enumerate(cascade.components) if other.name == component.name]
    if not component.name:
        return f"component {i + 1}"
    return component.name if len(same) == 1 else f"{component.name} ({same.index(i) + 1})"
