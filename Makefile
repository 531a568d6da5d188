# Tidemark: `make` prints this manual.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo docs test prove lab pythons up down env bench peers lint types contracts pytest format lock clean

PYTHON ?= $(firstword $(foreach name,python3.11 python3,$(shell command -v $(name))))
OTHER ?= python3.13
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# A worker takes whole files. All have sessions in one JVM, which needs up to 6 GiB of memory. There is one worker more than
# cores, because a worker waits for jobs of Spark and for servers.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : 4)))
# The tests of a module run in an order of chance. `make test` takes one that stays, so that a change is judged by what it
# changed; `make prove` takes another one each time. SEED=... tries an order that failed.
SEED ?= 3
PYTEST = $(BIN)/pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder

##@ Use
help: ## Print this manual
	@awk 'BEGIN {FS = ":.*## "; print "make TARGET"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Install everything into .venv, from the lock, and fetch the pinned jars

demo: $(READY) ## Run the bundled sources over bundled dumps through Airflow (TIDEMARK_HOME, else .tidemark)
	$(BIN)/tidemark demo

up: $(READY) ## Start Airflow's UI with the embedded default, on loopback; Ctrl-C or make down stops it
	$(BIN)/python -m tidemark.up

down: $(READY) ## Stop what make up started, and nothing else
	$(BIN)/python -m tidemark.up down

env: ## Write .env with random secrets for docker-compose.yaml; an .env that is there stays
	@$(PYTHON) docker/env.py .env

##@ Develop
# Types and contracts are checked beside the tests: each is one process, and would leave the other cores idle.
test: lint ## Run lint, types, import contracts and every test (about 15 minutes on two cores)
	@$(MAKE) --no-print-directory --jobs=3 pytest types contracts

pytest: $(READY)
	$(PYTEST) --verbose --timeout=900 --randomly-seed=$(SEED)

# Seeds of each kind of generated source; each has many histories. ROUNDS=20 is for a night.
ROUNDS ?= 2
prove: $(READY) ## Run what takes long: generated histories, every crash window and demo source, two days of Airflow (about an hour and a half on two cores)
	TIDEMARK_PROVE=$(ROUNDS) $(PYTEST) --verbose -m "more or prove"

pythons: $(READY) ## Run tests of formats, types, files, commands and README on another Python (OTHER=python3.13)
	$(BIN)/uv venv --quiet --allow-existing --python $(OTHER) $(VENV)/other
	grep -oE '^[A-Za-z0-9_.-]+==[^ ;]+' requirements.lock > $(VENV)/other/constraints.txt
	$(BIN)/uv pip install --quiet --python $(VENV)/other/bin/python --constraints $(VENV)/other/constraints.txt --editable '.[airflow,dev]'
	TIDEMARK_JARS=$(CURDIR)/$(VENV)/share/tidemark/jars $(VENV)/other/bin/python -m pytest --quiet \
	  tests/formats tests/values tests/avro tests/ddl tests/dumps tests/sources tests/tables tests/cli tests/diagnosis tests/documentation

lab: $(READY) ## Compare what is published with real databases, captured by Debezium with many settings (about 75 minutes; docs/lab.md)
	PYTHONPATH=include:tests $(BIN)/python lab/run.py $(LAB)

bench: $(READY) ## Measure runs in new processes, then in a warm one, against the floor (bench/README.md)
	$(BIN)/python bench/run.py
	$(BIN)/python bench/run.py --mode warm

# A warm run ends with 1 where the promise of bench/README.md does not hold; the next one is measured all the same.
PEERS := iceberg-merge-on-read iceberg-copy-on-write delta-deletion-vectors
peers: $(READY) ## Measure the same batches beside other systems, in new processes and warm, in every shape (over an hour)
	$(BIN)/python bench/run.py --batches 5 --peers $(PEERS) hudi-merge-on-read
	-$(BIN)/python bench/run.py --mode warm --batches 3 --peers $(PEERS)
	$(BIN)/python bench/run.py --rows 2000000 --changes 1000 --batches 3 --peers $(PEERS)
	BENCH_COLUMNS=200 $(BIN)/python bench/run.py --rows 100000 --changes 50000 --batches 3 --peers $(PEERS)
	BENCH_VALUE_BYTES=10000 $(BIN)/python bench/run.py --rows 40000 --changes 20000 --batches 3 --peers $(PEERS)
	$(BIN)/python bench/run.py --rows 1000000 --changes 250000 --batches 3 --history
	$(BIN)/python bench/run.py --rows 200000 --changes 5000 --batches 3 --peers pyiceberg-upsert
	-for rows in 400000 16000000; do $(BIN)/python bench/run.py --mode warm --rows $$rows --batches 3; done
	-$(BIN)/python bench/run.py --mode warm --rows 400000 --tables 20 --batches 3

docs: $(READY) ## Build the documents as a site, to be opened as build/site/index.html; a broken link fails
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(VENV)/docs
	$(BIN)/uv pip sync --quiet --python $(VENV)/docs/bin/python --require-hashes requirements-docs.lock
	$(BIN)/python docs/reference/generate.py
	$(VENV)/docs/bin/python docs/pictures/performance.py
	rm -rf build/docs && mkdir -p build/docs/bench
	cp -R README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md SECURITY.md LICENSE docs build/docs
	cp bench/*.md build/docs/bench && mv build/docs/docs/.nav.yml build/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build
	$(BIN)/python docs/site/check.py build/site

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	PYTHONPATH=include $(BIN)/lint-imports --no-cache

format: $(READY) ## Write the code as the formatter wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(READY) ## Resolve requirements.txt again into requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --python-version 3.11 requirements-dev.txt --output-file requirements.lock

clean: ## Remove the environment and the embedded lake
	rm -rf $(VENV) .tidemark

# Bytecode is made once, here: where Python may not write it (PYTHONDONTWRITEBYTECODE), each process would compile all that
# it imports, which takes a stage 2.5 CPU seconds.
$(READY): requirements.lock requirements-uv.lock pyproject.toml include/tidemark/jars.lock include/tidemark/pages.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 is missing: apt-get install python3.11 python3.11-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "$(PYTHON) is not Python 3.11: make PYTHON=..."; exit 1; }
	@command -v java >/dev/null || { echo "Java 17 is missing: apt-get install openjdk-17-jre-headless"; exit 1; }
	$(call step,environment of Python in $(VENV),$(PYTHON) -m venv $(VENV))
	$(call step,installer,$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock)
	$(call step,libraries of requirements.lock,$(BIN)/uv pip sync --quiet --python $(BIN)/python --compile-bytecode --require-hashes requirements.lock)
	$(call step,tidemark,$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable . && $(BIN)/python -m compileall -q include)
	$(call step,jars of Spark and Iceberg,$(BIN)/python -m tidemark.jars)
	$(call step,archive of Java classes,$(BIN)/python -m tidemark.class_archive)
	@touch $(READY)
	@echo "ready: make demo"

# $(call step,what,command) says what is done and how many seconds it took. What the command prints is shown if it fails.
define step
@printf '%-34s' '$(1)'; begin=$$SECONDS; \
  if said=$$({ $(2); } 2>&1); then echo "$$((SECONDS - begin)) s"; \
  else status=$$?; printf 'failed\n%s\n' "$$said" >&2; exit $$status; fi
endef
