# Two commands on a fresh machine: `make demo` and `make test`. The others are for everyday work.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 2

.PHONY: demo test quick setup lint types bench clean

demo: $(READY)
	@$(BIN)/kinfold demo --out demo

test: lint types
	@$(BIN)/kinfold warmup  # once, not once in every worker
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q

quick: $(READY)  ## the everyday part
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m "not slow"

lint: $(READY)
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "kinfold needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 2; }
	@echo "setting up .venv (about a minute, once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[frames,dev]"
	@# pycanon, the tests' outside opinion, pins old numpy and pandas: taken without its dependencies
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps "pycanon>=1.3,<2"
	@$(BIN)/kinfold warmup --everyday >/dev/null 2>&1
	@touch $(READY)

clean:
	rm -rf .venv demo benchmarks/results .pytest_cache .mypy_cache .ruff_cache
