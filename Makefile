# Every command of the project. Needs Python 3.11+, make and a package registry; everything else is fetched.
# `make` alone lists the commands.

PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
KILLS  ?= 0
unexport PYTHONDONTWRITEBYTECODE  # compiled files make every later start faster
RECORDS ?= 10000
PUSHES  ?= 100000
CANARIES ?= 2000
ONLY   ?=
RUN    := $(VENV)/.run-installed
DEV    := $(VENV)/.dev-installed
BENCH  := $(VENV)/.bench-installed
PIP    := $(PY) -m pip --disable-pip-version-check --quiet
LOCK   := CUSTOM_COMPILE_COMMAND="make lock" $(VENV)/bin/pip-compile --quiet --generate-hashes --strip-extras \
          --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options
GROUP   = $(PY) -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["$(1)"]))'

.PHONY: help setup test test-again test-fast check lint formatted types layers ledger format demo chaos fuzz fuzz-channels bench eval-understanding eval-privacy stores up-stores mutants requirements cases budget docs lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN): requirements.lock pyproject.toml | $(PY)
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements-dev.lock $(RUN)
	$(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

$(BENCH): requirements-bench.lock $(DEV)
	$(PIP) install --require-hashes --requirement requirements-bench.lock
	@touch $@

setup: $(RUN) $(DEV) ## make .venv from the locked requirements

test: $(DEV) ## all tests: in memory, then on a real broker
	$(PY) -m pytest

test-again: $(DEV) ## the tests that failed in the last run, with the same seed
	$(PY) -m pytest --last-failed --last-failed-no-failures none --randomly-seed=last

test-fast: $(DEV) ## the in-memory tests but the thorough ones, under 10 s
	$(PY) -m pytest -n auto -m "not kafka and not slow"

check: lint formatted types layers budget ledger ## all gates; `make -k check` shows all that is wrong

lint: $(DEV)
	$(VENV)/bin/ruff check .

formatted: $(DEV)
	$(VENV)/bin/ruff format --check --quiet .

types: $(DEV)
	$(VENV)/bin/mypy

layers: $(DEV)
	$(VENV)/bin/lint-imports --no-logo

ledger: $(DEV)
	@$(PY) -m tests.quality.ledger

format: $(DEV) ## rewrite the code in the project's format
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

demo: $(RUN) ## play the scripted conversations on a real broker and compare
	$(VENV)/bin/interlock demo

chaos: $(DEV) ## kill -9 at the named points; KILLS=200 adds random kills
	$(PY) -m tests.chaos.run --kills $(KILLS) --only "$(ONLY)"

fuzz: $(DEV) ## rubbish on every input topic
	$(PY) -m tests.fuzz.run --records $(RECORDS)

fuzz-channels: $(DEV) ## generated and mutated pushes of every channel; PUSHES=100000 is the full run
	$(PY) -m tests.fuzz.channels --records $(PUSHES)

bench: $(BENCH) ## the speed figures; ONLY=name,name runs some, WRITE=1 writes docs/performance.md
	$(PY) -m bench.run --only "$(ONLY)" $(if $(WRITE),--write)

eval-understanding: $(DEV) ## accuracy of understanding on the public data in ../shared/data; ONLY=name,name runs some
	$(PY) -m bench.evals.run --only "$(ONLY)"

stores: $(RUN) ## fetch Neo4j and build Weaviate (needs Go) into the user's cache, once
	$(VENV)/bin/interlock stores fetch

up-stores: $(RUN) ## run both on loopback, and print the variables that make Interlock use them
	$(VENV)/bin/interlock stores up

eval-privacy: $(DEV) ## sensitive values through the whole system: none readable, all given back, gone when forgotten
	$(PY) -m bench.privacy.run --canaries $(CANARIES)

mutants: $(DEV) ## break each promise on purpose; its test must fail
	$(PY) -m tests.promises.mutants

requirements: $(DEV) ## each requirement and case with the tests that name it
	@$(PY) -m tests.quality.ledger --list

budget: $(DEV) ## sizes, comments and docstrings against the budget
	@$(PY) -m tests.quality.budget

docs: $(DEV) ## write the generated parts of the documentation again
	$(PY) -m tests.quality.docs

lock: $(DEV) ## resolve the requirements again, with hashes
	$(LOCK) --build-deps-for editable --output-file requirements.lock pyproject.toml
	$(call GROUP,dev) | $(LOCK) --constraint requirements.lock --output-file requirements-dev.lock -
	$(call GROUP,bench) | $(LOCK) --constraint requirements.lock --constraint requirements-dev.lock \
	    --output-file requirements-bench.lock -

clean: ## remove the environment and all local data
	rm -rf $(VENV) .interlock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
