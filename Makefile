# Everything a contributor runs. A machine needs Python 3.11 or newer and make; each target sets up
# the rest by itself, once. The rule: nothing here goes beyond GNU Make 3.81, which macOS ships.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/pytest
LUA := src/fairlane/lua

# More arguments for the command behind a target: make test ARGS='-k embedded -x'
ARGS ?=
# How long a soak lasts.
MINUTES ?= 10

.DEFAULT_GOAL := help
.PHONY: help fmt check demo up test web bench chaos guarantees soak docs clean lock

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

fmt: $(READY) ## Format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: $(READY) ## Check format, lint, types, import layers, Lua and names
	@tools/need.sh luacheck lua-check luacheck
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v luacheck >/dev/null; then set -x; luacheck --quiet $(LUA); fi
	$(BIN)/python tools/web.py --check
	$(PYTEST) tests/unit/test_names.py

demo: $(READY) ## See fair scheduling happen: one loud device, many quiet ones
	$(BIN)/fairlane demo $(ARGS)

up: $(READY) ## Run the whole system here: store, dispatcher, workers
	$(BIN)/fairlane up $(ARGS)

test: $(READY) ## Run the tests, on a real Valkey 9 and a real Redis 7
	@tools/need.sh redis-check-rdb redis-tools redis
	@tools/need.sh promtool prometheus prometheus
	@tools/need.sh chromium chromium chromium
	$(PYTEST) $(ARGS)

web: $(READY) ## Build the dashboard from web/ into the package; only its developers need to
	$(BIN)/python tools/web.py

bench: $(READY) ## Measure throughput and fairness on this machine
	$(BIN)/fairlane bench
	$(BIN)/python bench/bench.py $(ARGS)
	$(BIN)/python bench/service.py
	$(BIN)/python bench/dashboard.py

chaos: $(READY) ## Kill, freeze and starve each part, and show that no task is lost
	@tools/need.sh redis-check-rdb redis-tools redis
	@mkdir -p .fairlane
	$(PYTEST) tests/chaos --report=.fairlane/faults.json $(ARGS)
	$(if $(ARGS),:,$(BIN)/python tools/mutants.py --report .fairlane/mutants.json)

guarantees: ## Write the table of docs/guarantees.md from the last report of make chaos
	$(BIN)/python tools/guarantees.py .fairlane/faults.json

soak: $(READY) ## Inject random faults under load for MINUTES=10, and check that nothing is lost or grows
	$(BIN)/python tools/soak.py --minutes $(MINUTES) $(ARGS)

docs: $(READY) ## Build the documentation's site into site/; a link that leads nowhere fails
	$(BIN)/python tools/docs.py
	$(BIN)/zensical build --strict

clean: ## Remove what was built; the store's data in .fairlane stays
	rm -rf $(VENV) .bench web/node_modules build dist site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests examples -type d -name __pycache__ -prune -exec rm -rf {} +

lock: $(READY) ## Write requirements.lock anew, at the newest releases that pyproject.toml allows
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --upgrade --all-extras --group dev \
	    --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml

$(READY): pyproject.toml requirements.lock tools/setup-venv.sh
	@tools/setup-venv.sh $(VENV)
