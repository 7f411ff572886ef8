package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/vectors"
	"github.com/starling-network/starling/node/verify"
)

// closer reports whether the model in a folder finds the note that belongs to a wish among two.
func closer(t *testing.T, dir string) bool {
	t.Helper()
	m, err := vectors.Open(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.Encode(t.Context(), []string{"My garage needs a bowl, in purple please.",
		"Reserved for car shed: violet dish", "Reserved for cookroom: azure couch"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return vectors.Cosine(all[0], all[1]) > vectors.Cosine(all[0], all[2])
}

// The example of embeddings learns, with a worker that cheats, and is verified from the data that it shipped.
func TestExampleOfEmbeddings(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	j, err := job.Load("../examples/embed.yaml", "training.max_steps=100")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
	first, ten := s.FinalMeasured["recall_at_1"], s.FinalMeasured["recall_at_10"]
	if first < 0.5 || ten < first || s.FinalMeasured["mrr"] < first || s.FinalEvalLoss > 0.5*s.FirstEvalLoss ||
		s.BitsPerByte != 0 {
		t.Errorf("%+v", s)
	}
	if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
		t.Errorf("the worker that cheats was not caught: %+v", s)
	}
	for _, shipped := range []bool{false, true} {
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: shipped})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("verified %+v, %v", v, err)
		}
	}
	e, err := verify.EvaluateRun(t.Context(), out, 1)
	if err != nil || e.Loss != s.FinalEvalLoss || e.Measured["recall_at_1"] != first || e.Perplexity != 0 {
		t.Errorf("measured again: %+v, %v", e, err)
	}
	if !closer(t, out) {
		t.Error("a wish is closer to the note of another")
	}
}

// A base model learns to give texts vectors, by an adapter or as a whole: the run is verified from the data that it
// shipped, and its output folder gives vectors.
func TestVectorsFromABaseModel(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	jobtest.WriteBase(t, base)
	adapters := []string{"{lora: {r: 4}}"}
	if *long {
		adapters = append(adapters, "null")
	}
	for _, adapter := range adapters {
		j, err := job.Load("../examples/embed.yaml", "model={base_model: "+base+"}", "model.adapter="+adapter,
			"sequence_len=32", "training.max_steps=40", "strategy.sync_steps=20")
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
		if s.FinalMeasured["mrr"] == 0 || s.FinalEvalLoss > 0.97*s.FirstEvalLoss || len(s.Disputes) == 0 {
			t.Errorf("adapter %s: %+v", adapter, s)
		}
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("adapter %s: verified %+v, %v", adapter, v, err)
		}
		closer(t, out)
		if adapter == "null" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(out, prepare.FileAdapter))
		if err != nil {
			t.Fatal(err)
		}
		if f, err := safetensors.Open(raw); err != nil ||
			f.DType("base_model.model.layers.0.self_attn.q_proj.lora_A.weight") != "F32" {
			t.Errorf("the adapter has other names: %v", err)
		}
		raw, err = os.ReadFile(filepath.Join(out, prepare.FileAdapterConfig))
		if text := string(raw); err != nil || !strings.Contains(text, `"FEATURE_EXTRACTION"`) {
			t.Errorf("%s, %v", text, err)
		}
		if _, err := os.Stat(filepath.Join(out, "1_Pooling", "config.json")); err != nil {
			t.Error(err)
		}
	}
}
