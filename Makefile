.PHONY: demo test test-fast test-lowest lint docs docs-check bench wheel clean

PYTHON := .venv/bin/python

demo:  ## evaluate and verify a published data set, from a bare machine
	@.ci/environment base
	@.venv/bin/bayesatk demo

test:  ## every test, the slow statistical ones included
	@.ci/environment test
	@.ci/browser
	$(PYTHON) -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered

test-fast:  ## without the sampling and statistical tests
	@.ci/environment test
	$(PYTHON) -m pytest -n 2 --dist worksteal -m "not slow"

test-lowest:  ## the fast tests with the lowest supported versions of the dependencies
	@.ci/lowest

lint:  ## format, style, types, layers
	@.ci/environment test lint
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

docs:  ## the documentation, warnings as errors
	@.ci/environment docs
	$(PYTHON) -m sphinx -W --keep-going -b html docs docs/_build/html

docs-check:  ## the same without running the code in it, which the tests do
	@.ci/environment docs
	$(PYTHON) -m sphinx -q -W --keep-going -D nb_execution_mode=off -b html docs docs/_build/check

bench:  ## ratios against peers and floors, in one run
	@BAYESATK_VENV=.venv-bench .ci/environment bench
	.venv-bench/bin/python -m benchmarks --write docs/benchmarks.md

wheel:  ## build it, install it in an empty environment, run the quick start of the README
	@.ci/wheel

clean:
	rm -rf .venv .venv-bench .venv-lowest .venv-wheel docs/_build dist .pytest_cache .mypy_cache .ruff_cache
