# Every target makes what it needs; `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# With pip >= 25.1 the tools come from pyproject.toml's dependency groups.
STAMP := $(VENV)/.stamp

.PHONY: demo test lint bench docs clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), f"popf needs Python 3.11 or newer, this is {sys.version}"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(STAMP)-package: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[cli,plot,networkx]"
	touch $@

$(STAMP)-%: $(STAMP)-package
	$(BIN)/python -m pip install --quiet --group $*
	touch $@

demo: $(STAMP)-package
	$(BIN)/python -m popf demo --out build/demo

# One process for each core, each with one thread of BLAS, and neighbours together: they share fixtures.
test: $(STAMP)-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal $(ARGS)

lint: $(STAMP)-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

bench: $(STAMP)-bench
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(STAMP)-docs
	$(BIN)/python -m benchmarks.page
	rm -rf docs/api/generated  # pages of names that are gone
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build docs/_build docs/api/generated docs/auto_examples .pytest_cache .mypy_cache .ruff_cache .hypothesis
