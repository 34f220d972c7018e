"""The Hub's libraries without their bars and warnings: stderr is read by people and programs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("huggingface_hub", "datasets")


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and nothing below an error in the log meanwhile; both as before afterwards."""
    import datasets
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    hub_bars, other_bars = not are_progress_bars_disabled(), datasets.is_progress_bar_enabled()
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    disable_progress_bars()
    datasets.disable_progress_bars()
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        if hub_bars:
            enable_progress_bars()
        if other_bars:
            datasets.enable_progress_bars()
