"""Every claim of the paper comes to something, by propositions that are there or by what was measured."""

from verify import audit, measured
from verify.propositions import REGISTRY, Refuted

PROPOSITIONS = {proposition.id: proposition for proposition in REGISTRY}


def test_the_page_is_up_to_date():
    assert audit.FILE.read_text(encoding="utf-8") == audit.page()


def test_every_proposition_of_the_paper_belongs_to_a_claim():
    named = {name for claim in audit.CLAIMS for name in claim.by}
    assert named <= set(PROPOSITIONS)
    assert {name for name, proposition in PROPOSITIONS.items() if proposition.is_of_paper} <= named


def test_a_claim_is_reproduced_by_what_holds_and_refuted_by_what_does_not():
    for claim in audit.CLAIMS:
        refuted = [name for name in claim.by if PROPOSITIONS[name].expects is Refuted]
        if claim.kind == "reproduced":
            assert not refuted, claim.text
        if claim.kind == "refuted":
            assert refuted, claim.text
        assert (claim.measured is None) == (claim.command == "")


def test_without_results_everything_measured_is_unfinished(monkeypatch, tmp_path):
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    assert {claim.measured().kind for claim in audit.CLAIMS if claim.measured} == {"unfinished"}
