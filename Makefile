# Everything a fresh machine needs is installed by these commands themselves (assumed: Python 3.11+, make, git).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo app test test-all lint format bench clean pictures

demo: $(VENV)/core
	$(BIN)/python -m grpo_studio.demo

app: $(VENV)/core
	$(BIN)/python app.py

test: $(VENV)/dev
	sh tools/require_chromium.sh
	$(BIN)/python -m pytest -m "not slow"

test-all: $(VENV)/dev
	sh tools/require_chromium.sh
	$(BIN)/python -m pytest

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev
	sh tools/require_chromium.sh
	$(BIN)/python -m bench.recording
	$(BIN)/python -m bench.allocator
	$(BIN)/python -m bench.idle_page

pictures: $(VENV)/dev
	sh tools/require_chromium.sh
	GRPO_STUDIO_PICTURES=1 $(BIN)/python -m pytest tests/browser/test_pictures.py

$(VENV)/core: requirements.txt
	sh tools/make_venv.sh $(PYTHON) $(VENV)
	$(BIN)/pip install --quiet -r requirements.txt
	touch $@

$(VENV)/dev: requirements-dev.txt $(VENV)/core
	$(BIN)/pip install --quiet -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
