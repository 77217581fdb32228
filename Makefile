# Two commands on a fresh machine: `make demo` and `make test`. The others are for everyday work.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
SITE := .venv/.site
# Three workers on two cores: some tests wait for a browser, for Spark or for a process.
WORKERS ?= 3
# The locks are complete, so they are installed with --no-deps: pip's resolver would prefer a newer release of a package
# that another one asks for with an extra (coverage[toml]), and then refuse it, because the lock has no hash of it.
# Hundreds of tests start the command anew: let Python keep what it compiled, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
# The same tests draw the same cases in the same order every time; `make trust` and `make fuzz` look for new ones.
test quick coverage: export PYTHONHASHSEED := 0
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

.PHONY: demo test quick setup lint types bench coverage fuzz mutation lock licences sbom wheel clean

demo: $(READY)
	@$(BIN)/kinfold demo --out demo

test: lint types $(SITE)
	@$(BIN)/kinfold warmup  # once, not once in every worker
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q

quick: $(READY)  ## the everyday part
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m "not slow"

lint: $(READY)
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/ruff check src tests benchmarks tools

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

.PHONY: peers
peers: $(READY)  ## the figures of the README: kinfold on what other tools were measured on, with what these took
	$(BIN)/python -m benchmarks peers

.PHONY: trust
trust: $(READY)  ## the long form: 10,000 releases, thousands of opinions, every fault; writes docs/trust.md
	@$(BIN)/kinfold warmup
	$(BIN)/python -m tools.trust --workers $(WORKERS)

setup: $(READY)

$(READY): pyproject.toml requirements/dev.txt requirements/opinion.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "kinfold needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 2; }
	@echo "setting up .venv (about a minute, once)"
	@$(PYTHON) -m venv .venv
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) or sys.platform != "linux")'; then \
		$(PIP) --no-deps --require-hashes -r requirements/dev.txt && $(PIP) --no-deps --no-build-isolation --editable .; \
	else \
		echo "the lock is for Python 3.11 on Linux: taking what the ranges of pyproject.toml allow today"; \
		$(PIP) --editable ".[frames,stats,codes,databases,studio,dev]"; \
	fi
	@# pycanon, the tests' outside opinion, pins old numpy and pandas: taken without its dependencies
	@$(PIP) --no-deps --require-hashes -r requirements/opinion.txt
	@$(BIN)/kinfold warmup --everyday >/dev/null 2>&1
	@touch $(READY)

COVER := $(BIN)/pytest -n $(WORKERS) --dist worksteal -q -p no:cacheprovider --cov=kinfold --cov-branch --cov-report=

coverage: $(READY)  ## lines and branches that the tests run, kernels with the compiler off; fails below its marks
	@rm -rf build/coverage && mkdir -p build/coverage && $(BIN)/kinfold warmup
	COVERAGE_FILE=$(CURDIR)/build/coverage/compiled $(COVER)
	NUMBA_DISABLE_JIT=1 COVERAGE_FILE=$(CURDIR)/build/coverage/plain $(COVER) -m "not slow"
	@$(BIN)/coverage combine --quiet --keep --data-file=build/coverage/all build/coverage/compiled build/coverage/plain
	@$(BIN)/coverage json --quiet --data-file=build/coverage/all -o build/coverage/all.json
	@$(BIN)/python -m tools.coverage build/coverage/all.json

FUZZ ?= 60  # seconds a reader
fuzz: $(READY)  ## let atheris, which is installed here, look for inputs that the readers do not expect
	@$(PIP) "atheris>=3,<4" || { echo "atheris does not install here: the fuzzing of make test has to do"; exit 2; }
	@for reader in csv policy hierarchy project settings certificate; do \
		echo "$$reader: $(FUZZ) seconds" && $(BIN)/python -m tools.fuzz $$reader $(FUZZ) || exit 1; done

mutation: $(READY)  ## plant small mistakes in what judges a release; the tests must notice 95 of 100
	$(BIN)/python -m tools.mutate

$(SITE): $(READY) requirements/docs.txt
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) or sys.platform != "linux")'; then \
		$(PIP) --no-deps --require-hashes -r requirements/docs.txt; else $(PIP) --editable ".[docs]"; fi
	@touch $(SITE)

.PHONY: spark
spark: $(READY)  ## PySpark, for the engine of clusters and its tests; Java is not brought (Debian: openjdk-17-jre-headless)
	@$(BIN)/python -c 'import pyspark' 2>/dev/null || { echo "fetching Spark (half a gigabyte, once)"; \
		$(PIP) --no-deps --require-hashes -r requirements/spark.txt; }

.PHONY: docs pictures consequences
docs: $(SITE)  ## what pages take from the code (methods, the policy, Python, commands), then the site, offline: build/site
	$(BIN)/python -m tools.methods
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.api_page
	$(BIN)/python -m tools.commands_page
	$(BIN)/python -m tools.glossary
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

pictures: $(READY)  ## the pictures of the documentation: docs/images/*.svg
	$(BIN)/python -m tools.pictures

consequences: $(READY)  ## what each choice costs on the Adult file (KINFOLD_DATA): the table of docs/choose.md
	$(BIN)/python -m tools.consequences

.PHONY: proposals
proposals: $(READY)  ## what profile proposes for tables with a known truth: the scores of docs/profile.md
	$(BIN)/python -m tools.proposals

.PHONY: papers
papers: $(READY)  ## the papers computed again, with the public files (KINFOLD_DATA): the totals of docs/reproduce.md
	$(BIN)/python -m tools.papers

.PHONY: charts
charts: $(READY)  ## the charts of the method pages, computed anew: docs/charts
	$(BIN)/python -m tools.charts

.PHONY: screenshots axe scripts
screenshots: $(READY)  ## the studio's five steps, light and dark, and the report: docs/images; a small screen: build/small
	@PYTHONPATH=tests $(BIN)/python -m browser.screenshots docs/images build/small

axe:  ## axe-core and eslint from npm, which judge the studio's pages and scripts in the tests; never part of the project
	@mkdir -p build && npm install --silent --no-audit --no-fund --no-package-lock --prefix build \
		"axe-core@^4.10" "eslint@^9.20"

scripts: axe  ## lint the page's scripts, and run their tests by node's own runner
	@node build/node_modules/eslint/bin/eslint.js --max-warnings 0 --config tests/javascript/eslint.config.mjs \
		src/kinfold/studio/static tests/javascript
	@node --test --test-reporter=dot tests/javascript/*.test.mjs

lock:  ## choose the development dependencies anew, with their hashes
	@$(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install -qq "pip-tools>=7.5,<8"
	@$(PYTHON) -m tools.lock build/lock

licences: $(READY)  ## list the licences of what kinfold needs, and fail where one binds or is unknown
	@$(BIN)/python -m tools.licences

sbom: $(READY)  ## the bill of materials, CycloneDX
	@$(BIN)/python -m tools.materials build/bom.json && echo "build/bom.json"

wheel: $(READY)  ## the wheel of the last commit, built twice and compared
	@$(BIN)/python -m tools.wheel

clean:
	rm -rf .venv build dist demo benchmarks/results .pytest_cache .mypy_cache .ruff_cache
