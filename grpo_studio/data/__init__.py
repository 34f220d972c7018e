"""Data sets: made in place, local files, the Hub; columns mapped, prompts put together, held-out rows set apart.

Values keep the form in which they were written, so that 007 stays 007. No torch here.
"""

from grpo_studio.data.loading import DataSplits, head, load
from grpo_studio.data.mapping import ColumnMapping, map_columns
from grpo_studio.data.rows import Row
from grpo_studio.data.samples import Sample, to_sample
from grpo_studio.data.sources import LOCAL_SUFFIXES, is_made, is_on_hub, kind_of
from grpo_studio.data.splitting import set_apart

__all__ = [
    "LOCAL_SUFFIXES",
    "ColumnMapping",
    "DataSplits",
    "Row",
    "Sample",
    "head",
    "is_made",
    "is_on_hub",
    "kind_of",
    "load",
    "map_columns",
    "set_apart",
    "to_sample",
]
