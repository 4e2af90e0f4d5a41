# One word per job. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The newest interpreter that the lock files were made for.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
ADDRESS ?=
NODES ?= 8
PODS ?= 40

UNIT_TESTS = $(filter-out tests/services tests/browser tests/oracle tests/cluster tests/deploy tests/node,$(patsubst %/,%,$(sort $(dir $(wildcard tests/*/.)))))
OURS = numacore numaagent numasim numaweb monitoring policies

# A process for each CPU, each with its own database and folders; the tests of a file stay together. The other parts share servers.
BESIDE ?= -n auto --dist loadfile --no-loadscope-reorder

say = printf '\033[1m== %s\033[0m\n' "$(1)"

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- run

.PHONY: run
run: env assets messages ## this machine and a simulated cluster on port 30881 (ADDRESS=host:port)
	@$(call say,Starting numaweb; Ctrl-C ends everything)
	if [ -n "$(ADDRESS)" ]; then
		address="$(ADDRESS)"
		export NUMAWEB_LISTEN="$${address%:*}" NUMAWEB_PORT="$${address##*:}"
	fi
	exec $(BIN)/python manage.py local

.PHONY: cluster
cluster: env assets messages ## a real Kubernetes control plane with played nodes and numaweb on it, until Ctrl-C (NODES=8 PODS=40)
	@exec $(BIN)/python -m tests.cluster --nodes $(NODES) --pods $(PODS) --listen "$(or $(ADDRESS),0.0.0.0:30881)"

# ---------------------------------------------------------------- what everything stands on

PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes

.PHONY: env
env: .venv/.stamp ## Python environment from the lock file

.venv/.stamp: requirements/dev.txt
	@$(call say,Python environment (.venv) from requirements/dev.txt)
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version)'
	[ -x $(BIN)/python ] || "$(PYTHON)" -m venv .venv
	awk '/^[a-z0-9]/ { ours = /^uv==/ } ours' requirements/dev.txt > .venv/uv.txt
	$(PIP) -r .venv/uv.txt
	# uv takes seconds where pip takes minutes; pip knows more kinds of proxies and mirrors.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements/dev.txt \
		|| $(PIP) -r requirements/dev.txt
	touch $@

.PHONY: assets
assets: static/dist/.stamp ## style sheets and scripts of the pages (static/dist)

node_modules/.stamp: package.json package-lock.json .npmrc
	@$(call say,Browser packages (node_modules) from package-lock.json)
	npm ci --ignore-scripts --loglevel=error
	touch $@

# The style sheet has the rules for classes that these name.
NAMING = $(shell find static/src templates monitoring policies numaweb -type f -name '*.html' -o -name '*.py' -o -path 'static/src/*' 2>/dev/null)

static/dist/.stamp: node_modules/.stamp static/build.mjs $(NAMING)
	@$(call say,Bundles for the browser (static/dist))
	node static/build.mjs
	touch $@

CATALOGUES = $(wildcard locale/*/LC_MESSAGES/*.po)

.PHONY: messages
messages: $(CATALOGUES:.po=.mo) ## compile the translations

%.mo: %.po | .venv/.stamp
	@$(BIN)/python -c 'import sys, polib; polib.pofile(sys.argv[1]).save_as_mofile(sys.argv[2])' $< $@
	echo "  $@"

# ---------------------------------------------------------------- checks

.PHONY: format
format: env ## put all Python into the common form
	@$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: lint
lint: env messages ## form, types, import contracts, translations
	@status=0
	$(call say,Form)
	$(BIN)/ruff format --check --output-format=concise . || status=1
	$(BIN)/ruff check --output-format=concise . || status=1
	$(call say,Types)
	$(BIN)/mypy || status=1
	$(call say,Import contracts)
	$(BIN)/lint-imports --no-logo || status=1
	$(call say,Translations)
	$(BIN)/python -m pytest --quiet tests/architecture/test_translations.py || status=1
	exit $$status

.PHONY: services
services:
	@tests/install-services.sh

.PHONY: test test-all
test: ## everything that a commit must pass
test-all: ## that, and all tests on a real node
test: PARTS = lint test-unit test-oracle test-cluster test-deploy test-node-short test-services test-browser
test-all: PARTS = lint test-unit test-oracle test-cluster test-deploy test-node test-services test-browser
test-all: export NUMAAGENT_KILL_GAP = 1
test test-all: env assets messages services
	@failed=
	for part in $(PARTS); do
		$(MAKE) $$part || failed="$$failed $$part"
	done
	[ -z "$$failed" ] || { $(call say,Failed:$$failed); exit 1; }

.PHONY: test-unit
test-unit: env messages ## tests that need no service
	@$(BIN)/python -m pytest $(BESIDE) $(UNIT_TESTS)

.PHONY: test-oracle
test-oracle: env ## the engine beside the kubelet's own managers, a Go program (its first build takes minutes)
	@$(BIN)/python -m pytest tests/oracle

.PHONY: test-cluster
test-cluster: env services ## tests on a real Kubernetes control plane (Go programs, whose first build takes minutes)
	@$(BIN)/python -m pytest tests/cluster

.PHONY: test-deploy
test-deploy: env ## the chart with the real helm on a real API server (Go programs, whose first build takes minutes)
	@$(BIN)/python -m pytest tests/deploy

.PHONY: test-node
test-node: env messages services ## tests on an emulated node with a real kubelet, containerd and systemd (its first boot takes minutes)
	@$(BIN)/python -m pytest tests/node

.PHONY: test-node-short
test-node-short: env messages services ## of those one of each kind; a machine that cannot emulate a node skips them by name
	@NUMAWEB_TEST_NODE=optional $(BIN)/python -m pytest tests/node -m short

.PHONY: test-services
test-services: env messages services ## tests on real PostgreSQL, Redis, Celery and Prometheus
	@$(BIN)/python -m pytest tests/services

.PHONY: test-browser
test-browser: env assets messages services ## tests in Chromium
	@$(BIN)/python -m pytest tests/browser

# ---------------------------------------------------------------- now and then

CHART_VERSION ?= 0.0.0-latest
APP_VERSION ?= openFuyao-v25.09

.PHONY: chart
chart: env ## the chart as a package in build/out (CHART_VERSION=0.0.0-latest APP_VERSION=openFuyao-v25.09)
	@helm=$$(command -v helm || $(BIN)/python -m tests.deploy)
	"$$helm" package charts/volcano-config-service -u --version=$(CHART_VERSION) --app-version=$(APP_VERSION) -d build/out

.PHONY: bench
bench: env assets messages services ## load and speed as ratios, takes minutes
	@$(BIN)/python -m benchmarks

.PHONY: fuzz
fuzz: env ## fresh random cases for the core, the parsers, the agent's readers and a kubelet's settings, takes minutes
	@NUMAAGENT_KILL_GAP=1 $(BIN)/python -m pytest tests/numacore tests/numaagent --hypothesis-profile=fuzz --timeout=900
	$(BIN)/python -m tests.oracle --cases 5000
	$(BIN)/python -m tests.oracle.settings --cases 5000

.PHONY: screenshots
screenshots: env assets messages services ## the pictures in docs/screenshots
	@$(BIN)/python -m tests.browser.screenshots

COMPILE = $(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --no-header pyproject.toml

.PHONY: lock
lock: env ## newest versions into all lock files
	@$(call say,Lock files)
	$(COMPILE) --extra agent --extra web --extra dev -o requirements/dev.txt
	$(COMPILE) --extra web -c requirements/dev.txt -o requirements/web.txt
	$(COMPILE) --extra agent -c requirements/dev.txt -o requirements/agent.txt
	npm update --package-lock-only --ignore-scripts

.PHONY: clean
clean: ## remove everything that the other words make
	@rm -rf .venv node_modules static/dist static/collected .mypy_cache .ruff_cache .pytest_cache
	rm -rf .import_linter_cache .hypothesis $(CATALOGUES:.po=.mo)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
