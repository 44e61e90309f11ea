"""The steps of `fsa2lrnn demo`: first with a compiled machine, then with a learned model."""
