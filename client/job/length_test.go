package job

import (
	"bytes"
	"strings"
	"testing"
)

// The length of a run and of its warm-up may be given as parts of the data and of the run. The overrides hold the
// resulting lengths, so that a run folder has the same job.
func TestLengthInEpochs(t *testing.T) {
	source := []byte(strings.Replace(minimal, "max_steps: 240", "num_epochs: 3\n  warmup_ratio: 0.1", 1))
	if _, err := Parse(source, "tiny.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		epoch             float64
		set               string
		steps, sync, warm int
	}{{210.3, "seed=1", 640, 20, 64}, {2, "seed=1", 6, 6, 1}, {40, "strategy.sync_steps=50", 150, 50, 15},
		{7.1, "strategy.method=allreduce", 22, 1, 3}} {
		j, err := Parse(source, "tiny.yaml", c.set)
		if err != nil {
			t.Fatal(err)
		}
		made, err := j.InSteps(c.epoch)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(made.Source, made.Path, made.Overrides...)
		if err != nil || !bytes.Equal(again.Canonical(), made.Canonical()) {
			t.Errorf("%v: the overrides %q give another job", err, made.Overrides)
		}
		if got := made.Training; got.MaxSteps != c.steps || made.Strategy.SyncSteps != c.sync || got.WarmupSteps != c.warm {
			t.Errorf("3 epochs of %v steps are %d steps in rounds of %d with a warm-up of %d, wanted %+v", c.epoch,
				got.MaxSteps, made.Strategy.SyncSteps, got.WarmupSteps, c)
		}
	}
	for _, set := range []string{"training.max_steps=100", "training.warmup_steps=3"} {
		if _, err := Parse(source, "tiny.yaml", set); err == nil {
			t.Errorf("%s is taken with a key that contradicts it", set)
		}
	}
}
