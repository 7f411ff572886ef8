package main

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/quote"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/plan"
)

// TestFixOfARefusalIsACommand: the fix of a job that does not fit is a command. Pasted into a shell as it is, it trains
// the job, in folders whose names a shell would cut.
func TestFixOfARefusalIsACommand(t *testing.T) {
	j := jobtest.Small(t)
	dir := filepath.Join(t.TempDir(), "it's a folder")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path, out := filepath.Join(dir, "a job.yaml"), filepath.Join(dir, "out")
	for from, to := range map[string]string{j.Path: path,
		filepath.Join(filepath.Dir(j.Path), "text.txt"): filepath.Join(dir, "text.txt")} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plan.PlanJob(t.Context(), j, "")
	if err != nil {
		t.Fatal(err)
	}
	need := p.Placement.MemoryBytes
	p.Placement = &api.Placement{Fits: "no", MemoryBytes: need, FreeBytes: need - 1}
	flags := " --dir " + jobfile.Word(out) + jobfile.SetFlags([]string{"training.max_steps=4"})
	var refusal *terminal.Problem
	if err := quote.Fits(j, path, flags, p); !errors.As(err, &refusal) || refusal.Code != "MEMORY_TOO_SMALL" {
		t.Fatalf("a job that does not fit: %v", err)
	}
	if !strings.Contains(refusal.Why, "of memory and") {
		t.Errorf("why: %s", refusal.Why)
	}

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "starling")); err != nil {
		t.Fatal(err)
	}
	pasted := exec.CommandContext(t.Context(), "sh", "-c", refusal.Fix)
	pasted.Env = append(os.Environ(), asProgram+"=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if said, err := pasted.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", refusal.Fix, err, said)
	}
	if _, err := os.Stat(filepath.Join(out, "model.safetensors")); err != nil {
		t.Errorf("after %s: %v", refusal.Fix, err)
	}
}

// TestNoSettingsFit: a job that fits with no settings is refused with advice.
func TestNoSettingsFit(t *testing.T) {
	p := &plan.Plan{Placement: &api.Placement{Fits: "no", MemoryBytes: math.MaxInt64, FreeBytes: 1}}
	var refusal *terminal.Problem
	if err := quote.Fits(jobtest.Small(t), "job.yaml", "", p); !errors.As(err, &refusal) ||
		strings.Contains(refusal.Fix, "starling train") || !strings.Contains(refusal.Fix, "smaller model") {
		t.Errorf("refused with %v, %+v", err, refusal)
	}
}
