# Each target sets up its own environment when it is missing; pyproject.toml renews it.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-deep test-data mutants soak wheel check bench bench-quick docs clean

UV := $(shell command -v uv 2>/dev/null)
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV := .venv
BENCH_VENV := .venv-bench
# a file of exact versions and hashes to install instead of what pyproject.toml allows; CI has one
LOCK ?=
RUN := $(VENV)/bin/python
DATA ?= ../shared/data
SECONDS ?= 600
# stores call fsync by the thousand: files of tests lie in memory where that has 8 GB to spare
FILES := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 8000000 {print "/dev/shm"}')
export PYTEST_DEBUG_TEMPROOT := $(FILES)
# each of two processes has half of the tests, and takes half of what the other has left when it is done
TEST := $(RUN) -m pytest -q -n 2 --dist worksteal
# tests start processes by the thousand, none of which is to compile the package's text again
unexport PYTHONDONTWRITEBYTECODE
# what only runs with a compiler: the loader of kernels, and the code that it makes of columns of bits
MACHINE_TESTS := tests/machine/test_native.py tests/machine/test_kernel_cache.py tests/machine/test_shipped.py \
	tests/algorithms/test_supports.py::test_columns_are_summed_for_any_number_of_rows

help:
	@echo "make demo        install into .venv and count the triangles of a bundled real graph"
	@echo "make test        the tests (under 8 minutes on two cores)"
	@echo "make test-deep   long fuzzing, kills, coverage with the JIT off (under 25 minutes)"
	@echo "make test-data   count every graph of DATA=folder under every algorithm"
	@echo "make mutants     seed known bugs into a copy of the tree; the suite has to catch each (under 5 minutes)"
	@echo "make soak        random operations against what is true for SECONDS=600, memory watched"
	@echo "make wheel       a wheel with compiled kernels in dist/, tried in an environment of its own (under 3 minutes)"
	@echo "make check       ruff, ruff format, mypy, figures of the library"
	@echo "make bench       install the peers into .venv-bench and print the comparison table"
	@echo "make bench-quick every question to every CPU algorithm on small graphs (a minute); wrong answers fail"
	@echo "make docs        build the documentation into docs/_build/html; warnings are errors"

# $(1): the folder, $(2): what to install; with a lock, what that names and nothing else, each file by its hash
define create_venv
	@set -e; if [ -n "$(UV)" ]; then \
		"$(UV)" venv --quiet --allow-existing $(1); install="env VIRTUAL_ENV=$(1) $(UV) pip install --quiet"; \
	elif [ -n "$(PYTHON)" ]; then \
		$(PYTHON) -m venv $(1); install="$(1)/bin/python -m pip install --quiet --disable-pip-version-check"; \
		[ -n "$(LOCK)" ] || $$install --upgrade 'pip>=25.1'; \
	else \
		echo "wedgewise needs Python 3.11 or later with venv: apt-get install python3-venv"; exit 1; \
	fi; \
	if [ -n "$(LOCK)" ]; then \
		$$install --require-hashes --no-deps -r "$(LOCK)"; $$install --no-deps --no-build-isolation -e .; \
	else \
		$$install -e . $(2); \
	fi
	@touch $(1)/.stamp
endef

$(VENV)/.stamp: pyproject.toml $(LOCK)
	@echo "Setting up $(VENV) (once)"
	$(call create_venv,$(VENV),--group dev --group build)

$(BENCH_VENV)/.stamp: pyproject.toml
	@echo "Setting up $(BENCH_VENV) with the peers (once)"
	$(call create_venv,$(BENCH_VENV),--group bench)

demo: $(VENV)/.stamp
	@$(VENV)/bin/wedgewise doctor --warm
	@$(VENV)/bin/wedgewise demo

test: $(VENV)/.stamp
	$(TEST) -m "not deep and not data and not gpu"

test-deep: $(VENV)/.stamp
	$(TEST) -m "deep"
	NUMBA_DISABLE_JIT=1 $(TEST) -m "not deep and not data and not gpu and not compiled" --cov --cov-report=
	rm -rf .pytest_cache/kernels
	WEDGEWISE_CACHE=.pytest_cache/kernels $(RUN) -m pytest -q $(MACHINE_TESTS) --cov --cov-append --cov-report=
	PYTHONPATH=tests $(RUN) -m coverage_exceptions

test-data: $(VENV)/.stamp
	WEDGEWISE_DATA=$(DATA) $(RUN) -m pytest -q -m data

mutants: $(VENV)/.stamp
	PYTHONPATH=tests $(RUN) -m mutants

soak: $(VENV)/.stamp
	PYTHONPATH=tests $(RUN) -m soak --seconds $(SECONDS)

wheel: $(VENV)/.stamp
	rm -rf build/kernels dist
	$(RUN) tools/kernels.py build/kernels
	WEDGEWISE_KERNELS=build/kernels $(RUN) -m hatchling build -t wheel
	$(RUN) tools/try_wheel.py dist/*.whl $(LOCK)

check: $(VENV)/.stamp
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(RUN) tools/figures.py

bench: $(BENCH_VENV)/.stamp
	$(BENCH_VENV)/bin/wedgewise bench cpu $(addprefix --data ,$(wildcard $(DATA)/graphs)) \
		--output benchmarks/results/cpu-$$(date -u +%F).jsonl --tables benchmarks/results/cpu.md

bench-quick: $(VENV)/.stamp
	$(VENV)/bin/wedgewise bench smoke

docs: $(VENV)/.stamp
	$(RUN) tools/pages.py
	$(VENV)/bin/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) $(BENCH_VENV) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache
