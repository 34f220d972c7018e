"""A made-up run, written through the real RunWriter: for the browser tests, the pictures, and trying the pages by hand.

`PYTHONPATH=. python tests/sample_run.py HOME [STATE]` makes one in HOME/runs; STATE is running (default), finished, failed
or preparing. A run that looks alive names this process as its worker, so it is alive as long as the caller is.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.process_identity import start_token
from grpo_studio.store.folder import ProcessRecord, RunFolder, create_run
from grpo_studio.store.records import CompletionRecord, GroupRecord, MemorySample, ScoreRecord
from grpo_studio.store.writer import RunWriter

STEPS, PROMPTS, GROUP_SIZE = 60, 4, 8
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> is 15'
HOSTILE_PROMPT = "What is 9 + 6? </textarea><style>body{display:none}</style><b id=injected>"
PHASES = {"rollout": 3.4, "score": 0.25, "loss": 1.5, "optimizer": 0.35, "sync": 0.02}


class SampleRun:
    """A run whose steps are written on demand; `step()` may be called while a page looks on."""

    def __init__(
        self,
        home: Path,
        name: str = "quickstart",
        beta: float = 0.04,
        steps: int = STEPS,
        seed: int = 3,
        cards: tuple[str, ...] = (),
    ) -> None:
        """`cards`: GPUs whose memory is sampled; none: the process's resident size on a CPU."""
        self.random = random.Random(seed)
        self.beta = beta
        self.cards = cards
        self.config = sample_config(steps, beta)
        self.folder: RunFolder = create_run(home / "runs", self.config, name)
        self.writer = RunWriter(self.folder.database, attempt=1)
        self.now = 0
        self.evaluations: dict[int, float] = {}
        self.folder.log.write_text("loading the model\n\x1b[31mwarning\x1b[0m <b>not bold</b>\n", encoding="utf-8")

    def prepare(self, worker: int | None = None) -> None:
        """Name a process that is alive, this one by default, as the run's worker."""
        me = os.getpid() if worker is None else worker
        self.folder.write_process(ProcessRecord(me, start_token(me) or "", os.getsid(0), os.uname().nodename, 1))
        self.writer.event("preparing", "loading the model HuggingFaceTB/SmolLM2-135M-Instruct")

    def begin(self) -> None:
        self.prepare()
        self.evaluate()
        if self.cards:
            watched = {"device": self.cards[0], "bytes": 8 * 10**9, "others": "nvml", "tensors": False}
            self.writer.event("memory_watched", f"memory is watched on {self.cards[0]}, 8 GB", data=watched)
        self.writer.event("training_started", "first step begins")

    def advance(self, count: int = 1) -> None:
        """Write the next steps."""
        for _ in range(count):
            self.now += 1
            self._one_step()
            if self.now % 10 == 0:
                self.evaluate()

    def end(self, kind: str, message: str) -> None:
        self.writer.event(kind, message, level="error" if kind == "run_failed" else "info")

    def evaluate(self) -> None:
        reward = _skill(self.now) * 1.25 + self.random.uniform(-0.05, 0.05)
        self.evaluations[self.now] = reward
        with self.writer.transaction():
            self.writer.metrics(
                self.now,
                {"eval/reward": reward, "eval/math_numeric/mean": reward * 0.75, "eval/bare_number/mean": reward * 0.4},
            )
            self.writer.event("evaluation", f"held-out reward {reward:.2f} on 32 rows", data={"step": self.now})

    def _one_step(self) -> None:
        groups = [self._group(place) for place in range(PROMPTS)]
        log = f"step {self.now} loss {self.random.gauss(0, 0.02):.4f}\n"
        with self.writer.transaction():
            self.writer.groups(self.now, groups)
            self.writer.phase_times(
                self.now, (phases := {k: v * self.random.uniform(0.8, 1.25) for k, v in PHASES.items()})
            )
            self.writer.metrics(self.now, self._metrics(groups, phases))
            self.writer.memory_samples(self._memory(phases))
        with self.folder.log.open("a", encoding="utf-8") as file:
            file.write(log)

    def _group(self, place: int) -> GroupRecord:
        left, right = self.random.randint(2, 40), self.random.randint(2, 40)
        skill = _skill(self.now) + self.random.uniform(-0.35, 0.25)
        if place == 3:
            skill = 2.0 if self.now > 20 and self.now % 3 else -2.0
        texts = [self._text(left, right, skill) for _ in range(GROUP_SIZE)]
        rewards = [right_answer * 1.0 + bare * 0.5 for _, right_answer, bare, _ in texts]
        mean = sum(rewards) / GROUP_SIZE
        std = math.sqrt(sum((r - mean) ** 2 for r in rewards) / (GROUP_SIZE - 1))
        prompt = HOSTILE_PROMPT if place == 0 else f"What is {left} + {right}? Reply with the number only."
        completions = tuple(
            self._completion(item, reward, mean, std) for item, reward in zip(texts, rewards, strict=True)
        )
        if place == 0:
            completions = (_hostile(completions[0]), *completions[1:])
        return GroupRecord(prompt, str(left + right), completions, mean, std)

    def _text(self, left: int, right: int, skill: float) -> tuple[str, float, float, int]:
        correct = self.random.random() < skill
        value = left + right if correct else left + right + self.random.choice([-10, -1, 1, 2, 10])
        form = self.random.random() + skill * 0.4
        if form > 0.8:
            return str(value), float(correct), 1.0, len(str(value))
        if form > 0.3:
            return f"{left} + {right} = {value}. So the answer is {value}", float(correct), 0.0, 11
        start = f"Adding {left} to {right} gives {left} and {right} more, which you can count on your fingers as "
        return start + ", ".join(str(left + n) for n in range(40)), 0.0, 0.0, 24

    def _completion(
        self, item: tuple[str, float, float, int], reward: float, mean: float, std: float
    ) -> CompletionRecord:
        text, right_answer, bare, tokens = item
        words = text.rstrip(",").split()
        numeric = ScoreRecord(
            "math_numeric",
            right_answer,
            1.0,
            0.001,
            "equal to the gold" if right_answer else "differs from the gold",
            words[-1],
        )
        format_score = ScoreRecord(
            "bare_number", bare, 0.5, 0.001, "only a number" if bare else "text around the number"
        )
        advantage = (reward - mean) / (std + 1e-4)
        return CompletionRecord(text, tokens, tokens >= 24, reward, advantage, (numeric, format_score))

    def _metrics(self, groups: list[GroupRecord], phases: dict[str, float]) -> dict[str, float | None]:
        everything = [c for g in groups for c in g.completions]
        rewards = [c.reward for c in everything if c.reward is not None]
        mean = sum(rewards) / len(rewards)
        dead = [g for g in groups if g.reward_std == 0]
        good = sum((g.reward_mean or 0) > 0.75 for g in dead)
        noise = self.random.gauss
        metrics: dict[str, float | None] = {
            "reward/mean": mean,
            "reward/std": math.sqrt(sum((r - mean) ** 2 for r in rewards) / len(rewards)),
            "group/mixed": 1 - len(dead) / len(groups),
            "group/all_good": good / len(groups),
            "group/all_bad": (len(dead) - good) / len(groups),
            "group/effective_batch": (len(groups) - len(dead)) * GROUP_SIZE,
            "advantage/abs_mean": sum(abs(c.advantage or 0) for c in everything) / len(everything),
            "completion/length_mean": sum(c.tokens for c in everything) / len(everything),
            "completion/truncated": sum(c.truncated for c in everything) / len(everything),
            "policy/kl": None if self.beta == 0 else 0.0005 * self.now * (1 + noise(0, 0.1)),
            "policy/entropy": max(0.05, 1.1 - 0.015 * self.now + noise(0, 0.05)),
            "policy/clip_low": abs(noise(0, 0.004)),
            "policy/clip_high": abs(noise(0, 0.006)),
            "policy/ratio_mean": 1 + noise(0, 0.001),
            "optim/loss": noise(0, 0.02),
            "optim/grad_norm": abs(noise(2, 0.6)),
            "optim/lr": 1e-5,
            "throughput/completion_tokens_per_s": noise(190, 12),
            "time/step": sum(phases.values()),
        }
        for place, name in enumerate(("math_numeric", "bare_number")):
            values = [c.scores[place].value for c in everything if c.scores[place].value is not None]
            metrics[f"reward/{name}/mean"] = sum(values) / len(values)
            metrics[f"verifier/{name}/abstained"] = 0.0
        metrics |= {f"time/{phase}": seconds for phase, seconds in phases.items()}
        peaks = {"rollout": 2.2e9, "loss": 2.9e9, "optimizer": 2.6e9}
        if self.cards:
            metrics["memory/others"] = 6e8 + 2e8 * math.sin(self.now / 4)
        return metrics | {f"memory/peak/{phase}": value * noise(1, 0.01) for phase, value in peaks.items()}

    def _memory(self, phases: dict[str, float]) -> list[MemorySample]:
        levels = {"rollout": 2.2e9, "score": 2.0e9, "loss": 2.9e9, "optimizer": 2.6e9, "sync": 2.1e9}
        moment, samples = time.time() - sum(phases.values()) - (STEPS - self.now) * 5.6, []
        for phase, seconds in phases.items():
            for part in range(max(1, round(seconds))):
                rss = int(levels[phase] * self.random.uniform(0.96, 1.0))
                samples.append(MemorySample(moment + part, self.now, phase, "cpu", None, None, rss))
                if self.cards:
                    samples[-1:] = [self._on_card(samples[-1], place) for place in range(len(self.cards))]
            moment += seconds
        return samples

    def _on_card(self, sample: MemorySample, place: int) -> MemorySample:
        allocated = int((sample.rss or 0) * (1.4 + 0.1 * place))
        return replace(sample, device=self.cards[place], allocated=allocated, reserved=5 * 10**9, rss=10**9)


def sample_config(steps: int, beta: float) -> RunConfig:
    data: dict[str, Any] = {
        "rewards": [
            {"verifier": "math_numeric"},
            {"verifier": "regex_match", "name": "bare_number", "weight": 0.5, "params": {"pattern": r"\d+"}},
        ],
        "algorithm": {
            "steps": steps,
            "prompts_per_step": PROMPTS,
            "group_size": GROUP_SIZE,
            "beta": beta,
            "max_completion_length": 24,
        },
        "evaluation": {"every": 10},
    }
    return RunConfig.model_validate(data)


def _skill(step: int) -> float:
    return 0.08 + 0.62 / (1 + math.exp(-(step - 20) / 5))


def _hostile(completion: CompletionRecord) -> CompletionRecord:
    return CompletionRecord(
        HOSTILE + " filler" * 900, 24, True, completion.reward, completion.advantage, completion.scores
    )


def main() -> None:
    home, state = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "running"
    run = SampleRun(home)
    if state == "preparing":
        run.prepare()
    else:
        run.begin()
        run.advance(40)
        if state == "finished":
            run.end("run_finished", "all steps done")
        elif state == "failed":
            run.end("run_failed", "the loss is not finite at step 40")
    print(run.folder.run_id, flush=True)
    if state in ("running", "preparing"):
        for _ in range(600):
            time.sleep(8)
            if state == "running" and run.now < STEPS:
                run.advance()


if __name__ == "__main__":
    main()


def begun(home: Path) -> SampleRun:
    """A run that has done three steps and goes on."""
    run = SampleRun(home)
    run.begin()
    run.advance(3)
    return run
