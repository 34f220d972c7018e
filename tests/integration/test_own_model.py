"""A run on a GGUF file with a chosen chat template: turned back, rendered, ended and saved as chosen."""

from __future__ import annotations

import json
from pathlib import Path

from tiny_gguf import write_tiny_gguf
from trained_here import trainer_of

from grpo_studio.settings import Settings
from grpo_studio.training.tokenization import load_tokenizer, render


def test_a_run_on_a_gguf_file_with_a_chosen_template(tiny_model: Path, tmp_path: Path, settings: Settings) -> None:
    gguf = write_tiny_gguf(tiny_model, tmp_path / "tiny.gguf")
    spoken = "{% for m in messages %}{{ 'Q ' + m['content'] if m['role'] == 'user' else ' A ' + m['content'] + '<|end|>' }}{% endfor %}"
    run = trainer_of(gguf, settings)(f"model.chat_template={spoken}", "model.dtype=float32")
    assert run.outcome.step == 2
    told = [message for kind, message, _ in run.events if kind == "preparing"]
    assert "converting tiny.gguf, 10%" in told
    final = run.folder.checkpoints / "final"
    tokenizer = load_tokenizer(str(final))
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|end|>", "<|end|>")
    assert render(tokenizer, [{"role": "user", "content": "1 + 1?"}]) == "Q 1 + 1?"
    ends = json.loads((final / "generation_config.json").read_text())["eos_token_id"]
    own = load_tokenizer(str(tiny_model)).eos_token_id
    assert {tokenizer.eos_token_id, own} <= set(ends), "it stops at both after the run, too"
