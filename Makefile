.PHONY: demo test test-long test-all test-fast test-lowest test-lm-eval lint docs docs-check \
	bench wheel release clean

# The tests run side by side: threads of linear algebra would only wait for each other, and take
# twice the processor time.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
# Tests start many processes: each would compile the package anew where none may be kept.
export PYTHONDONTWRITEBYTECODE :=

# Each kind of work has an environment of its own, so that none leans on what another installed.
PYTEST := .venv/bin/python -m pytest -n 2 --dist worksteal --durations=15
LINT := .venv-lint/bin
SPHINX := .venv-docs/bin/python -m sphinx -W --keep-going -j 2 -b html

demo:  ## evaluate and verify a published data set, from a bare machine
	@.ci/environment base
	@.venv/bin/bayesatk demo

test:  ## the tests, with sampling, but for the longest
	@.ci/environment test
	@.ci/browser
	$(PYTEST) -m "not long" --cov --cov-report=term:skip-covered

test-long:  ## the longest tests, which make test leaves out
	@.ci/environment test
	$(PYTEST) -m long $(PART)

test-all: test test-long  ## every test

test-fast:  ## without the sampling and the longest tests
	@.ci/environment test
	$(PYTEST) -m "not slow and not long"

test-lowest:  ## the fast tests with the lowest supported versions of the dependencies
	@.ci/lowest

test-lm-eval:  ## the metrics for lm-eval, in lm-eval itself
	@BAYESATK_VENV=.venv-lm-eval .ci/environment lm-eval
	.venv-lm-eval/bin/python -c "import lm_eval"
	.venv-lm-eval/bin/python -m pytest tests/io/test_lm_eval_metrics.py

lint:  ## format, style, types, layers
	@BAYESATK_VENV=.venv-lint .ci/environment lint
	$(LINT)/python -m ruff format --check .
	$(LINT)/python -m ruff check .
	$(LINT)/python -m mypy
	$(LINT)/lint-imports
	$(LINT)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(LINT)/check-jsonschema --builtin-schema vendor.github-workflows docs/gate_workflow.yml

docs:  ## the documentation, warnings as errors
	@BAYESATK_VENV=.venv-docs .ci/environment docs
	$(SPHINX) docs docs/_build/html

docs-check:  ## the same without running the code in it, which the tests do
	@BAYESATK_VENV=.venv-docs .ci/environment docs
	$(SPHINX) -q -D nb_execution_mode=off docs docs/_build/check

bench:  ## ratios against peers and floors, in one run
	@BAYESATK_VENV=.venv-bench .ci/environment bench
	.venv-bench/bin/python -m benchmarks --write docs/tables/speed.csv

wheel:  ## build it, install it in an empty environment, run the quick start of the README
	@.ci/wheel

release:  ## from a tag: the source and wheel files to publish, checked
	@.ci/release

clean:
	rm -rf .venv .venv-bench .venv-docs .venv-lint .venv-lowest .venv-release .venv-lm-eval .venv-wheel docs/_build dist .pytest_cache .mypy_cache .ruff_cache
