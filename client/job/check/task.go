package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// task checks that the keys of a task are given for that task, and that the data and the model are what it needs.
func task(c *checker) {
	if c.bad("task") {
		return
	}
	for _, of := range []struct{ key, task string }{{"dpo", spec.TaskDPO}, {"rollout", spec.TaskGRPO},
		{"reward", spec.TaskGRPO}, {"graph", spec.TaskGraph}, {"embed", spec.TaskEmbed},
		{"diffusion", spec.TaskDiffusion}} {
		if c.Task != of.task && c.file.Given(of.key) && !c.bad(of.key) {
			c.report(of.key, problem.BadValue, of.key+" is given, and task is "+c.Task, "it is a setting of task: "+of.task,
				"remove it, or use task: "+of.task)
		}
	}
	if want := c.Measurement(); !c.bad("eval.tasks") && !slices.Equal(c.Eval.Tasks, []string{want}) {
		c.report("eval.tasks", problem.BadValue, fmt.Sprintf("eval.tasks is %q, and task is %s", c.Eval.Tasks, c.Task),
			"an evaluation measures what the task is about", "remove it, or write ["+want+"]")
	}
	if architecture := c.Model.Architecture; architecture != "" && !c.bad("model.architecture") &&
		!slices.Contains(architectures(c.Task), architecture) {
		c.report("model.architecture", problem.BadValue,
			fmt.Sprintf("model.architecture is %s, and task is %s", architecture, c.Task),
			"images are classified or drawn by mlp or cnn, nodes of a graph by gcn or sage, and text is learnt, classified, "+
				"scored or given vectors by gpt2 or llama",
			"use another architecture, or another task")
	}
	for i := range c.Datasets {
		if at := fmt.Sprintf("datasets.%d.label_field", i); c.file.Given(at) && !c.ClassifiesText() && !c.bad(at) {
			c.report(at, problem.BadValue, at+" is given, and the job classifies no texts",
				"it names the field of the class of a text", "remove it, or use task: classify with architecture: gpt2 or llama")
		}
		if at := fmt.Sprintf("datasets.%d.reward_fields", i); c.file.Given(at) && c.Task != spec.TaskGRPO && !c.bad(at) {
			c.report(at, problem.BadValue, at+" is given, and task is "+c.Task, "it names what answers are rewarded by",
				"remove it, or use task: grpo")
		}
		if at := fmt.Sprintf("datasets.%d.positive_field", i); c.file.Given(at) && c.Task != spec.TaskEmbed && !c.bad(at) {
			c.report(at, problem.BadValue, at+" is given, and task is "+c.Task,
				"it names the field of the second text of a pair", "remove it, or use task: embed")
		}
	}
	if !c.ReadsText() {
		classify(c)
		return
	}
	for i, set := range c.Datasets {
		if at := fmt.Sprintf("datasets.%d.format", i); set.Format == spec.Images && !c.bad(at) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s is %s, and task is %s", at, set.Format, c.Task),
				"images are learnt by task: classify or task: diffusion", "use one of these tasks, or another format")
		}
	}
	if !c.AnswersExamples() {
		return
	}
	for i, set := range c.Datasets {
		if at := fmt.Sprintf("datasets.%d.format", i); set.Format != "jsonl" && !c.bad(at) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s is %s, and task is %s", at, set.Format, c.Task),
				"its examples are JSON objects, one a line", "use format: jsonl")
		}
	}
	switch c.Task {
	case spec.TaskDPO:
		pairs(c)
	case spec.TaskGRPO:
		rewards(c)
	}
}

// architectures are those that a task can train from scratch.
func architectures(task string) []string {
	switch task {
	case spec.TaskClassify:
		return []string{"mlp", "cnn", "gpt2", "llama"}
	case spec.TaskGraph:
		return []string{"gcn", "sage"}
	case spec.TaskDiffusion:
		return []string{"mlp", "cnn"}
	}
	return []string{"gpt2", "llama"}
}

// languageOnly are the keys that only language models have which continue or answer text, and languageModels those of
// all language models.
var (
	languageOnly   = []string{"sample_packing", "training.train_on_inputs", "eval.prompts"}
	languageModels = []string{"model.base_model", "model.tokenizer", "model.adapter", "model.load_in_4bit",
		"model.load_in_8bit", "sequence_len"}
)

// classify checks that images, texts or nodes can be classified, and that nothing is asked for that their networks do
// not have.
func classify(c *checker) {
	formats, why := []string{spec.Images, "jsonl"}, "examples are PNG files in a folder for each class, or JSON objects, "+
		"one a line"
	texts, others := c.EncodesText(), slices.Clone(languageOnly)
	switch {
	case c.Task == spec.TaskDiffusion:
		why = "examples are PNG files, or JSON objects, one a line"
	case c.Task == spec.TaskEmbed:
		formats, why = []string{"jsonl", "csv"}, "pairs of texts are JSON objects, one a line, or rows"
		contrast(c)
	case c.Task == spec.TaskReward:
		formats, why = []string{"jsonl"}, "an example is a JSON object with a prompt and two answers, one a line"
	case texts:
		formats, why = []string{"jsonl", "csv"}, "texts with their classes are JSON objects, one a line, or rows"
	case c.Task == spec.TaskGraph:
		formats, why = []string{"jsonl", "csv"}, "nodes and edges are JSON objects, one a line, or rows"
	}
	if !texts {
		others = append(others, languageModels...)
	}
	for i, set := range c.Datasets {
		if at := fmt.Sprintf("datasets.%d.format", i); !slices.Contains(formats, set.Format) && !c.bad(at) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s is %s, and task is %s", at, set.Format, c.Task), why,
				"use format: "+strings.Join(formats, " or format: "))
		}
		if at := fmt.Sprintf("datasets.%d.weight", i); set.Weight != 1 && !c.bad(at) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s is %v, and task is %s", at, set.Weight, c.Task),
				"examples that are repeated could be both trained on and held out", "remove it")
		}
		if at := fmt.Sprintf("datasets.%d.field", i); !texts && c.file.Given(at) && !c.bad(at) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s is given, and task is %s", at, c.Task),
				"it names a text, and the keys of an example have fixed names", "remove it")
		}
	}
	for _, key := range others {
		if c.file.Given(key) && !c.bad(key) {
			c.report(key, problem.BadValue, key+" is given, and task is "+c.Task,
				"it is a setting of "+map[bool]string{false: "", true: "other "}[texts]+"language models", "remove it")
		}
	}
	for _, key := range []struct {
		path, word, of string
		on             bool
	}{{"executor", spec.Torch, "models that continue text", c.Executor == spec.Torch},
		{"training.precision", c.Training.Precision, "language models", !texts && c.Training.Precision != "fp32"},
		{"output.formats", "gguf", "models that continue text", slices.Contains(c.Output.Formats, "gguf")}} {
		if key.on && !c.bad(key.path) {
			c.report(key.path, problem.Unsupported, key.path+" is "+key.word+", and task is "+c.Task,
				"it is built for "+key.of+" alone", "remove it")
		}
	}
}

// contrast checks that pairs of texts are compared with the other pairs of their batch: all that a worker takes in a
// step, at once.
func contrast(c *checker) {
	at := "training.global_batch_size"
	if c.bad(at, "strategy.workers.target") || c.Strategy.Workers.Target < 1 {
		return
	}
	if c.WorkerBatch() < 2 {
		c.report(at, problem.BadValue, fmt.Sprintf("%s is %d for %d workers", at, c.Training.GlobalBatchSize,
			c.Strategy.Workers.Target), "a pair is compared with the other pairs that its worker takes in a step",
			"use at least two pairs for each worker, and better 32")
		return
	}
	for _, at := range []string{"training.micro_batch_size", "training.gradient_accumulation_steps"} {
		if m := c.MicroBatch(); c.file.Given(at) && m != 0 && !c.bad(at) {
			c.report(at, problem.Unsupported, at+" is given, and task is embed",
				"all pairs of a step are compared with each other, so they are computed at once",
				"remove it, and use a smaller global_batch_size or gradient_checkpointing: true if the memory is too small")
			return
		}
	}
}

// pairs checks that preferences can be learnt.
func pairs(c *checker) {
	if at := "model.base_model"; c.Model.BaseModel == "" && !c.bad("model", at) {
		c.report("task", problem.BadValue, "task is dpo, and "+at+" is missing",
			"preferences are learnt relative to the model that the training starts from",
			"add base_model: ./folder under model")
	}
	answersAlone(c, "an example is a pair of answers to one prompt, and the answers alone are compared")
}

// rewards checks that answers can be drawn and rewarded.
func rewards(c *checker) {
	game(c)
	if at := "rollout.max_tokens"; c.Rollout.MaxTokens >= c.SequenceLen && !c.bad("rollout", at, "sequence_len") {
		c.report(at, problem.BadValue, fmt.Sprintf("%s is %d, and sequence_len is %d", at, c.Rollout.MaxTokens,
			c.SequenceLen), "a sequence is a prompt and an answer", "lower max_tokens, or raise sequence_len")
	}
	if at := "rollout.kl"; c.Rollout.KL > 0 && c.Model.BaseModel == "" && !c.bad("model", "model.base_model", at) {
		c.report(at, problem.BadValue, at+" is given, and model.base_model is missing",
			"the model is held near the model that the training starts from", "add base_model: ./folder under model")
	}
	if at := "rollout.generators"; c.Rollout.Generators > 0 && !c.Rollout.Apart() && !c.bad("rollout", at,
		"rollout.staleness") {
		c.report(at, problem.BadValue, at+" is given, and rollout.staleness is 0",
			"units that learn draw their answers by themselves", "add staleness: 2 to rollout, or remove generators")
	}
	if at := "rollout.correction"; c.Rollout.Correction != "" && !c.Rollout.Apart() && !c.bad("rollout", at,
		"rollout.staleness") {
		c.report(at, problem.BadValue, at+" is given, and rollout.staleness is 0",
			"the policy that learns draws the answers", "add staleness: 2 to rollout, or remove correction")
	}
	if c.Rollout.Apart() {
		drawnApart(c)
	}
	sharing(c)
	rules(c)
	adapter := c.Model.Adapter
	for _, key := range []struct {
		path string
		on   bool
	}{{"training.dropout", c.Training.Dropout > 0},
		{"model.adapter.lora.dropout", adapter != nil && adapter.LoRA != nil && adapter.LoRA.Dropout > 0}} {
		if key.on && !c.bad("model", key.path) {
			c.report(key.path, problem.BadValue, key.path+" is given, and task is "+c.Task,
				"answers are drawn from the model that learns from them, of which nothing is dropped", "remove it")
		}
	}
	answersAlone(c, "an example is a prompt and its right answer, which is compared with those that are drawn")
}

// drawnApart checks that answers can be drawn by other units than those that learn.
func drawnApart(c *checker) {
	at, is := "rollout.staleness", "above 0"
	if c.Rollout.Swarm() {
		at, is = "rollout.sharing", spec.SwarmSharing
	}
	if c.bad("rollout", at) {
		return
	}
	st := c.Strategy
	for _, key := range []struct {
		path, value string
		on          bool
	}{{"rollout.top_p", "below 1", c.Rollout.TopP < 1},
		{"training.numerics", "tolerant", c.Training.Numerics == spec.Tolerant},
		{"strategy.workers.relative_speeds", "given", st.Workers.RelativeSpeeds != nil},
		{"strategy.aggregation.slices", "above 1", st.Aggregation.Slices > 1},
		{"strategy.verification.screen", "losses", st.Verification.Screen == "losses"}} {
		if key.on && !c.bad("strategy", key.path) {
			why := "answers are drawn apart for exact units of one size, whose updates each member combines"
			if key.path == "rollout.top_p" {
				why = "answers of an older policy count by the ratio of their probabilities in both, and a token outside of one " +
					"nucleus has none"
			}
			c.report(key.path, problem.Unsupported, key.path+" is "+key.value+", and "+at+" is "+is, why,
				"remove it, or "+at)
		}
	}
	const most = 1 << 10
	if n := st.Workers.Target * (1 + st.SyncSteps); n > most && !c.bad("strategy", "strategy.sync_steps") {
		c.report("strategy.sync_steps", problem.TooLarge, fmt.Sprintf("strategy.sync_steps is %d for %d workers, and %s is "+
			"%s", st.SyncSteps, st.Workers.Target, at, is), fmt.Sprintf("each step learns from a unit of its own, and a round "+
			"has at most %d units", most), "lower sync_steps")
	}
}

// answersAlone checks that nothing is asked for which the loss of a language model has, and that of answers has not.
func answersAlone(c *checker, why string) {
	for _, key := range []struct {
		path string
		on   bool
	}{{"sample_packing", c.SamplePacking}, {"training.train_on_inputs", c.Training.TrainOnInputs}} {
		if key.on && !c.bad(key.path) {
			c.report(key.path, problem.BadValue, key.path+" is true, and task is "+c.Task, why, "remove it")
		}
	}
	if at := "executor"; c.Executor == spec.Torch && c.Task != spec.TaskGRPO && !c.bad(at) {
		c.report(at, problem.Unsupported, "executor is torch, and task is "+c.Task,
			"the PyTorch side computes the loss of language models alone", "remove executor")
	}
}
