"""From a frame to a plotly figure: pure functions that never touch the store.

A figure is a plain `{"data": [...], "layout": {...}}`: plotly validates it in the tests, not at every step of a run
(that took longer than the queries). Colours are names of CSS variables, `var(--...)`, which the page turns into those
of its theme. Numbers are finite or None. `uirevision` is the run, so a zoom outlives every redraw.
"""

from grpo_studio.plots.attempts import with_attempts
from grpo_studio.plots.figure import Figure
from grpo_studio.plots.groups import advantage_figure, group_mix_figure
from grpo_studio.plots.memory import memory_figure
from grpo_studio.plots.policy import clip_figure, kl_figure, length_figure, loss_figure, sampler_figure
from grpo_studio.plots.reward import reward_figure
from grpo_studio.plots.time import time_figure

__all__ = [
    "Figure",
    "advantage_figure",
    "clip_figure",
    "group_mix_figure",
    "kl_figure",
    "length_figure",
    "loss_figure",
    "memory_figure",
    "reward_figure",
    "sampler_figure",
    "time_figure",
    "with_attempts",
]
