# One command set, locally and in CI.
SHELL := /bin/bash
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# What is installed beside the service: `make test EXTRAS=dev,ray` tests the optional parts too.
EXTRAS ?= dev
STAMP := $(VENV)/.installed-$(EXTRAS)
export STEWARD_DATA ?= $(shell test -d ../shared/data && cd ../shared/data && pwd)
# pip finds local wheels by PIP_FIND_LINKS; uv reads its own variable.
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
export UV_HTTP_TIMEOUT ?= 180
# Tests start dozens of processes: without compiled modules on disk each would compile all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup test test-all engines mutants lint audit bench demo docs openapi wheels sbom clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import uv' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@rm -rf *.egg-info  # an earlier install's list of entry points would be found before the new one
	@$(BIN)/uv pip uninstall --quiet --python $(BIN)/python steward 2>/dev/null || true  # an earlier name: two would serve each kind
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[$(EXTRAS)]' -e clients/python
	@touch $@

# Tests run side by side, and arrays are small: threads of their own would only wait for one another. Processes wait for
# servers at times, so there are three for two cores; a fourth costs more than it saves. Loops are compiled with little
# optimisation: that takes most of the time of compiling, and no test plays for long. They are kept apart from others.
PYTEST := NUMBA_OPT=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadgroup
test: setup
	$(PYTEST) -m "not slow" $(ARGS)

# And those that train for long, or start and kill servers.
test-all: test
	$(PYTEST) -m slow $(ARGS)

# On a real Docker daemon, Slurm and Ray, as root; `.ci/engines` installs the first two. What is missing is said at once,
# in one line. Building the images takes minutes, all of it about an hour.
engines: setup
	@$(BIN)/python -m tests.engines.required
	@$(MAKE) --no-print-directory $(RAY)/bin/ray
	STEWARD_REQUIRE_ENGINES=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -rs -m engines tests/engines $(ARGS)

# Ray's programs have an environment of their own: Ray Serve comes with HAProxy (GPL).
RAY := $(VENV)/ray
$(RAY)/bin/ray: constraints.txt
	@test -x $(RAY)/bin/python || $(PYTHON) -m venv --without-pip $(RAY)
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(RAY)/bin/python -c constraints.txt 'ray[default,serve]'
	@touch $@

# Would the tests notice a fault? `make mutants ARGS="guard lease --most 20 --seed 3"`; takes hours in full.
mutants: setup
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml app workers migrations clients/python/steward_client docs
	$(BIN)/python -m tests.wording
	$(BIN)/python -m tests.licences

# Known faults of what is installed; asks the advisories of the package index, so it is no part of `make lint`.
audit: setup
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[$(EXTRAS),audit]'
	$(BIN)/python -m tests.licences
	$(BIN)/python .ci/audit

bench: setup
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[$(EXTRAS),bench]'
	$(BIN)/python -m tests.licences
	$(BIN)/python -m benchmarks $(ARGS)

demo: setup
	$(BIN)/steward demo $(ARGS)

# The site of the documentation, in site/: figures are drawn anew, pages built, and a warning is an error. Pictures of the
# dashboard are drawn anew where what they show has changed, and a Chromium is there.
docs: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.browser.pictures --stale
	PYTHONPATH=. $(BIN)/python docs/making/figures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build $(ARGS)

openapi: setup
	$(BIN)/python clients/python/regenerate.py
	$(BIN)/python docs/tables.py

# The wheels of the service and of the Python client, in dist/: the same bytes for the same files.
wheels: setup
	@rm -f dist/steward_allocation-*.whl dist/steward_client-*.whl  # an older one would be installed beside them
	$(BIN)/python -m tests.wheels dist

# What an installation consists of, in dist/sbom.json (CycloneDX): `make sbom WITH="worker archive mcp otel"`.
WITH ?= worker archive
sbom: setup
	$(BIN)/python -m tests.materials dist/sbom.json $(WITH)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache demo-output dist site
