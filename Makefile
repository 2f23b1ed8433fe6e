# make help lists what there is.
.DEFAULT_GOAL := help
.PHONY: help run serve reload setup setup-dev test test-all soak bench bench-seed chaos load lint format reference requirements package-tools image-check fresh-machine

PYTHON ?= python3
MANAGE := .venv/bin/python manage.py
PYTEST := .venv/bin/python -m pytest -n auto --dist loadgroup
PIN := .venv/bin/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --allow-unsafe
# What is given on make's command line, such as PORT=8001, reaches the programs as an environment variable by itself.
export PYTHON
# Some images set it. Each process, of which the tests start more than a thousand, would compile all modules of the project.
unexport PYTHONDONTWRITEBYTECODE

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The words that the settings take for true; the toolbar is among the packages for development.
run: $(if $(filter 1 t T true True TRUE on On ON y Y yes Yes YES,$(DEBUG)),setup-dev,setup) ## serve on 127.0.0.1, PORT=8000 by default, with an embedded PostgreSQL unless DATABASE_URL is set
	@exec $(MANAGE) run

serve: setup ## the same as in production: nginx, two gunicorn instances, PgBouncer
	@exec $(MANAGE) serve

reload: setup ## put new code and settings into the running make serve, without losing a request; says whether they respond
	@exec $(MANAGE) reload

setup: ## make .venv with the pinned packages of the service
	@deploy/setup.sh requirements.txt

setup-dev: ## the same with the packages for development
	@deploy/setup.sh requirements-dev.txt

test: setup-dev ## run the quick tests against a real PostgreSQL, in three minutes; ARGS='-k name' selects
	@$(PYTEST) $(ARGS)

# Services that start, stop and wait for a time limit leave processors idle, so there are two processes for each processor.
test-all: setup-dev ## run all tests, with whole services and more random examples; TESTS=tests/e2e takes one folder
	@$(PYTEST) -n $$(($$(nproc) * 2)) --hypothesis-profile=full $(or $(TESTS),tests) $(ARGS)

soak: setup-dev ## play random histories and races of writers for MINUTES=10, on every core, against the oracle
	@.venv/bin/python -m tests.soak --minutes $(or $(MINUTES),10)

bench: setup-dev ## measure speed and how cost grows, and write a report; ARGS=--quick takes two minutes instead of twenty
	@exec .venv/bin/python -m loadtests.bench $(ARGS)

bench-seed: setup-dev ## measure seeding alone, against a bare COPY
	@exec .venv/bin/python -m loadtests.bench --only seed $(ARGS)

chaos: setup-dev ## put faults into the service under load, and print what its clients saw; ARGS=--quick is shorter
	@exec .venv/bin/python -m loadtests.chaos $(ARGS)

load: setup-dev ## put load on the service and report: CAMPAIGN=smoke by default, ARGS='--host URL' for a deployment
	@exec .venv/bin/python -m loadtests campaign $(or $(CAMPAIGN),smoke) $(ARGS)

package-tools: ## fetch what the tests of the chart and of compose.yaml need, into .tools; needs Go
	@tests/packaging/tools.sh

image-check: setup-dev ## build the container images from Debian's packages, and run compose.yaml with them; needs root and podman
	@.venv/bin/python -m pytest -s tests/packaging/image_check.py $(ARGS)

fresh-machine: ## run make run and make test in a minimal Debian made for it; ARGS='--suite trixie', needs root and mmdebstrap
	@tests/packaging/fresh_machine.sh $(ARGS)

lint: setup-dev ## check style, the layers of the packages, types, and that no migration is missing
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/lint-imports
	@.venv/bin/mypy
	@$(MANAGE) makemigrations --check --dry-run
	@CDB_STRATEGIES=1 $(MANAGE) spectacular --validate --fail-on-warn --file /dev/null

format: setup-dev ## put the code into the project's style
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

reference: setup-dev ## write the generated pages of the documentation: docs/settings.md
	@.venv/bin/python -m cdb.reference

requirements: setup-dev ## pin the newest versions that pyproject.toml allows
	@$(PIN) --upgrade --extra embedded --output-file requirements.txt pyproject.toml
	@$(PIN) --upgrade --constraint requirements.txt --output-file requirements-container.txt pyproject.toml
	@$(PIN) --upgrade --extra embedded --extra dev --constraint requirements.txt --output-file requirements-dev.txt pyproject.toml
