"""`algorithm.extra`: which fields of TRL's GRPOConfig may be passed by their own names, and with which values.

Each name is a field that a setting of this program already decides (OWNED), one that must stay as the run needs it
(FIXED), one of another version (OBSOLETE), or free; then its value must be what the installed version takes. Loads
neither TRL nor torch.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from grpo_studio.config import RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.errors import ConfigError
from grpo_studio.naming import nearest_names
from grpo_studio.problem import Problem
from grpo_studio.trl_fields import TrlField, installed_fields, trl_version

OWNED = {
    "per_device_train_batch_size": "memory.micro_batch",
    "gradient_accumulation_steps": "memory.micro_batch",
    "gradient_checkpointing": "memory.gradient_checkpointing",
    "liger_kernel_config": "memory.loss_backend",
    "num_generations": "algorithm.group_size",
    "max_completion_length": "algorithm.max_completion_length",
    "max_steps": "algorithm.steps",
    "num_train_epochs": "algorithm.steps",
    "learning_rate": "algorithm.learning_rate",
    "lr_scheduler_type": "algorithm.lr_schedule",
    "warmup_steps": "algorithm.warmup_ratio",
    "optim": "algorithm.optimizer",
    "max_grad_norm": "algorithm.max_grad_norm",
    "loss_type": "algorithm.loss_type",
    "beta": "algorithm.beta",
    "epsilon": "algorithm.epsilon",
    "epsilon_high": "algorithm.epsilon_high",
    "delta": "algorithm.delta",
    "scale_rewards": "algorithm.scale_rewards",
    "num_iterations": "algorithm.num_iterations",
    "importance_sampling_level": "algorithm.importance_sampling_level",
    "mask_truncated_completions": "algorithm.mask_truncated",
    "temperature": "algorithm.temperature",
    "top_p": "algorithm.top_p",
    "top_k": "algorithm.top_k",
    "min_p": "algorithm.min_p",
    "seed": "algorithm.seed",
    "reward_weights": "rewards.N.weight",
    "bf16": "model.dtype",
    "fp16": "model.dtype",
    "model_init_kwargs": "model.dtype, model.attn_implementation or model.revision",
    "trust_remote_code": "model.trust_remote_code",
    "use_vllm": "rollout.engine",
    "vllm_mode": "rollout.engine",
    "vllm_gpu_memory_utilization": "rollout.gpu_memory",
    "vllm_tensor_parallel_size": "rollout.tensor_parallel",
    "vllm_max_model_length": "rollout.max_model_length",
    "vllm_server_base_url": "rollout.server_url",
    "vllm_server_host": "rollout.server_url",
    "vllm_server_port": "rollout.server_url",
    "vllm_server_timeout": "rollout.server_timeout",
    "vllm_importance_sampling_correction": "rollout.importance_sampling_correction",
    "vllm_importance_sampling_mode": "rollout.importance_sampling_mode",
    "fsdp": "scale.strategy",
    "fsdp_config": "scale.strategy",
    "deepspeed": "scale.strategy",
    "parallelism_config": "scale.strategy",
    "local_rank": "scale.processes",
    "eval_strategy": "evaluation.every",
    "eval_steps": "evaluation.every",
    "num_generations_eval": "evaluation.samples",
    "save_strategy": "checkpoint.every",
    "save_steps": "checkpoint.every",
    "save_total_limit": "checkpoint.keep",
    "report_to": "report.to",
    "push_to_hub": "report.hub_repo",
    "hub_model_id": "report.hub_repo",
    "hub_strategy": "report.hub_repo",
    "hub_always_push": "report.hub_repo",
    "hub_revision": "report.hub_repo",
}
"""Fields of TRL that a setting of this program decides: TRL's name to that setting."""


class Refusal(NamedTuple):
    """Why a field cannot be set, and what to do instead."""

    reason: str
    fix: str


_LEAVE_OUT = "leave it out"
_EVERY_STEP = Refusal("the charts need TRL's log of every step", _LEAVE_OUT)
_DEVICE = Refusal("the device that a run finds decides it", _LEAVE_OUT)
_GENERATION_BATCH = Refusal(
    "a step samples algorithm.prompts_per_step x algorithm.group_size completions",
    "set those two, memory.micro_batch for smaller passes, or algorithm.num_iterations to use a batch more often",
)
_HELD_OUT = Refusal("held-out rows are scored by the run itself, not by TRL's evaluation", "set evaluation.every")
_BEST = Refusal("TRL's evaluation, which would tell the best model, is not used", "compare checkpoints by eval/reward")
_NO_EFFECT = Refusal("it has no effect on GRPO", _LEAVE_OUT)
_SAMPLER = Refusal("GRPO draws its prompts by a sampler of its own", "set shuffle_dataset to false for their order")

FIXED = {
    **dict.fromkeys(
        ("logging_steps", "logging_strategy", "logging_first_step", "logging_nan_inf_filter"),
        _EVERY_STEP,
    ),
    **dict.fromkeys(("use_cpu", "dataloader_pin_memory"), _DEVICE),
    **dict.fromkeys(("generation_batch_size", "steps_per_generation"), _GENERATION_BATCH),
    **dict.fromkeys(
        (
            "do_eval", "eval_on_start", "eval_delay", "eval_accumulation_steps", "eval_do_concat_batches",
            "eval_use_gather_object", "per_device_eval_batch_size", "prediction_loss_only", "batch_eval_metrics",
            "include_for_metrics", "bf16_full_eval", "fp16_full_eval",
        ),
        _HELD_OUT,
    ),
    **dict.fromkeys(("load_best_model_at_end", "metric_for_best_model", "greater_is_better"), _BEST),
    **dict.fromkeys(
        (
            "do_train", "do_predict", "label_names", "label_smoothing_factor", "data_seed",
            "include_num_input_tokens_seen", "optim_target_modules", "hub_private_repo",
        ),
        _NO_EFFECT,
    ),
    **dict.fromkeys(("train_sampling_strategy", "length_column_name"), _SAMPLER),
    "ddp_find_unused_parameters": Refusal("every loss backend uses all that it trains", _LEAVE_OUT),
    "vllm_group_port": Refusal("the run finds a free port", _LEAVE_OUT),
    "max_tool_calling_iterations": Refusal("completions are sampled without tools", _LEAVE_OUT),
    "auto_find_batch_size": Refusal("smaller batches would tear groups apart", "set a smaller memory.micro_batch"),
    "remove_unused_columns": Refusal("the verifiers need the other columns of the data set", _LEAVE_OUT),
    "disable_tqdm": Refusal("a progress bar would fill worker.log", _LEAVE_OUT),
    "skip_memory_metrics": Refusal("it would reset the peaks that the memory charts show", _LEAVE_OUT),
    "output_dir": Refusal("a run keeps all that it makes in its own folder", "set GRPO_STUDIO_HOME to move the runs"),
    "save_only_model": Refusal("a run resumes from the optimizer's state", _LEAVE_OUT),
    "save_on_each_node": Refusal("machine 0 saves the checkpoints of a run", _LEAVE_OUT),
    "enable_jit_checkpoint": Refusal("a run that is stopped saves a checkpoint already", _LEAVE_OUT),
    "resume_from_checkpoint": Refusal("a run is resumed by its id", "use python -m grpo_studio resume RUN"),
    "hub_token": Refusal("a configuration is stored, and a token must not be", "set HF_TOKEN in the environment"),
}  # fmt: skip
"""Fields of TRL that no setting changes, as the run or its recording would break, or nothing would come of it."""

OBSOLETE = {
    # GRPOConfig of TRL 0.14 to 0.27, and what 1.x deprecates
    "max_prompt_length": "shorten or filter the prompts of the data set, or for vLLM set rollout.max_model_length",
    "use_liger_loss": "set memory.loss_backend to liger",
    "use_liger_kernel": "set memory.loss_backend to liger",
    "vllm_device": "leave it out, or for a vLLM server that is started set rollout.server_devices",
    "vllm_dtype": "leave it out, as vLLM takes the number format of the model",
    "vllm_max_model_len": "set rollout.max_model_length",
    "vllm_enable_prefix_caching": "leave it out, as vLLM caches prefixes by default",
    "vllm_guided_decoding_regex": "write vllm_structured_outputs_regex instead",
    "vllm_importance_sampling_cap": "write vllm_importance_sampling_clip_max instead",
    "use_transformers_paged": "write use_transformers_continuous_batching instead",
    "wandb_log_unique_prompts": "write log_unique_prompts instead",
    # TrainingArguments of transformers 4
    "evaluation_strategy": "set evaluation.every",
    "per_gpu_train_batch_size": "set memory.micro_batch",
    "per_gpu_eval_batch_size": _HELD_OUT.fix,
    "warmup_ratio": "set algorithm.warmup_ratio",
    "no_cuda": _LEAVE_OUT + ", as " + _DEVICE.reason,
    "use_mps_device": _LEAVE_OUT + ", as " + _DEVICE.reason,
    "fp16_backend": "set model.dtype",
    "half_precision_backend": "set model.dtype",
    "fsdp_min_num_params": "set scale.strategy",
    "fsdp_transformer_layer_cls_to_wrap": "set scale.strategy",
    "overwrite_output_dir": "leave it out, as each run has a folder of its own",
    "logging_dir": "set TENSORBOARD_LOGGING_DIR in the environment",
    "push_to_hub_token": "set HF_TOKEN in the environment",
    "push_to_hub_model_id": "set report.hub_repo",
    "push_to_hub_organization": "set report.hub_repo",
    "include_tokens_per_second": "leave it out, as throughput/completion_tokens_per_s is recorded",
    "jit_mode_eval": "write torch_compile instead",
    # never fields of GRPOConfig, but what its trainer and TRL's other trainers call them
    "epsilon_low": "set algorithm.epsilon",
    "max_length": "set algorithm.max_completion_length",
}
"""Names that the installed version has no more, deprecates or never had: what to do instead."""

SAMPLING = {
    "temperature": "algorithm.temperature",
    "top_p": "algorithm.top_p",
    "top_k": "algorithm.top_k",
    "min_p": "algorithm.min_p",
    "max_new_tokens": "algorithm.max_completion_length",
    "max_tokens": "algorithm.max_completion_length",
    "num_return_sequences": "algorithm.group_size",
    "n": "algorithm.group_size",
}
"""Keys of generation_kwargs, which overrule all else, that a setting decides: of transformers and of vLLM."""

_SECRETS = ("hub_token", "push_to_hub_token")


def extra_problems(config: RunConfig) -> Iterator[Problem]:
    """What is wrong with `algorithm.extra`, each entry by itself, against the installed TRL."""
    extra = config.algorithm.extra
    if not extra:
        return
    try:
        fields, installed = installed_fields(), f"trl {trl_version()}"
    except ConfigError as error:
        message, _, fix = str(error).rpartition("; ")
        yield Problem("algorithm.extra", message, fix)
        return
    for name, value in extra.items():
        place = f"algorithm.extra.{name}"
        if refused := _name_problem(place, name, value, fields, installed):
            yield refused
        elif wrong := _value_problem(place, value, fields[name], installed):
            yield wrong
        elif name == "generation_kwargs":
            yield from _sampling_problems(place, value)


def _name_problem(place: str, name: str, value: Any, fields: Mapping[str, TrlField], installed: str) -> Problem | None:
    found = "" if name in _SECRETS else f" (found {reprlib.repr(value)})"
    if name in OBSOLETE:
        state = f"{installed} deprecates it" if name in fields else f"{installed} has no such field"
        return Problem(place, state + found, OBSOLETE[name], unknown_key=name not in fields)
    if name in OWNED:
        return Problem(place, f"a setting of its own decides it{found}", f"set {OWNED[name]}")
    if name in FIXED:
        return Problem(place, f"{FIXED[name].reason}{found}", FIXED[name].fix)
    if name not in fields:
        return Problem(place, f"{installed} has no field {name!r}", _nearest(name, fields), unknown_key=True)
    return None


def _nearest(name: str, fields: Mapping[str, TrlField]) -> str:
    settings = {dotted.rpartition(".")[2]: dotted for dotted in fields_of(RunConfig)}
    if name in settings:
        return f"set {settings[name]}"
    known = [field for field in fields if field not in FIXED and field not in OBSOLETE]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if close and close[0] in OWNED:
        return f"set {OWNED[close[0]]}, if you mean {close[0]}"
    free = [field for field in close if field not in OWNED]
    return nearest_names(name, free) if free else "use a name from GRPOConfig in TRL's documentation"


def _value_problem(place: str, value: Any, field: TrlField, installed: str) -> Problem | None:
    if oddity := _oddity(value):
        return Problem(place, oddity, f"give {field.takes}")
    if field.accepts(value):
        return None
    message = f"{installed} takes {field.takes} here (found {reprlib.repr(value)})"
    quoted = isinstance(value, str) and _is_number(value) and any(map(field.accepts, (0, 0.5)))
    return Problem(place, message, f"write {value}, without quotes" if quoted else f"give {field.takes}")


def _oddity(value: Any) -> str | None:
    """What keeps a value, or one inside it, from being written as JSON; None when nothing does."""
    match value:
        case float() if not math.isfinite(value):
            return f"{value} is not a finite number"
        case None | bool() | int() | float() | str():
            return None
        case dict():
            if odd := [key for key in value if not isinstance(key, str)]:
                return f"the key {odd[0]!r} is not text"
            return next(filter(None, map(_oddity, value.values())), None)
        case list():
            return next(filter(None, map(_oddity, value)), None)
        case _:
            return f"{reprlib.repr(value)} cannot be written as JSON"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _sampling_problems(place: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, str):
        yield Problem(place, f"text is for TRL's own command line (found {reprlib.repr(value)})", "give a mapping")
        return
    for key, entry in (value or {}).items():
        if key in SAMPLING:
            found = f"a setting of its own decides it (found {reprlib.repr(entry)})"
            yield Problem(f"{place}.{key}", found, f"set {SAMPLING[key]}")
