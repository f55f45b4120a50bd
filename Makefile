# Every target makes what it needs: `make demo` and `make test` work in a fresh clone.
PYTHON ?= python3
VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
LIGHT_BIN := .venv-light/Scripts
SHELL := bash
else
BIN := $(VENV)/bin
LIGHT_BIN := .venv-light/bin
endif
# requirements.lock holds hashes of everything but torch, and of nothing that only another system needs (colorama on
# Windows): the line after it installs what is left, by version.
# The CPU build of torch: the ordinary one brings gigabytes of CUDA. Where no configured index has it, it comes from
# PyTorch's own, and where that is out of reach, too, PyPI's ordinary one must do.
TORCH := torch==2.13.0
TORCH_INDEX := https://download.pytorch.org/whl/cpu
INSTALLED := $(VENV)/.installed
DEMO := $(VENV)/.demo
LIGHT := .venv-light
# Bytecode is kept even where the environment says otherwise: test processes start sooner with it.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install demo test test-long test-data test-slow test-browser test-light test-native check format lock audit bench breakages docs torture clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(INSTALLED)  ## Make the virtual environment and install everything into it

# What the environment is made by: its python is python.exe on Windows, so the settings file stands for both.
$(VENV)/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pegfan needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml constraints.txt requirements.lock | $(VENV)/pyvenv.cfg
	$(BIN)/pip install --quiet '$(TORCH)+cpu' \
	  || $(BIN)/pip install --quiet '$(TORCH)' --index-url $(TORCH_INDEX) \
	  || $(BIN)/pip install --quiet '$(TORCH)'
	$(BIN)/pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[all,dev,docs]'
	touch $@ $(DEMO)

$(DEMO): pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[plots]'
	touch $@

$(LIGHT)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT_BIN)/pip install --quiet --constraint constraints.txt --editable . hypothesis pytest
	touch $@

demo: $(DEMO)  ## A signal taken apart, denoised and put together; then PEGFAN against FSGNN. Needs no torch
	$(BIN)/pegfan demo

test: $(INSTALLED)  ## The quick self-contained tests and every example in a docstring
	$(BIN)/pytest -n 2 --dist loadfile -m 'not long' --doctest-modules tests/unit src/pegfan

test-long: $(INSTALLED)  ## What the quick loop leaves out: whole trainings, kills, other processes, 200 examples per property
	PEGFAN_HYPOTHESIS=long $(BIN)/pytest -n 2 -m 'long or hypothesis' tests/unit

test-light: $(INSTALLED) $(LIGHT)/.installed  ## The plain installation, without torch and the other extras
	PEGFAN_FULL=$(abspath $(BIN)/python) $(LIGHT_BIN)/pytest tests/light

test-data: $(INSTALLED)  ## Tests on real data: make test-data PEGFAN_DATA=folder
	$(BIN)/pytest -n 2 --dist loadfile tests/data

test-slow: $(INSTALLED)  ## Long sweeps: many more random examples, large trees
	PEGFAN_HYPOTHESIS=thorough $(BIN)/pytest -n 2 tests/unit tests/slow

test-browser: $(INSTALLED)  ## The report in a real browser, the system's Chromium
	$(BIN)/pytest tests/browser

# The package is built anew beside the installed one, which stays as it is. torch throws exceptions of C++, which the
# sanitizer only finds where their library is loaded with it.
SANITIZED := build/sanitized
NATIVE_TESTS := arrays batches boosting channels coded extend frames hierarchy label_channels large_tree leading loops \
  matrices matrix_loops measures models_networks nn numbers project readers relations system training training_loops \
  tree_loops trees weights
test-native: $(INSTALLED)  ## The C extension under the address and undefined-behaviour sanitizers; Linux with gcc
	rm -rf $(SANITIZED)
	PEGFAN_SANITIZE=1 $(BIN)/python setup.py -q build --build-base build/native --build-lib $(SANITIZED)
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONPATH=$(abspath $(SANITIZED)) \
	  $(BIN)/pytest -n 2 --dist loadfile -p no:cacheprovider -m 'not long' $(NATIVE_TESTS:%=tests/unit/test_%.py)

check: $(INSTALLED)  ## Lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/rooms.py

format: $(INSTALLED)  ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(INSTALLED)  ## After changing a dependency: write constraints.txt and requirements.lock from what is installed
	$(BIN)/python tools/supply.py lock

audit: $(INSTALLED)  ## Known holes in what is pinned, where a database is in reach
	$(BIN)/python tools/supply.py audit

bench: $(INSTALLED)  ## Speed and memory, as ratios inside one run; writes benchmarks/RESULTS.md: make bench PEGFAN_DATA=folder
	$(BIN)/python benchmarks/results.py

MINUTES ?= 30
SEED ?= 0
torture: $(INSTALLED)  ## Kills, full disks, damaged files, bad arguments; Linux only: make torture MINUTES=30 SEED=0 ONLY='kill|disk'
	PYTHONPATH=tests $(BIN)/python -m torture --minutes $(MINUTES) --seed $(SEED) --only '$(ONLY)' --keep

breakages: $(INSTALLED)  ## Break the source line by line in a copy, and see that tests catch it: make breakages ONLY='trees|graph'
	$(BIN)/python tools/breakages.py --only '$(ONLY)'

docs: $(INSTALLED)  ## Build the documentation; warnings are errors
	$(BIN)/sphinx-build -E -W --keep-going -n -b html docs docs/_build/html
	@echo 'Open docs/_build/html/index.html'

clean:  ## Remove the environment and caches
	rm -rf $(VENV) $(LIGHT) build demo docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
