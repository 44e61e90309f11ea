"""One file a verb: what it takes, and what it does with it. What is long stands beside this folder."""
