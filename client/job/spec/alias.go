package spec

// Aliases are names that other trainers give to keys, with the paths of these keys.
var Aliases = map[string]string{
	"output_dir": "output.dir", "model_type": "model.architecture", "tokenizer_type": "model.tokenizer",
	"model_name_or_path": "model.base_model", "num_train_epochs": "training.num_epochs", "max_seq_len": "sequence_len",
	"seq_len": "sequence_len", "cutoff_len": "sequence_len", "per_device_train_batch_size": "training.micro_batch_size",
	"train_batch_size": "training.global_batch_size", "batch_size": "training.global_batch_size",
	"lr":                "training.learning_rate",
	"lr_scheduler_type": "training.lr_scheduler", "eval_steps": "eval.every_steps", "save_steps": "checkpoint.every_steps",
	"save_total_limit": "checkpoint.keep_last", "steps": "training.max_steps", "report_to": "tracking",
	"keep_latest_k": "checkpoint.keep_last", "dataset": "datasets",
}
