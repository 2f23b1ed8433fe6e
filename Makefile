# `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: web-assets help run serve cluster reload setup setup-dev test test-all soak bench bench-seed chaos cache-test load locust lint format docs screenshots reference requirements package-tools image-check fresh-machine

PYTHON ?= python3
MANAGE := .venv/bin/python manage.py
PYTEST := .venv/bin/python -m pytest -n auto --dist loadgroup
PIN := .venv/bin/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --allow-unsafe
# Variables on make's command line, such as PORT=8001, are passed to programs as environment variables.
export PYTHON
# Some images set it. Each of the more than a thousand processes of the tests would then compile all modules of the project.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The values that mean true in the settings. The debug toolbar is a package for development.
run: $(if $(filter 1 t T true True TRUE on On ON y Y yes Yes YES,$(DEBUG)),setup-dev,setup) ## serve on 127.0.0.1, PORT=8000 by default, with an embedded PostgreSQL unless DATABASE_URL is set
	@exec $(MANAGE) run

serve: setup ## serve as in production: nginx, granian, gunicorn and PostgreSQL under supervisord
	@exec $(MANAGE) serve

cluster: setup ## serve from a cluster on this machine: PostgreSQL with Patroni, two hosts, two levels of Squid, Varnish; PORT=8000
	@exec .venv/bin/python -m deploy.cluster.local $(ARGS)

reload: setup ## load new code and settings into the running make serve without losing a request; reports whether it works
	@exec .venv/bin/python -m cdb.serving.reload

setup: ## create .venv with the pinned packages of the service
	@deploy/setup.sh requirements.txt

setup-dev: ## create .venv with the packages for development, too
	@deploy/setup.sh requirements-dev.txt

test: setup-dev ## run the quick tests with a real PostgreSQL, two to three minutes on two cores; ARGS='-k name' selects tests
	@$(PYTEST) $(ARGS)

# Two processes for each processor, because tests of whole services often wait.
test-all: setup-dev ## run all tests, also those of whole services; TESTS=tests/e2e selects a folder
	@$(PYTEST) -n $$(($$(nproc) * 2)) $(or $(TESTS),tests clients/python/tests) $(ARGS)

soak: setup-dev ## compare random histories and concurrent writers with the oracle for MINUTES=10, on all cores
	@.venv/bin/python -m tests.soak --minutes $(or $(MINUTES),10)

bench: setup-dev ## measure speed in turns, print ratios and write a report; ARGS=--quick takes 2 minutes instead of 15
	@exec .venv/bin/python -m loadtests.bench $(ARGS)

bench-seed: setup-dev ## compare the speed of seeding with that of COPY
	@exec .venv/bin/python -m loadtests.bench --only seed $(ARGS)

chaos: setup-dev ## cause faults under load and print their effect on clients; CLUSTER=1 does so in a cluster; ARGS=--quick is shorter
	@exec .venv/bin/python -m loadtests.chaos $(if $(CLUSTER),--cluster) $(ARGS)

cache-test: setup-dev ## measure what Squid and Varnish before a cluster save, and whether they are stale; ARGS=--quick is shorter
	@exec .venv/bin/python -m loadtests.caches $(ARGS)

load: setup-dev ## run a load test and write a report: CAMPAIGN=smoke by default, ARGS='--host URL' for a deployment
	@exec .venv/bin/python -m loadtests $(or $(CAMPAIGN),smoke) $(ARGS)

locust: setup-dev ## start locust's web UI for a running service: HOST=http://127.0.0.1:8000, WEB_PORT=8089
	@exec .venv/bin/python -m locust --locustfile loadtests/locustfile.py --host $(or $(HOST),http://127.0.0.1:$(or $(PORT),8000)) \
		--web-host 127.0.0.1 --web-port $(or $(WEB_PORT),8089) $(ARGS)

package-tools: ## download tools for the tests of the Helm chart and compose.yaml into .tools; needs Go
	@tests/packaging/tools.sh

image-check: setup-dev ## build the container images and run compose.yaml with them; needs root and podman
	@.venv/bin/python -m pytest -s deploy/container/image_check.py $(ARGS)

fresh-machine: ## run make run and make test in a minimal new Debian; ARGS='--suite trixie'; needs root and mmdebstrap
	@tests/packaging/fresh_machine.sh $(ARGS)

lint: setup-dev ## check style, layers of packages, types, and that no migration is missing
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@PYTHONPATH=clients/python .venv/bin/lint-imports
	@.venv/bin/mypy
	@$(MANAGE) makemigrations --check --dry-run
	@CDB_STRATEGIES=1 $(MANAGE) spectacular --validate --fail-on-warn --file /dev/null

format: setup-dev ## format the code
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

docs: setup-dev ## build the documentation site into site/, without network access
	@.venv/bin/python -m sphinx --quiet --fail-on-warning --keep-going docs site $(ARGS)
	@echo "The documentation is in site/index.html."

screenshots: setup-dev ## take the pictures of the documentation again (docs/*.png)
	@.venv/bin/python -m docs.screenshots

reference: setup-dev ## write the generated pages of the documentation (settings, commands and errors in docs/)
	@.venv/bin/python -m docs.reference

web-assets: ## fetch the style sheet and the script of the web pages from npm
	@deploy/web_assets.sh

requirements: setup-dev ## pin the newest versions that pyproject.toml permits
	@$(PIN) --upgrade --extra embedded --output-file requirements.txt pyproject.toml
	@$(PIN) --upgrade --constraint requirements.txt --output-file requirements-container.txt pyproject.toml
	@$(PIN) --upgrade --extra embedded --extra dev --constraint requirements.txt --output-file requirements-dev.txt pyproject.toml
	@echo uv | $(PIN) --upgrade --no-annotate --no-header --output-file deploy/uv.txt -
