"""Workers that are killed in every phase, hang after their end, run out of memory, talk without end, meet NaN."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest
from faults import WITHIN, require_nothing_lost, state_within, with_fault
from live_runs import events_of, family, start, step_of, worker_of
from studio_process import as_json, studio, tiny_train, wait_for
from trained_here import trainer_of

from grpo_studio import supervisor
from grpo_studio.checkpoints import whole_checkpoints
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, run_folders
from grpo_studio.store.log import LARGEST, tail
from grpo_studio.store.reader import RunReader
from grpo_studio.worker_end import ending_by

PHASES = ("rollout", "score", "reference", "loss", "optimizer", "evaluate", "save", "staging")
EVERY_PHASE = (
    "--set", "checkpoint.every=1", "--set", "evaluation.every=1", "--set", "algorithm.beta=0.04",
    "--set", "dataset.held_out=4",
)  # fmt: skip


def run_of(result: object, home: Path) -> RunFolder:
    return RunFolder(home / "runs" / as_json(result)["run"])  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_killed_in_a_phase(tmp_path: Path, tiny_model: Path, phase: str) -> None:
    folder = start(tiny_model, tmp_path, *EVERY_PHASE, **with_fault(f"kill:{phase}"))
    wait_for(lambda: supervisor.state_of(folder).ended, what="the end")
    wait_for(lambda: "signal 9" in supervisor.state_of(folder).reason, limit=WITHIN, what="the signal in the reason")
    state = supervisor.state_of(folder)
    assert state.state == "killed"
    steps = step_of(folder)
    whole = [checkpoint.step for checkpoint in whole_checkpoints(folder)]
    assert f"resume goes on after step {whole[-1]}" in state.reason if whole else "start the run again" in state.reason
    assert f"last step {steps}" in state.reason if steps else "before its first step" in state.reason
    require_nothing_lost(folder, steps)
    if phase == "staging":
        assert [path.name for path in folder.checkpoints.iterdir() if path.name.startswith(".saving-")]


@pytest.mark.slow
def test_a_worker_killed_while_it_loads(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path)
    wait_for(lambda: "loading" in supervisor.state_of(folder).reason, what="loading")
    os.kill(worker_of(folder).pid, signal.SIGKILL)
    wait_for(lambda: "signal 9" in supervisor.state_of(folder).reason, limit=WITHIN, what="the signal in the reason")
    assert supervisor.state_of(folder).reason.endswith("before its first step; start the run again")
    require_nothing_lost(folder, 0)


@pytest.mark.slow
def test_a_worker_that_hangs_after_its_end_is_ended_and_its_end_stands(tmp_path: Path, tiny_model: Path) -> None:
    """A thread of its own keeps it alive, and a child that it started lives on as well."""
    result = tiny_train(tiny_model, tmp_path, "--wait", **with_fault("linger"), GRPO_STUDIO_GRACE="3")
    folder = run_of(result, tmp_path)
    shown = as_json(result)
    assert (shown["state"], shown["reason"], result.returncode) == ("finished", "all 3 steps done", 0)
    process = folder.process()
    assert process is not None
    assert process.signal is not None
    assert family(process.session) == []


@pytest.mark.slow
def test_memory_that_runs_out_is_named(tmp_path: Path, tiny_model: Path) -> None:
    """The address space is limited to what the worker has, so that an allocation fails as it does on a full machine."""
    folder = start(tiny_model, tmp_path, **with_fault("hunger"))
    wait_for(lambda: supervisor.state_of(folder).ended, what="the end")
    state = supervisor.state_of(folder)
    assert state.state == "failed"
    assert state.reason.startswith("out of memory in the loss (forward and backward) of step 2: asked for 1.1 GB with ")
    assert state.reason.rpartition("; ")[2].startswith(("set ", "use "))
    require_nothing_lost(folder, 1)


@pytest.mark.slow
def test_a_worker_that_talks_without_end_fills_no_disk(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path, **with_fault("chatter:200000000"))
    wait_for(lambda: step_of(folder) >= 2, what="step 2")
    wait_for(
        lambda: folder.log.stat().st_size < LARGEST and b"left out here" in folder.log.read_bytes(),
        limit=30,
        what="a bounded log",
    )
    assert len(tail(folder.log)) <= 64 * 1024
    assert as_json(studio("stop", folder.run_id, "--json", home=tmp_path))["state"] == "stopped"
    assert folder.log.stat().st_size < LARGEST


@pytest.mark.filterwarnings("ignore")
def test_a_loss_that_is_no_number_is_an_alarm_and_ends_the_run(
    tiny_model: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second step on the loss is NaN, so are the gradients, then the weights; from those nothing is sampled."""
    from grpo_studio.training.trainer import StudioTrainer

    compute = StudioTrainer.compute_loss

    def diverging(self: StudioTrainer, *arguments: object, **more: object) -> object:
        loss = compute(self, *arguments, **more)
        return loss * float("nan") if self.state.global_step >= 1 else loss

    monkeypatch.setattr(StudioTrainer, "compute_loss", diverging)
    with pytest.raises(RuntimeError, match="nan") as caught:
        trainer_of(tiny_model, settings)("algorithm.steps=9")
    [folder] = run_folders(settings.runs_dir)
    told = [event for event in events_of(folder) if event.kind == "non_finite"]
    assert told
    assert told[0].level == "error"
    assert "step 2: not a finite number: " in told[0].message
    assert "optim/loss" in told[0].message
    with RunReader(folder.database) as reader:
        assert json.loads(json.dumps(reader.last_metrics(), allow_nan=False))["optim/loss"] is None
    ending = ending_by(caught.value, folder)
    assert ending.kind == "run_failed"
    assert "; use a smaller algorithm.learning_rate" in ending.message


@pytest.mark.slow
def test_the_machine_was_started_anew(tmp_path: Path, tiny_model: Path) -> None:
    """Worker, dispatcher and all are gone; the worker's pid belongs to another program, of another boot."""
    folder = start(tiny_model, tmp_path)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    worker = psutil.Process(worker_of(folder).pid)
    server = worker.parent()
    assert server is not None
    server.kill()
    worker.kill()
    stranger = psutil.Popen(["sleep", "100"], start_new_session=True)
    try:
        boot = "11111111-2222-3333-4444-555555555555"
        record = json.loads(folder.process_path.read_text())
        reused = record | {
            "pid": stranger.pid,
            "session": stranger.pid,
            "started": f"{boot}:{record['started'].rpartition(':')[2]}",
        }
        folder.process_path.write_text(json.dumps(reused))
        state = state_within(folder, "killed")
        assert "the machine went down with the worker" in state.reason
        assert as_json(studio("stop", folder.run_id, "--json", home=tmp_path))["state"] == "killed"
        require_nothing_lost_of(folder, record["session"])
        assert stranger.is_running()
        assert stranger.status() != psutil.STATUS_ZOMBIE
    finally:
        stranger.kill()
        stranger.wait()


def require_nothing_lost_of(folder: RunFolder, session: int) -> None:
    wait_for(lambda: family(session) == [], limit=WITHIN, what="the end of all of its processes")
    with RunReader(folder.database) as reader:
        assert reader.last_step() >= 1
