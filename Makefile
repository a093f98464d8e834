# Population and housing forecasts. `make` lists the targets.
SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## create .venv and install into it

demo: $(INSTALLED) ## serve an illustrative release of the whole country, with a key and lines to copy
	@exec $(VENV)/bin/forecast demo

test: $(INSTALLED) ## run the tests (at most 5 minutes)
	@$(PY) -m pytest

lint: $(INSTALLED) ## style, strict types, import rules
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

format: $(INSTALLED) ## rewrite the style that a machine can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: $(INSTALLED) .bench/.installed ## requests per second beside a peer, in one run (needs wrk)
	@$(PY) -m tests.bench

clean: ## remove what make created, the demo's data included
	@rm -rf $(VENV) .bench .forecast .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.bench/.installed: tests/bench/requirements.txt
	@$(PY) -m venv .bench
	@.bench/bin/python -m pip install --disable-pip-version-check --quiet -r $<
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt config/setup.sh
	@sh config/setup.sh $(VENV)
