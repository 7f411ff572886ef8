package fleet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/node/fleet"
)

// read is the file of a worker of a host.
func read(t *testing.T, home, name string) (keys struct {
	Device, Enrol, Home, Network string
	Memory, Threads              int
}) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, name+".yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &keys)
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// invitations is a folder with files of invitations, and of other things.
func invitations(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each device of a machine gets a worker of its name with an invitation of its own, which it keeps: also when devices
// are added before it.
func TestAWorkerForEachDevice(t *testing.T) {
	home, dir := filepath.Join(t.TempDir(), "fleet"), invitations(t, "machine-10", "machine-2", "machine-1", "notes")
	three := func(context.Context) ([]string, error) { return []string{"opencl:0", "opencl:3", "cpu"}, nil }
	host := func(devices ...string) *hostFile {
		return &hostFile{Version: fileVersion, Kind: fileKind, Home: home, Devices: devices, Invitations: dir,
			All: map[string]yaml.Node{"network": scalar("http://n:1")}}
	}
	workers, err := host("opencl:3", "cpu").workers(t.Context(), nil)
	if err != nil || len(workers) != 2 || workers[0].Name != "opencl-3" || workers[1].Name != "cpu" {
		t.Fatalf("%v, %v", workers, err)
	}
	two := read(t, home, "cpu")
	if two.Enrol != filepath.Join(dir, "machine-2") || two.Device != "cpu" || two.Network != "http://n:1" ||
		two.Home != filepath.Join(home, "cpu") {
		t.Errorf("the second worker: %+v", two)
	}
	if _, err = host("all").workers(t.Context(), three); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"opencl-0": "machine-10", "opencl-3": "machine-1", "cpu": "machine-2"} {
		if got := read(t, home, name); got.Enrol != filepath.Join(dir, want) ||
			got.Device != strings.ReplaceAll(name, "-", ":") {
			t.Errorf("%s, of three: %+v", name, got)
		}
	}
	if got := read(t, home, "cpu"); got.Memory > 0 && got.Memory >= two.Memory {
		t.Errorf("one of three has %d MiB, and one of two had %d", got.Memory, two.Memory)
	}
	homes, err := fleet.Homes(home)
	if err != nil || len(homes) != 3 || homes[1] != filepath.Join(home, "opencl-3") {
		t.Errorf("%v, %v", homes, err)
	}
	if alone, err := fleet.Homes(homes[0]); err != nil || len(alone) != 1 || alone[0] != homes[0] {
		t.Errorf("the folder of a worker: %v, %v", alone, err)
	}
	if _, err := host("cpu", "opencl:7").workers(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "were given them") {
		t.Errorf("a worker that the host no longer names has used its invitation: %v", err)
	}
	for want, devices := range map[string][]string{
		"were given them": {"opencl:0", "opencl:1", "opencl:3", "cpu"}, "there twice": {"cpu", "cpu"},
		"may be any": {"opencl", "cpu"}, "all alone": {"all", "cpu"},
	} {
		if _, err := host(devices...).workers(t.Context(), three); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", devices, err)
		}
	}
	own := host("cpu")
	own.Invitations = ""
	if _, err := own.workers(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "one owner") {
		t.Errorf("without invitations: %v", err)
	}
}
