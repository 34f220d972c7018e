"""The tiny model written as a GGUF file, as llama.cpp's converter would write it, and broken forms of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LAYER_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OTHER_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
NORMAL, CONTROL = 1, 3


def write_tiny_gguf(model: Path, path: Path, architecture: str = "llama", **changes: Any) -> Path:
    """Write the tiny model in `model` to `path`; returns it.

    Args:
        changes: tokenizer (False: none), weights (False: none), licence, add_bos, eos (an id), eot (an id), split.
    """
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((model / "config.json").read_text())
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("Tiny")
    writer.add_license(changes.get("licence", "apache-2.0"))
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    if "split" in changes:
        writer.add_uint16("split.count", changes["split"])
    if changes.get("tokenizer", True):
        _add_tokenizer(writer, tokenizer, config, changes)
        writer.add_chat_template((model / "chat_template.jinja").read_text())
    if changes.get("weights", True):
        for name, weights in load_file(model / "model.safetensors").items():
            writer.add_tensor(_gguf_name(name), _permuted(name, weights, config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: Any, tokenizer: dict[str, Any], config: dict[str, Any], changes: dict[str, Any]) -> None:
    ids = tokenizer["model"]["vocab"]
    special = {entry["id"] for entry in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(sorted(ids, key=lambda token: ids[token]))
    writer.add_token_types([CONTROL if number in special else NORMAL for number in sorted(ids.values())])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(changes.get("eos", config["eos_token_id"]))
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(changes.get("add_bos", False))
    if "eot" in changes:
        writer.add_eot_token_id(changes["eot"])


def _gguf_name(name: str) -> str:
    stem, _, end = name.rpartition(".")
    if stem in OTHER_NAMES:
        return f"{OTHER_NAMES[stem]}.{end}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[part]}.{end}"


def _permuted(name: str, weights: Any, config: dict[str, Any]) -> Any:
    """llama.cpp keeps the rows of query and key in the order of its own rotary embedding."""
    for part, heads in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
        if part in name:
            rows = weights.reshape(config[heads], 2, -1, weights.shape[-1])
            return rows.swapaxes(1, 2).reshape(weights.shape).copy()
    return weights
