package prepare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/prepare/demand"
)

// listed lists one measurement of attested machines.
var listed = "strategy.verification.attested.measurements=[sev-snp:" + strings.Repeat("0a", 48) + "]"

// settings has, for each key of a job file, a setting that differs from its default, with the other keys that this
// needs. A key without an entry, or without an effect, fails.
var settings = map[string][]string{
	"name": {"name=other"}, "seed": {"seed=8"}, "val_set_size": {"val_set_size=0.3"}, "sequence_len": {"sequence_len=8"},
	"sample_packing": {"sample_packing=false"}, "shuffle_shards": {"shuffle_shards=2"},
	"encrypt_data":  {"encrypt_data=true"},
	"expert":        {"expert=b", experts},
	"experts.name":  {"expert=a", strings.ReplaceAll(experts, "name: a,", "name: c,")},
	"experts.prior": {"expert=a", strings.ReplaceAll(experts, "prior: 2", "prior: 3")},
	"experts.set":   {"expert=b", strings.ReplaceAll(experts, "seed: 10", "seed: 11")},
	// of another kind of job, which is not compiled here: node/federated has its tests
	"kind": {"kind=FederatedJob"}, "federated.owners": {"kind=FederatedJob", "federated={owners: 5}"},
	"federated.min_cohort":       {"kind=FederatedJob", "federated={owners: 5, min_cohort: 4}"},
	"federated.updates":          {"kind=FederatedJob", "federated={owners: 5, updates: public}"},
	"federated.clip":             {"kind=FederatedJob", "federated={owners: 5, clip: 2}"},
	"federated.method":           {"kind=FederatedJob", "federated={owners: 5, method: scaffold}"},
	"federated.weights":          {"kind=FederatedJob", "federated={owners: 5, weights: examples, full_examples: 9}"},
	"federated.full_examples":    {"kind=FederatedJob", "federated={owners: 5, weights: examples, full_examples: 8}"},
	"federated.sample":           {"kind=FederatedJob", "federated={owners: 5, sample: 0.5}"},
	"federated.classes":          {"kind=FederatedJob", "federated={owners: 5, classes: [a, b]}"},
	"federated.noise.multiplier": {"kind=FederatedJob", "federated={owners: 5, noise: {multiplier: 1}}"},
	"federated.noise.delta":      {"kind=FederatedJob", "federated={owners: 5, noise: {delta: 1.0e-6}}"},

	"federated.example_noise.multiplier": {"kind=FederatedJob",
		"federated={owners: 5, example_noise: {multiplier: 1}}"},
	"federated.example_noise.clip": {"kind=FederatedJob",
		"federated={owners: 5, example_noise: {clip: 2}}"},
	"federated.example_noise.min_examples": {"kind=FederatedJob",
		"federated={owners: 5, example_noise: {min_examples: 9}}"},
	"federated.example_noise.delta": {"kind=FederatedJob",
		"federated={owners: 5, example_noise: {delta: 1.0e-6}}"},

	"labels": {"labels={team: research}"}, "executor": {"executor=torch", "training.numerics=tolerant"},

	"model.base_model":   {"model.base_model=./nothing", "model.config=null"},
	"model.architecture": {"model.architecture=gpt2", "model.config={n_layer: 1, n_embd: 16, n_head: 2, n_positions: 16}"},
	"model.load_in_4bit": {"model.load_in_4bit=true"},
	"model.load_in_8bit": {"model.load_in_8bit=true"},
	"model.config":       {"model.config.hidden_size=32"}, "model.tokenizer": {"model.tokenizer=./none.json"},
	"model.tokenizer.train.type":        {"model.tokenizer={train: {type: bpe, vocab_size: 257}}"},
	"model.tokenizer.train.vocab_size":  {"model.tokenizer={train: {type: bpe, vocab_size: 258}}"},
	"model.adapter.lora.r":              {"model.adapter={lora: {r: 2}}"},
	"model.adapter.lora.alpha":          {"model.adapter={lora: {alpha: 2}}"},
	"model.adapter.lora.dropout":        {"model.adapter={lora: {dropout: 0.1}}"},
	"model.adapter.lora.target_modules": {"model.adapter={lora: {target_modules: [q_proj]}}"},

	"datasets.path": {"datasets=[{path: other.txt, format: text}]"},
	"datasets.sha256": {"datasets=[{path: \"http://127.0.0.1:1/x\", sha256: " +
		strings.Repeat("0", 64) + "}]"},
	"datasets.format": {"datasets=[{path: data.txt, format: jsonl}]"},
	"datasets.field":  {"datasets=[{path: data.jsonl, format: jsonl, field: other}]"},
	// TestTexts has another one
	"datasets.label_field": {"task=classify", "datasets=[{path: labels.jsonl, format: jsonl, label_field: other}]"},
	// TestPairs has other ones
	"datasets.positive_field": {"datasets=[{path: data.txt, format: text, positive_field: other}]"},
	"embed.temperature":       {"embed={temperature: 0.1}"},
	"diffusion.timesteps":     {"diffusion={timesteps: 100}"}, // TestDiffusion has another one
	"datasets.weight":         {"datasets=[{path: data.txt, format: text, weight: 2}]"},

	"training.max_steps": {"training.max_steps=16"}, "training.num_epochs": {"training.num_epochs=1"},
	"training.global_batch_size":           {"training.global_batch_size=16"},
	"training.micro_batch_size":            {"training.micro_batch_size=1"},
	"training.gradient_accumulation_steps": {"training.gradient_accumulation_steps=2"},
	"training.train_on_inputs": {"datasets=[{path: chats.jsonl, format: jsonl, field: messages}]",
		"training.train_on_inputs=false"},
	"training.learning_rate":          {"training.learning_rate=0.002"},
	"training.lr_scheduler":           {"training.lr_scheduler=constant"},
	"training.lr_decay_ratio":         {"training.lr_scheduler=wsd", "training.lr_decay_ratio=0.5"},
	"training.warmup_steps":           {"training.warmup_steps=2"},
	"training.warmup_ratio":           {"training.warmup_ratio=0.25"},
	"training.min_lr_ratio":           {"training.min_lr_ratio=0.3"},
	"training.max_grad_norm":          {"training.max_grad_norm=2"},
	"training.numerics":               {"training.numerics=tolerant"},
	"training.gradient_checkpointing": {"training.gradient_checkpointing=true"},
	"training.optimizer.weight_decay": {"training.optimizer.weight_decay=0.3"},
	"training.optimizer.betas":        {"training.optimizer.betas=[0.8, 0.9]"},
	"training.optimizer.eps":          {"training.optimizer.eps=1e-6"},
	"training.optimizer.name":         {"training.optimizer.name=lion"},
	"training.dropout":                {"training.dropout=0.1"},
	"training.precision": {"training.precision=bf16", "training.precision=exact15",
		"training.precision=exact8"},
	"training.optimizer.state":    {"training.optimizer.state=bf16", "training.optimizer.state=int8"},
	"training.optimizer.momentum": {"training.optimizer={name: sgd}", "training.optimizer.momentum=0.5"},
	"training.optimizer.nesterov": {"training.optimizer={name: sgd}", "training.optimizer.nesterov=true"},

	"strategy.method": {"strategy.method=fedavg"}, "strategy.sync_steps": {"strategy.sync_steps=2"},
	"strategy.proximal_mu":              {"strategy.method=fedprox", "strategy.proximal_mu=0.5"},
	"strategy.optimizer_state_rounds":   {"strategy.optimizer_state_rounds=2"},
	"strategy.round_timeout":            {"strategy.round_timeout=5m"},
	"strategy.outer_optimizer.name":     {"strategy.outer_optimizer={name: sgd, lr: 0.7}"},
	"strategy.outer_optimizer.lr":       {"strategy.outer_optimizer.lr=0.3"},
	"strategy.outer_optimizer.momentum": {"strategy.outer_optimizer.momentum=0.3"},
	"strategy.outer_optimizer.betas": {"strategy.outer_optimizer={name: adam, lr: 0.1, betas: [0.5, 0.6], eps: " +
		"1e-3}"},
	"strategy.outer_optimizer.eps": {"strategy.outer_optimizer={name: adam, lr: 0.1, betas: [0.9, 0.99], eps: " +
		"1e-2}"},
	"strategy.compression.quantize":       {"strategy.compression.quantize=fp4"},
	"strategy.compression.topk_ratio":     {"strategy.compression={topk_ratio: 0.1, quantize: int8}"},
	"strategy.compression.transform":      {"strategy.compression={transform: dct, topk_ratio: 0.1, quantize: int8}"},
	"strategy.compression.error_feedback": {"strategy.compression={quantize: fp4, error_feedback: true}"},
	"strategy.compression.feedback_rounds": {"strategy.compression={quantize: fp4, error_feedback: true, " +
		"feedback_rounds: 4}"},
	"strategy.replicas.sample":         {"strategy.replicas={sample: 4}"},
	"strategy.replicas.fragments":      {"strategy.replicas={fragments: 2}"},
	"strategy.replicas.overlap":        {"strategy.replicas={overlap: 0.5}"},
	"strategy.replicas.rounds":         {"strategy.replicas={sample: 4, rounds: 4}"},
	"strategy.replicas.topology":       {"strategy.replicas={topology: ring}"},
	"strategy.aggregation.rule":        {"strategy.aggregation.rule=median"},
	"strategy.aggregation.trim":        {"strategy.aggregation={rule: trimmed_mean, trim: 0.3}"},
	"strategy.aggregation.slices":      {"strategy.aggregation.slices=2"},
	"strategy.workers":                 {"strategy.workers=2"},
	"strategy.workers.min":             {"strategy.workers={target: 4, min: 2}"},
	"strategy.workers.target":          {"strategy.workers={target: 2}"},
	"strategy.workers.max":             {"strategy.workers={target: 4, max: 8}"},
	"strategy.workers.relative_speeds": {"strategy.workers={target: 4, relative_speeds: [1, 0.5, 0.5, 0.5]}"},
	"parallel.stages":                  {"parallel={stages: 2}"},
	"parallel.replicas":                {"parallel={stages: 2, replicas: 2}"},
	"parallel.microbatches":            {"parallel={stages: 2, microbatches: 4}"},
	"parallel.schedule":                {"parallel={stages: 2, schedule: asynchronous}"},
	"parallel.delay":                   {"parallel={stages: 2, schedule: asynchronous, delay: 2}"},
	"parallel.skip":                    {"parallel={stages: 3, skip: 0.25}", "training.global_batch_size=32"},
	"strategy.verification.mode":       {"strategy.verification.mode=none"},
	"strategy.verification.verifiers":  {"strategy.verification.verifiers=3"},
	"strategy.verification.fraction":   {"strategy.verification.fraction=0.3"},
	"strategy.verification.audit":      {"strategy.verification.audit=partial"},
	"strategy.verification.screen":     {"strategy.verification.screen=off"},
	"strategy.verification.tolerance.distance": {"training.numerics=tolerant",
		"strategy.verification.tolerance.distance=0.3"},
	"strategy.verification.tolerance.cosine": {"training.numerics=tolerant",
		"strategy.verification.tolerance.cosine=0.5"},
	"strategy.verification.attested.measurements": {listed},
	"strategy.verification.attested.factor":       {listed, "strategy.verification.attested.factor=0.25"},

	"resources.any_of.accelerators": {`resources.any_of=[{accelerators: "any:1"}]`},
	"resources.any_of.cpus":         {"resources.any_of=[{cpus: 4+}]"},
	"resources.any_of.memory":       {"resources.any_of=[{memory: 8GB}]"},
	"resources.disk":                {"resources.disk=20GB"}, "resources.bandwidth": {"resources.bandwidth=10Mbps"},
	"resources.classes": {"resources.classes=[cpu]"}, "resources.tier": {"resources.tier=silver"},
	"resources.attested":                        {listed, "resources.attested=true"},
	"resources.placement.regions":               {"resources.placement.regions=[eu]"},
	"resources.placement.min_reputation":        {"resources.placement.min_reputation=0.5"},
	"resources.placement.exclude":               {"resources.placement.exclude=[us]"},
	"resources.placement.jurisdictions":         {"resources.placement.jurisdictions=[DE]"},
	"resources.placement.exclude_jurisdictions": {"resources.placement.exclude_jurisdictions=[FR]"},
	"resources.placement.failure_domains":       {"resources.placement.failure_domains=2"},
	"resources.placement.near":                  {"resources.placement.near=eu"},

	"budget.max_cost": {"budget.max_cost=24"}, "budget.max_price": {"budget.max_price=900"},
	"budget.max_price_per_hour": {"budget.max_price_per_hour=0.4"}, "budget.deadline": {"budget.deadline=24h"},
	"budget.coin": {"budget.coin=usdc"}, "budget.on_exceed": {"budget.on_exceed=cancel"},
	"budget.contributor_part": {"budget.contributor_part=0.3"},

	"checkpoint.every_steps": {"checkpoint.every_steps=8"}, "checkpoint.keep_last": {"checkpoint.keep_last=2"},
	"task": {"task=sft", "datasets=[{path: chats.jsonl}]"}, "eval.tasks": {"eval.tasks=[preference]"},
	// refused; TestPreferences, TestGraph and TestRewards have jobs that take them
	"graph.directed": {"graph={directed: true}"},
	"dpo.beta":       {"dpo={beta: 0.2}"}, "rollout.group": {"rollout={group: 4}"},
	"rollout.max_tokens": {"rollout={max_tokens: 4}"}, "rollout.temperature": {"rollout={temperature: 2}"},
	"rollout.kl":   {"rollout={kl: 0.1}"},
	"rollout.stop": {"rollout={stop: .}"}, "rollout.staleness": {"rollout={staleness: 2}"},
	"rollout.correction": {"rollout={staleness: 2, correction: tapered}"},
	"rollout.generators": {"rollout={generators: 2}"}, "rollout.sharing": {"rollout={sharing: swarm}"},
	"rollout.own": {"rollout={own: 2}"}, "rollout.shared": {"rollout={shared: 1}"},
	"rollout.top_p": {"rollout={top_p: 0.5}"}, "rollout.stages": {"rollout={stages: 3}"},
	"rollout.reads":   {"rollout={stages: 3, reads: 1}"},
	"rollout.critics": {"rollout={stages: 3, sharing: swarm, critics: others}"},
	"reward.exact":    {"reward={exact: 2}"}, "reward.prefix": {"reward={prefix: 2}"},
	"reward.rules": {"reward=[{kind: exact}]"}, "reward.rules.kind": {"reward=[{kind: json}]"},
	"reward.rules.weight":     {"reward=[{kind: json}, {kind: exact, weight: 2}]"},
	"reward.rules.field":      {"reward=[{kind: exact, field: x}]"},
	"reward.rules.tolerance":  {"reward=[{kind: numeric, tolerance: 1}]"},
	"reward.rules.pattern":    {"reward=[{kind: regex, pattern: a}]"},
	"reward.rules.min_length": {"reward=[{kind: length, min_length: 1, max_length: 2}]"},
	"reward.rules.max_length": {"reward=[{kind: length, max_length: 2}]"},
	"reward.rules.source":     {`reward=[{kind: starlark, source: "def reward(p, a, f): return 1"}]`},
	"reward.rules.file":       {"reward=[{kind: starlark, file: my.star}]"},
	"reward.rules.model":      {"reward=[{kind: model, model: judge}]"},
	"reward.rules.step_limit": {`reward=[{kind: starlark, source: "def reward(p, a, f): return 1", step_limit: 9}]`},
	"datasets.reward_fields":  {"datasets=[{path: data.jsonl, reward_fields: [text]}]"},

	"eval.every_steps": {"eval.every_steps=8"}, "eval.prompts": {"eval.prompts=[a]"},
	"tracking.tensorboard":       {"tracking.tensorboard=tb"},
	"tracking.mlflow.uri":        {"tracking.mlflow.uri=http://localhost"},
	"tracking.mlflow.experiment": {"tracking.mlflow={uri: http://localhost, experiment: x}"},
	"output.dir":                 {"output.dir=other"}, "output.formats": {"output.formats=[safetensors, gguf]"},
	"output.license": {"output.license=mit"}, "output.push": {"output.push=[s3://models/x]"},
	"output.push.to":          {"output.push=[{to: s3://models/x}]"},
	"output.push.checkpoints": {"output.push=[{to: s3://models/x, checkpoints: true}]"},
	"notify.webhook":          {"notify.webhook=http://localhost"}, "notify.on": {"notify={webhook: http://localhost, " +
		"on: [failed]}"},
}

// A list of rules is a reward by itself.
func init() {
	for key, set := range settings {
		if rule, ok := strings.CutPrefix(key, "reward.rules."); ok {
			settings["reward."+rule] = set
		}
	}
}

// experts are two that differ in their seeds.
const experts = "experts=[{name: a, prior: 2, set: {seed: 9}}, {name: b, set: {seed: 10}}]"

// left are the keys that change what a run leaves behind, and nothing else, with the field that the code reads them
// from.
var left = map[string]string{
	"labels": ".Labels", "checkpoint.every_steps": "Checkpoint.EverySteps", "checkpoint.keep_last": "Checkpoint.KeepLast",
	"eval.every_steps": "Eval.EverySteps", "eval.prompts": "Eval.Prompts",
	"tracking.tensorboard": "Tracking.Tensorboard", "output.dir": "Output.Dir", "output.formats": "Output.Formats",
	"output.license": "Output.License", "notify.webhook": "opt.Job.Notify", "notify.on": "n.On",
	"output.push": "opt.Job.Output.Push", "output.push.to": "opt.Job.Output.Push",
	"output.push.checkpoints": "p.Checkpoints", "budget.coin": ".Budget.Coin",
	"encrypt_data": ".EncryptData", "expert": ".Expert", "experts.name": ".Name", "experts.prior": ".Prior",
	"tracking.mlflow.uri": "server.URI", "tracking.mlflow.experiment": "server.Experiment",
}

// Every key of the JSON Schema of job files changes the work, the order or what the run leaves behind, or is refused.
func TestNoKeyWithoutEffect(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"data.txt": strings.Repeat("the quick brown fox. ", 200),
		"other.txt": strings.Repeat("jumps over the dog. ", 200),
		"chats.jsonl": strings.Repeat("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},"+
			"{\"role\":\"assistant\",\"content\":\"the fox\"}]}\n", 200),
		"labels.jsonl": strings.Repeat("{\"text\":\"the fox\",\"label\":1,\"other\":2}\n"+
			"{\"text\":\"a dog\",\"label\":2,\"other\":2}\n{\"text\":\"a cat\",\"label\":3,\"other\":4}\n", 50),
		"data.jsonl": strings.Repeat("{\"text\":\"the fox\",\"other\":\"a dog\"}\n", 200)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(path, []byte(`apiVersion: starling/v1
kind: TrainingJob
name: effects
model: {architecture: llama, config: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2,
  num_key_value_heads: 1, intermediate_size: 16, max_position_embeddings: 16}, tokenizer: byte-level}
datasets: [{path: data.txt, format: text}]
val_set_size: 0.1
sequence_len: 16
training: {max_steps: 8, global_batch_size: 8, learning_rate: 1.0e-3}
strategy: {sync_steps: 4}
budget: {max_cost: 25}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	// of is the digest of a job with these settings; "" if it is refused.
	of := func(set ...string) string {
		j, err := job.Load(path, set...)
		if err != nil {
			return ""
		}
		b, err := New(j)
		if err != nil {
			return ""
		}
		o, err := b.Order()
		if err != nil {
			return ""
		}
		o = demand.Conditioned(b.Job, o, 1)
		return string(canon.MustMarshal([]any{b.Spec.Digest(), b.Genesis.Root(), o}))
	}
	plain := of()
	if plain == "" {
		t.Fatal("the job is refused")
	}
	code := sources(t)
	for _, key := range leaves(t) {
		set, known := settings[key]
		if !known {
			t.Errorf("%s: nobody has said how to set it", key)
			continue
		}
		got := of(set...)
		if got == "" { // refused
			continue
		}
		if field := left[key]; field != "" {
			if !strings.Contains(code, field) {
				t.Errorf("%s: no code reads %s", key, field)
			}
			continue
		}
		if got == plain || len(set) > 1 && got == of(set[0]) {
			t.Errorf("%s: %v has no effect", key, set)
		}
	}
}

// sources is the code of node, of the packages below it and of the command line, without tests.
func sources(t *testing.T) (code string) {
	t.Helper()
	for _, pattern := range []string{"../*.go", "../*/*.go", "../../cmd/starling/*.go",
		"../../cmd/starling/*/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(p, "_test.go") {
				code += string(text)
			}
		}
	}
	return code
}

// leaves lists the keys of the JSON Schema of job files that hold values. A key of which there is one value only can
// have no other.
func leaves(t *testing.T) (keys []string) {
	t.Helper()
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		of := func(key string) map[string]any { m, _ := s[key].(map[string]any); return m }
		list := func(key string) []any { l, _ := s[key].([]any); return l }
		switch {
		case of("properties") != nil:
			for name, x := range of("properties") {
				walk(strings.TrimPrefix(path+"."+name, "."), x.(map[string]any))
			}
		case len(list("anyOf"))+len(list("oneOf")) > 0:
			for _, x := range slices.Concat(list("anyOf"), list("oneOf")) {
				walk(path, x.(map[string]any))
			}
		case s["type"] == "null" || len(list("enum")) == 1:
		case of("items")["properties"] != nil:
			walk(path, of("items"))
		case len(list("enum")) == 0 && len(of("items")) > 0 && onlyOne(of("items")):
		default:
			keys = append(keys, path)
		}
	}
	var schema map[string]any
	if err := json.Unmarshal(job.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	walk("", schema)
	slices.Sort(keys)
	return slices.Compact(keys)
}

func onlyOne(s map[string]any) bool {
	l, _ := s["enum"].([]any)
	return len(l) == 1
}
