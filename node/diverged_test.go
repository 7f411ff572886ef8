package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/rundir"
)

// TestTrainingThatDiverges decays weights so fast that they grow a thousandfold with every step. The run ends with an
// error that says so, and with the model and the receipts of the rounds before.
func TestTrainingThatDiverges(t *testing.T) {
	t.Parallel()
	j := jobtest.Small(t)
	j.Training.LearningRate, j.Training.Optimizer.WeightDecay = 1000, 1
	dir := filepath.Join(t.TempDir(), "out")
	_, err := Train(t.Context(), consumer.Options{Job: j, Dir: dir})
	var why *train.DivergedError
	if !errors.As(err, &why) || !strings.Contains(err.Error(), "diverged in round") {
		t.Fatalf("got %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, rundir.FileSummary))
	if err != nil {
		t.Fatal(err)
	}
	var s rundir.Summary
	if err := json.Unmarshal(text, &s); err != nil || s.Diverged != why.Error() || s.Rounds != int(why.Round) {
		t.Errorf("%v, the summary is %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, rundir.FileReceipts)); err != nil {
		t.Error(err)
	}
}

func TestRise(t *testing.T) {
	loss := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		metrics []rundir.Metric
		want    string
	}{
		{nil, ""},
		{[]rundir.Metric{{EvalLoss: loss(5.5)}, {EvalLoss: loss(2)}}, ""},
		{[]rundir.Metric{{EvalLoss: loss(3)}, {EvalLoss: loss(4.4)}}, ""},
		{[]rundir.Metric{{EvalLoss: loss(0.1)}, {EvalLoss: loss(1)}}, ""},
		{[]rundir.Metric{{EvalLoss: loss(5.5)}, {EvalLoss: loss(851)}}, "the eval loss rose from 5.500 to 851.000"},
		{[]rundir.Metric{{Kind: "round", Round: 1, Loss: 5}, {Kind: "step", Round: 2, Loss: 99},
			{Kind: "round", Round: 2, Loss: 4}}, ""},
		{[]rundir.Metric{{Kind: "round", Round: 1, Loss: 5}, {Kind: "round", Round: 2, Loss: 50}},
			"the loss rose from 5.000 to 50.000"},
	} {
		if got := rundir.Rise(c.metrics); got != c.want {
			t.Errorf("%+v: %q, want %q", c.metrics, got, c.want)
		}
	}
}
