package node

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/internal/torchtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/protocol/run/reason"
)

// liesOnce is a step that learns backwards in the first unit of a worker, four steps long, and is the job's own after
// that.
const liesOnce = `steps = 0

def step(task, state, batch):
    global steps
    steps += 1
    if steps <= 4:
        batch = batch._replace(lr=-batch.lr)
    return task.step(state, batch)
`

// Two workers train in PyTorch, each of them dishonestly in its first unit. Verifiers find both units outside the
// tolerance: those units are not paid, and are computed again exactly by the built-in engine. All other units are
// within the tolerance, and the run ends without a slash.
func TestTrainInPyTorch(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	python := torchtest.Python(t)
	module := filepath.Join(t.TempDir(), "step.py")
	if err := os.WriteFile(module, []byte(liesOnce), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(jobtest.Small(t).Path, "executor=torch", "training.numerics=tolerant", "strategy.workers=2",
		"strategy.verification.fraction=1",
		"strategy.outer_optimizer.lr=0.7")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said []string
	say := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
	}
	dir := filepath.Join(t.TempDir(), "torch")
	s, err := Train(t.Context(), consumer.Options{Job: j, Dir: dir,
		Torch: torch.Options{Python: python, Module: module, MiB: 4 << 10}, Say: say})
	if e, ok := errors.AsType[*torch.Error](err); ok && e.Code == "EXECUTOR_ISOLATION" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, rundir.FileLog))
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-8000):])
	}
	if s.Rounds != 3 || s.SlashedUzen != 0 || len(s.Disputes) != 0 || s.FinalEvalLoss >= s.FirstEvalLoss {
		t.Errorf("summary: %+v", s)
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "PyTorch ") {
		t.Errorf("said %q", said)
	}
	withheld := map[uint32]int{} // by round
	for _, r := range readReceipts(t, dir) {
		if r.Reason == reason.Outside || r.Reason == reason.Odd {
			withheld[r.Round]++
		}
	}
	if len(withheld) != 1 || !slices.Equal(slices.Collect(maps.Values(withheld)), []int{2}) {
		t.Errorf("withheld updates by round: %v, want two of one", withheld)
	}
	v, err := verify.Run(t.Context(), dir, verify.Options{})
	if err != nil || !v.Complete || v.StateRoot != s.StateRoot || v.Distance == 0 || v.Distance > 0.01 {
		t.Errorf("%+v, %v: want updates near those of the built-in engine, and not equal to them", v, err)
	}
}

// A job that asks for PyTorch where there is none is refused before anything is started.
func TestTrainWithoutPyTorch(t *testing.T) {
	j, err := job.Load(jobtest.Small(t).Path, "executor=torch", "training.numerics=tolerant")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "none")
	_, err = Train(t.Context(), consumer.Options{Job: j, Dir: dir, Torch: torch.Options{Python: "/no/such/python"}})
	if e, ok := errors.AsType[*torch.Error](err); !ok || e.Code != "EXECUTOR_NO_PYTHON" {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the output folder is there: %v", err)
	}
}
