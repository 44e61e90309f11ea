"""Options are compared with the originals in test_cli; here, that importing them stays light."""

import subprocess
import sys


def test_options_load_typer_and_nothing_heavy():
    code = "import sys, fsa2lrnn.cli.options\nassert not {'torch', 'numpy', 'fsa2lrnn.automata'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
