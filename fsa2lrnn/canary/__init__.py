"""Canary models: automata written into released models, which show at once when an inference stack loses its state.

A canary has one right token after every history. `check_model` runs it by every pattern of calls (with and without a
cache, in chunks, padded, packed, taken back …) and names the first wrong token with the altered history that explains
it.

>>> from fsa2lrnn.canary import check_model
>>> report = check_model("folder")                                # doctest: +SKIP
>>> report.wrong, report.explanations                             # doctest: +SKIP
(('packed-by-positions',), {'packed-by-positions': 'as if the state were that of other sequence 0, before …'})
"""

from fsa2lrnn.canary.report import CanaryReport, check_elsewhere, check_model

__all__ = ["CanaryReport", "check_elsewhere", "check_model"]
