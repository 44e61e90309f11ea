"""The command-line verbs of the extra "huggingface": `export`, `gates`, and parts of `explain`, `run`, `verify`."""
