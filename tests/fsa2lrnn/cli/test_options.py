"""Options offer what the code takes, and importing them stays light."""

import subprocess
import sys
from typing import get_args


def test_options_load_typer_and_nothing_heavy():
    code = "import sys, fsa2lrnn.cli.options\nassert not {'torch', 'numpy', 'fsa2lrnn.automata'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_choices_are_those_of_the_code():
    from fsa2lrnn import compile as compiler
    from fsa2lrnn import repairing
    from fsa2lrnn.automata import language
    from fsa2lrnn.cli import options
    from fsa2lrnn.extraction import learned
    from fsa2lrnn.lower import DTYPES
    from fsa2lrnn.lrnn.layers import LAYERS, OURS, index
    from fsa2lrnn.lrnn.normalise import RULES
    from fsa2lrnn.lrnn.scans import GPU_METHODS, METHODS, TOKEN_METHODS
    from fsa2lrnn.training import data, settings

    assert get_args(options.Columns) == get_args(repairing.Columns)
    assert get_args(options.Completion) == get_args(language.Completion)
    assert get_args(options.Dtype) == tuple(str(dtype).removeprefix("torch.") for dtype in DTYPES)
    assert get_args(options.ExtractMethod) == ("closure", *learned.METHODS)
    assert get_args(options.Form) == get_args(compiler.Form)
    assert get_args(options.Init) == settings.INITS
    trained = [name for name, layer in LAYERS.items() if layer in OURS and not layer.Config.reads_letters]
    assert list(options.LAYERS) == trained
    assert get_args(options.Layout) == get_args(compiler.Layout)
    assert get_args(options.RepairMode) == (*get_args(repairing.Mode), "distil")
    assert get_args(options.Normalisation) == RULES
    assert get_args(options.Preset) == settings.PRESETS
    assert get_args(options.Sampler) == data.SAMPLERS
    scans = ("auto", *METHODS, *TOKEN_METHODS, *GPU_METHODS, *index.METHODS)
    assert get_args(options.Scan) == tuple(dict.fromkeys(scans))
    assert (options.NO, options.BAD_INPUT, options.INTERRUPTED) == (1, 2, 130)
