"""How results are shown: `repr` of at most 200 characters, `str` on one line, cards for notebooks."""

import pytest

from fsa2lrnn import (
    MooreMachine,
    Proved,
    Refuted,
    Undecided,
    certify,
    check,
    choose,
    classify,
    compile_machine,
    compile_recurrence,
    decompose,
    extract,
    extract_learned,
    falsify,
    prove_equivalent,
    repair,
    represent,
    zoo,
)  # fmt: skip


@pytest.fixture(scope="module")
def results():
    machine = zoo.group("S3")
    model = compile_machine(machine)
    parity = zoo.sum_mod(2)
    other = MooreMachine(machine.delta, machine.outputs[::-1], machine.start, machine.alphabet)
    certificate = certify(model, machine)
    return {
        "proved": prove_equivalent(model, machine),
        "refuted": prove_equivalent(model, other),
        "undecided": falsify(model, machine),
        "certificate": certificate,
        "accepted": check(certificate, model),
        "classification": classify(machine),
        "witness": represent(parity, "diagonal[-1,1]"),
        "impossibility": represent(machine, "diagonal[-1,1]"),
        "repaired": repair(compile_machine(parity), parity),
        "extraction": extract_learned(compile_machine(parity)),
        "machine": extract(model),
        "recurrence": compile_recurrence(machine),
        "choice": choose(machine),
        "decomposition": decompose(machine),
        "cascade": decompose(machine).cascade,
    }


def test_every_result_is_short_and_on_one_line(results):
    texts = {name: (repr(value), str(value)) for name, value in results.items()}
    assert {name: len(text) for name, (text, _) in texts.items() if len(text) > 200 or "\n" in text} == {}
    assert {name: text for name, (_, text) in texts.items() if "\n" in text} == {}
    assert all(repr(results[name]).startswith(kind.__name__ + "(") for name, kind in
               {"proved": Proved, "refuted": Refuted, "undecided": Undecided}.items())  # fmt: skip


def test_a_verdict_says_its_claim(results):
    assert str(results["proved"]).startswith("proved: on every word of every length")
    failure = results["refuted"].failure
    assert str(results["refuted"]).endswith(f"the output is {failure.given[-1]}, not {failure.wanted[-1]}")
    assert str(results["certificate"]).startswith("certificate, to be checked: right on every word of ")
    assert str(results["impossibility"]).startswith("diagonal[-1,1]: no. ")
    assert str(results["classification"]).startswith("group: MooreMachine(6 states")


@pytest.mark.parametrize("name", ["classification", "witness", "impossibility", "proved"])
def test_results_are_cards_in_a_notebook(results, name):
    assert results[name]._repr_html_().startswith("<div style=")
