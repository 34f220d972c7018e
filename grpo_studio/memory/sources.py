"""Where the parts of a forecast come from: a trace that is known or made now, or the closed form."""

from __future__ import annotations

import time
from contextlib import ExitStack

from grpo_studio.config import RunConfig
from grpo_studio.memory.cache import TraceCache
from grpo_studio.memory.calibrated import Calibrated, model_with
from grpo_studio.memory.closed_forms import ModelShape
from grpo_studio.memory.closed_pass import ClosedPass
from grpo_studio.memory.forecast import CardSize
from grpo_studio.memory.model_configs import config_of
from grpo_studio.memory.plan import ASSUMED_PROMPT, Measured, Plan
from grpo_studio.memory.traced import Traced, TraceRequest
from grpo_studio.memory.tracer import TraceError, Tracer
from grpo_studio.memory.tracing import TracedModel, request_of
from grpo_studio.settings import Settings

ALL_WITHIN = 9.0
"""Seconds after which no further model is traced for the sake of a change that would make a run fit."""
CLOSED_FORM = "closed form from the model's numbers alone, coarser than a trace"

EXPERTS = "the closed form knows no mixture of experts: it counts one expert a layer, so weights are far too low"


class Source:
    """Plans and parts for the configurations of one forecast; starts a tracer only when something is traced.

    Args:
        tracer: a warm one, which stays; else one is started and ends with `stack`.

    Attributes:
        notes: what a person should know of how the parts were found.
        traced: how many traces were made.
    """

    def __init__(
        self,
        settings: Settings,
        card: CardSize | None,
        prompt_tokens: int | None,
        tracer: Tracer | None,
        stack: ExitStack,
    ) -> None:
        self._settings, self._card, self._tracer, self._stack = settings, card, tracer, stack
        self._prompt_tokens = ASSUMED_PROMPT if prompt_tokens is None else prompt_tokens
        self._cache = TraceCache(settings.cache)
        self._began = time.monotonic()
        self._last_trace = 0.0
        self.notes: list[str] = []
        self.traced = 0

    @property
    def seconds(self) -> float:
        """Since the beginning; 0 when nothing had to be traced."""
        return round(time.monotonic() - self._began, 3) if self.traced else 0.0

    def measured(self, config: RunConfig) -> tuple[Plan, Measured]:
        """The run's own: by a trace, else by the closed form with a note that says why.

        Raises:
            ModelError: the model's config cannot be had.
        """
        plan, request = self._plan(config)
        backend = config.memory.loss_backend
        try:
            traced = self._cache.get(request, self._trace)
        except TraceError as error:
            self.notes.append(f"{CLOSED_FORM}: {str(error).rpartition('; ')[0] or error}")
            if error.model_bytes is None and any("expert" in name for name in request.config):
                self.notes.append(EXPERTS)
            return plan, ClosedPass(plan, error.model_bytes)
        if backend not in traced.loss:
            why = traced.untraced.get(backend, "it was not traced")
            self.notes.append(f"{CLOSED_FORM}: {backend} cannot do this model's loss: {why}")
            return plan, ClosedPass(plan, traced.model)
        self.notes += traced.notes
        self.notes += [f"{name} is left out: {why}" for name, why in traced.untraced.items()]
        return plan, TracedModel(traced, plan.completions, plan.shape.tied)

    def changed(self, config: RunConfig, near: Plan, by: Measured) -> tuple[Plan, Measured]:
        """One that differs a little from the run's own: by a trace where there is one or time for it.

        A second question about the same run is to be answered at once: then nothing is traced for a change.
        """
        plan, request = self._plan(config)
        if isinstance(by, ClosedPass):
            return plan, ClosedPass(plan, model_with(plan, near, by.model))
        traced = self._cache.known(request)
        if traced is None and self.traced and time.monotonic() - self._began + self._last_trace < ALL_WITHIN:
            try:
                traced = self._cache.get(request, self._trace)
            except TraceError:
                traced = None  # it is estimated, as when there is no time
        if traced is not None:
            return plan, TracedModel(traced, plan.completions, plan.shape.tied)
        return plan, Calibrated(plan, near, by)

    def _plan(self, config: RunConfig) -> tuple[Plan, TraceRequest]:
        of_model = config_of(config.model, self._settings)
        plan = Plan.of(config, ModelShape.of(of_model), self._card, self._prompt_tokens)
        return plan, request_of(plan, of_model)

    def _trace(self, request: TraceRequest) -> Traced:
        if self._tracer is None:
            self._tracer = self._stack.enter_context(Tracer())
        began = time.monotonic()
        self.traced += 1
        try:
            return self._tracer.trace(request)
        except TraceError:
            raise
        except OSError as error:  # a machine without room for another process
            raise TraceError(f"the process that traces models does not start: {error.strerror or error}") from error
        finally:
            self._last_trace = time.monotonic() - began
