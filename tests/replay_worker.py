"""`python replay_worker.py RUN_DIR`: the worker itself, but completions are replayed instead of sampled.

What is replayed follows from the prompt and a completion's place in its group, so it is the same however the prompts
are spread over processes. Everything else is the real thing.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from grpo_studio import worker
from grpo_studio.ranks import launch
from grpo_studio.store.folder import RunFolder
from grpo_studio.training import session
from grpo_studio.training.trainer import StudioTrainer


class ReplayingTrainer(StudioTrainer):
    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        first = self.accelerator.process_index * len(prompt_ids)
        completions = [
            replayed(ids, (first + place) % self.num_generations, self.eos_token_ids[0])
            for place, ids in enumerate(prompt_ids)
        ]
        return completions, None


def replayed(prompt: list[int], place: int, end: int) -> list[int]:
    """Three to ten tokens of the byte alphabet and an end token."""
    digest = hashlib.sha256(repr((prompt, place)).encode()).digest()
    return [40 + byte % 180 for byte in digest[: 3 + digest[31] % 8]] + [end]


if __name__ == "__main__":
    session.StudioTrainer = ReplayingTrainer
    folder = Path(sys.argv[1])
    if "--launch" in sys.argv:
        sys.exit(launch(RunFolder(folder), 1, [sys.executable, __file__, str(folder)]))
    sys.exit(worker.main([str(folder)]))
