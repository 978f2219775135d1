.PHONY: demo test test-fast lint docs bench clean

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

lint:  ## format, style, types, layers
	@.ci/environment test lint
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

docs:  ## the documentation, warnings as errors
	@.ci/environment docs
	$(PYTHON) -m sphinx -W --keep-going -b html docs docs/_build/html

bench:  ## ratios against peers and floors, in one run
	@.ci/environment bench
	$(PYTHON) -m benchmarks

clean:
	rm -rf .venv docs/_build dist .pytest_cache .mypy_cache .ruff_cache
