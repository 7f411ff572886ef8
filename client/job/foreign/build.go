package foreign

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

// builder collects a job file.
type builder struct {
	job  map[string]any
	left []string

	micro, accumulate int // sequences of one step of a device, and how many steps make an update; 0: not said
	refused           *MethodError
}

// workers is how many a job gets: other trainers say nothing about machines of strangers.
const workers = 4

// set gives a value to a key, a path such as training.max_steps.
func (b *builder) set(path string, value any) {
	at := b.job
	keys := strings.Split(path, ".")
	for _, k := range keys[:len(keys)-1] {
		next, ok := at[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[k] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = value
}

// number is a number that was set, or 0.
func (b *builder) number(path string) int {
	var at any = b.job
	for _, k := range strings.Split(path, ".") {
		section, _ := at.(map[string]any)
		at = section[k]
	}
	n, _ := at.(int)
	return n
}

// leave lists a key that is not taken over.
func (b *builder) leave(key, why string) { b.left = append(b.left, key+": "+why) }

// finish fills in what follows from several keys, and makes the numbers of steps whole rounds.
func (b *builder) finish() {
	if _, beta := b.job["dpo"]; beta && b.job["task"] != "dpo" {
		b.refused = &MethodError{"preferences with another loss than that of DPO"}
		return
	}
	b.set("apiVersion", "starling/v1")
	b.set("kind", "TrainingJob")
	if b.micro > 0 {
		one := b.micro * max(b.accumulate, 1)
		b.set("training.global_batch_size", one*workers)
		if b.accumulate > 1 {
			b.set("training.micro_batch_size", b.micro)
		}
		b.leave("batch size", fmt.Sprintf("%d sequences a step of one device became %d, those of %d workers; correct "+
			"global_batch_size if that is too many", one, one*workers, workers))
	}
	if b.micro == 0 && b.accumulate > 0 {
		b.leave("gradient_accumulation_steps", fmt.Sprintf("%d: the configuration does not say of how many sequences; "+
			"correct global_batch_size", b.accumulate))
	}
	if n := b.number("training.global_batch_size"); n%workers != 0 {
		b.set("training.global_batch_size", n+workers-n%workers)
		b.leave("batch size", fmt.Sprintf("%d sequences a step became %d, the same number for each of %d workers", n,
			n+workers-n%workers, workers))
	}
	b.length()
	b.constants()
	b.set("strategy.method", "diloco")
	b.set("strategy.workers", workers)
	if _, ok := b.job["model"]; !ok {
		b.set("model.base_model", "./base")
		b.leave("model", "the configuration does not name it; correct model.base_model")
	}
	if m, ok := b.job["model"].(map[string]any); ok && m["architecture"] == "llama" {
		config := map[string]any{"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
			"num_attention_heads": 32}
		if n := b.number("sequence_len"); n > 0 {
			config["max_position_embeddings"] = n
		}
		b.set("model.config", config)
		b.leave("model.config", "the configuration names a model whose numbers it does not have; those of Llama 7B are "+
			"set, correct them")
	}
	if _, ok := b.job["datasets"]; !ok {
		b.set("datasets", []any{map[string]any{"path": "./data/*.jsonl", "format": "jsonl"}})
		b.leave("datasets", "the configuration names none on disk; correct the path")
	}
}

// constants takes out constants of an optimizer that the one that is set does not have.
func (b *builder) constants() {
	training, _ := b.job["training"].(map[string]any)
	section, _ := training["optimizer"].(map[string]any)
	name, other := section["name"].(string)
	if !other || name == "adamw" {
		return
	}
	for key, has := range map[string]bool{"eps": false, "betas": name == "lion"} {
		if _, given := section[key]; given && !has {
			delete(section, key)
			b.leave("adam_"+key, name+" has none here")
		}
	}
}

// length settles how long the run and its warm-up are. Of what other trainers take two numbers for, steps come before
// epochs, and before ratios.
func (b *builder) length() {
	training, _ := b.job["training"].(map[string]any)
	steps, warm := b.number("training.max_steps"), b.number("training.warmup_steps")
	_, epochs := training["num_epochs"]
	if steps == 0 && !epochs {
		steps = 1000
		b.set("training.max_steps", steps)
		b.leave("training.max_steps", "the configuration does not say how many steps; 1000 are set")
	}
	if steps > 0 && epochs {
		delete(training, "num_epochs")
		b.leave("epochs", "the steps that are given as well count")
	}
	if _, ratio := training["warmup_ratio"]; ratio && warm > 0 {
		delete(training, "warmup_ratio")
		b.leave("warmup_ratio", "the steps of the warm-up that are given as well count")
	}
	b.rounds(steps)
	if most := b.number("training.max_steps"); warm > 0 && most > 0 && warm >= most {
		b.set("training.warmup_steps", most/10)
		b.leave("training.warmup_steps", fmt.Sprintf("%d became %d, a tenth of the run", warm, most/10))
	}
}

// rounds makes the run, its evaluations and its checkpoints end with rounds.
func (b *builder) rounds(steps int) {
	sync := b.number("strategy.sync_steps")
	if sync == 0 {
		if sync = 20; steps > 0 {
			sync = min(sync, steps)
		}
		b.set("strategy.sync_steps", sync)
	}
	for _, key := range []string{"training.max_steps", "eval.every_steps", "checkpoint.every_steps"} {
		n := b.number(key)
		if key == "training.max_steps" {
			n = steps
		}
		if whole := (n + sync - 1) / sync * sync; n > 0 && whole != n {
			b.set(key, whole)
			b.leave(key, fmt.Sprintf("%d became %d, a whole number of rounds of %d steps", n, whole, sync))
		}
	}
}

// rule says what becomes of one key. Its error is why the key is not taken over.
type rule func(b *builder, value any) error

type rules map[string]rule

func (r rules) apply(b *builder, key string, value any) {
	does, ok := r[key]
	if !ok {
		b.leave(key, "it has no counterpart")
		return
	}
	err := does(b, value)
	if refused, ok := errors.AsType[*MethodError](err); ok {
		b.refused = refused
	} else if err != nil {
		b.leave(key, err.Error())
	}
}

// needless says why a key needs no counterpart.
func needless(why string) rule {
	return func(_ *builder, v any) error { return fmt.Errorf("%v: not needed: %s", v, why) }
}

// toggle takes true or false over.
func toggle(path string) rule {
	return func(b *builder, v any) error {
		on, is := v.(bool)
		if !is {
			return fmt.Errorf("%v: wanted true or false", v)
		}
		b.set(path, on)
		return nil
	}
}

// not refuses a key unless it is off.
func not(why string) rule {
	return func(_ *builder, v any) error {
		if v == false || v == "" || v == "none" || v == "no" || v == 0 || v == 0.0 {
			return nil
		}
		return fmt.Errorf("%v: %s", v, why)
	}
}

// integer takes a whole number that is at least 1. Other trainers write -1 or 0 for "not set".
func integer(path string) rule {
	return func(b *builder, v any) error {
		n, err := whole(v)
		if err != nil || n < 1 {
			return err
		}
		b.set(path, n)
		return nil
	}
}

func whole(v any) (int, error) {
	switch n := v.(type) {
	case int:
		return n, nil
	case int64:
		return int(n), nil
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<31 {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("%v is not a whole number", v)
}

// real takes a number between bounds.
func real(path string, low, high float64) rule {
	return func(b *builder, v any) error {
		x, err := float(v)
		if err != nil {
			return err
		}
		if x < low || x > high {
			return fmt.Errorf("%v is not between %g and %g", v, low, high)
		}
		b.set(path, x)
		return nil
	}
}

func float(v any) (float64, error) {
	switch x := v.(type) {
	case int:
		return float64(x), nil
	case int64:
		return float64(x), nil
	case float64:
		return x, nil
	}
	return 0, fmt.Errorf("%v is not a number", v)
}

func text(path string) rule {
	return func(b *builder, v any) error {
		s, ok := v.(string)
		if !ok || s == "" {
			return fmt.Errorf("%v is not text", v)
		}
		b.set(path, s)
		return nil
	}
}

// count takes a whole number that several keys make a setting of.
func count(of func(b *builder) *int) rule {
	return func(b *builder, v any) error {
		n, err := whole(v)
		if err == nil && n > 0 {
			*of(b) = n
		}
		return err
	}
}

// beta takes one of the two decays of Adam.
func beta(i int) rule {
	return func(b *builder, v any) error {
		x, err := float(v)
		if err != nil {
			return err
		}
		optimizer, _ := b.job["training"].(map[string]any)
		section, _ := optimizer["optimizer"].(map[string]any)
		both, ok := section["betas"].([]float64)
		if !ok {
			both = []float64{0.9, 0.999}
		}
		both[i] = x
		b.set("training.optimizer.betas", both)
		return nil
	}
}

// epochs takes the length of the run in passes over the data.
func epochs(b *builder, v any) error {
	x, err := float(v)
	if err == nil && x > 0 {
		b.set("training.num_epochs", x)
	}
	return err
}

// schedule takes the shape of the learning rate.
func schedule(b *builder, v any) error {
	switch s := fmt.Sprint(v); s {
	case "cosine", "linear", "constant", "wsd":
		b.set("training.lr_scheduler", s)
		return nil
	case "constant_with_warmup":
		b.set("training.lr_scheduler", "constant")
		return nil
	case "warmup_stable_decay":
		b.set("training.lr_scheduler", "wsd")
		return nil
	default:
		b.set("training.lr_scheduler", "cosine")
		return fmt.Errorf("%s: there are cosine, linear, constant and wsd; cosine is set", s)
	}
}

// sameAdamW are names of AdamW with its state in float32, and shortAdamW with its state in 8 bits; nearAdamW are
// optimizers replaced by it, with the difference.
var (
	sameAdamW = []string{"adamw", "adamw_torch", "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused",
		"adamw_hf", "adamw_apex_fused", "paged_adamw", "paged_adamw_32bit"}
	shortAdamW = []string{"adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit", "adamw_torch_8bit"}
	nearAdamW  = map[string]string{
		"adamw_torch_4bit":   "its state takes 4 bits; that of AdamW here is float32",
		"adamw_anyprecision": "its state has a precision of its own; that of AdamW here is float32",
		"adam":               "it adds weight decay to the gradient; AdamW, which is set, does not",
	}
)

// otherOptimizers are names of the others.
var otherOptimizers = map[string]string{"sgd": "sgd", "lion_pytorch": "lion", "lion": "lion", "lion_32bit": "lion",
	"adafactor": "adafactor"}

// optimizer takes any of the names of the optimizers that there are.
func optimizer(b *builder, v any) error {
	s := fmt.Sprint(v)
	name := strings.ToLower(s)
	why, near := nearAdamW[name]
	if other, ok := otherOptimizers[name]; ok {
		b.set("training.optimizer.name", other)
		return nil
	}
	short := slices.Contains(shortAdamW, name)
	if !near && !short && !slices.Contains(sameAdamW, name) {
		return fmt.Errorf("%s: the inner optimizer is adamw, sgd, lion or adafactor; adamw is set", s)
	}
	b.set("training.optimizer.name", "adamw")
	if short {
		b.set("training.optimizer.state", "int8")
	}
	if near {
		return fmt.Errorf("%s: %s", s, why)
	}
	return nil
}

// baseModel takes the folder of a model.
func baseModel(b *builder, v any) error {
	s, ok := v.(string)
	if !ok || s == "" {
		return fmt.Errorf("%v is not the name of a model", v)
	}
	if !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, ".") {
		b.set("model.base_model", "./"+path.Base(s))
		return fmt.Errorf("%s is a model of a hub: fetch its folder to ./%s", s, path.Base(s))
	}
	b.set("model.base_model", s)
	return nil
}

// lora begins an adapter, or not.
func lora(b *builder, v any) error {
	switch s := fmt.Sprint(v); s {
	case "lora":
		b.set("model.adapter.lora.r", max(b.number("model.adapter.lora.r"), 8))
		return nil
	case "", "full":
		return nil
	default:
		return fmt.Errorf("%s: there is lora, and training of the whole model", s)
	}
}

// targets takes the layers of an adapter: a list, or names between commas.
func targets(b *builder, v any) error {
	var names []any
	switch t := v.(type) {
	case []any:
		names = t
	case string:
		for _, name := range strings.Split(t, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%v is no list of layers", v)
	}
	if !slices.Contains(names, any("all")) { // every layer is the default
		b.set("model.adapter.lora.target_modules", names)
	}
	return nil
}
