# Each target sets itself up on a machine with only Python 3.11 and make, and is quick the second time.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast lint format oracles beam clean

# Byte code makes `import tensorflow` three times faster, so a global switch against it is undone here.
unexport PYTHONDONTWRITEBYTECODE
export TF_CPP_MIN_LOG_LEVEL ?= 3
PYTHON ?= python3.11
# The last version with TensorFlow classes, whose files are read; in a folder of its own beside transformers 5.
TRANSFORMERS4 := transformers==4.57.1 huggingface_hub==0.36.0 tokenizers==0.22.1
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Tests of one file share models, so a file stays in one process; conftest.py puts the long files first.
PROCESSES ?= 2
PYTEST := -m pytest --numprocesses=$(PROCESSES) --dist=loadfile --no-loadscope-reorder

help:
	@echo "make demo     the whole path on the embedded sample, about five minutes on two slow cores (results in demo/)"
	@echo "make test     the tests that need nothing but the package (test-fast: without the slow ones)"
	@echo "make oracles  comparisons with transformers (5 and 4), Model Garden and JAX (installs them, with PyTorch)"
	@echo "make beam     records built with Apache Beam equal those of the local builder (an environment of its own)"
	@echo "make lint     ruff;  make format: ruff format"

demo: .venv/ready
	.venv/bin/python examples/demo.py --output=demo

test: .venv/ready
	.venv/bin/python $(PYTEST) -m "not oracle" $(PYTEST_FLAGS)

test-fast: .venv/ready
	.venv/bin/python $(PYTEST) -m "not oracle and not slow" $(PYTEST_FLAGS)

lint: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

format: .venv/ready
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# A skipped oracle has compared nothing: --strict-oracles makes a skip a failure.
oracles: .venv-oracles/ready
	.venv-oracles/bin/python $(PYTEST) tests/oracles -m oracle --strict-oracles $(PYTEST_FLAGS)

.venv/ready: setup.py constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/python $(PIP_INSTALL) --editable '.[dev]'
	touch $@

.venv-oracles/ready: setup.py constraints.txt
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python $(PIP_INSTALL) --editable '.[oracles]'
	.venv-oracles/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv-oracles/transformers4 $(TRANSFORMERS4)
	touch $@

# Beam 2.77 wants older versions of some packages than constraints.txt names.
beam: .venv-beam/ready
	.venv-beam/bin/python -m pytest tests/pipelines/test_beam_builder.py $(PYTEST_FLAGS)

.venv-beam/ready: setup.py constraints.txt
	$(PYTHON) -m venv .venv-beam
	sed -E '/^(protobuf|pillow|pyarrow|python-dateutil|sentencepiece)==/d' constraints.txt > .venv-beam/constraints.txt
	.venv-beam/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint .venv-beam/constraints.txt --editable '.[test,beam]'
	touch $@

clean:
	rm -rf .venv .venv-oracles .venv-beam demo build dist *.egg-info .pytest_cache .ruff_cache
