"""A tiny, random reward model for tests: a 2-layer Llama with a classification head, and a byte-level tokenizer."""

from __future__ import annotations

from pathlib import Path

from tiny_model import make_tiny_model


def make_tiny_reward_model(folder: Path, labels: int = 1, template: bool = True, pad: bool = True) -> Path:
    """Write the model to `folder`; returns it. Its scores are spread widely enough to tell texts apart."""
    import torch
    from transformers import AutoConfig, AutoTokenizer, LlamaForSequenceClassification

    make_tiny_model(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = AutoConfig.from_pretrained(folder)
    config.num_labels = labels
    if not pad:
        config.pad_token_id = None
    if not template:
        tokenizer.chat_template = None
        (folder / "chat_template.jinja").unlink()
    torch.manual_seed(5)
    model = LlamaForSequenceClassification(config)
    with torch.no_grad():
        model.score.weight.normal_(0, 1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
