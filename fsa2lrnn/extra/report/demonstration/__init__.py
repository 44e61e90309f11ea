"""Run the steps of `fsa2lrnn demo`: first on a compiled machine, then on a learned model."""
