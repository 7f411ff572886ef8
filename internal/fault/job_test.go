package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
)

const (
	steps = 24 // inner steps of a round: about a tenth of a second of computing a unit
	warm  = 2  // rounds after which enough is measured for short deadlines
)

const jobFile = `apiVersion: starling/v1
kind: TrainingJob
model:
  architecture: llama
  config: {hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2, intermediate_size: 64,
	max_position_embeddings: 32}
  tokenizer: {train: {type: bpe, vocab_size: 300}}
datasets: [{path: "*.jsonl", format: jsonl}]
val_set_size: 0.1
sequence_len: 32
training: {global_batch_size: 8, learning_rate: 1.0e-2, lr_scheduler: constant}
strategy: {workers: {target: 4}}
`

// writeJob writes the job file and its data, once for all tests, and returns its path.
var writeJob = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(scratch, "job-")
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	for i := range 1500 {
		fmt.Fprintf(&text, "{\"text\": \"number %d follows %d and so on\"}\n", i+1, i)
	}
	path := filepath.Join(dir, "job.yaml")
	return path, errors.Join(os.WriteFile(path, []byte(jobFile), 0o644),
		os.WriteFile(filepath.Join(dir, "text.jsonl"), text.Bytes(), 0o644))
})

// jobPath is the job file of the jobs that follow.
func (n *network) jobPath() (string, error) {
	if n.file != "" {
		return n.file, nil
	}
	return writeJob()
}

// settings returns arguments of starling train that describe a job. Jobs differ in their seeds, so that no machine
// has blobs of an earlier job on its disk.
func settings(seed, rounds int, more []string) []string {
	return append([]string{"--set", fmt.Sprintf("seed=%d", seed), "--set", fmt.Sprintf("strategy.sync_steps=%d", steps),
		"--set", fmt.Sprintf("training.max_steps=%d", rounds*steps)}, more...)
}

// undisturbed is the lineage of the same job on a simulated network, where nothing happens to it.
func (j *job) undisturbed() ([]string, error) {
	path, err := j.jobPath()
	if err != nil {
		return nil, err
	}
	out := j.out + "-undisturbed"
	args := slices.Concat([]string{"sim", path, "--dir", out, "--threads", "1", "-q"}, j.settings, j.undo)
	if said, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the undisturbed run: %w: %s", err, said)
	}
	return lineage(out)
}

// lineage are the state roots in an output folder.
func lineage(out string) (roots []string, err error) {
	text, err := os.ReadFile(filepath.Join(out, "lineage.jsonl"))
	for line := range bytes.Lines(text) {
		var l struct {
			StateRoot string `json:"state_root"`
		}
		err = errors.Join(err, json.Unmarshal(line, &l))
		roots = append(roots, l.StateRoot)
	}
	return roots, err
}

// job is a job that runs on a network.
type job struct {
	*network
	id       string
	settings []string // of the job file that are its own
	out      string
	rounds   int
	height   int64  // of the block that was waited for last
	hurt     uint32 // round of the fault
	hurtAt   int64  // height of it
	within   int64  // in how many blocks its round is to be over
	alone    bool   // the test does not wait for the end of the run
	paid     []func([]reward.Receipt)
	said     []string
}

// submit starts the consumer with a job, and returns when the first rounds are over, from which the chain knows how
// long a unit takes.
func (n *network) submit(name string, rounds int) *job {
	n.t.Helper()
	j := n.order(name, rounds)
	j.until("the first rounds", func(s run.State) bool { return s.Round >= warm })
	return j
}

// order starts the consumer with a job, and returns when its run has begun.
func (n *network) order(name string, rounds int) *job {
	n.t.Helper()
	n.jobs++
	set := n.set
	if !n.second.running() { // a job has two verifiers by default, and would wait for the second
		set = append(slices.Clip(set), "--set", "strategy.verification.verifiers=1")
	}
	j := &job{network: n, settings: settings(n.jobs, rounds, set), out: filepath.Join(filepath.Dir(n.dir), name),
		rounds: rounds}
	path, err := n.jobPath()
	if err != nil {
		n.t.Fatal(err)
	}
	n.consumer.args = slices.Concat([]string{"train", path, "--dir", j.out, "-o", "json", "--no-input", "--network",
		cmp.Or(n.ask, n.rpc[0]), "--home", filepath.Join(n.dir, "consumer")}, j.settings, n.consumer.listen())
	n.consumer.start(0)
	n.blocks("the match", func(int64) bool {
		var known struct {
			ID string `json:"id"`
		}
		if !n.consumer.running() {
			n.t.Fatalf("the consumer ended:\n%s", n.consumer.tail(20))
		}
		text, err := os.ReadFile(filepath.Join(j.out, "run.json"))
		if err != nil || json.Unmarshal(text, &known) != nil || n.run(known.ID).Phase == 0 {
			return false
		}
		j.id = known.ID
		return true
	})
	return j
}

// until waits for a block after which the state of the run is so, and returns it.
func (j *job) until(what string, so func(run.State) bool) (s run.State) {
	j.t.Helper()
	j.blocks(what, func(height int64) bool {
		s, j.height = j.run(j.id), height
		if so(s) {
			return true
		}
		if s.Phase == progress.Halted || s.Phase == progress.Done {
			j.tellNotes()
			j.t.Fatalf("waiting for %s, the run ended in phase %d: %s", what, s.Phase, s.Why)
		}
		if !j.consumer.running() && j.consumer.code != 0 && j.consumer.code != -1 {
			j.t.Fatalf("waiting for %s, the consumer ended:\n%s", what, j.consumer.tail(20))
		}
		return false
	})
	return s
}

// after waits for some more blocks.
func (j *job) after(blocks int64) run.State {
	j.t.Helper()
	seen := int64(0)
	return j.until("a few blocks", func(run.State) bool { seen++; return seen > blocks })
}

// note keeps a line for the end of a fault.
func (j *job) note(format string, args ...any) {
	j.said = append(j.said, fmt.Sprintf(format, args...))
}

// finish waits for the end of the run, and checks its output folder.
func (j *job) finish() {
	j.t.Helper()
	if j.alone {
		j.ends()
		j.money()
		j.consumer.args = append(j.consumer.args, "--resume")
		begun := time.Now()
		j.consumer.start(0)
		j.consumer.end()
		j.t.Logf("the consumer collected what it missed in %.0f s", time.Since(begun).Seconds())
	}
	j.consumer.succeeds()
	var summary struct {
		Rounds    int    `json:"rounds"`
		StateRoot string `json:"state_root"`
		Slashed   uint64 `json:"slashed_uzen"`
	}
	if err := json.Unmarshal(j.consumer.stdout.Bytes(), &summary); err != nil {
		j.t.Fatalf("%v: %s", err, j.consumer.stdout.Bytes())
	}
	if summary.Rounds != j.rounds || summary.Slashed > 0 {
		j.t.Errorf("%d rounds of %d, %d uzen slashed", summary.Rounds, j.rounds, summary.Slashed)
	}
	last, err := j.chain.Training.Lineage(j.t.Context(), j.id, uint32(j.rounds))
	if err != nil || last.Attestation.Checkpoint.Root.String() != summary.StateRoot {
		j.t.Errorf("the consumer says that the run ended in %s, the chain in %s, %v", summary.StateRoot,
			last.Attestation.Checkpoint.Root, err)
	}
	j.money()
	j.check(func() error { return j.model(summary.StateRoot) })
	j.t.Log(j.pace())
}

// ends waits for the end of a run that submit started as alone.
func (j *job) ends() {
	j.t.Helper()
	j.blocks("the end of the run", func(int64) bool {
		s := j.run(j.id)
		if s.Phase == progress.Halted {
			j.t.Fatalf("the run ended before its last round: %s", s.Why)
		}
		return s.Phase == progress.Done
	})
	if j.consumer.running() {
		j.t.Error("there is a consumer")
	}
}

// money checks that nothing was paid twice, that the sums agree, and that no account lost stake.
func (j *job) money() {
	j.t.Helper()
	escrow, err := j.chain.Market.Escrow(j.t.Context(), j.id)
	if err != nil {
		j.t.Fatal(err)
	}
	receipts, err := j.chain.Training.Receipts(j.t.Context(), j.id)
	if err != nil {
		j.t.Fatal(err)
	}
	type unit struct{ round, index uint32 }
	attempts, work, audits := map[unit]int{}, map[unit]int{}, map[unit]int{} // with a receipt; paid
	var sum, fees uint64
	for _, r := range receipts {
		u := unit{r.Round, r.Unit}
		switch {
		case r.Kind == reward.Slash:
			j.t.Errorf("slashed: %+v", r)
		case r.Kind == reward.Work && r.Amount > 0:
			work[u]++
			attempts[u]++
		case r.Kind == reward.Work:
			attempts[u]++
		case r.Kind == reward.Audit && r.Amount > 0:
			audits[u]++
		}
		if r.Kind == reward.Work || r.Kind == reward.Audit {
			sum, fees = sum+r.Amount, fees+r.Fee
		}
	}
	for round := range uint32(j.rounds) {
		for index := range cmp.Or(j.units, workers) {
			if u := (unit{round, index}); work[u] != 1 || audits[u] > 2*attempts[u] { // one audit in eight is made twice
				j.t.Errorf("unit %d of round %d: of %d attempts %d are paid, and %d audits", index, round, attempts[u], work[u],
					audits[u])
			}
		}
	}
	if sum != escrow.Paid || fees != escrow.Fee || escrow.Remaining() != 0 {
		j.t.Errorf("receipts of %d uzen and %d of fees, escrow %+v", sum, fees, escrow)
	}
	for _, look := range j.paid {
		look(receipts)
	}
	participants, err := j.chain.Registry.Participants(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	for _, p := range participants {
		if p.Slashed > 0 || p.Jailed {
			j.t.Errorf("%s lost %d uzen of its stake", p.ID, p.Slashed)
		}
	}
}

// model checks that `starling verify` reproduces the lineage offline, and that it is the lineage of an undisturbed
// run: whatever fault happened, the same units were contributed.
func (j *job) model(root string) error {
	got, err := lineage(j.out)
	if err != nil {
		return err
	}
	if len(got) != j.rounds || got[j.rounds-1] != root {
		return fmt.Errorf("the lineage has %d rounds, and the run ended in %s:\n%s", len(got), root, strings.Join(got, "\n"))
	}
	said, err := exec.Command(program, "job", "verify", j.out, "-o", "json").CombinedOutput()
	if err != nil || !strings.Contains(string(said), root) {
		return fmt.Errorf("verify: %v\n%s", err, said)
	}
	want, err := j.undisturbed()
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("the lineage is\n%s\nand undisturbed\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return err
}

// pace says how long the rounds took, in blocks.
func (j *job) pace() string {
	var last int64
	var took []int64
	for round := range uint32(j.rounds) {
		e, err := j.chain.Training.Lineage(j.t.Context(), j.id, round+1)
		if err != nil {
			j.t.Fatal(err)
		}
		if last > 0 {
			took = append(took, e.Height-last)
		}
		last = e.Height
	}
	return fmt.Sprintf("blocks from round to round: %v", took)
}

// fault is a disturbance of a network that works at a job. It returns when the process that was hurt takes part
// again.
type fault struct {
	name   string
	happen func(j *job)
}

// suffer runs a job of the given number of rounds and applies the faults one after the other, each as a subtest.
func (n *network) suffer(name string, rounds int, faults ...fault) {
	if n.t.Failed() {
		return // a failed fault leaves the network in an unknown state
	}
	above := n.t
	defer n.under(above)
	above.(*testing.T).Run(name, func(t *testing.T) {
		n.under(t)
		begun := time.Now()
		j := n.submit(name, rounds)
		for _, f := range faults {
			whole := t.Run(f.name, func(t *testing.T) {
				n.under(t)
				f.happen(j)
				j.tellNotes()
			})
			if n.under(t); !whole {
				return
			}
		}
		j.finish()
		t.Logf("%.0f s", time.Since(begun).Seconds())
	})
}

// tellNotes says what was noted.
func (j *job) tellNotes() {
	for _, line := range j.said {
		j.t.Log(line)
	}
	j.said = nil
}
