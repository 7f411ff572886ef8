package job

import (
	"testing"

	"github.com/starling-network/starling/client/job/spec"
)

// A task settles the form of its data, and the part of it that is learnt.
func TestTasks(t *testing.T) {
	const examples = "apiVersion: starling/v1\nkind: TrainingJob\nmodel: {base_model: base}\n" +
		"datasets: [{path: \"*.jsonl\"}]\ntraining: {max_steps: 50}\n"
	for _, c := range []struct {
		task     string
		rate     float64
		measured string
		tokens   int
	}{{spec.TaskSFT, 3e-4, spec.Perplexity, 512}, {spec.TaskDPO, 1e-5, spec.Preference, 1024},
		{spec.TaskGRPO, 1e-5, spec.Rewarded, 512}} {
		j := parse(t, examples, "task="+c.task)
		d := j.Datasets[0]
		if d.Format != "jsonl" || d.Field != "messages" || j.Training.TrainOnInputs || j.SamplePacking ||
			j.Training.LearningRate != c.rate || j.Eval.Tasks[0] != c.measured || j.ExampleTokens() != c.tokens ||
			j.DPO.Beta != 0.1 || j.Rollout.Group != 8 || j.Reward.Exact != 1 ||
			(j.Rollout.MaxTokens == 32) != (c.task == spec.TaskGRPO) {
			t.Errorf("%s: %+v", c.task, j.Spec)
		}
	}
	j := parse(t, "apiVersion: starling/v1\nkind: TrainingJob\ntask: graph\nmodel: {architecture: sage}\n"+
		"datasets: [{path: a/nodes.jsonl}, {path: edges.csv.gz}, {path: rows, format: csv}]\ntraining: {max_steps: 50}\n",
		"graph.directed=true")
	if d := j.Datasets; d[0].Format != "jsonl" || d[1].Format != "csv" || d[2].Format != "csv" || !j.Graph.Directed ||
		j.ReadsText() || j.Eval.Tasks[0] != spec.Accuracy {
		t.Errorf("graph: %+v", j.Spec)
	}
	j = parse(t, "apiVersion: starling/v1\nkind: TrainingJob\ntask: classify\nmodel: {architecture: llama}\n"+
		"datasets: [{path: a.jsonl}, {path: b.csv.zst, field: review, label_field: stars}]\ntraining: {max_steps: 50}\n",
		"sequence_len=64", "training.precision=bf16", "model.tokenizer={train: {type: bpe, vocab_size: 300}}")
	if d := j.Datasets; d[0].Format != "jsonl" || d[0].Field != "text" || d[0].LabelField != "label" ||
		d[1].Format != "csv" || d[1].LabelField != "stars" || j.ReadsText() || !j.ClassifiesText() ||
		j.Eval.Tasks[0] != spec.Accuracy {
		t.Errorf("texts: %+v", j.Spec)
	}
	for architecture, texts := range map[string]bool{"mlp": false, "cnn": false, "gpt2": true, "llama": true} {
		j := parse(t, examples, "task=classify", "model={architecture: "+architecture+"}",
			"datasets=[{path: a, format: jsonl}]")
		if j.ClassifiesText() != texts || (j.Datasets[0].LabelField != "") != texts {
			t.Errorf("%s: %+v", architecture, j.Spec)
		}
	}
	j = parse(t, examples, "task=embed", "model={architecture: llama}", "datasets=[{path: a.jsonl}, {path: b.csv, "+
		"field: query, positive_field: answer}]", "training.global_batch_size=64", "training.micro_batch_size=16")
	if d := j.Datasets; d[0].Format != "jsonl" || d[0].Field != "anchor" || d[0].PositiveField != "positive" ||
		d[1].Format != "csv" || d[1].Field != "query" || d[1].PositiveField != "answer" || j.Embed.Temperature != 0.05 ||
		j.ReadsText() || !j.EncodesText() || j.PredictsText() || j.Eval.Tasks[0] != spec.Recall {
		t.Errorf("pairs: %+v", j.Spec)
	}
	j = parse(t, examples, "task=diffusion", "model={architecture: cnn}",
		"datasets=[{path: \"*.png\"}, {path: a, format: jsonl}]", "training.micro_batch_size=1")
	if d := j.Datasets; d[0].Format != "image" || d[1].Format != "jsonl" || j.Diffusion.Timesteps != 1000 ||
		j.ReadsText() || j.EncodesText() || j.Eval.Tasks[0] != spec.Denoising {
		t.Errorf("images to draw: %+v", j.Spec)
	}
	if j = parse(t, examples, "task=classify"); !j.ClassifiesText() || j.Datasets[0].Format != "jsonl" {
		t.Errorf("from a base model: %+v", j.Spec)
	}
	j = parse(t, examples, "task=sft", "sample_packing=true", "training.train_on_inputs=true",
		"datasets=[{path: a.jsonl, field: talk}]")
	if !j.SamplePacking || !j.Training.TrainOnInputs || j.Datasets[0].Field != "talk" {
		t.Errorf("the file is not followed: %+v", j.Spec)
	}
}
