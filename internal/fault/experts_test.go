package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const expertsFile = `apiVersion: starling/v1
kind: TrainingJob
model:
  architecture: gpt2
  config: {n_layer: 1, n_embd: 32, n_head: 2, n_positions: 32, vocab_size: 256}
val_set_size: 0.1
sequence_len: 32
training: {max_steps: 160, global_batch_size: 12, learning_rate: 1.0e-2}
strategy: {method: fedavg, sync_steps: 20, workers: {min: 3, target: 6}}
budget: {max_cost: 25}
experts:
  - {name: numbers, set: {datasets: [{path: numbers.txt}], model: {config: {n_layer: 2}}}}
  - {name: words, set: {datasets: [{path: words.txt}]}}
`

// TestExperts trains two experts at the same time on a network in which two of six workers skip their work and one
// honest worker is killed and starts again. The liars lose stake, and each model has the bits of an undisturbed run.
func TestExperts(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("skips", "skips")
	n.invite(liars)
	dir := t.TempDir()
	var numbers strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&numbers, "%d follows %d. ", i+1, i)
	}
	path, out := filepath.Join(dir, "experts.yaml"), filepath.Join(dir, "out")
	if err := errors.Join(os.WriteFile(path, []byte(expertsFile), 0o644),
		os.WriteFile(filepath.Join(dir, "numbers.txt"), []byte(numbers.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "words.txt"), []byte(strings.Repeat("a bird sings, and a cat hears it. ", 900)),
			0o644)); err != nil {
		t.Fatal(err)
	}
	n.consumer.args = slices.Concat([]string{"train", path, "--dir", out, "-o", "json", "--no-input", "--network",
		n.rpc[0], "--home", filepath.Join(n.dir, "consumer")}, n.consumer.listen())
	n.consumer.start(0)
	names := []string{"numbers", "words"}
	n.blocks("the first checkpoint of both", func(int64) bool {
		if !n.consumer.running() {
			t.Fatalf("the consumer ended:\n%s", n.consumer.tail(20))
		}
		return !slices.ContainsFunc(names, func(name string) bool {
			roots, err := lineage(filepath.Join(out, name))
			return err != nil || len(roots) == 0
		})
	})
	n.workers[0].kill()
	n.workers[0].start(0)
	n.consumer.succeeds()
	if said, err := exec.Command(program, "job", "verify", out, "-q").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	for _, name := range names {
		alone := filepath.Join(dir, name)
		if said, err := exec.Command(program, "sim", path, "--set", "expert="+name, "--dir", alone, "--threads", "1",
			"-q").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		want, err1 := lineage(alone)
		got, err2 := lineage(filepath.Join(out, name))
		if err := errors.Join(err1, err2); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has the checkpoints %v, undisturbed %v: %v", name, got, want, err)
		}
	}
	participants, err := n.chain.Registry.Participants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range participants {
		lied := slices.ContainsFunc(liars, func(l liar) bool { return l.address == p.ID })
		if lied != (p.Slashed > 0) {
			t.Errorf("%s, which lied %v, lost %d uzen", p.ID, lied, p.Slashed)
		}
	}
}
