# Population and housing forecasts. `make` lists the targets.
SHELL := /bin/sh
# Whatever the shell was told: hundreds of processes are started, which compile their modules once.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
# Written once what the demo needs is installed, which takes a third of the time.
RUNNABLE := $(VENV)/.runnable
ROUNDS := 10
# Optional: DuckDB's many small statements take a sixth less time with it.
JEMALLOC := $(firstword $(wildcard /usr/lib/*/libjemalloc.so.2 /usr/lib64/libjemalloc.so.2))

.DEFAULT_GOAL := help
.PHONY: help setup demo docs docs-pages test lint format bench bench-shapes bench-chart bench-peers soak containers clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## create .venv and install into it

demo: $(RUNNABLE) ## try the service: made-up figures for the whole country, a key, and lines to copy
	@exec $(VENV)/bin/forecast demo

docs: $(INSTALLED) ## build the documentation, and show it at http://localhost:8000 while you edit it
	@$(PY) -m config.build_docs
	@PYTHONPATH=$(CURDIR)/$(VENV)/docs exec $(PY) -m zensical serve

docs-pages: $(INSTALLED) ## write the pages of docs/ that come from the code
	@$(PY) -m tests.support.generated_pages

docs-pictures: $(INSTALLED) ## take the pictures of docs/ (needs Chromium)
	@$(PY) -m tests.browser.pictures

test: $(INSTALLED) ## run the tests (about 6 minutes on two cores)
	@LD_PRELOAD=$(JEMALLOC) $(PY) -m pytest

lint: $(INSTALLED) ## check style, strict types and import rules
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

format: $(INSTALLED) ## format the code, and fix what a tool can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: $(INSTALLED) ## compare with nginx, Varnish, Bun, libh2o, FastAPI, ROAPI and others (7 minutes; ROUNDS=20 for more)
	@$(PY) -m tests.bench compare --rounds $(ROUNDS) --json .bench.json

bench-shapes: $(INSTALLED) ## compare with nginx on every shape of traffic, each ratio beside its floor (15 minutes)
	@$(PY) -m tests.bench shapes --json .bench-shapes.json

bench-chart: $(INSTALLED) ## both, and keep the figures and the charts for the README
	@$(PY) -m tests.bench compare --rounds $(ROUNDS) --keep
	@$(PY) -m tests.bench shapes --keep

bench-peers: ## install the servers that bench compares with
	@sh tests/bench/peers/install.sh .bench

soak: $(INSTALLED) ## the long ones: faults again and again, more rounds, the whole country's demo, every answer held near, clients that go away, 10,000 requests made up from OpenAPI
	@$(PY) -m pytest -n 0 -s -m soak
	@$(PY) -m tests.bench compare --rounds 20 --seconds 3
	@$(PY) -m tests.bench held
	@$(PY) -m tests.bench cutoff
	@$(PY) -m pip install --disable-pip-version-check --quiet --no-compile --constraint constraints.txt --editable '.[conformance]'
	@CONFORMANCE_EXAMPLES=2500 $(PY) -m pytest -n 0 tests/conformance

containers: $(INSTALLED) ## build the image and run it, compose.yaml and the pods for Kubernetes on podman (needs Debian and root; about twelve minutes)
	@.ci/containers all

clean: ## remove everything that make created, including the demo's data
	@rm -rf $(VENV) .azurite .bench .bench.json .bench-shapes.json .forecast site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(INSTALLED): pyproject.toml constraints.txt config/setup.sh
	@sh config/setup.sh $(VENV) embedded,demo,traces,releases,dev

$(RUNNABLE): pyproject.toml constraints.txt config/setup.sh
	@sh config/setup.sh $(VENV) embedded,demo
