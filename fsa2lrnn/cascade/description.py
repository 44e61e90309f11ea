"""Display a cascade as a table of its components, or as a drawing in DOT or SVG."""

from __future__ import annotations

from fsa2lrnn.cascade.cascade import Cascade, Component

_NAMED = 3  # the most components that a sentence names one by one


def describe(cascade: Cascade) -> list[tuple[str, str]]:
    """Return two texts per component: its layer and name, and its kind, blocks and reads.

    >>> import numpy as np
    >>> from fsa2lrnn.automata import MooreMachine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> flip = Component(2, 0, (), 0, np.array([[0], [1]]), np.array([[0, 1], [1, 0]]))
    >>> describe(Cascade(parity, (flip,)))
    [('layer 0, component 0', '2 states, permutation: a signed channel; reads the letter')]
    """
    return [
        (
            f"layer {component.layer}, {title(cascade, i)}",
            f"{_kind(component)}: {blocks_of(component)}; reads {reads_of(cascade, i)}",
        )
        for i, component in enumerate(cascade.components)
    ]


def blocks_of(component: Component) -> str:
    """Return the form of a component in the network as text: a one-hot block, or diagonal or signed channels."""
    if not component.is_diagonal:
        return f"a one-hot block of {component.n_states}"
    if component.kind == "trivial":
        return "a channel that stays 0"
    if component.kind == "reset":
        return "a diagonal channel" if component.n_states == 2 else f"{component.n_states - 1} diagonal channels"
    return "a signed channel"


def reads_of(cascade: Cascade, i: int) -> str:
    """Return the inputs of component i as text: the letter, and states of components in lower layers."""
    component = cascade.components[i]
    if not component.reads:
        return "the letter"
    n_below = _n_below(cascade, i)
    if len(component.reads) <= _NAMED:
        read = _listed([title(cascade, j) for j in component.reads])
    elif _reads_all(cascade, i):
        read = f"all {n_below} components below"
    else:
        read = f"{len(component.reads)} of the {n_below} components below"
    return f"the letter, and the states {'after' if cascade.reads_now else 'before'} it of {read}"


def title(cascade: Cascade, i: int) -> str:
    """Return the name of component i, with a number if it has none or shares it with others."""
    component = cascade.components[i]
    same = [j for j, other in enumerate(cascade.components) if other.name == component.name]
    if not component.name:
        return f"component {i}"
    return component.name if len(same) == 1 else f"{component.name} ({same.index(i)})"


def to_dot(cascade: Cascade) -> str:
    """Return a drawing of a cascade as DOT text: a box per component, a row per layer, an arrow per state read.

    Layer 0 is at the bottom. Boxes on which the output depends are shaded. Arrows from the letter, and to a component
    that reads all below it, are left out, since they would hide the others; texts replace them.
    """
    lines = [
        "digraph {",
        '  graph [rankdir=BT labelloc=b labeljust=l fontname="sans-serif" fontsize=11 nodesep=0.4 ranksep=0.6]',
    ]
    lines += ['  node [shape=box style=rounded fontname="sans-serif"]', "  edge [arrowsize=0.7 color=gray40]"]
    lines.append(f'  label="{_legend(cascade)}"')
    for layer in range(cascade.n_layers):
        here = [i for i, component in enumerate(cascade.components) if component.layer == layer]
        lines.append(f'  layer{layer} [shape=plaintext fontcolor=gray40 label="layer {layer}"]')
        lines += [_box(cascade, i) for i in here]
        row = " -> ".join([f"layer{layer}", *(f"c{i}" for i in here)])
        lines.append(f"  {{ rank=same; {row} [style=invis] }}")  # in a row, in order
    column = " -> ".join(f"layer{layer}" for layer in range(cascade.n_layers))
    lines += [f"  {column} [style=invis weight=100]"] if cascade.n_layers > 1 else []  # a straight column
    for i, component in enumerate(cascade.components):
        lines += [] if _reads_all(cascade, i) else [f"  c{j} -> c{i}" for j in component.reads]
    return "\n".join([*lines, "}", ""])


def to_svg(cascade: Cascade) -> str:
    """Return a drawing of a cascade as SVG."""
    from fsa2lrnn.draw.boxes import boxes

    lines: list[list[str]] = []
    for i, component in enumerate(cascade.components):
        everything = [f"reads all {_n_below(cascade, i)} below"] if _reads_all(cascade, i) else []
        lines.append([title(cascade, i), _kind(component), blocks_of(component), *everything])
    rows = [component.layer for component in cascade.components]
    arrows = [
        (j, i) for i, component in enumerate(cascade.components) if not _reads_all(cascade, i) for j in component.reads
    ]
    caption = f"A cascade of {len(lines)} components in {cascade.n_layers} layers"
    return boxes(caption, lines, rows, arrows, cascade.output_reads)


def _box(cascade: Cascade, i: int) -> str:
    component = cascade.components[i]
    name = title(cascade, i).replace("\\", "\\\\").replace('"', '\\"')
    shade = ' style="rounded,filled" fillcolor=lightblue' if i in cascade.output_reads else ""
    everything = f"\\nreads all {_n_below(cascade, i)} below" if _reads_all(cascade, i) else ""
    return f'  c{i} [label="{name}\\n{_kind(component)}\\n{blocks_of(component)}{everything}"{shade}]'


def _legend(cascade: Cascade) -> str:
    when = "after" if cascade.reads_now else "before"
    arrows = [f"arrow: its state {when} the letter is read too"] if cascade.has_reads else []
    return "\\l".join(["", "every component reads the letter", *arrows, "shaded: the output depends on it", ""])


def _n_below(cascade: Cascade, i: int) -> int:
    return sum(other.layer < cascade.components[i].layer for other in cascade.components)


def _reads_all(cascade: Cascade, i: int) -> bool:
    return _NAMED < len(cascade.components[i].reads) == _n_below(cascade, i)


def _kind(component: Component) -> str:
    return f"{component.n_states} state{'s' if component.n_states > 1 else ''}, {component.kind}"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
