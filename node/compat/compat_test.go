package compat

import (
	"encoding/json"
	"flag"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/torchtest"
)

// TestFoldersAreThoseOfPyTorch reads a folder of every published configuration and holds its logits against PyTorch's.
func TestFoldersAreThoseOfPyTorch(t *testing.T) {
	list, err := Folders(1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range list {
		seen[f.Architecture] = true
		if f.Error != "" || !(f.Difference <= Tolerance) || f.Greedy != Greedy || !f.Exported {
			t.Errorf("%+v", f)
		}
	}
	for _, modelType := range architecture.Architectures() {
		if !seen[modelType] {
			t.Errorf("there is no folder of %s", modelType)
		}
	}
	if len(list) < 14 {
		t.Errorf("%d folders", len(list))
	}
}

func read(t *testing.T, name string) (*folder.Model, expected) {
	t.Helper()
	sub, err := fs.Sub(folders, "folders/"+name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := folder.Read(sub)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := fs.ReadFile(sub, "expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want expected
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	return m, want
}

func names(t *testing.T) (list []string) {
	t.Helper()
	entries, err := fs.ReadDir(folders, "folders")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// TestReadingGivesTheSameLogits reads the sequences piece by piece, as text is generated: windows, caps and positions
// hold across the pieces.
func TestReadingGivesTheSameLogits(t *testing.T) {
	for _, name := range names(t) {
		m, want := read(t, name)
		batch := generate.NewBatch(m.Config, 1)
		if err := batch.SetWeights(m.Tensors); err != nil {
			t.Fatal(err)
		}
		r := generate.NewReader(batch)
		at := 0
		for _, n := range []int{5, 1, 9, 1, 1, 7} {
			got, err := r.Read(want.Tokens[at:][:n])
			if err != nil {
				t.Fatal(name, err)
			}
			at += n
			for i, x := range want.Logits[at-1] {
				if math.Abs(float64(got[i])-float64(x)) > Tolerance {
					t.Errorf("%s: logit %d after %d tokens is %g, want %g", name, i, at, got[i], x)
					break
				}
			}
		}
	}
}

// TestConfigsSurvive writes each config as Starling does and reads it back.
func TestConfigsSurvive(t *testing.T) {
	for _, name := range names(t) {
		m, _ := read(t, name)
		var raw map[string]any
		if err := json.Unmarshal(m.Config.JSON(), &raw); err != nil {
			t.Fatal(err)
		}
		again, err := architecture.Parse(m.Config.Architecture(), raw)
		if err != nil || again != m.Config {
			t.Errorf("%s: read back as %+v, %v; want %+v", name, again, err, m.Config)
		}
	}
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "have PyTorch compute the logits again, as .ci/run does")

// TestPyTorchGivesTheLogits recomputes the stored logits, where PyTorch is installed.
func TestPyTorchGivesTheLogits(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	python := torchtest.Python(t)
	args := []string{"families.py", "--check"}
	for _, name := range names(t) {
		args = append(args, filepath.Join("folders", name))
	}
	inputs.Of(t, "families.py")
	out, err := exec.Command(python, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		var f struct {
			Folder     string
			Difference float64
			Greedy     bool
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || !(f.Difference < 1e-5) || !f.Greedy {
			t.Errorf("%s: %v", line, err)
		}
		if !slices.Contains(names(t), f.Folder) {
			t.Errorf("no folder %s", f.Folder)
		}
	}
	if len(lines) != len(names(t)) {
		t.Errorf("%d lines", len(lines))
	}
}
