"""What is said of submodules is refused where it is more than is so."""

from tests.fsa2lrnn.families.conftest import rejected
from tests.fsa2lrnn.families.forgeries import CERTIFICATES, with_value


def test_a_size_beyond_the_bound_is_refused():
    for name, fault in [
        ("chain, a field", "states 0 and 1 are told apart"),
        ("chain, several levels", r"kind \d has more copies above level \d than are listed|are told apart"),
        ("simple", "blocks of size 3 could hold all 3 functions"),
    ]:
        certificate = CERTIFICATES[name]
        size = int(certificate["family"][6:-1])
        rejected({**certificate, "family": f"block({size + 1})"}, fault)


def test_a_copy_that_comes_late_needs_its_reason():
    certificate = CERTIFICATES["chain, late copies"]
    (i,) = [i for i, copy_ in enumerate(certificate["copies"]) if copy_["late"] and copy_["late"]["parameters"]]
    late = certificate["copies"][i]["late"]
    for field, value, fault in [
        ("moves", [], "a copy comes after level"),
        ("moves", [[[1, []]]], "a move does not kill the parameters"),
        ("parameters", [], "there are other parameters than copies of the kind below"),
        ("element", [[1, []]], "no power of the element kills|kills more than a line"),
        ("function", late["parameters"][0], "a function is not in the submodule with its copy"),
    ]:
        rejected(with_value(certificate, ("copies", i, "late", field), value), fault)
    rejected(with_value(certificate, ("copies", i, "late"), None), "a copy comes after level . without a reason")
    for j, other in enumerate(certificate["copies"]):
        if not other["late"]:
            rejected(with_value(certificate, ("copies", j, "late"), late), "is not in the submodule|has a reason to be")
