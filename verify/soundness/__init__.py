"""A test that no verdict claims too much: random models are verified, and run in every way that the verdict covers."""
