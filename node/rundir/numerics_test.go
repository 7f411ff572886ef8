package rundir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/internal/jobtest"
)

// The job of a run has the version of the numerics that the run began with; a run that names none began with version 1.
func TestNumericsOfARun(t *testing.T) {
	source := jobtest.Small(t).Source
	for text, want := range map[string]uint32{`{"format": 1, "id": "job"`: kernel.Version1,
		`{"format": 1, "id": "job", "numerics": 2`: kernel.Version2} {
		o := OutDir{Path: t.TempDir()}
		path := filepath.Join(o.Path, "job-file.yaml")
		text += `, "job_file": "` + path + `"}`
		for name, b := range map[string][]byte{FileRun: []byte(text), FileJob: source} {
			if err := os.WriteFile(o.File(name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.ReadRun(); err != nil {
			t.Fatal(err)
		}
		j, err := o.LoadJob("")
		if err != nil || j.Numerics != want {
			t.Errorf("%s: %v, %v", text, j, err)
		}
	}
}
