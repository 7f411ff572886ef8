package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/drawn"
	"github.com/starling-network/starling/node/verify"
)

// The example of diffusion learns in fewer steps, with a worker that cheats, is verified from the data that it shipped,
// and draws images.
func TestExampleOfDiffusion(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for _, c := range []struct {
		set  []string
		most float64 // loss
		long bool
	}{{[]string{"model={architecture: mlp, config: {hidden_sizes: [64, 64]}}"}, 0.9, false},
		{[]string{"model.config={conv_channels: [4, 8]}", "training.max_steps=12", "strategy.sync_steps=3",
			"training.warmup_steps=2"}, 1.1, true}} {
		if c.long && !*long {
			continue
		}
		j, err := job.Load("../examples/diffusion.yaml", append([]string{"training.max_steps=100",
			"strategy.sync_steps=25"}, c.set...)...)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
		if mse := s.FinalMeasured["mse"]; !(mse > 0 && mse < c.most) || mse != s.FinalEvalLoss || s.BitsPerByte != 0 {
			t.Errorf("%s: %+v", c.set, s)
		}
		if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
			t.Errorf("%s: the worker that cheats was not caught: %+v", c.set, s)
		}
		for _, shipped := range []bool{false, true} {
			v, err := verify.Run(t.Context(), out, verify.Options{Shipped: shipped})
			if err != nil || v.StateRoot != s.StateRoot {
				t.Errorf("%s: verified %+v, %v", c.set, v, err)
			}
		}
		e, err := verify.EvaluateRun(t.Context(), out, 1)
		if err != nil || e.Loss != s.FinalEvalLoss || e.Measured["mse"] != s.FinalMeasured["mse"] {
			t.Errorf("%s: measured again: %+v, %v", c.set, e, err)
		}
		m, err := drawn.Open(os.DirFS(out))
		if err != nil {
			t.Fatal(err)
		}
		if all, err := m.Sample(t.Context(), 2, 1, 1); err != nil || len(all) != 2 || all[0].Values == nil {
			t.Errorf("%s: %d images, %v", c.set, len(all), err)
		}
	}
}
