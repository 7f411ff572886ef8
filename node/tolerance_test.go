package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/verify"
)

// A tolerant run trains, waits for its audits, and keeps the files that its verification needs.
func TestTolerantRun(t *testing.T) {
	t.Parallel()
	exact := jobtest.Small(t)
	j, err := job.Load(exact.Path, "training.numerics=tolerant", "strategy.verification.fraction=1")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tolerant")
	s := mustTrain(t, consumer.Options{Job: j, Dir: dir})
	if s.Rounds != 3 || s.Audits.Drawn != 9 || s.Audits.Passed != 9 || s.Plants.Shown != 0 || s.SlashedUzen != 0 ||
		len(s.Disputes) != 0 {
		t.Errorf("summary: %+v", s)
	}
	v, err := verify.Run(t.Context(), dir, verify.Options{})
	if err != nil || v.Numerics != spec.Tolerant || v.Distance != 0 || !v.Complete || v.StateRoot != s.StateRoot {
		t.Fatalf("%+v, %v", v, err)
	}
	lines, err := rundir.ParseLineage(filepath.Join(dir, rundir.FileLineage), v.Job)
	if err != nil {
		t.Fatal(err)
	}
	store, err := blob.OpenDisk(filepath.Join(dir, rundir.DirBlobs))
	if err != nil {
		t.Fatal(err)
	}
	id, err := blob.Parse(lines[1].Updates[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var differs *verify.MismatchError
	if _, err := verify.Run(t.Context(), dir, verify.Options{}); !errors.As(err, &differs) || differs.Round != 2 ||
		!strings.Contains(differs.What, "unit 2") {
		t.Errorf("without an update: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, prepare.FileModel)); err != nil {
		t.Error(err)
	}
}
