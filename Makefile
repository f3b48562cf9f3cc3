# Works with make and python3 >= 3.11 (with venv); everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= data
PORT ?= 9000
TESTS ?=
PROCESSES ?= 4
S3TESTS ?=
SUITES ?=
PLACES ?=
NFS ?=
OLDER ?=
COMPARE ?=
# for all Python versions and architectures
LOCK = uv pip compile pyproject.toml --quiet --upgrade --universal --generate-hashes --no-annotate --custom-compile-command 'make lock'

# pytest rewrites the assertions of 400 modules: without a cache each of its processes does so at each start
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run check test coverage lint format docs soak lab simulate upgrades s3tests strangers places nfs compare lock install-check wheel-check clean

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

run: $(VENV)/.run ## Start the gateway on DATA (./data) and PORT (9000), its admin listener on the next port
	@$(BIN)/python scripts/run.py --data $(DATA) --port $(PORT)

check: lint ## While you develop: lint, types, arrows, and the quick unit tests (TESTS="FILES" for others)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow" $(or $(TESTS),tests/unit)

test: lint ## What CI runs: lint, types, arrows, all tests at small sizes, an install outside the checkout
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup $(TESTS)
	$(if $(TESTS),,SLUICE_TEST_INDEX=postgres $(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup tests/reliability/crash tests/console/test_operations.py)
	sh scripts/check_install.sh

coverage: $(VENV)/.dev ## The tests again, with the lines and branches that they reach (three times as long; 90 % are asked)
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup --cov --cov-report=term:skip-covered $(TESTS)

build/checkout/sluice_s3:
	mkdir -p $@
	ln -sfn $(foreach folder,app loadtests migrations storage_drivers app/testing,../../../$(folder)) $@

lint: $(VENV)/.dev build/checkout/sluice_s3 ## ruff, words, mypy, import arrows, generated tables, dead links in docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell -D scripts/words.txt -D - app storage_drivers loadtests migrations scripts docs deploy README.md
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.reference --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

format: $(VENV)/.dev ## Let ruff mend what it can, and write the tables of docs/reference
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m scripts.reference

docs: $(VENV)/.docs ## Build the documentation as a site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

soak: $(VENV)/.dev ## The tests at full size, on all usual places and both engines (hours; root for power cuts)
	SLUICE_TEST_SIZE=soak $(BIN)/python -m pytest -rP --timeout=14400 $(or $(TESTS),tests)
	$(if $(TESTS),,SLUICE_TEST_SIZE=soak SLUICE_TEST_INDEX=postgres $(BIN)/python -m pytest -rP --timeout=14400 tests/reliability/crash)

lab: $(VENV)/.dev build/checkout/sluice_s3 ## Every fault on every set-up under load, checked (minutes; root); SIZE=soak: hours; SEED=… SETUP=… FAULT=… replay
	$(BIN)/python -m tests.reliability.lab $(if $(SIZE),--size $(SIZE)) $(if $(SEED),--seed $(SEED)) $(addprefix --setup ,$(SETUP)) $(addprefix --fault ,$(FAULT)) $(LAB)

simulate: $(VENV)/.dev build/checkout/sluice_s3 ## Two workers on simulated time, threads and disk, power cuts at random; SEEDS=100, SEED=17 replays, FAULT=NAME breaks the programs first
	PYTHONPATH=build/checkout $(BIN)/python -m tests.reliability.simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),100)) $(if $(FAULT),--fault $(FAULT))

upgrades: $(VENV)/.dev build/checkout/sluice_s3 ## Upgrades from earlier versions, beside this one on Postgres and of their data; OLDER="DIR …" are checkouts of them
	@test -n "$(OLDER)" || { echo 'usage: make upgrades OLDER="DIR …" (checkouts of earlier versions)'; exit 2; }
	SLUICE_TEST_OLDER="$(abspath $(OLDER))" $(BIN)/python -m pytest -v $(or $(TESTS),tests/reliability/upgrades)

s3tests: $(VENV)/.dev ## Our subset of ceph/s3-tests; S3TESTS=DIR is a checkout of it
	@test -n "$(S3TESTS)" || { echo "usage: make s3tests S3TESTS=DIR (a checkout of ceph/s3-tests)"; exit 2; }
	BIN=$(abspath $(BIN)) tests/conformance/run $(S3TESTS)
	BIN=$(abspath $(BIN)) tests/conformance/run $(S3TESTS) --identities

strangers: $(VENV)/.dev build/checkout/sluice_s3 ## Suites of other projects; SUITES=DIR has checkouts of theirs; STRANGERS="objstore distribution" for some
	@test -n "$(SUITES)" || { echo "usage: make strangers SUITES=DIR (a directory with checkouts, see docs/contributing.md)"; exit 2; }
	$(BIN)/python -m tests.strangers.run $(SUITES) $(STRANGERS)

places: $(VENV)/.dev ## Functional, crash and (with S3TESTS) conformance tests on every kind of mount, into docs; PLACES="zdbfs memory" for some
	$(BIN)/python -m scripts.places $(if $(S3TESTS),--s3tests $(S3TESTS)) $(PLACES)

nfs: $(VENV)/.dev build/checkout/sluice_s3 ## Crash and consistency tests on NFS, server and client as two kernels of their own (Debian, no rights); NFS="COMMAND" for another
	$(BIN)/python -m tests.reliability.nfs.lab $(if $(NFS),-- $(NFS))

compare: $(VENV)/.load ## Load on a local disk and on a temporary FUSE mount, side by side; COMPARE="--store NAME=PATH --direct" for others
	$(BIN)/sluice bench $(COMPARE)

lock: ## Lock what the image installs to the newest versions, with hashes (needs uv)
	$(LOCK) --extra postgres -o deploy/requirements.txt
	$(LOCK) --extra postgres --extra loadtest --constraint deploy/requirements.txt -o deploy/requirements-loadtest.txt

install-check: ## A plain install into a fresh environment outside the checkout, with one PUT and GET through it
	sh scripts/check_install.sh

wheel-check: $(VENV)/.dev build/checkout/sluice_s3 ## The functional tests against an installed wheel; TESTS="FILES" for others
	rm -rf build/wheel && $(PYTHON) -m venv build/wheel/venv
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls build/wheel/*.whl)[postgres,fsspec,transfer,parquet]"
	SLUICE_TEST_COMMAND=$(abspath build/wheel/venv/bin/sluice) $(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup $(or $(TESTS),tests/integration/functional)

clean: ## Remove what the above made, but never DATA
	rm -rf $(VENV) build dist site *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) must be 3.11 or later (make PYTHON=…)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml setup.py | $(BIN)/python
	@echo 'installing the gateway into $(VENV): a minute or two'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.load: pyproject.toml setup.py | $(BIN)/python
	@echo 'installing the load tests into $(VENV): a minute or two'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[loadtest]'
	touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@ $(VENV)/.run

$(VENV)/.dev: pyproject.toml setup.py | $(BIN)/python
	@echo 'installing what the tests need into $(VENV): a minute or two'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.run
