package job

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/client/job/problem"
)

// tree makes empty files below a temporary folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, n := range names {
		p := filepath.Join(root, filepath.FromSlash(n))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFiles(t *testing.T) {
	root := tree(t, "b.txt", "a.txt", "a.md", "sub/c.txt", "sub/deep/d.txt", ".git/e.txt", "sub/.hidden.txt",
		"out/run/f.txt",
		"jobs/tiny.yaml", "jobs/data/g.txt", "runs/old/job.yaml", "runs/old/run.json", "runs/old/h.txt",
		"runs/sim/000/job.yaml", "runs/sim/000/simulation.json", "runs/sim/000/more/i.txt")
	if err := os.Symlink(filepath.Join(root, "sub"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "a.txt"), filepath.Join(root, "link.txt")); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string][]string{
		"../*.txt":          {"../a.txt", "../b.txt"},
		"../**/*.txt":       {"../a.txt", "../b.txt", "../jobs/data/g.txt", "../sub/c.txt", "../sub/deep/d.txt"},
		"../sub/**":         {"../sub/c.txt", "../sub/deep/d.txt"},
		"../**/deep/*":      {"../sub/deep/d.txt"},
		"../**/**/c.txt":    {"../sub/c.txt"},
		"data/g.txt":        {"data/g.txt"},
		"./data/?.txt":      {"data/g.txt"},
		"../link.txt":       {"../link.txt"},
		"../link/*.txt":     {"../link/c.txt"},
		"../[ab].txt":       {"../a.txt", "../b.txt"},
		"../.git/*.txt":     {"../.git/e.txt"},
		"../sub/.*.txt":     {"../sub/.hidden.txt"},
		root + "/sub/*.txt": {filepath.ToSlash(root) + "/sub/c.txt"},
		"../runs/old/*.txt": {"../runs/old/h.txt"},
		"../runs/*/*.txt":   nil,
		"../none*.txt":      nil,
		"../sub":            nil,
		"../nowhere/*.txt":  nil,
		"../out/**/*.txt":   nil,
	} {
		j := parse(t, minimal, "output.dir="+filepath.Join(root, "out"), `datasets.0.path="`+pattern+`"`)
		j.Path = filepath.Join(root, "jobs", "tiny.yaml")
		files, err := j.Files()
		var got []string
		for _, f := range files {
			got = append(got, f.Name)
			if b, err := os.ReadFile(f.Path); err != nil || len(b) != 1 {
				t.Errorf("%s: cannot read %s: %v", pattern, f.Path, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s matches %v, want %v (%v)", pattern, got, want, err)
		}
		if want == nil && problems(t, err)[0].Code != problem.NoData {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func TestLoad(t *testing.T) {
	root := tree(t, "a.txt")
	path := filepath.Join(root, "tiny.yaml")
	if err := os.WriteFile(path, []byte(minimal), 0o644); err != nil {
		t.Fatal(err)
	}
	if j, err := Load(path); err != nil || len(j.Datasets) != 1 {
		t.Fatal(err)
	}
	for _, c := range []struct{ override, code, place string }{
		{`datasets=[{path: "*.txt"}, {path: "b/*.txt"}]`, problem.NoData,
			`--set datasets=[{path: "*.txt"}, {path: "b/*.txt"}]`},
		{"model.tokenizer=byte_level", problem.FileNotFound, "--set model.tokenizer=byte_level"},
	} {
		_, err := Load(path, c.override)
		if e := problems(t, err)[0]; e.Code != c.code || e.Place() != c.place {
			t.Errorf("%s: %s at %s", c.override, e.Code, e.Place())
		}
	}
	if err := os.Remove(filepath.Join(root, "a.txt")); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if e := problems(t, err)[0]; e.Code != problem.NoData || e.Line != 6 || e.Column != 11 {
		t.Errorf("no data: %+v", e)
	}
	_, err = Load(filepath.Join(root, "none.yaml"))
	if e := problems(t, err)[0]; e.Code != problem.FileNotFound {
		t.Errorf("no job file: %+v", e)
	}
}

func TestExampleLoads(t *testing.T) {
	j, err := Load("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := j.Files()
	if err != nil || len(files) < 10 {
		t.Fatalf("the quickstart finds %d files, %v", len(files), err)
	}
	if len(j.Notes) > 0 {
		t.Errorf("the quickstart has notes: %v", j.Notes)
	}
}
