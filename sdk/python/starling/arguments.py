"""The arguments of Hugging Face's Trainer, its models and its adapters, as keys of a job.

`starling job import` does the same for files, by the same rules.
"""

from __future__ import annotations

import warnings
from typing import Any, Dict, Mapping

# Arguments that a job has under another name.
_SAME = {
    "seed": "seed", "learning_rate": "training.learning_rate", "weight_decay": "training.optimizer.weight_decay",
    "max_grad_norm": "training.max_grad_norm", "warmup_steps": "training.warmup_steps", "warmup_ratio": "training.warmup_ratio",
    "gradient_checkpointing": "training.gradient_checkpointing", "save_total_limit": "checkpoint.keep_last",
    "max_seq_length": "sequence_len", "max_length": "sequence_len", "packing": "sample_packing", "beta": "dpo.beta",
}
_SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant", "constant_with_warmup": "constant", "warmup_stable_decay": "wsd"}
_OPTIMIZERS = {"adamw_torch": "adamw", "adamw_torch_fused": "adamw", "adamw_hf": "adamw", "adamw_apex_fused": "adamw", "adamw_bnb_8bit": "adamw", "adamw_8bit": "adamw",
               "adafactor": "adafactor", "sgd": "sgd", "lion_32bit": "lion", "lion_8bit": "lion"}

# Arguments with another effect here, which are named in a warning if they are set.
_OTHER = {"fp16": "training is exact in float32", "tf32": "training is exact in float32", "deepspeed": "machines train whole models and meet once a round",
          "fsdp": "machines train whole models and meet once a round", "label_smoothing_factor": "there is no label smoothing", "torch_compile": "no PyTorch trains",
          "load_best_model_at_end": "the last checkpoint is the model", "group_by_length": "text is packed", "push_to_hub": "output.push of a job copies its model"}

# Arguments that only other methods of training have.
_METHODS = {"cpo_alpha": "CPO", "simpo_gamma": "SimPO", "desirable_weight": "KTO", "num_generations": "GRPO, whose rewards a job file names"}

# Numbers of a model that a job has, by its architecture.
_NUMBERS = {
    "gpt2": ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"),
    "llama": ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
              "max_position_embeddings", "rms_norm_eps", "rope_theta", "tie_word_embeddings"),
}


def plain(value: Any) -> Dict[str, Any]:
    """The fields of an object with to_dict, such as a TrainingArguments, or of a mapping."""
    raw = value if isinstance(value, Mapping) else value.to_dict()
    return {k: getattr(v, "value", v) for k, v in raw.items() if v is not None}


def keys(arguments: Mapping[str, Any], workers: int) -> Dict[str, Any]:
    """The keys of a job, with points, that arguments stand for; a warning names those that a job cannot have."""
    out: Dict[str, Any] = {}
    loss = str(arguments.get("loss_type", "sigmoid")).strip("[]'")
    for method in [m for name, m in _METHODS.items() if name in arguments] + ([loss] if loss not in ("sigmoid", "nll") else []):
        raise ValueError(f"the arguments are of {method}: there are training on text, supervised fine-tuning and DPO")
    for name, value in arguments.items():
        if name in _SAME and not (name.startswith("warmup") and not value):
            out[_SAME[name]] = value
        elif name in _OTHER and value:
            warnings.warn(f"{name}={value!r} is left out: {_OTHER[name]}", stacklevel=3)
    adam = (arguments.get("adam_beta1"), arguments.get("adam_beta2"))
    optimizer = _named(_OPTIMIZERS, "optim", arguments.get("optim", "adamw_torch"))
    out["training.optimizer.name"] = optimizer
    if optimizer == "adamw":
        if None not in adam:
            out["training.optimizer.betas"] = list(adam)
        if "adam_epsilon" in arguments:
            out["training.optimizer.eps"] = arguments["adam_epsilon"]
    if "8bit" in str(arguments.get("optim")):
        out["training.optimizer.state"] = "int8"
    if "lr_scheduler_type" in arguments:
        out["training.lr_scheduler"] = _named(_SCHEDULES, "lr_scheduler_type", arguments["lr_scheduler_type"])
    if arguments.get("bf16"):
        out["training.precision"] = "bf16"
    _lengths(out, arguments)
    _batch(out, arguments, workers)
    return out


def _named(names: Mapping[str, str], argument: str, value: Any) -> str:
    if value not in names:
        raise ValueError(f"{argument}={value!r} is not known here: there are {', '.join(sorted(names))}")
    return names[value]


def _lengths(out: Dict[str, Any], arguments: Mapping[str, Any]) -> None:
    """How long the run is, and how often it is evaluated and saved: whole rounds."""
    steps = arguments.get("max_steps", -1)
    sync = min(20, steps) if steps > 0 else 20
    out["strategy.sync_steps"] = sync
    if steps > 0:
        out["training.max_steps"] = _whole(steps, sync)
    else:
        out["training.num_epochs"] = arguments.get("num_train_epochs", 3)
    for what, key in (("eval", "eval.every_steps"), ("save", "checkpoint.every_steps")):
        every = arguments.get(f"{what}_steps")
        strategy = arguments.get(f"{what}_strategy", arguments.get("evaluation_strategy") if what == "eval" else None)
        if every and every >= 1 and strategy in (None, "steps"):
            out[key] = _whole(int(every), sync)


def _whole(n: int, sync: int) -> int:
    return -(-n // sync) * sync


def _batch(out: Dict[str, Any], arguments: Mapping[str, Any], workers: int) -> None:
    """The batch of all workers: each takes the batch of a device."""
    one, times = arguments.get("per_device_train_batch_size", 8), arguments.get("gradient_accumulation_steps", 1)
    out["training.global_batch_size"] = one * times * workers
    if times > 1:
        out["training.micro_batch_size"] = one


def architecture(config: Mapping[str, Any]) -> Dict[str, Any]:
    """The section model of a job for a model that begins at random, from the fields of its config.json."""
    kind = config.get("model_type", config.get("architecture"))
    if kind not in _NUMBERS:
        raise ValueError(f"a model of the type {kind!r} is not known here: there are {', '.join(_NUMBERS)}; a job file has the others")
    return {"architecture": kind, "config": {k: config[k] for k in _NUMBERS[kind] if k in config}}


def adapter(peft: Mapping[str, Any]) -> Dict[str, Any]:
    """The section model.adapter of a job for the fields of peft's LoraConfig."""
    kind = peft.get("peft_type", "LORA")
    if str(kind).upper() != "LORA":
        raise ValueError(f"an adapter of the type {kind!r} is not known here: there is LoRA")
    lora: Dict[str, Any] = {"r": peft.get("r", 8)}
    for name, key in (("lora_alpha", "alpha"), ("lora_dropout", "dropout")):
        if name in peft:
            lora[key] = peft[name]
    targets = peft.get("target_modules")
    if targets and targets != "all-linear":
        lora["target_modules"] = sorted(targets)
    return {"lora": lora}
