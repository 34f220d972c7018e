"""What says that there was no memory, and what a person is told of it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch

from grpo_studio.config import RunConfig
from grpo_studio.errors import CheckpointError, ModelError, OutOfMemoryError, StudioError
from grpo_studio.memory.allocation import asked_for, out_of_memory
from grpo_studio.memory.forecast import CardSize, Change, Forecast
from grpo_studio.memory.smallest_change import Shortage, in_words, looked_ahead, room_by_forecast, without_forecast
from grpo_studio.ranks import told_with
from grpo_studio.settings import Settings
from grpo_studio.training.memory_in_use import InUse, in_use
from grpo_studio.training.out_of_memory import FailureClock, Scene, message, told, where
from grpo_studio.worker_end import ending_by, one_line

GB = 10**9
CUDA = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free."
)
ON_CPU = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "1099511627776 bytes. Error code 12 (Cannot allocate memory)"
)
CARD = InUse("NVIDIA H100", 80 * GB, 70 * GB, 74 * GB, 76 * GB)


def real_failure() -> Exception:
    """What torch's own allocator raises."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    return caught.value


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (torch.OutOfMemoryError(CUDA), int(2.5 * 2**30)),
        (torch.OutOfMemoryError("Tried to allocate 20.00 MiB"), 20 * 2**20),
        (RuntimeError(ON_CPU), 2**40),
        (MemoryError(), None),
        (MemoryError("Unable to allocate 256. PiB for an array"), 256 * 2**50),
        (RuntimeError("CUDA error: out of memory"), None),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), None),
        (RuntimeError("std::bad_alloc"), None),
        (RuntimeError("unable to mmap 4096 bytes from file <x>: Cannot allocate memory (12)"), 4096),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), None),
        (RuntimeError("memory allocation of 1234 bytes failed"), 1234),
        (OutOfMemoryError("out of memory in the loss; x"), None),
    ],
    ids=[
        "gpu", "gpu, less", "cpu", "python", "numpy", "driver", "cublas", "c++", "mmap", "system", "rust", "ours"
    ],
)  # fmt: skip
def test_an_error_of_memory_is_known_with_what_was_asked_for(error: BaseException, asked: int | None) -> None:
    assert out_of_memory(error) is error
    assert asked_for(error) == asked


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        ModelError("the chat's process ended: killed by signal 9, likely out of memory; close other programs"),
        RuntimeError("the size of tensor a (3) must match"),
        KeyboardInterrupt("out of memory"),
    ],
    ids=["disk", "words of ours", "shapes", "a person"],
)
def test_other_errors_are_not(error: BaseException) -> None:
    assert out_of_memory(error) is None


def test_what_an_error_came_from_counts() -> None:
    """A checkpoint that could not be read for want of memory; not one that failed while another was handled."""
    cause = MemoryError()
    wrapped, after = CheckpointError("cannot be read; branch"), CheckpointError("cannot be read; branch")
    wrapped.__cause__, after.__context__ = cause, cause
    late = ValueError("while it was handled")
    late.__context__ = cause
    assert out_of_memory(wrapped) is cause
    assert out_of_memory(after) is None
    assert out_of_memory(late) is cause
    cause.__context__ = wrapped  # a circle ends
    assert out_of_memory(wrapped) is cause


def test_torch_itself_says_what_is_expected() -> None:
    error = real_failure()
    assert out_of_memory(error) is error
    assert asked_for(error) == 1 << 60


def test_the_clock_notes_the_phases_of_an_error_and_goes_on() -> None:
    clock = FailureClock()
    with pytest.raises(MemoryError) as caught, clock.phase("rehearsal"), clock.phase("loss"):
        raise MemoryError
    assert where(caught.value.phases_of_grpo_studio, 0, "") == (  # type: ignore[attr-defined]
        "in the rehearsal before step 1, in the loss (forward and backward)"
    )
    assert clock.current == "other"


@pytest.mark.parametrize(
    ("phases", "step", "doing", "words"),
    [
        (("loss",), 2, "", "in the loss (forward and backward) of step 3"),
        (("rollout",), 0, "", "in the rollout of step 1"),
        (("optimizer",), 0, "", "in the optimizer of step 1"),
        (("evaluate",), 0, "scoring", "in the evaluation before step 1"),
        (("evaluate",), 4, "", "in the evaluation after step 4"),
        (("rehearsal",), 5, "rehearsing", "in the rehearsal before step 6"),
        ((), None, "loading some/model", "while loading some/model"),
        ((), 0, "loading some/model", "while loading some/model"),
        ((), 3, "", "in step 4"),
    ],
    ids=["loss", "rollout", "optimizer", "baseline", "evaluation", "rehearsal", "no trainer", "preparing", "between"],
)
def test_where_it_happened(phases: tuple[str, ...], step: int | None, doing: str, words: str) -> None:
    assert where(phases, step, doing) == words


def forecast_of(loss: int, *changes: Change, card: int = 76 * GB) -> Forecast:
    parts = {"loss": {"weights": loss}, "rollout": {"weights": 20 * GB}}
    return Forecast(parts, "traced", 100, 100, 8, CardSize("x", card, "asked for"), changes=changes)


def scene(settings: Settings, **config: dict[str, object]) -> Scene:
    return Scene(
        RunConfig.model_validate(config), settings, settings.home, torch.device("cpu"), "", 2, "other", 100, 0
    )  # fmt: skip


def test_the_line_says_phase_step_use_forecast_and_what_fits(settings: Settings) -> None:
    change = Change({"memory.micro_batch": 4, "memory.gradient_checkpointing": True}, True, 50 * GB, True)
    fix = in_words(change, change.total_bytes)
    line = message(scene(settings), ("loss",), CARD, int(2.5 * GB), forecast_of(90 * GB), fix)
    assert line == (
        "out of memory in the loss (forward and backward) of step 3: asked for 2.5 GB with 70 GB allocated "
        "(74 GB reserved) of 80 GB on NVIDIA H100, where the forecast is 90 GB (loss); set memory.micro_batch=4 and "
        "memory.gradient_checkpointing=true, for which the forecast is 50 GB"
    )
    assert "\n" not in line


def test_without_a_forecast_the_line_names_what_usually_helps(settings: Settings) -> None:
    use = InUse("the CPU", 16 * GB, 3 * GB, None, 5 * GB)
    line = message(scene(settings), ("loss",), use, None, None, None)
    assert line == (
        "out of memory in the loss (forward and backward) of step 3: 3.0 GB in use of 16 GB on the CPU; "
        "use a smaller memory.micro_batch (now 16) or a smaller algorithm.max_completion_length (now 256)"
    )


def test_a_phase_that_is_not_the_greatest_is_named_beside_it(settings: Settings) -> None:
    line = message(scene(settings), ("rollout",), CARD, None, forecast_of(30 * GB), None)
    assert ", where the forecast is 20 GB for this phase and 30 GB at most (loss); use fewer" in line


@pytest.mark.parametrize(
    ("said", "needed", "room"),
    [
        (90 * GB, 79 * GB, 76 * GB),  # the forecast knew: what is there is what there is
        (38 * GB, 76 * GB, 38 * GB),  # it said half: a change has to come to half as well
        (38 * GB, 10 * GB, 38 * GB),  # less was in use than there was, as where it is in pieces: all of it was needed
    ],
)
def test_a_change_is_held_against_what_was_really_needed(said: int, needed: int, room: int) -> None:
    assert room_by_forecast(forecast_of(said), "loss", 76 * GB, needed) == room


ON_GPU = Shortage("loss", 76 * GB, 79 * GB, on_gpu=True)
SMALLER = Change({"memory.micro_batch": 1}, True, 50 * GB, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((SMALLER,), "set memory.micro_batch=1, for which the forecast is 50 GB"),
        ((Change({"scale.processes": 8}, True, 20 * GB, True), SMALLER), "set memory.micro_batch=1"),
        ((Change({"scale.processes": 8}, True, 20 * GB, True),), "set scale.processes=8"),
        ((Change({"memory.micro_batch": 1}, True, 80 * GB, False),), None),
        ((), None),
    ],
    ids=["one", "no further devices, first", "further devices", "does not fit", "none"],
)
def test_the_first_change_that_fits_is_proposed(changes: tuple[Change, ...], words: str | None) -> None:
    _, fix = looked_ahead(RunConfig(), ON_GPU, lambda config, card: forecast_of(90 * GB, *changes))
    assert fix is None if words is None else fix is not None and fix.startswith(words)


def test_a_forecast_that_said_too_little_has_to_come_to_less() -> None:
    """It said 45 of the 79 that were needed: so the room that it is held to is smaller than what there was."""
    cards: list[int | None] = []

    def ask(config: RunConfig, card: int | None) -> Forecast:
        cards.append(card)
        return forecast_of(45 * GB)

    looked_ahead(RunConfig(), ON_GPU, ask)
    there, held_to = cards
    assert there is not None
    assert held_to is not None
    assert held_to / there == pytest.approx(45 / 79, rel=0.01)


def test_on_a_cpu_only_tensors_count_and_no_further_devices_are_proposed() -> None:
    """What a forecast for a card adds for CUDA is taken off again, by a forecast of the changed settings."""
    smaller = Change({"memory.micro_batch": 8}, True, 3 * GB, True)
    asked: list[tuple[int, int | None]] = []

    def ask(config: RunConfig, card: int | None) -> Forecast:
        micro_batch = config.effective_micro_batch()
        asked.append((micro_batch, card))
        changes = () if card is None else (Change({"scale.processes": 2}, True, GB, True), smaller)
        return Forecast({"loss": {"weights": micro_batch * GB // 8}}, "traced", 9, 9, micro_batch, changes=changes)

    forecast, fix = looked_ahead(RunConfig(), Shortage("loss", int(1.5 * GB), 2 * GB, on_gpu=False), ask)
    assert forecast.by_phase["loss"] == 2 * GB
    assert fix == "set memory.micro_batch=8, for which the forecast is 1.0 GB"
    assert [card is None for _, card in asked] == [True, False, True]
    assert [micro_batch for micro_batch, _ in asked] == [16, 16, 8]


@pytest.mark.parametrize(
    ("memory", "phase", "words"),
    [
        ({}, "loss", "memory.micro_batch (now 16)"),
        ({"micro_batch": 1}, "loss", "memory.gradient_checkpointing=true"),
        ({"micro_batch": 1, "gradient_checkpointing": True}, "loss", "memory.adapter=lora"),
        ({"adapter": "lora"}, None, "memory.adapter=qlora"),
        ({"adapter": "qlora"}, "optimizer", "a smaller model"),
        ({}, "rollout", "algorithm.prompts_per_step (now 4)"),
    ],
)
def test_what_usually_helps_is_something_that_is_not_set_yet(
    memory: dict[str, object], phase: str | None, words: str
) -> None:
    assert words in without_forecast(RunConfig.model_validate({"memory": memory}), phase)


def test_a_rank_says_what_a_single_process_says_and_the_fix_stays_last() -> None:
    assert told_with("rank 1: out of memory in the loss; set a=1", "last step 3") == (
        "rank 1: out of memory in the loss; last step 3; the other processes were ended; set a=1"
    )
    assert told_with("rank 0 was killed", "before the first step") == (
        "rank 0 was killed; before the first step; the other processes were ended"
    )


def test_the_error_is_the_runs_end_word_for_word(settings: Settings, tmp_path: Path) -> None:
    from grpo_studio.store.folder import create_run

    folder = create_run(settings.runs_dir, RunConfig())
    error = OutOfMemoryError("out of memory in the loss of step 3: 3 GB in use; set memory.micro_batch=4")
    assert isinstance(error, StudioError)
    assert ending_by(error, folder).message == str(error)
    assert ending_by(error, folder).kind == "run_failed"
    assert one_line(MemoryError()) == "MemoryError; use a smaller memory.micro_batch or a shorter completion"


def test_what_is_in_use_is_this_process_and_what_is_left_is_bounded() -> None:
    use = in_use(torch.device("cpu"))
    assert 0 < use.used <= use.total
    assert 0 < use.available <= use.total
    assert in_use(torch.device("cpu"), besides=1 << 60).available == 0


def test_the_frames_of_the_error_let_go_of_what_they_hold(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the line is made: what is asked for the forecast may need that memory."""
    import weakref

    from grpo_studio.memory import forecasting

    held: list[weakref.ref[torch.Tensor]] = []

    def fails() -> None:
        large = torch.zeros(1000)
        held.append(weakref.ref(large))
        torch.empty(1 << 60, dtype=torch.uint8)

    alive: list[bool] = []

    def forecast(*arguments: object, **more: object) -> Forecast:
        alive.append(held[0]() is not None)
        return forecast_of(1)

    monkeypatch.setattr(forecasting, "forecast", forecast)
    try:
        fails()
    except RuntimeError as error:
        line = str(told(error, scene(settings)))
    assert alive[0] is False
    assert line.startswith("out of memory in step 3: asked for 1,152,921,505 GB with ")
