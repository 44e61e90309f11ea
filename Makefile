PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
READY := $(VENV)/.ready

# Tests start some hundred processes, each of which would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# `verify` is a folder too.
.PHONY: help demo test test-full test-all test-cpus verify soundness fuzz wheel-test lint docs coverage bench table2 tables clean

help:            ## what there is
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# What the demo needs is a third of what development does. Compiling all its modules would take two minutes; Python
# compiles those that are imported. The rest is compiled, as tests turn the warnings of a late compilation into errors.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --no-compile -e .
	@touch $@

$(READY): $(DEMO)
	$(INSTALL) -e '.[dev]'
	@touch $@

demo: $(DEMO)    ## the main job: compile ModArith(5), prove it, use it
	$(BIN)/fsa2lrnn demo

test: $(READY)   ## style and tests, a few minutes on two cores
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/pytest -q -n auto -m "not slow and not long"

test-full: $(READY) ## the tests of more than a second too, some ten minutes
	$(BIN)/pytest -q -n auto -m "not slow"

# PyTorch asks oneDNN which kernels there are: without its limit, ATen offers kernels that it then refuses.
with = env $(1) $(BIN)/pytest -q -n auto -m "not slow" && env $(1) $(BIN)/pytest -q -n auto -m slow tests/test_pages.py

test-cpus: $(READY) ## the tests and the long pages of the documentation, as six kinds of CPU compute them: an hour or two
	$(call with,MKL_CBWR=COMPATIBLE)
	$(call with,MKL_ENABLE_INSTRUCTIONS=SSE4_2)
	$(call with,NUMBA_CPU_NAME=generic)
	$(call with,ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2)
	$(call with,ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41)
	$(call with,MKL_CBWR=COMPATIBLE NUMBA_CPU_NAME=generic ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41)

verify: $(READY) ## the propositions, the paper's and ours: thousands of cases each
	$(BIN)/python -m verify --deep

test-all: $(READY) ## the long checks too, with 2,000 examples a property
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest -q -n auto

wheel-test: $(READY) ## the wheel, built, installed and used beside folders of the same names
	$(BIN)/pytest -q tests/test_wheel.py

soundness: $(READY) ## 600 drawn models judged, and run in every way that the verdicts cover: an hour or so
	$(BIN)/python -m verify.soundness

fuzz: $(READY)   ## 100,000 hostile files for all readers; FUZZ_INPUTS and FUZZ_SEED ask for others
	$(BIN)/pytest -q -m slow tests/fuzz

lint: $(READY)   ## style, types and which package may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

docs: $(READY)   ## the documentation as a site that opens from disk, site/index.html; a broken link is an error
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --quiet -f docs/site/mkdocs.yml

coverage: $(READY) ## tests with branch coverage
	$(BIN)/pytest -q -n auto -m "not slow" --cov --cov-report=term-missing:skip-covered

bench: $(READY)  ## measure scans, steps and machines on this CPU; then the tables of results
	$(BIN)/python -m experiments.benchmarks.scans
	$(BIN)/python -m experiments.benchmarks.steps
	$(BIN)/python -m experiments.readme

table2: $(READY) ## Table 2 of the paper, whole, in runs/table2: days of one core; goes on where it stopped
	$(BIN)/python -m experiments.studies.table2 runs/table2
	$(BIN)/python -m experiments.readme

tables: $(READY) ## families and cascades again, proofs and all; then the tables of results
	$(BIN)/python -m experiments.studies.families
	$(BIN)/python -m experiments.studies.cascades
	$(BIN)/python -m experiments.studies.released
	$(BIN)/python -m experiments.readme
	$(BIN)/python -m experiments.coverage

clean:           ## remove the environment, caches and the site
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis site
