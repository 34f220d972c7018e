"""Exit codes by which a worker says what its record has no more room for, or cannot take."""

from __future__ import annotations

NOT_RECORDED_DISK_FULL = 28
"""The disk was full, and the record took not even that: the run is paused."""
NOT_RECORDED = 74
"""The record could not be written for another reason: the run has failed."""
ANOTHER_WORKER = 75
"""Another worker has the run: this one has left it alone."""
