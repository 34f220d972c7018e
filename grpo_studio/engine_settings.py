"""Settings of the training engine: memory and loss, rollouts, processes. Parts of `config.RunConfig`."""

from __future__ import annotations

from typing import Literal

from grpo_studio import hints
from grpo_studio.declaration import Finite, Section, setting


class MemorySettings(Section):
    loss_backend: Literal["liger", "trl", "full"] = setting(
        "liger",
        "Loss backend",
        "How the policy loss is computed. liger: Liger's fused chunks, least memory; trl: TRL's own chunked head; "
        "full: all logits at once, the baseline.",
    )
    chunk_size: int | None = setting(
        None,
        "Chunk size",
        "Completions in one chunk of Liger's loss. Empty: as many as hold 2,048 tokens, which is as far as Liger "
        "itself splits. Only for the liger backend.",
        ge=1,
        le=65_536,
    )
    micro_batch: int | None = setting(
        None,
        "Micro-batch",
        "Completions in one forward and backward pass of one process. Empty: derived; times the processes it must "
        "divide the completions of a step.",
        ge=1,
        le=65_536,
    )
    gradient_checkpointing: bool = setting(
        False,
        "Gradient checkpointing",
        "Less memory for activations, about a third more time for the update.",
    )
    adapter: Literal["none", "lora", "qlora"] = setting(
        "none",
        "Adapter",
        "Train all weights, a small adapter beside frozen weights (LoRA), or one beside weights in 4 bits (QLoRA).",
        hints=hints.ADAPTER,
    )
    lora_rank: int = setting(16, "LoRA rank", "Width of the adapter.", ge=1, le=4096, hints=hints.LORA_RANK)
    lora_alpha: Finite = setting(
        32.0, "LoRA alpha", "Scale of the adapter: its output times alpha / rank.", gt=0, le=1e6
    )
    lora_dropout: Finite = setting(0.0, "LoRA dropout", "Dropout before the adapter.", ge=0, lt=1)
    lora_targets: str = setting(
        "all-linear",
        "LoRA targets",
        "Modules that get an adapter: all-linear, or names by commas, such as q_proj, v_proj. The head is left out.",
        min_length=1,
        max_length=2000,
        hints=hints.LORA_TARGETS,
    )
    skip_dead_groups: bool | None = setting(
        None,
        "Skip dead groups",
        "Leave completions with advantage 0 out of the update. Empty: where that changes no gradient.",
    )
    worst_case_step: bool | None = setting(
        None,
        "Worst-case step",
        "Before the first step rehearse one with the longest prompts and full completions, so that memory runs out in "
        "minute one or not at all. Nothing is learned from it. Empty: on a GPU.",
    )
    track_tensors: bool = setting(
        False,
        "Track tensors",
        "On a CPU also count the bytes of all tensors by phase; each step takes longer. A GPU's allocator always does.",
    )
    snapshot: bool = setting(
        False,
        "Memory snapshot",
        "Save CUDA's record of every allocation of the first steps in the run's folder, for pytorch.org/memory_viz. "
        "Only on a GPU.",
    )


class RolloutSettings(Section):
    engine: Literal["transformers", "vllm_colocate", "vllm_server"] = setting(
        "transformers",
        "Rollout engine",
        "Who samples: the trainer itself, a vLLM engine in its process, or a vLLM server on other devices.",
    )
    importance_sampling_correction: bool = setting(
        True,
        "Sampler correction",
        "Weigh tokens by how the trainer and vLLM differ on them (truncated importance sampling). Only for vLLM.",
    )
    importance_sampling_mode: Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] | None = (
        setting(
            None,
            "Correction mode",
            "Ratio per token or sequence; above its bound it is cut (truncate) or left out (mask). Empty: "
            "sequence_mask, for vespo token_truncate.",
        )
    )
    gpu_memory: Finite = setting(
        0.3,
        "vLLM memory share",
        "Share of each GPU that vLLM takes for weights and KV cache. In the trainer's process keep it low.",
        gt=0,
        lt=1,
    )
    tensor_parallel: int = setting(1, "vLLM tensor parallel", "GPUs that share one vLLM engine.", ge=1, le=64)
    max_model_length: int | None = setting(
        None,
        "vLLM context",
        "Tokens of prompt and completion that vLLM makes room for. Empty: what the model allows.",
        ge=2,
        le=10_000_000,
    )
    server_url: str | None = setting(
        None,
        "Server address",
        "A running vLLM server, such as http://127.0.0.1:8000. Empty: one is started for the run and ended with it.",
        max_length=500,
    )
    server_devices: str | None = setting(
        None,
        "Server devices",
        "GPUs of a server that is started, such as 1 or 2,3. Empty: those after the trainer's.",
        max_length=200,
    )
    server_timeout: Finite = setting(
        300.0, "Server start limit", "Seconds that a server has until it answers.", gt=0, le=86_400
    )
    sync_canary: int = setting(
        1,
        "Sync canary",
        "After every so many weight syncs compare the log-probs of a fixed prompt in engine and trainer. 0: never.",
        ge=0,
        le=1_000_000,
    )
    canary_bound: Finite = setting(
        0.5, "Canary bound", "Mean difference of log-probs, in nats a token, past which it is an event.", gt=0, le=100
    )
    canary_stops: bool = setting(False, "Canary stops", "End the run as failed when the canary passes its bound.")


class ScaleSettings(Section):
    processes: int = setting(1, "Processes", "Training processes on this machine, one a GPU.", ge=1, le=1024)
    strategy: Literal["none", "ddp", "fsdp", "zero2", "zero3"] = setting(
        "none",
        "Strategy",
        "How the processes share the model: none for one process; ddp: each holds all of it; fsdp and zero3: each "
        "holds a part; zero2: parts of the optimizer and gradients only.",
    )
    machines: int = setting(
        1, "Machines", "Machines that train together, each with that many processes.", ge=1, le=1024
    )
    machine_rank: int = setting(0, "Machine rank", "Which of the machines this one is, from 0.", ge=0, le=1023)
    main_process_ip: str | None = setting(
        None,
        "Main address",
        "Address of machine 0, as the others reach it. Needed with several machines.",
        max_length=255,
    )
    main_process_port: int = setting(
        29500, "Main port", "Port on machine 0 for the processes to meet. Used with several machines.", ge=1, le=65535
    )
