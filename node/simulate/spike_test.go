package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/templates"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/rundir"
)

// mostJump is the largest step up of the loss, in nats a token, over an outer step that is no spike: batches are as far
// apart. With moments of zero in every unit the quickstart goes up by more after its first.
const mostJump = 0.25

// TestNoSpikeAfterAnOuterStep trains the quickstart and each template of a job for a few rounds, with their strategies,
// rates and optimizers, and with data, batches and, of the templates, models that train in seconds.
func TestNoSpikeAfterAnOuterStep(t *testing.T) {
	onlyLong(t)
	dir := t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	quickstart, err := os.ReadFile("../../examples/quickstart.yaml")
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "text.jsonl"), sentences(), 0o644)); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, x := range append(templates.All(), templates.Template{Name: "quickstart", File: quickstart}) {
		other := bytes.Contains(x.File, []byte("\ntask: ")) && !bytes.Contains(x.File, []byte("\ntask: sft"))
		if !bytes.Contains(x.File, []byte("kind: TrainingJob")) || other {
			continue // no job, or one whose loss is not that of text
		}
		path := filepath.Join(dir, x.Name+".yaml")
		if err := os.WriteFile(path, x.File, 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := job.Load(path, inSeconds(x.Name)...)
		if err != nil {
			t.Fatal(x.Name, err)
		}
		played := simulate(t, Options{Job: j, Seed: 1})
		all := jumps(played.ending.Metrics, j.Strategy.SyncSteps)
		if t.Logf("%s: %.3f", x.Name, all); len(all) == 0 || slices.Max(all) > mostJump {
			t.Errorf("%s: the loss jumps by %.3f", x.Name, all)
		}
		tried++
	}
	if tried < 4 {
		t.Errorf("%d jobs", tried)
	}
}

// sentences are a JSON object a line, whose text is made of the same words in all parts of the file, so that batches
// are alike and a change of a page changes no loss.
func sentences() []byte {
	random := rand.New(rand.NewPCG(1, 1))
	words := make([]string, 300)
	for i := range words {
		for range 2 + random.IntN(7) {
			words[i] += string(rune('a' + random.IntN(26)))
		}
	}
	var text bytes.Buffer
	for range 1500 {
		text.WriteString(`{"text": "`)
		for range 8 + random.IntN(60) {
			// The square of a uniform number makes the first words frequent, as those of a language are.
			u := random.Float64()
			text.WriteString(words[int(u*u*float64(len(words)))] + " ")
		}
		text.WriteString("\"}\n")
	}
	return text.Bytes()
}

// inSeconds are the settings that make a job train in seconds.
func inSeconds(name string) []string {
	steps, length := 100, 32
	var set []string
	switch name {
	case "quickstart":
		steps, length = 60, 64
		set = []string{"training.global_batch_size=8"}
	case "finetune":
		set = []string{"training.global_batch_size=16", "model.adapter.lora.r=4"}
	case "pretrain":
		set = []string{"training.global_batch_size=16", "model.tokenizer=byte-level", "model.config={hidden_size: 32, " +
			"num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, intermediate_size: 86, " +
			"vocab_size: 256, max_position_embeddings: 32, tie_word_embeddings: true}"}
	default:
		set = []string{"training.global_batch_size=16",
			"model.config={n_layer: 2, n_embd: 32, n_head: 4, n_positions: 32, vocab_size: 256}"}
	}
	return append(set, "datasets=[{path: text.jsonl, format: jsonl, field: text}]", "val_set_size=0.02", "resources=null",
		"training.warmup_steps=10", "strategy.verification={mode: none}", fmt.Sprintf("sequence_len=%d", length),
		fmt.Sprintf("training.max_steps=%d", steps), fmt.Sprintf("eval={every_steps: %d}", steps),
		fmt.Sprintf("checkpoint.every_steps=%d", steps))
}

// jumps are by how much the mean loss of the three steps after each outer step is above that of the three before it.
func jumps(metrics []rundir.Metric, every int) (all []float64) {
	var losses []float64
	for _, m := range metrics {
		if m.Kind == "step" {
			losses = append(losses, m.Loss)
		}
	}
	const some = 3
	for at := every; at+some <= len(losses); at += every {
		var jump float64
		for i := range some {
			jump += (losses[at+i] - losses[at-1-i]) / some
		}
		all = append(all, jump)
	}
	return all
}
