package foreign

import (
	"fmt"
	"maps"
	"strings"
)

// The keys of other trainers, and the keys that replace them. Keys of a section follow its name: training.steps.

// shared are the keys of Hugging Face's Trainer, which Axolotl and LLaMA-Factory pass on.
var shared = rules{
	"seed":                        integer("seed"),
	"learning_rate":               real("training.learning_rate", 1e-12, 10),
	"weight_decay":                real("training.optimizer.weight_decay", 0, 10),
	"adam_beta1":                  beta(0),
	"adam_beta2":                  beta(1),
	"adam_epsilon":                real("training.optimizer.eps", 1e-30, 1),
	"max_grad_norm":               real("training.max_grad_norm", 0, 1e9),
	"max_steps":                   integer("training.max_steps"),
	"warmup_steps":                integer("training.warmup_steps"),
	"warmup_ratio":                real("training.warmup_ratio", 0, 0.999),
	"eval_steps":                  integer("eval.every_steps"),
	"save_steps":                  integer("checkpoint.every_steps"),
	"save_total_limit":            integer("checkpoint.keep_last"),
	"output_dir":                  text("output.dir"),
	"gradient_accumulation_steps": count(func(b *builder) *int { return &b.accumulate }),
	"gradient_checkpointing":      toggle("training.gradient_checkpointing"),
	"logging_steps":               not("every step is logged"),
	"logging_dir":                 needless("the run folder holds the metrics"),
	"overwrite_output_dir":        needless("no run is overwritten"),
	"report_to":                   not("`starling job export-metrics` writes TensorBoard and CSV"),
	"fp16":                        not("training is exact in float32"),
	"bf16":                        half,
	"tf32":                        not("training is exact in float32"),
	"deepspeed":                   not("machines train whole models and meet once a round"),
	"fsdp":                        not("machines train whole models and meet once a round"),
}

func with(more rules) rules {
	all := maps.Clone(shared)
	maps.Copy(all, more)
	return all
}

var trainer = with(rules{
	"per_device_train_batch_size": count(func(b *builder) *int { return &b.micro }),
	"per_device_eval_batch_size":  needless("the evaluation chooses its batch"),
	"num_train_epochs":            epochs,
	"lr_scheduler_type":           schedule,
	"optim":                       optimizer,
	"model_name_or_path":          baseModel,
	"do_train":                    needless("a job always trains"),
	"do_eval":                     needless("val_set_size says what is evaluated"),
	"eval_strategy":               needless("give eval.every_steps"),
	"evaluation_strategy":         needless("give eval.every_steps"),
	"save_strategy":               needless("give checkpoint.every_steps"),
	"logging_strategy":            needless("every step is logged"),
	"max_seq_length":              integer("sequence_len"),
	"beta":                        real("dpo.beta", 1e-9, 100), // of the trainers of TRL
	"loss_type":                   method,
	"max_length":                  integer("sequence_len"),
	"cpo_alpha":                   other("CPO"),
	"simpo_gamma":                 other("SimPO"),
	"desirable_weight":            other("KTO"),
	"num_generations":             other("GRPO, with rewards that are functions of a program"),
})

var llamaFactory = with(rules{
	"stage":                       method,
	"pref_beta":                   real("dpo.beta", 1e-9, 100),
	"pref_loss":                   method,
	"do_train":                    needless("a job always trains"),
	"model_name_or_path":          baseModel,
	"finetuning_type":             lora,
	"lora_target":                 targets,
	"lora_rank":                   integer("model.adapter.lora.r"),
	"lora_alpha":                  real("model.adapter.lora.alpha", 1e-9, 1e9),
	"lora_dropout":                real("model.adapter.lora.dropout", 0, 0.999),
	"dataset":                     named,
	"dataset_dir":                 needless("give the files under datasets"),
	"template":                    not("the tokenizer's own chat template is used"),
	"cutoff_len":                  integer("sequence_len"),
	"packing":                     toggle("sample_packing"),
	"val_size":                    real("val_set_size", 0, 0.5),
	"per_device_train_batch_size": count(func(b *builder) *int { return &b.micro }),
	"per_device_eval_batch_size":  needless("the evaluation chooses its batch"),
	"num_train_epochs":            epochs,
	"lr_scheduler_type":           schedule,
	"optim":                       optimizer,
	"plot_loss":                   needless("report.html has the charts"),
	"overwrite_cache":             needless("there is no cache of the data"),
	"preprocessing_num_workers":   needless("the data is read in one pass"),
	"eval_strategy":               needless("give eval.every_steps"),
	"trust_remote_code":           not("no code of a model is run"),
})

var axolotl = with(rules{
	"base_model":               baseModel,
	"model_type":               needless("config.json of the base model says it"),
	"tokenizer_type":           needless("tokenizer.json of the base model says it"),
	"datasets":                 datasets,
	"rl":                       method,
	"rl_beta":                  real("dpo.beta", 1e-9, 100),
	"dpo_beta":                 real("dpo.beta", 1e-9, 100),
	"dataset_prepared_path":    needless("there is no cache of the data"),
	"val_set_size":             real("val_set_size", 0, 0.5),
	"sequence_len":             integer("sequence_len"),
	"sample_packing":           toggle("sample_packing"),
	"eval_sample_packing":      needless("text is always packed"),
	"pad_to_sequence_len":      needless("text is packed, not padded"),
	"adapter":                  lora,
	"lora_r":                   integer("model.adapter.lora.r"),
	"lora_alpha":               real("model.adapter.lora.alpha", 1e-9, 1e9),
	"lora_dropout":             real("model.adapter.lora.dropout", 0, 0.999),
	"lora_target_modules":      targets,
	"lora_target_linear":       needless("every linear layer is the default"),
	"micro_batch_size":         count(func(b *builder) *int { return &b.micro }),
	"num_epochs":               epochs,
	"optimizer":                optimizer,
	"lr_scheduler":             schedule,
	"load_in_8bit":             toggle("model.load_in_8bit"),
	"load_in_4bit":             toggle("model.load_in_4bit"),
	"train_on_inputs":          needless("for conversations give training.train_on_inputs: false"),
	"group_by_length":          not("text is packed"),
	"flash_attention":          not("attention is computed in one way, with the same bits everywhere"),
	"saves_per_epoch":          not("give checkpoint.every_steps"),
	"evals_per_epoch":          not("give eval.every_steps"),
	"special_tokens.pad_token": needless("text is packed, not padded"),
	"strict":                   needless("a job file is always strict"),
	"wandb_project":            not("`starling job export-metrics` writes TensorBoard and CSV"),
})

var torchtitan = rules{
	"job.dump_folder": text("output.dir"),
	"job.description": needless("a job file has labels for that"),
	"model.name":      architecture,
	"model.flavor": not("it is a name that the trainer resolves: give its numbers under " +
		"model.config"),
	"model.tokenizer_path":                   text("model.tokenizer"),
	"optimizer.name":                         optimizer,
	"optimizer.lr":                           real("training.learning_rate", 1e-12, 10),
	"optimizer.eps":                          real("training.optimizer.eps", 1e-30, 1),
	"lr_scheduler.warmup_steps":              integer("training.warmup_steps"),
	"lr_scheduler.decay_type":                schedule,
	"lr_scheduler.lr_min":                    real("training.min_lr_ratio", 0, 1),
	"training.batch_size":                    count(func(b *builder) *int { return &b.micro }),
	"training.local_batch_size":              count(func(b *builder) *int { return &b.micro }),
	"training.global_batch_size":             integer("training.global_batch_size"),
	"training.seq_len":                       integer("sequence_len"),
	"training.max_norm":                      real("training.max_grad_norm", 0, 1e9),
	"training.steps":                         integer("training.max_steps"),
	"training.seed":                          integer("seed"),
	"training.dataset":                       named,
	"checkpoint.interval":                    integer("checkpoint.every_steps"),
	"checkpoint.keep_latest_k":               integer("checkpoint.keep_last"),
	"checkpoint.enable_checkpoint":           needless("checkpoints are always written"),
	"checkpoint.folder":                      needless("checkpoints are in output.dir"),
	"checkpoint.async_mode":                  needless("the strategy decides when checkpoints are written"),
	"activation_checkpoint.mode":             not("give training.gradient_checkpointing: true"),
	"metrics.log_freq":                       needless("every step is logged"),
	"metrics.enable_tensorboard":             needless("`starling job export-metrics` writes TensorBoard"),
	"fault_tolerance.sync_steps":             integer("strategy.sync_steps"),
	"fault_tolerance.enable":                 needless("it is always on"),
	"fault_tolerance.semi_sync_method":       semiSync,
	"fault_tolerance.should_quantize":        needless("the updates of diloco are int8 by default"),
	"fault_tolerance.min_replica_size":       needless("strategy.workers says how many machines train"),
	"parallelism.data_parallel_shard_degree": needless("every machine holds the whole model"),
	"parallelism.tensor_parallel_degree":     single,
	"parallelism.pipeline_parallel_degree":   single,
	"parallelism.context_parallel_degree":    single,
}

// method takes the method of training, or the loss of training from preferences. Others would train something else.
func method(b *builder, v any) error {
	switch s := strings.Trim(fmt.Sprint(v), "[]"); s {
	case "", "false", "none", "pt", "sft":
		return nil
	case "dpo", "sigmoid": // the loss of DPO
		b.set("task", "dpo")
		return nil
	default:
		return &MethodError{s}
	}
}

// other refuses a method of training by a key that only that method has.
func other(name string) rule { return func(*builder, any) error { return &MethodError{name} } }

func named(_ *builder, v any) error {
	return fmt.Errorf("%v is a name that the trainer resolves: give the files under datasets", v)
}

// half takes layers in bfloat16 over; what a trainer finds out for itself is left to the author.
func half(b *builder, v any) error {
	on, is := v.(bool)
	if !is {
		return fmt.Errorf("%v: give training.precision: bf16 for layers in bfloat16", v)
	}
	if on {
		b.set("training.precision", "bf16")
	}
	return nil
}

func architecture(b *builder, v any) error {
	s := fmt.Sprint(v)
	if !strings.HasPrefix(s, "llama") {
		return fmt.Errorf("%s: there are llama and gpt2", s)
	}
	b.set("model.architecture", "llama")
	return nil
}

func semiSync(_ *builder, v any) error {
	if s := fmt.Sprint(v); !strings.EqualFold(s, "diloco") {
		return fmt.Errorf("%s: diloco is set", s)
	}
	return nil
}

func single(_ *builder, v any) error {
	if n, err := whole(v); err != nil || n > 1 {
		return fmt.Errorf("%v: a machine trains a whole model", v)
	}
	return nil
}

// datasets takes files on disk. Files of a hub must be downloaded first.
func datasets(b *builder, v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%v is not a list", v)
	}
	var files []any
	var missing []string
	for _, one := range list {
		set, _ := one.(map[string]any)
		path, _ := set["path"].(string)
		format, ok := formats[path[strings.LastIndexByte(path, '.')+1:]]
		if !ok {
			missing = append(missing, path)
			continue
		}
		file := map[string]any{"path": path, "format": format}
		switch field, _ := set["field"].(string); {
		case field != "":
			file["field"] = field
		case strings.HasPrefix(fmt.Sprint(set["type"]), "chat_template"):
			file["field"] = "messages"
		}
		files = append(files, file)
	}
	if len(files) > 0 {
		b.set("datasets", files)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: fetch it, and give the path of its files", strings.Join(missing, ", "))
	}
	return nil
}

var formats = map[string]string{"txt": "text", "md": "text", "jsonl": "jsonl", "json": "jsonl", "csv": "csv",
	"parquet": "parquet"}
