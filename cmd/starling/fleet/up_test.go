package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The example is read, and each worker gets a file of its own with its part of the host.
func TestHostFile(t *testing.T) {
	example, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "fleet.yaml")
		text = strings.Replace(text, "home: fleet", "home: "+filepath.Join(dir, "fleet"), 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	workers, err := readHost(t.Context(), write(string(example)), nil)
	if err != nil || len(workers) != 2 || workers[0].Name != "gpu" || workers[1].Name != "cpu" {
		t.Fatalf("%+v, %v", workers, err)
	}
	text, err := os.ReadFile(workers[0].Args[3])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"device: auto", "threads: 2", "enrol: invitations/machine-1", "disk: 25%",
		"home: " + filepath.Join(dir, "fleet", "gpu"), "network: http://127.0.0.1:26601"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file of a worker does not say %s:\n%s", want, text)
		}
	}
	if info, err := os.Stat(workers[0].Args[3]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	up := workers[1].Args
	supervised := strings.Replace(string(example), "# releases:", "releases:", 1)
	workers, err = readHost(t.Context(), write(supervised), nil)
	if want := append([]string{"supervise", "--home", filepath.Join(dir, "fleet", "cpu"), "--releases",
		"https://releases.example.org", "--root", "root.json", "--"}, up...); err != nil ||
		!slices.Equal(workers[1].Args, want) {
		t.Errorf("with releases: %v, %v", workers[1].Args, err)
	}
	const head = "apiVersion: starling/v1\nkind: Fleet\nhome: fleet\nworkers:\n"
	for name, text := range map[string]string{
		"releases of unknown keys": "releases: {url: file:///r}\n" + head + "  - {name: a}\n",
		"nothing":                  "", "no workers": head, "no name": head + "  - {threads: 1}\n",
		"one name twice":   head + "  - {name: a}\n  - {name: a}\n",
		"a name in a path": head + "  - {name: ../a}\n",
		"an unknown flag":  head + "  - {name: a, speed: 1}\n",
		"another type":     head + "  - {name: a, threads: many}\n",
		"a folder":         head + "  - {name: a, home: b}\n",
		"an unknown key":   "color: red\n" + head + "  - {name: a}\n",
		"another kind":     strings.Replace(head, "Fleet", "Worker", 1) + "  - {name: a}\n",
		"too many":         head + strings.Repeat("  - {name: a}\n", 65),
	} {
		if _, err := readHost(t.Context(), write(text), nil); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
