# `make demo` and `make test` need python3 and make, nothing else: each sets up its own environment first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?=
TABLES ?=
KINDS ?=
BUDGET ?= 600
COUNT ?=
SEED ?=
K ?= 15

.PHONY: demo test test-interop test-oldest test-newest audit licences wheel reproducible mutants lint types docs bench bench-full zoo torture fuzz reproduce reproduce-small clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: $(VENV)/installed  ## learn a graph of the digits, or of DATA=your_file.npy (or .csv), with K neighbours
	$(BIN)/smoothgraph demo -k $(K) $(DATA)

test: lint types  ## lint, types and tests
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/mypy

test-interop: $(VENV)/installed  ## the exports against the real torch, scanpy, umap, … (several gigabytes)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[interop]"
	$(BIN)/python -m pytest -m interop tests/test_interop.py tests/test_docs.py

test-oldest:  ## the tests with the oldest supported version of every dependency, in an environment of its own
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-oldest/bin/python -m pip install --quiet --constraint constraints-oldest.txt --editable ".[test]"
	$(VENV)-oldest/bin/python -m pytest --numprocesses 2 --dist worksteal

test-newest:  ## the tests with the newest version of every dependency; if they pass, constraints.txt has these versions
	$(PYTHON) -m venv $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable ".[test]"
	$(VENV)-newest/bin/python -m pytest --numprocesses 2 --dist worksteal
	$(VENV)-newest/bin/python tools/constraints.py constraints.txt

audit:  ## known weaknesses of the versions in constraints.txt, by pip-audit in an environment of its own
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --upgrade pip pip-audit
	$(VENV)-audit/bin/python tools/audit.py constraints.txt

licences: $(VENV)/installed  ## the licences of all run-time dependencies; the GPL only in extras
	$(BIN)/python tools/licences.py

wheel:  ## the wheel, in dist/
	$(PYTHON) -m venv $(VENV)-build
	$(VENV)-build/bin/python -m pip install --quiet --upgrade pip build
	$(VENV)-build/bin/python -m build --wheel --outdir dist

reproducible:  ## two builds of the wheel have the same bytes
	rm -rf build/first build/second
	$(MAKE) wheel && mkdir -p build && mv dist build/first
	touch src/smoothgraph/*.py
	$(MAKE) wheel && mv dist build/second
	cmp build/first/*.whl build/second/*.whl && sha256sum build/*/*.whl

mutants: $(VENV)/installed  ## faults put into the core on purpose: half an hour of a sample; survivors go to docs/mutants.json
	$(BIN)/python tools/mutants.py --minutes 30 --seed 0

docs: $(VENV)/installed  ## the documentation, in docs/_build/html; every warning is an error
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html

bench: $(VENV)/installed  ## side-by-side measurements; SMOOTHGRAPH_DATA names the folder with the data sets
	$(BIN)/python -m benchmarks

bench-full: bench  ## and those that take long, hours in all: the libraries of the field, and ten million samples, which need 20 GB
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[field]"
	$(BIN)/python -m benchmarks field complete ten_million

zoo: $(VENV)/installed  ## fit all tables of the zoo, or TABLES="wine page-patches", and write docs/zoo.md: an hour of one core
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[zoo]"
	PYTHONPATH=tests $(BIN)/python -m zoo $(TABLES)

torture: $(VENV)/installed  ## random problems, damaged files, kills, …: BUDGET seconds (or COUNT trials) of each of KINDS; docs/reliability.md
	PYTHONPATH=tests $(BIN)/python -m torture $(KINDS) --seconds $(BUDGET) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/installed  ## coverage-guided fuzzing of the readers with atheris, for BUDGET seconds
	$(BIN)/python -m pip install --quiet atheris
	PYTHONPATH=tests $(BIN)/python -m torture.fuzz $(BUDGET)

reproduce: $(VENV)/installed  ## every figure and table of the paper at its size: hours; what has been run is not run again
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[experiments]"
	$(BIN)/python -m experiments --full
	$(BIN)/python -m experiments report

reproduce-small: $(VENV)/installed  ## each of them at a size that takes seconds
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[experiments]"
	$(BIN)/python -m experiments --small

clean:
	rm -rf $(VENV) demo_output docs/_build docs/generated
