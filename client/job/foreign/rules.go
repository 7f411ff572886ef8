package foreign

import (
	"fmt"
	"maps"
	"strings"
)

// What the trainers call things, and what becomes of it. Keys of a section have its name before them: training.steps.

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
	"warmup_ratio":                not("give training.warmup_steps"),
	"eval_steps":                  integer("eval.every_steps"),
	"save_steps":                  integer("checkpoint.every_steps"),
	"save_total_limit":            integer("checkpoint.keep_last"),
	"output_dir":                  text("output.dir"),
	"gradient_accumulation_steps": count(func(b *builder) *int { return &b.accumulate }),
	"gradient_checkpointing":      not("memory is not traded for time; --dry-run says what the job takes"),
	"logging_steps":               not("every step is logged"),
	"logging_dir":                 ignore,
	"overwrite_output_dir":        ignore,
	"report_to":                   not("`starling job export-metrics` writes TensorBoard and CSV"),
	"fp16":                        not("training is exact in float32"),
	"bf16":                        not("training is exact in float32"),
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
	"per_device_eval_batch_size":  ignore,
	"num_train_epochs":            epochs,
	"lr_scheduler_type":           schedule,
	"optim":                       optimizer,
	"model_name_or_path":          baseModel,
	"do_train":                    ignore,
	"do_eval":                     ignore,
	"eval_strategy":               ignore,
	"evaluation_strategy":         ignore,
	"save_strategy":               ignore,
	"logging_strategy":            ignore,
	"max_seq_length":              integer("sequence_len"),
})

var llamaFactory = with(rules{
	"stage":                       stage,
	"do_train":                    ignore,
	"model_name_or_path":          baseModel,
	"finetuning_type":             lora,
	"lora_target":                 targets,
	"lora_rank":                   integer("model.adapter.lora.r"),
	"lora_alpha":                  real("model.adapter.lora.alpha", 1e-9, 1e9),
	"lora_dropout":                not("adapters have no dropout"),
	"dataset":                     named,
	"dataset_dir":                 ignore,
	"template":                    not("the tokenizer's own chat template is used"),
	"cutoff_len":                  integer("sequence_len"),
	"packing":                     ignore, // always
	"val_size":                    real("val_set_size", 0, 0.5),
	"per_device_train_batch_size": count(func(b *builder) *int { return &b.micro }),
	"per_device_eval_batch_size":  ignore,
	"num_train_epochs":            epochs,
	"lr_scheduler_type":           schedule,
	"optim":                       optimizer,
	"plot_loss":                   ignore,
	"overwrite_cache":             ignore,
	"preprocessing_num_workers":   ignore,
	"eval_strategy":               ignore,
	"trust_remote_code":           not("no code of a model is run"),
})

var axolotl = with(rules{
	"base_model":               baseModel,
	"model_type":               ignore, // config.json says it
	"tokenizer_type":           ignore,
	"datasets":                 datasets,
	"dataset_prepared_path":    ignore,
	"val_set_size":             real("val_set_size", 0, 0.5),
	"sequence_len":             integer("sequence_len"),
	"sample_packing":           packing,
	"eval_sample_packing":      ignore,
	"pad_to_sequence_len":      ignore,
	"adapter":                  lora,
	"lora_r":                   integer("model.adapter.lora.r"),
	"lora_alpha":               real("model.adapter.lora.alpha", 1e-9, 1e9),
	"lora_dropout":             not("adapters have no dropout"),
	"lora_target_modules":      targets,
	"lora_target_linear":       ignore, // the default
	"micro_batch_size":         count(func(b *builder) *int { return &b.micro }),
	"num_epochs":               epochs,
	"optimizer":                optimizer,
	"lr_scheduler":             schedule,
	"load_in_8bit":             not("weights are float32"),
	"load_in_4bit":             not("weights are float32"),
	"train_on_inputs":          ignore,
	"group_by_length":          not("text is packed"),
	"flash_attention":          not("attention is computed in one way, with the same bits everywhere"),
	"saves_per_epoch":          not("give checkpoint.every_steps"),
	"evals_per_epoch":          not("give eval.every_steps"),
	"special_tokens.pad_token": ignore,
	"strict":                   ignore,
	"wandb_project":            not("`starling job export-metrics` writes TensorBoard and CSV"),
})

var torchtitan = rules{
	"job.dump_folder": text("output.dir"),
	"job.description": ignore,
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
	"checkpoint.enable_checkpoint":           ignore,
	"checkpoint.folder":                      ignore,
	"checkpoint.async_mode":                  ignore,
	"activation_checkpoint.mode":             ignore,
	"metrics.log_freq":                       ignore,
	"metrics.enable_tensorboard":             ignore,
	"fault_tolerance.sync_steps":             integer("strategy.sync_steps"),
	"fault_tolerance.enable":                 ignore,
	"fault_tolerance.semi_sync_method":       semiSync,
	"fault_tolerance.should_quantize":        ignore, // int8 is the default
	"fault_tolerance.min_replica_size":       ignore,
	"parallelism.data_parallel_shard_degree": ignore,
	"parallelism.tensor_parallel_degree":     single,
	"parallelism.pipeline_parallel_degree":   single,
	"parallelism.context_parallel_degree":    single,
}

func stage(_ *builder, v any) error {
	if s := fmt.Sprint(v); s != "sft" && s != "pt" {
		return fmt.Errorf("%s: there is training on text, sft and pt", s)
	}
	return nil
}

func named(_ *builder, v any) error {
	return fmt.Errorf("%v is a name that the trainer resolves: give the files under datasets", v)
}

func packing(_ *builder, v any) error {
	if v == false {
		return fmt.Errorf("text is always packed")
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

// datasets takes files on disk. What lies on a hub has to be fetched first.
func datasets(b *builder, v any) error {
	list, _ := v.([]any)
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

var formats = map[string]string{"txt": "text", "md": "text", "jsonl": "jsonl", "json": "jsonl", "parquet": "parquet"}
