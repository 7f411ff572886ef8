package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/network/blob"
)

// A tolerant run trains, waits for its audits, and keeps what it takes to verify it.
func TestTolerantRun(t *testing.T) {
	exact := smallJob(t)
	j, err := job.Load(exact.Path, "training.numerics=tolerant", "strategy.verification.fraction=1")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tolerant")
	s := mustTrain(t, TrainOptions{Job: j, Dir: dir})
	if s.Rounds != 3 || s.Audits.Drawn != 9 || s.Audits.Passed != 9 || s.Plants.Shown != 0 || s.SlashedUzen != 0 || len(s.Disputes) != 0 {
		t.Errorf("summary: %+v", s)
	}
	v, err := Verify(t.Context(), dir, VerifyOptions{})
	if err != nil || v.Numerics != job.Tolerant || v.Distance != 0 || !v.Complete || v.StateRoot != s.StateRoot {
		t.Fatalf("%+v, %v", v, err)
	}
	lines, err := parseLineage(filepath.Join(dir, fileLineage), v.Job)
	if err != nil {
		t.Fatal(err)
	}
	store, err := blob.OpenDisk(filepath.Join(dir, dirBlobs))
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
	var differs *MismatchError
	if _, err := Verify(t.Context(), dir, VerifyOptions{}); !errors.As(err, &differs) || differs.Round != 2 || !strings.Contains(differs.What, "unit 2") {
		t.Errorf("without an update: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, fileModel)); err != nil {
		t.Error(err)
	}
}
