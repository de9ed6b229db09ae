# Needs GNU make 3.81 or newer and a POSIX shell; everything else it makes itself.
VENV ?= .venv
PYTHON ?=
ARGS ?=
# Processes of the suite side by side, each with servers of its own: one more than two cores, as they often wait. 0 for
# none but the one, e.g. under a debugger. They do not share a store or a broker that somebody named.
WORKERS ?= $(if $(REDIS_URL)$(TEST_BROKER),0,3)
BENCH ?= $(filter-out _%,$(basename $(notdir $(wildcard benchmarks/*.py))))
PY = $(VENV)/bin/python
ENVIRONMENT = PYTHON='$(PYTHON)' .ci/environment $(VENV)
# Commands that only read the project's settings are a developer's.
DEV = DEBUG=1 $(PY)
# Settings named by the caller's shell would be read before the test servers are up.
PYTEST = env -u DJANGO_SETTINGS_MODULE $(PY) -m pytest

# Where the shell sets it, each of the many processes would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test check lint format types floors django bench chaos docs package matrix audit requirements \
	runtime dev

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-22s%s\n", $$1, $$2}'

run: runtime ## Start everything: servers, web, worker, beat, simulator; Ctrl-C stops it
	@exec $(PY) -m project.supervisor

test: dev ## Run the suite on real PostgreSQL and Valkey (ARGS="-k name", TEST_STORE=redis)
	@$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: lint types floors django test ## What CI runs

lint: dev ## Look for mistakes and for unformatted code
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

format: dev ## Format the code and repair what can be repaired
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

types: dev ## Check types, strictly
	@$(DEV) -m mypy

floors: dev ## Check who imports whom
	@$(PY) $(VENV)/bin/lint-imports

django: dev ## Check settings, migrations and the API's description
	@DEBUG=0 SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(64))') ALLOWED_HOSTS=localhost \
		PAYMENTS_GATEWAY_URL=https://gateway.invalid PAYMENTS_WEBHOOK_SECRET=not-the-demo-value \
		IDEMPOTENCY_ENCRYPTION_KEYS=$$($(PY) -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())') \
		$(PY) manage.py check --deploy --fail-level WARNING
	@$(DEV) -m project.embedded manage.py makemigrations --check --dry-run
	@$(DEV) manage.py spectacular --validate --fail-on-warn --file /dev/null

chaos: dev ## Kill and freeze processes and servers for minutes
	@$(PYTEST) -m chaos $(ARGS)

bench: dev ## Measure, on throw-away servers (BENCH=herd for one of benchmarks/)
	@for name in $(BENCH); do echo "==> $$name"; \
		$(DEV) -m project.embedded -m benchmarks.$$name $(ARGS) || exit 1; done

docs: dev ## Make the reference pages from the code, and the HTML in site/
	@$(DEV) -m docs.reference
	@$(DEV) -m docs.site

package: dev ## Build the wheel of the reusable app
	@$(PY) -m uv --quiet build --out-dir dist

matrix: dev ## Try every Python, Django and PostgreSQL that is installed (ARGS="-s postgres15")
	@$(PY) -m nox $(ARGS)

audit: dev ## Ask for known vulnerabilities of what is pinned
	@$(PY) -m nox -s audit

requirements: dev ## Resolve requirements*.in into hashed requirements*.txt (ARGS=--upgrade)
	@$(UV_COMPILE) requirements.in --output-file requirements.txt
	@$(UV_COMPILE) requirements-dev.in --constraints requirements.txt --output-file requirements-dev.txt

# Universal: one file for every system and Python from 3.11; and it names no package index.
UV_COMPILE = UV_PYTHON_DOWNLOADS=never $(PY) -m uv --quiet pip compile --universal \
	--python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command 'make requirements' $(ARGS)

runtime:
	@$(ENVIRONMENT) requirements.txt

dev:
	@$(ENVIRONMENT) requirements-dev.txt
