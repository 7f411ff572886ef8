package circuit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/proof/equation"
)

// The program snarkjs of npm, unchanged, verifies exported proofs about one adapter with one key, and refuses each with
// another public input.
func TestSnarkJSVerifies(t *testing.T) {
	dir := filepath.Join("testdata", "snarkjs")
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no Node.js: `apt install nodejs npm`, and `npm ci --ignore-scripts` in proof/circuit/" + dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Skip("snarkjs is not installed: `npm ci --ignore-scripts` in proof/circuit/" + dir)
	}
	inputs.Of(t, filepath.Join(dir, "check.mjs"), filepath.Join(dir, "package-lock.json"))
	w := open(t)
	var keys []equation.ForeignKey
	for _, tokens := range [][]uint32{{3, 9}, {4}} { // the first alone with changes
		f, err := w.v.Export(w.prove(w.state(tokens...)))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, f.Key)
		snarkjs(t, dir, f, len(keys) == 1)
	}
	if !reflect.DeepEqual(keys[0], keys[1]) {
		t.Error("two keys for one adapter")
	}
	r := openNetwork(t)
	made, err := r.p.Prove(r.state(1, 2, 3, 4, 5, 6), r.n, Secret{7})
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.v.Export(made)
	if err != nil {
		t.Fatal(err)
	}
	snarkjs(t, dir, f, true)
	a := openSum(t)
	sum, err := a.a.Prove(a.state(), a.updates)
	if err != nil {
		t.Fatal(err)
	}
	if f, err = a.v.Export(sum); err != nil {
		t.Fatal(err)
	}
	snarkjs(t, dir, f, true)
}

// snarkjs verifies a proof, with changes also all with another public input or point.
func snarkjs(t *testing.T, dir string, f equation.Foreign, changed bool) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	args, refused := []string{"check.mjs"}, 0
	if changed {
		args, refused = append(args, "changed"), len(f.Public)+6
	}
	check := exec.Command("node", args...)
	check.Dir, check.Stdin, check.Stderr = dir, bytes.NewReader(text), os.Stderr
	out, err := check.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var r struct {
		Holds    bool     `json:"holds"`
		Refused  int      `json:"refused"`
		Accepted []string `json:"accepted"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if !r.Holds || len(r.Accepted) > 0 || r.Refused != refused {
		t.Errorf("%+v", r)
	}
}
