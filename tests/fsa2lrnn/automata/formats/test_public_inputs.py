"""Small inputs of the kinds that public issues and files show, rewritten: source, reader, input, and what is right.

What is right is either a list of (word, output at its end), or a phrase of the refusal. `project#number` is an issue or a
change that states what is meant; a tool without a number writes such files, and its own reader or manual says what they
mean.
"""

# ruff: noqa: E501

from pathlib import Path

import pytest

from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.errors import Fsa2LrnnError

S = 'digraph { s [shape=none label=""]; s -> p; '


def jff(*arcs, kind="fa", states=""):
    lines = "".join(f"<transition><from>{p}</from><to>{q}</to>{rest}</transition>" for p, q, rest in arcs)
    states = states or '<state id="0"><initial/></state><state id="1"><final/></state>'
    return f"<structure><type>{kind}</type><automaton>{states}{lines}</automaton></structure>"


def read(text):
    return f"<read>{text}</read>"


ACCEPT = "q [shape=doublecircle]; "
INPUTS = [
    # DOT: outputs and letters with separators inside
    ("AALpy#42: slashes in outputs", ".dot", S + 'p -> p [label="del / Pub(top/kept,)__Ack"] }', [(["del"], "Pub(top/kept,)__Ack")]),
    ("AALpy#43: angle brackets are HTML in DOT", ".dot", S + ACCEPT + "p -> q [label=<C-v>] }", [(["C-v"], True)]),
    ("AALpy#45: bars in outputs of records", ".dot", S + 'p [shape=record label="{p|a\\|b}"]; p -> p [label=t] }', [(["t"], "a|b")]),
    ("automatalib#40: commas in brackets", ".dot", S + 'p -> p [label="HELLO(0xf)[ACK,CRYPTO] / SHORT[ACK,PING]+NONE"] }', [(["HELLO(0xf)[ACK,CRYPTO]"], "SHORT[ACK,PING]+NONE")]),
    ("automatalib#89: numbers as names of states", ".dot", "digraph { 4; __start0 [label=\"\"]; __start0 -> 4; 4 -> 4 [label=\"a/x\"] }", [("a", "x")]),
    ("automatalib#7: no state is marked as start", ".dot", "digraph { q0 -> q1 [label=AUI]; q1 [shape=doublecircle] }", "no state is marked as start"),
    ("automatalib#42: modal transition systems", ".dot", S + 'p -> p [label=a modality=MAY style=dashed] }', "modality 'may'"),
    ("automatalib, parser of timed machines: resets", ".dot", S + 'p -> p [label="to[e] / E" resets="b,c"] }', "resets"),
    ("AALpy, stochastic automata", ".dot", S + 'p -> p [label="0.25"]; p -> q [label="0.75"]; q -> q [label="1.0"] }', "is a probability"),
    ("AALpy, decision processes", ".dot", S + 'p -> q [label="go:0.9"]; p -> p [label="go:0.1"]; q -> q [label="go:1.0"] }', "is a probability"),
    ("AALpy, stochastic Mealy machines", ".dot", S + 'p -> p [label="go/ok:0.9"]; p -> p [label="go/no:0.1"] }', "is a probability"),
    ("AALpy, one-counter and visibly pushdown", ".dot", S + ACCEPT + 'p -> q [label="( / push(()"] }', "an operation on a stack"),
    ("AALpy, Moore machines with output labels", ".dot", S + "p [label=A]; q [label=B]; r [label=A]; p -> q -> r -> p [label=t] }", [("t", "B"), ("tt", "A")]),
    ("dtls-fuzzer, bug patterns: other", ".dot", S + ACCEPT + 'p -> p [label="other - {I_AUTH}"]; p -> q [label=I_AUTH] }', "a set of letters"),
    ("dtls-fuzzer, bug patterns: sets", ".dot", S + ACCEPT + 'p -> q [label="{O_OK, O_NO}"] }', "a set of letters"),
    ("dtls-fuzzer, bug patterns: assignments", ".dot", S + ACCEPT + 'p -> q [label="HELLO[X:=suite]"] }', "a guard or assignment"),
    ("dtls-fuzzer, bug patterns: guards", ".dot", S + ACCEPT + 'p -> q [label="HELLO where Y != X"] }', "a guard or assignment"),
    # DOT: intervals, formulas, epsilon
    ("mata#489: intervals", ".dot", S + ACCEPT + 'p -> q [label="1,4-8,10"] }', "a range of letters"),
    ("mata#489: labels that are cut", ".dot", S + ACCEPT + 'p -> q [label="1,3,5..."] }', "is cut short"),
    ("mata#392: epsilon in angle brackets", ".dot", S + ACCEPT + 'p -> q [label="<eps>"]; q -> q [label=a] }', [("", True), ("a", True)]),
    ("mata#499: an escaped backslash", ".dot", S + ACCEPT + 'p -> q [label="\\\\"] }', [("\\", True)]),
    ("graphviz#96: an escaped quotation mark", ".dot", S + ACCEPT + 'p -> q [label="\\""] }', [('"', True)]),
    ("pire#5: lists with epsilon", ".dot", S + ACCEPT + 'p -> q [label="<Epsilon> ^ $ ."] }', "has no letter in it"),
    ("pire#5: epsilon", ".dot", S + ACCEPT + 'p -> q [label="<Epsilon>"]; q -> q [label=a] }', [("", True)]),
    ("pire#5: octal ranges", ".dot", S + ACCEPT + 'p -> q [label="[\\\\200-\\\\277]"] }', "a set of letters"),
    ("pire#5: several graphs", ".dot", S + ACCEPT + "p -> q [label=a] }\ndigraph { p -> q }", "line 2: another graph"),
    ("RegEx-Engine#20: dashed epsilon edges", ".dot", S + ACCEPT + 'p -> q [label="&epsilon;" style=dashed]; q -> q [label="61"] }', [("", True), (["61"], True)]),
    ("brics, ranges of characters", ".dot", S + ACCEPT + 'p -> q [label="a-z"] }', "a range of letters"),
    ("brics, ranges of code points", ".dot", S + ACCEPT + 'p -> q [label="\\u0000-\\uffff"] }', "a range of letters"),
    ("LTLf2DFA, labels", ".dot", S + ACCEPT + 'p -> q [label="~a & b"]; q -> q [label=true] }', "is a formula"),
    ("LTLf2DFA, negation", ".dot", S + ACCEPT + 'p -> p [label="~a"]; p -> q [label=a]; q -> q [label=true] }', "is a formula"),
    ("MONA, columns", ".dot", S + ACCEPT + 'p -> q [label="1,X"]; p -> p [label="0"] }', "a value that does not matter"),
    ("Spot, guards", ".dot", S + ACCEPT + 'p -> q [label="a & !b"] }', "is a formula"),
    ("Spot, disjunction", ".dot", S + ACCEPT + 'p -> q [label="a | b"] }', "is a formula"),
    ("ltl2ba, conjunction", ".dot", S + ACCEPT + 'p -> q [label="a && b"] }', "is a formula"),
    ("pyformlang, exports", ".dot", "digraph { 0 [is_start=True, is_final=False]; starting_0 [label=\"\", shape=None]; starting_0 -> 0; 1 [is_final=True, peripheries=2]; 0 -> 1 [label=ɛ]; 1 -> 1 [label=a] }", [("", True), ("a", True)]),
    ("pyformlang, pushdown automata", ".dot", S + ACCEPT + 'p -> q [label="a    Z -> AZ"] }', "a rewriting"),
    ("pyformlang, transducers", ".dot", S + ACCEPT + 'p -> q [label="a -> b"] }', "a rewriting"),
    ("textbook Turing machines", ".dot", S + 'p -> p [label="0/1,R"]; p -> q [label="1/0,L"] }', "a rewriting"),
    ("textbook pushdown automata", ".dot", S + ACCEPT + 'p -> q [label="a, Z → AZ"] }', "a rewriting"),
    ("libalf, start by an arrow from a blank node", ".dot", "digraph { node [shape=circle]; 0 [shape=doublecircle]; iq0 [style=invis]; iq0 -> 0; 0 -> 0 [label=1] }", [("1", True)]),
    ("mCRL2#589: default labels", ".dot", 'digraph { edge [label=t]; i [shape=point]; i -> p [label=""]; p -> q; q [peripheries=2] }', [("t", True)]),
    ("stateless#44: HTML labels with markup", ".dot", S + ACCEPT + "p -> q [label=<<b>a</b>>] }", [("a", True)]),
    ("mata#392: any letter in angle brackets", ".dot", S + ACCEPT + 'p -> q [label="<dcare>"] }', "a symbol for other letters"),
    ("libphorward#5: ranges of code points", ".dot", S + ACCEPT + 'p -> q [label="0x61 - 0x7a"] }', "a range of letters"),
    ("libphorward#5: ranges of characters", ".dot", S + ACCEPT + 'p -> q [label="&#x61; - &#x7a;"] }', "a range of letters"),
    ("graal#4569: sets of code points", ".dot", S + ACCEPT + 'p -> q [label="[x00-x60b-x7f]"] }', "a set of letters"),
    ("hoaf#38: marks of acceptance", ".dot", S + ACCEPT + 'p -> q [label="a\n{0}"] }', "an acceptance mark"),
    ("Spot, marks of acceptance in circles", ".dot", S + ACCEPT + 'p -> q [label="a\n⓿"] }', "an acceptance mark"),
    ("Spot, automata over infinite words", ".dot", 'digraph { label="Inf(0)\n[Büchi]"; I [style=invis]; I -> 0; 0 [peripheries=2]; 0 -> 0 [label=a] }', "an acceptance condition"),
    ("stateless#33: guards", ".dot", S + ACCEPT + 'p -> q [label="X [Function]"] }', "a guard or assignment"),
    ("umple#577: guards", ".dot", S + ACCEPT + 'p -> q [label="event [!getNoTransition()]"] }', "a guard or assignment"),
    ("PySimpleAutomata#7: a start named by root", ".dot", 'digraph { fake [style=invisible]; fake -> "p:1" [style=bold]; "p:1" [root=true]; "p:1" -> b [label=x]; b [shape=doublecircle] }', [("x", True), ("", False)]),
    ("textbook, unions of letters", ".dot", S + ACCEPT + 'p -> q [label="a ∪ b"] }', "is a formula"),
    # KISS2
    ("SIS, jedi/read.c: rows of any state", ".kiss2", ".i 1\n.o 1\n.r a\n0 ANY a 0\n1 a b 1\n1 b b 0\n", [("11", "0"), ("110", "0")]),
    ("MCNC benchmarks: outputs that do not matter", ".kiss2", ".i 1\n.o 2\n- a a -1\n", "any value"),
    ("MCNC benchmarks: rows after the end", ".kiss2", ".i 1\n.o 1\n- a a 1\n.e\n- b a 1\n", "stands after the end"),
    ("abc#123: tables within BLIF", ".kiss2", ".model\n.start_kiss\n.i 1\n.o 1\n- a a 1\n.end_kiss\n.end\n", "'.model' is not known"),
    # expressions
    ("noam#6: λ for the empty word", "regex", "0|(λ|1)*0", "'λ' at position 4"),
    ("brics#52: an empty class", "regex", "[]", "opens no class"),
    ("brics#52: an empty alternative", "regex", "(|a)", [("", True), ("a", True)]),
    ("brics#52: a class of one bracket", "regex", "[]]", [("]", True)]),
    ("IPED#2939: a class that is not closed", "regex", "foo[^ {3}b", "opens no class"),
    ("automata#128: the empty string", "regex", "()|ab", [("", True), ("ab", True), ("a", False)]),
    ("mata#48: classes of both cases", "regex", "[qQrR]*", [("qQ", True), ("R", True)]),
    ("mata#37: nested repetitions", "regex", "((aa)*)*(b)*", [("aab", True), ("ab", False), ("", True)]),
    ("Automa.jl#41: a backslash in a class", "regex", r"[x\\]", [("x", True), ("\\", True)]),
    # JFLAP
    ("automata-meow#19: states that are missing", ".jff", jff((0, 7, read("a"))), "which is not a state"),
    ("automata-meow#19: two states of one id", ".jff", jff((0, 1, read("a")), states='<state id="0"><initial/></state><state id="0"><final/></state>'), "is defined twice"),
    ("automata-meow#19: one transition twice", ".jff", jff((0, 1, read("a")), (0, 1, read("a"))), [("a", True), ("aa", False)]),
    ("JFLAP, two letters at one transition", ".jff", jff((0, 1, read("a") + read("b"))), "a second <read>"),
    ("JFLAP, marks within a label", ".jff", jff((0, 1, "<read>a<b/>c</read>")), "stands within <read>"),
    ("JFLAP, a final state marked by text", ".jff", jff((0, 1, read("a")), states='<state id="0"><initial/></state><state id="1"><final>false</final></state>'), "<final> marks the state"),
    ("JFLAP, outputs in an acceptor", ".jff", jff((0, 1, read("a") + "<transout>x</transout>")), "an edge of an acceptor has the output"),
    ("JFLAP, Moore machines with other outputs", ".jff", jff((0, 0, read("a") + "<transout>y</transout>"), kind="moore", states='<state id="0"><initial/><output>x</output></state>'), "has the output 'y'"),
    ("JFLAP, building blocks", ".jff", jff((0, 1, read("a"))).replace("</structure>", "<automaton/></structure>"), "a second <automaton>"),
    ("automata-meow#17: labels of several characters", ".jff", jff((0, 1, read("ab"))), [("ab", True), ("a", False), ("b", False)]),
    ("automata-meow#17: the same for Mealy machines", ".jff", jff((0, 0, read("ab") + "<transout>x</transout>"), kind="mealy"), "reads the label 'ab' as a word"),
    ("Turing-Lab#414: epsilon written out", ".jff", jff((0, 1, read("ε")), (1, 1, read("a"))), [("", True), ("a", True)]),
    ("JFLAP 7, ranges", ".jff", jff((0, 1, read("[0-9]"))), "a range of letters"),
    ("jsflap#9: pushdown automata", ".jff", jff((0, 1, read("a") + "<pop/><push>Z</push>"), kind="pda"), "type 'pda'"),
    ("JFLAP, λ written out", ".jff", jff((0, 1, read("λ")), (1, 1, read("a"))), [("", True)]),
    ("JFLAP, an empty label", ".jff", jff((0, 1, "<read/>"), (1, 1, read("a"))), [("", True)]),
    # OpenFst, foma, HFST
    ("pyfoma#33: epsilon is an empty field", ".att", "0\t1\t\t\n1\t1\ta\ta\n1\n", [("", True), ("a", True)]),
    ("hfst#143: a comma in weights", ".att", "0\t1\tt\tt\t0,000000\n1\t0,000000\n", [("t", True)]),
    ("hfst#226: flag diacritics", ".att", "0\t1\t@P.CASE.UP@\t@P.CASE.UP@\n1\t2\ta\ta\n2\n", "a flag diacritic"),
    ("hfst#349: flags without a value", ".att", "0\t1\t@R.first@\t@R.first@\n1\t2\ta\ta\n2\n", "a flag diacritic"),
    ("hfst, unknown symbols", ".att", "0\t1\t@_UNKNOWN_SYMBOL_@\ta\n", "a symbol for other letters"),
    ("hfst, identity", ".att", "0\t1\t@_IDENTITY_SYMBOL_@\t@_IDENTITY_SYMBOL_@\n1\n", "a symbol for other letters"),
    ("hfst, names of blanks", ".att", "0\t1\t@_SPACE_@\t@_SPACE_@\n1\n", [([" "], True)]),
    ("hfst, several transducers", ".att", "0\t1\ta\ta\n1\n--\n0\t1\tb\tb\n1\n", "another transducer"),
    ("foma, epsilon", ".att", "0\t1\t@0@\t@0@\n1\t2\ta\ta\n2\n", [("a", True), ("", False)]),
    ("pynini#72: weights for outputs", ".fst.txt", "0 1 a 0.5\n1 1 b 1.25\n1\n", "can be weights or outputs"),
    ("pynini#21: epsilon in other brackets", ".fst.txt", "0 1 <ε> <ε>\n1 2 a a\n2\n", [("a", True), ("", False)]),
    ("openfst#2: too many columns", ".fst.txt", "0 1 a b c d e\n", "7 fields"),
    ("lttoolbox#68: a tab at the end of lines", ".att", "0\t1\tc\tc\t0.000000\t\n1\t0.000000\t\n", [("c", True), ("cc", False)]),
    ("lttoolbox#60: negative states", ".att", "-1\t0\ta\ta\n0\n", [("a", True)]),
    ("hfst#426: identity beside letters", ".att", "0\t0\tk\tk\n0\t1\t@_IDENTITY_SYMBOL_@\t@_IDENTITY_SYMBOL_@\n1\n", "a symbol for other letters"),
    ("OpenFst, symbols of matchers", ".fst.txt", "0 1 <rho> <rho>\n1\n", "a symbol for other letters"),
]  # fmt: skip


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
