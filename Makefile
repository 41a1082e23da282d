# fa-forensics. `make inspect` and `make test` are all that a fresh machine needs.

PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := pyproject.toml $(shell find fa_forensics -type f ! -name '*.pyc')

# The shipped flash-attention build: a real file with its code taken out (fixtures/README.md).
HUSK := vllm_flash_attn-2.6.2
HUSK_SO := build/fixtures/$(HUSK)/vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so
UNPACKED := build/fixtures/.$(HUSK).made
REAL_DIR ?= build/real
TORCH ?= 2.4.0 2.13.0
JOBS ?= auto
LOOK = $(BIN)/fa-forensics inspect

export SO
# An exported PYTHON may be anybody's. Only the one on make's own command line is meant for us.
ifeq ($(origin PYTHON),command line)
export PYTHON
else
unexport PYTHON
endif

.DEFAULT_GOAL := help
.PHONY: help inspect test lint test-real bench atlas readme clean

help:
	@echo "make inspect              inspect the real flash-attention build that ships in fixtures/"
	@echo "make inspect SO=FILE      inspect a file of your own (.so, wheel or directory)"
	@echo "             PYTHON=PATH  ... in the environment of this python"
	@echo "             ARGS=...     ... with more options, for example ARGS=--format=json"
	@echo "make test                 linters, types and all tests that need neither network nor GPU"
	@echo "make test-real            fetch the real wheels (2 GB) and a real torch (5 GB), and compare"
	@echo "             TORCH=...    ... with other torch releases, or with none (TORCH=)"
	@echo "make bench                time the tool beside nm, ldd and cuobjdump"
	@echo "make atlas                add the torch and CUDA releases that the tables lack (network)"
	@echo "             ATLAS=...    ... or another of the builder's commands: --check, torch 2.16.0"
	@echo "make readme               renew the output that README.md shows"
	@echo "make clean                remove what was built"

# Exit codes 1, 3 and 4 are results of an inspection (README.md, "Exit codes"), no failures of make.
inspect: $(VENV)/.installed $(if $(SO),,$(UNPACKED))
	@$(LOOK) $${PYTHON:+--python "$$PYTHON"} $(ARGS) "$${SO:-$(HUSK_SO)}"; code=$$?; \
	case $$code in \
	  0) ;; \
	  1) echo "(fa-forensics ended with exit code 1: findings)" >&2 ;; \
	  3) echo "(fa-forensics ended with exit code 3: not everything could be analysed)" >&2 ;; \
	  4) echo "(fa-forensics ended with exit code 4: inconclusive)" >&2 ;; \
	  *) exit $$code ;; \
	esac

# All of them always run. pytest comes last, so that its closing line is the last one.
test: $(VENV)/.dev
	@failed=0; \
	$(BIN)/ruff check --quiet --output-format concise . || failed=1; \
	$(BIN)/ruff format --check --quiet . || failed=1; \
	$(BIN)/mypy || failed=1; \
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS) || failed=1; \
	exit $$failed

lint: $(VENV)/.dev
	@$(BIN)/ruff check --output-format concise .
	@$(BIN)/mypy

test-real: $(VENV)/.dev
	@$(PIP) install ".[real]"
	@$(BIN)/python benchmarks/fetch_real.py "$(REAL_DIR)" $(TORCH)
	@. "$(abspath $(REAL_DIR))/env.sh" && \
	 $(BIN)/python -m pytest -m "real or online" -n $(JOBS) --dist worksteal $(TESTS)

bench: $(VENV)/.installed $(UNPACKED)
	@$(BIN)/python benchmarks/bench.py $(if $(SO),"$$SO") $(ARGS)

# From the source tree, whose tables it renews, and not from the installed copy.
atlas: $(VENV)/.dev
	@$(PIP) install ".[real]"
ifdef ATLAS
	@PYTHONPATH=. $(BIN)/python -m fa_forensics.atlas.build $(ATLAS)
else
	@PYTHONPATH=. $(BIN)/python -m fa_forensics.atlas.build torch
	@PYTHONPATH=. $(BIN)/python -m fa_forensics.atlas.build cuda
endif

readme: $(VENV)/.dev $(UNPACKED)
	@$(BIN)/python -m benchmarks.readme

$(UNPACKED): fixtures/husks/$(HUSK).husk $(wildcard fixtures/unpack.py fixtures/husk.py)
	@$(PY) fixtures/unpack.py $(HUSK) build/fixtures >/dev/null
	@touch $@

$(BIN)/python:
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "Python 3.10 or later is needed, and $(PY) is $$($(PY) -V 2>&1); name another one: make PY=python3.12 ..." >&2; \
	  exit 1; }
	@echo "Setting up $(VENV) ..." >&2
	@rm -rf $(VENV); why=$$($(PY) -m venv $(VENV) 2>&1) \
	  || { rm -rf $(VENV); $(PY) -m virtualenv --quiet $(VENV) 2>/dev/null; } \
	  || { rm -rf $(VENV); $(PY) -m venv --without-pip $(VENV) \
	       && $(PY) -m pip --python $(BIN)/python install --quiet pip 2>/dev/null; } \
	  || { rm -rf $(VENV); echo "$$why" | sed 's/^/  | /' >&2; \
	       echo "$(PY) cannot make a virtual environment here; on Debian or Ubuntu: apt-get install python3-venv" >&2; \
	       exit 1; }

$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	@$(PIP) install .
	@touch $@

$(VENV)/.dev: $(SOURCES) | $(BIN)/python
	@$(PIP) install ".[test,lint]"
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
