"""Peak memory of a run before any weight is loaded: its modules traced without weights, closed forms for the rest."""

from __future__ import annotations

from contextlib import ExitStack

from grpo_studio.config import RunConfig
from grpo_studio.memory.changes import changes_for
from grpo_studio.memory.forecast import CardSize, Forecast
from grpo_studio.memory.forecast_notes import notes_of
from grpo_studio.memory.largest import largest_micro_batches
from grpo_studio.memory.phase_bytes import peak, phases
from grpo_studio.memory.sources import Source
from grpo_studio.memory.tracer import Tracer
from grpo_studio.memory.tracing import TracedModel
from grpo_studio.settings import Settings

ESTIMATED = "changes of precision, adapter, checkpointing or lengths are estimated here, and traced once they are made"


def forecast(
    config: RunConfig,
    settings: Settings,
    *,
    prompt_tokens: int | None = None,
    card: CardSize | None = None,
    tracer: Tracer | None = None,
) -> Forecast:
    """Peak memory by phase of one device. Blocks for seconds, or milliseconds when the model was traced before.

    Args:
        prompt_tokens: of the longest prompt; None: an assumption that a note names.
        card: what the run is to fit on; None: a CPU.
        tracer: a warm one; None: one is started when it is needed.

    Raises:
        ModelError: the model's config cannot be had.
    """
    with ExitStack() as stack:
        source = Source(settings, card, prompt_tokens, tracer, stack)
        plan, measured = source.measured(config)
        parts = phases(plan, measured, config.memory.loss_backend, plan.micro_batch)
        tried = changes_for(plan, measured, peak(parts), lambda changed: source.changed(changed, plan, measured))
        estimated = (ESTIMATED,) if any(one.estimated for one in tried) else ()
        return Forecast(
            parts_by_phase=parts,
            method="traced" if isinstance(measured, TracedModel) else "closed form",
            prompt_tokens=plan.prompt_tokens,
            completion_tokens=plan.completion_tokens,
            micro_batch=plan.micro_batch,
            card=card,
            largest_micro_batch=largest_micro_batches(plan, measured),
            changes=tuple(one.change for one in tried),
            notes=(*source.notes, *notes_of(plan, measured.counts, prompt_tokens is not None), *estimated),
            seconds=source.seconds,
        )
