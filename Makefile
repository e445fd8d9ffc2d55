# Waves That Count: every step, by name. `make` alone lists them.
# Needed: make, and Python 3.11 or newer with its venv module. Everything else lands in .venv.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
CHAPTER ?=
LAB_ARGS ?=

# What building the book needs, and no more: no torch, no JupyterLab, no matplotlib.
# numpy, mpmath and array-api-compat let the API page import posenc; flit_core installs it.
BUILDS_THE_BOOK := jupyter-book numpydoc sphinx-exercise sphinx-proof sphinxcontrib-bibtex \
	sphinx-mathjax-offline numpy mpmath array-api-compat flit_core

# What printing it needs besides: it drives a Chromium, which is not installed here.
PRINTS_THE_BOOK := playwright pypdf

NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=120

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help book pdf one-page test lint types unit peers notebooks site run lab bench gpu study study-check \
	breaks clean

help: ## list the steps
	@echo "Waves That Count. Two commands do most: make book, make test."
	@echo
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

book: $(VENV)/.for-book $(VENV)/.posenc ## build the book from the stored outputs (no torch needed)
	@rm -rf _build/html
	$(VENV)/bin/jupyter-book build . -W -n --keep-going --all
	@echo
	@echo "The book is built. Open this file in a browser; no server and no network are needed:"
	@echo "  $(CURDIR)/_build/html/index.html"

pdf: one-page $(VENV)/.for-pdf ## print the book: _build/pdf/waves-that-count.pdf (needs a Chromium)
	PYTHONPATH=_ext $(PY) -m printing _build/singlehtml/book.html _build/pdf/waves-that-count.pdf

# All pages in one file, ready to be printed.
one-page: $(VENV)/.for-book $(VENV)/.posenc
	@rm -rf _build/singlehtml
	$(VENV)/bin/jupyter-book build . -W -n --keep-going --all --builder singlehtml

test: lint types unit peers notebooks site ## lint, types, unit, peers, notebooks, book, site: what every change must pass

lint: $(VENV)/.for-all ## style and common errors (ruff)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(VENV)/.for-all $(VENV)/.posenc ## the package's types (mypy, strict)
	$(PY) -m mypy

unit: $(VENV)/.for-all $(VENV)/.posenc ## the package and the sources of the book
	$(PY) -m pytest tests --ignore=tests/site --ignore=tests/peers --durations=5
	TRITON_INTERPRET=1 $(PY) -m pytest tests/interpreter --durations=5

peers: $(VENV)/.for-all $(VENV)/.posenc ## the package against other libraries
	$(PY) -m pytest tests/peers --durations=5

notebooks: $(VENV)/.for-all $(VENV)/.posenc ## run every chapter; each stored output must come out again
	$(PY) -m pytest $(NBVAL) --durations=5 book

site: $(VENV)/.for-all book one-page ## read the built pages and the printed book as a reader would (needs a Chromium)
	$(PY) -m pytest tests/site --durations=5

run: $(VENV)/.for-all $(VENV)/.posenc ## run chapters and store what they show [CHAPTER=book/2-waves/shift.ipynb]
	$(PY) -m posenc.lab.notebooks $(CHAPTER)

lab: $(VENV)/.for-all $(VENV)/.posenc ## open the chapters in JupyterLab [LAB_ARGS=--allow-root]
	$(PY) -m jupyterlab --LabApp.default_url=/lab/tree/book $(LAB_ARGS)

bench: $(VENV)/.for-all $(VENV)/.posenc ## measure tables and rotations on this CPU, store and print the ratios (minutes)
	$(PY) tests/benchmarks/tables.py --write book/data/benchmark-cpu.json
	$(PY) tests/benchmarks/rotation.py --write book/data/benchmark-rope-cpu.json
	$(PY) tests/benchmarks/report.py

# A machine with a GPU brings its own torch: PY may be any Python (make gpu PY=python3), no
# environment is made, no network is needed, and what fails does not keep the rest from running.
# Tests and chapters run JOBS at a time; the benchmark runs alone, at the end.
JOBS ?= 4
gpu: ## the GPU tests, every chapter with its torch cells on the GPU, then the benchmark [PY=python3]
	@export PYTHONPATH="$(CURDIR)$${PYTHONPATH:+:$$PYTHONPATH}" POSENC_DEVICE=cuda; failed=; \
	{ echo tests/gpu; find book -name '*.ipynb' | sort; } \
		| xargs -P $(JOBS) -n 1 $(PY) -m pytest -p no:cacheprovider $(NBVAL) \
		|| failed="$$failed tests-or-chapters"; \
	$(PY) tests/benchmarks/gpu.py --write book/data || failed="$$failed benchmark"; \
	if [ -n "$$failed" ]; then echo "Failed:$$failed"; exit 1; fi

study: $(VENV)/.for-all $(VENV)/.posenc ## train every encoding short, test long, store the result (half an hour; resumes)
	$(PY) -m posenc.lab.study

study-check: $(VENV)/.for-all $(VENV)/.posenc ## the chapter on extrapolation with ten other seeds: does it say the same? (minutes)
	$(PY) -m posenc.lab.seeds book/3-biases/extrapolation.ipynb 0 1 2 3 4 5 6 7 8 9

breaks: $(VENV)/.for-all $(VENV)/.posenc ## break code and book on purpose: a named check must fail (minutes)
	$(PY) -m tests.breaks

clean: ## remove what was built (.venv stays: rm -r .venv removes it)
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find posenc tests _ext book -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment -------------------------------------------------------------------------
# A stamp remembers that pip has run for this state of the pins: without a change, nothing is
# installed again and no network is needed.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("The book needs Python 3.11 or newer, and $(PYTHON) is %d.%d: name another one with make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.for-book: requirements.txt | $(VENV)/.made
	@echo "Installing what building the book needs into $(VENV) (about a minute)."
	@$(PIP) install --quiet -c requirements.txt $(BUILDS_THE_BOOK)
	@touch $@

$(VENV)/.for-pdf: requirements.txt requirements-checks.txt | $(VENV)/.for-book
	@$(PIP) install --quiet -c requirements.txt -c requirements-checks.txt $(PRINTS_THE_BOOK)
	@touch $@

$(VENV)/.for-all: requirements.txt requirements-checks.txt | $(VENV)/.made
	@echo "Installing what running and testing the book needs into $(VENV) (some minutes, once)."
	@$(PIP) install --quiet -r requirements.txt -r requirements-checks.txt
	@touch $(VENV)/.for-book $(VENV)/.for-pdf $@

# The package itself, as a link to this folder. Order-only: whichever stamp exists will do.
$(VENV)/.posenc: pyproject.toml | $(VENV)/.for-book
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@
