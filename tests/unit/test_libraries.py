"""Threads that ask for the libraries of training at once all get them whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASKING = """
import importlib, time
from concurrent.futures import ThreadPoolExecutor
from grpo_studio.libraries import load_libraries

PARTS = ("arguments", "model_files", "tokenization", "convert", "sampler", "scoring_mode", "reward_model", "evaluation", "callbacks")

def ask(number: int) -> str:
    time.sleep(0.3 * number)  # each meets the import at another stage
    load_libraries()
    return importlib.import_module("grpo_studio.training." + PARTS[number]).__name__.rpartition(".")[2]

with ThreadPoolExecutor(len(PARTS)) as pool:
    print(tuple(pool.map(ask, range(len(PARTS)))) == PARTS)
"""


def test_threads_that_ask_at_once_get_them_whole() -> None:
    """In a process of its own, where nobody has them yet. Without `load_libraries` one of them meets half a module."""
    done = subprocess.run([sys.executable, "-c", ASKING], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr
