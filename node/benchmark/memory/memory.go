// Package memory measures the memory that runs take, each in a process of its own, and compares it with their plan:
// jobs on an embedded network, simulations, verifications, and the loading of a checkpoint. Its constants are the
// limits of the figures. It takes the steps of a unit in PyTorch, too, where that is installed.
package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/memory"
)

// Bars. Those of a unit, a loaded checkpoint and a verification are for memory above the start of a process.
const (
	ofPlan      = 1.25    // of an embedded network
	largestRun  = 6000    // MB, of that of a model of 88 M parameters
	simulation  = 1000    // MB
	growth      = 1.1     // of a simulation, with as many rounds again
	states      = 2.0     // of a verification
	loaded      = 1.3     // of a checkpoint that is loaded
	oneWorker   = 1.15    // of weights, gradients, moments and activations
	ofTorch     = 0.8     // of the memory of PyTorch for the same steps
	megabyte    = 1e6     // the unit of printed figures
	textBytes   = 1 << 20 // of the data of the jobs
	roundsShort = 100
	syncSteps   = 2 // of a unit
)

// Size is a model that is trained.
type Size struct {
	Name                          string
	Hidden, Inter, Layers, Heads  int
	Vocabulary, Length, Sequences int // Sequences of a step, over two workers
	Rounds                        int
	Smaller                       []string // settings, as --set takes them, with which it is tried if it does not fit
}

// Sizes are those that are measured: the first with --quick, all but the last without, and all with --full. One that
// does not fit on the machine, with its settings neither, is left out.
var Sizes = []Size{
	{"9M", 320, 864, 7, 5, 4096, 128, 4, 3, nil},
	{"88M", 768, 2048, 12, 12, 4096, 128, 2, 3, nil},
	{"350M", 1024, 2816, 26, 16, 8192, 128, 2, 2,
		[]string{"training.optimizer.state=int8", "strategy.optimizer_state_rounds=1"}},
}

// job is the file of a job on a text in the same folder.
func (z Size) job() string {
	return fmt.Sprintf(`apiVersion: starling/v1
kind: TrainingJob
name: memory-%s
model:
  architecture: llama
  config: {hidden_size: %d, intermediate_size: %d, num_hidden_layers: %d, num_attention_heads: %d,
    num_key_value_heads: %[5]d, max_position_embeddings: %d, vocab_size: %d, tie_word_embeddings: true}
  tokenizer: byte-level
datasets: [{path: text.txt, format: text}]
sequence_len: %[6]d
training: {max_steps: %[8]d, global_batch_size: %[9]d, learning_rate: 0.0003}
strategy: {method: diloco, sync_steps: %[10]d, workers: 2}
`, strings.ToLower(z.Name), z.Hidden, z.Inter, z.Layers, z.Heads, z.Length, z.Vocabulary, syncSteps*z.Rounds,
		z.Sequences, syncSteps)
}

// simulated is the file of a job of 0.6 M parameters that is simulated.
func simulated(rounds int) string {
	return fmt.Sprintf(`apiVersion: starling/v1
kind: TrainingJob
name: memory-sim
model:
  architecture: llama
  config: {hidden_size: 128, intermediate_size: 344, num_hidden_layers: 3, num_attention_heads: 4,
    num_key_value_heads: 4, max_position_embeddings: 64, vocab_size: 256}
  tokenizer: byte-level
datasets: [{path: text.txt, format: text}]
sequence_len: 16
training: {max_steps: %d, global_batch_size: 4, learning_rate: 0.001}
strategy: {method: allreduce, workers: 4}
budget: {max_cost: 100000}
checkpoint: {keep_last: 1}
eval: {every_steps: %[1]d}
`, rounds)
}

// Run is one process that was measured.
type Run struct {
	Name    string  `json:"name"`
	Plan    uint64  `json:"plan_bytes,omitempty"` // the planned bytes; 0: there is no plan
	Peak    uint64  `json:"peak_bytes"`
	State   uint64  `json:"state_bytes,omitempty"` // of the model and its optimizer
	Start   uint64  `json:"start_bytes,omitempty"` // the part of the peak that a process has before its work: memory.Start
	Disk    int64   `json:"disk_bytes,omitempty"`  // that the plan says
	Seconds float64 `json:"seconds"`

	processor float64 // seconds on all processors
	files     int64   // the most bytes that its files had, if they were counted
}

// Report is what was measured.
type Report struct {
	Runs []Run           `json:"runs"`
	Bars []benchmark.Bar `json:"bars"`
	// Skipped are the sizes that do not fit on this machine, and PyTorch if there is none.
	Skipped []string `json:"skipped,omitempty"`
}

// Options choose the measurements.
type Options struct {
	Quick, Full bool
	Progress    func(name string) // may be nil
}

// Measure runs this program again and again.
func Measure(ctx context.Context, o Options) (*Report, error) {
	m, err := newMeasurement(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(m.dir)
	sizes := Sizes[:2]
	if o.Quick {
		sizes = Sizes[:1]
	} else if o.Full {
		sizes = Sizes
	}
	for _, z := range sizes {
		if err := m.train(ctx, z); err != nil {
			return nil, err
		}
	}
	return &m.Report, m.simulate(ctx)
}

type measurement struct {
	Options
	Report
	dir     string
	counted string // the folder of the process that runs, whose files are counted; "": none are
}

// newMeasurement makes a folder with the text of the jobs, which the caller removes.
func newMeasurement(o Options) (*measurement, error) {
	dir, err := os.MkdirTemp("", "starling-memory-")
	if err != nil {
		return nil, err
	}
	text := strings.Repeat("The memory of a process is what it has, and not what it hopes for.\n", textBytes/67)
	if err := os.WriteFile(filepath.Join(dir, "text.txt"), []byte(text), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &measurement{Options: o, dir: dir}, nil
}

// jobPlan is the part of a plan that is compared with runs.
type jobPlan struct {
	Parameters uint64  `json:"parameters"`
	Seconds    float64 `json:"seconds"`
	Expected   uint64  `json:"expected_uzen"`
	Rounds     int64   `json:"rounds"`
	Received   int64   `json:"round_bytes"`
	Begin      int64   `json:"begin_bytes"`
	Work       struct {
		// of the seconds, those without work
		Chain      float64 `json:"chain"`
		Challenges float64 `json:"challenges"`
	} `json:"work"`
	Placement struct {
		Memory uint64 `json:"memory_bytes"`
		Fits   string `json:"fits"`
	} `json:"placement"`
	Disk     int64 `json:"disk_bytes"`
	FreeDisk int64 `json:"free_disk_bytes"` // 0: not known
}

// fits reports whether the machine has the memory and the disk.
func (p jobPlan) fits() bool {
	return p.Placement.Fits != "no" && (p.FreeDisk == 0 || p.Disk <= p.FreeDisk)
}

// plan plans a job with some flags. One that does not fit is no error.
func (m *measurement) plan(ctx context.Context, name, path string, flags ...string) (p jobPlan, err error) {
	_, err = m.run(ctx, "plan of "+name, &p, append([]string{"train", path, "--dry-run"}, flags...)...)
	if !p.fits() {
		err = nil
	}
	return p, err
}

// settle plans a job, with the smaller settings of its size if it does not fit without: no plan if it does not
// fit with them either.
func (m *measurement) settle(ctx context.Context, z Size, path string) (flags []string, p *jobPlan, err error) {
	for {
		made, err := m.plan(ctx, z.Name, path, flags...)
		if err != nil || made.fits() {
			return flags, &made, err
		}
		if len(flags) > 0 || len(z.Smaller) == 0 {
			return nil, nil, nil
		}
		for _, s := range z.Smaller {
			flags = append(flags, "--set", s)
		}
	}
}

// train runs a job on an embedded network, loads its last checkpoint, and verifies it.
func (m *measurement) train(ctx context.Context, z Size) error {
	path, out := filepath.Join(m.dir, z.Name+".yaml"), filepath.Join(m.dir, z.Name)
	defer os.RemoveAll(out)
	if err := os.WriteFile(path, []byte(z.job()), 0o600); err != nil {
		return err
	}
	flags, plan, err := m.settle(ctx, z, path)
	if err != nil {
		return err
	}
	if plan == nil {
		if m.Progress != nil {
			m.Progress(z.Name + " does not fit on this machine")
		}
		m.Skipped = append(m.Skipped, z.Name)
		return nil
	}
	u, err := m.unit(ctx, z, path, flags)
	if err != nil {
		return err
	}
	r, err := m.run(ctx, "network of "+z.Name, nil,
		append([]string{"train", path, "--dir", out, "--no-web", "--no-input"}, flags...)...)
	if err != nil {
		return err
	}
	r.Plan, r.State, r.Disk = plan.Placement.Memory, u.State, plan.Disk
	m.Runs = append(m.Runs, r)
	m.Bars = append(m.Bars, benchmark.AtMost(r.Name+" / plan", ratio(r.Peak, r.Plan), ofPlan))
	if z.Name == "88M" {
		m.Bars = append(m.Bars, benchmark.AtMost(r.Name+" MB", float64(r.Peak)/megabyte, largestRun))
	}
	if err := m.load(ctx, z, out); err != nil {
		return err
	}
	if r, err = m.run(ctx, "verify "+z.Name, nil, "job", "verify", out); err != nil {
		return err
	}
	r.State, r.Start = u.State, u.Start
	m.Runs = append(m.Runs, r)
	m.Bars = append(m.Bars, benchmark.AtMost(r.Name+" above its start / state", r.above(r.State), states))
	return nil
}

// load measures the loading of the last checkpoint of a run.
func (m *measurement) load(ctx context.Context, z Size, out string) error {
	var l LoadReport
	r, err := m.run(ctx, "load "+z.Name, &l, "bench", "memory", "--load", out)
	if err != nil {
		return err
	}
	r.State, r.Start = l.State, l.Start
	m.Runs = append(m.Runs, r)
	m.Bars = append(m.Bars, benchmark.AtMost(r.Name+" above its start / checkpoint", r.above(l.State), loaded))
	return nil
}

// unit measures one worker alone.
func (m *measurement) unit(ctx context.Context, z Size, path string, flags []string) (u UnitReport, err error) {
	r, err := m.run(ctx, "unit of "+z.Name, &u, append([]string{"bench", "memory", "--unit", path}, flags...)...)
	if err != nil {
		return u, err
	}
	r.Plan, r.State, r.Start = u.Needs, u.State, u.Start
	m.Runs = append(m.Runs, r)
	m.Bars = append(m.Bars,
		benchmark.AtMost(r.Name+" above its start / what it computes with", r.above(u.Needs), oneWorker))
	if len(flags) > 0 {
		return u, nil // PyTorch has no optimizer with these settings
	}
	return u, m.torch(ctx, z, r)
}

// simulate plays a job with some rounds, and with as many again.
func (m *measurement) simulate(ctx context.Context) error {
	rounds, peaks := roundsShort, [2]uint64{}
	if m.Quick {
		rounds /= 10
	}
	for i := range peaks {
		path := filepath.Join(m.dir, fmt.Sprintf("sim-%d.yaml", i))
		if err := os.WriteFile(path, []byte(simulated(rounds)), 0o600); err != nil {
			return err
		}
		r, err := m.run(ctx, fmt.Sprintf("simulation of %d rounds", rounds), nil, "sim", path)
		if err != nil {
			return err
		}
		m.Runs, peaks[i] = append(m.Runs, r), r.Peak
		if rounds *= 2; m.Full {
			rounds *= 5
		}
		m.Bars = append(m.Bars, benchmark.AtMost(r.Name+" MB", float64(r.Peak)/megabyte, simulation))
	}
	more := ratio(peaks[1], peaks[0])
	m.Bars = append(m.Bars, benchmark.AtMost("simulation with more rounds / with fewer", more, growth))
	return nil
}

// run runs this program, and decodes its output into out, unless out is nil.
func (m *measurement) run(ctx context.Context, name string, out any, args ...string) (Run, error) {
	if m.Progress != nil {
		m.Progress(name)
	}
	self, err := os.Executable()
	if err != nil {
		return Run{}, err
	}
	var printed, said bytes.Buffer
	process := exec.CommandContext(ctx, self, append(args, "-o", "json")...)
	process.Stdout, process.Stderr = &printed, &said
	r, err := measured(name, process, m.counted)
	var decoded error
	if out != nil { // a plan that does not fit is printed, and ends with an error
		decoded = json.NewDecoder(&printed).Decode(out)
	}
	if err != nil {
		return r, fmt.Errorf("benchmark: %s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	return r, decoded
}

// measured runs a process, and counts its files if these are in a folder that is given.
func measured(name string, process *exec.Cmd, dir string) (Run, error) {
	begin := time.Now()
	err := process.Start()
	counted, ended := make(chan int64, 1), make(chan struct{})
	if err == nil {
		if dir != "" {
			go func() { counted <- most(ended, func() int64 { return files(dir, process.Process.Pid) }) }()
		} else {
			counted <- 0
		}
		err = process.Wait()
		close(ended)
	} else {
		counted <- 0
	}
	r := Run{Name: name, Seconds: benchmark.Rounded(time.Since(begin).Seconds(), 1),
		Peak: memory.PeakOf(process.ProcessState), files: <-counted}
	if s := process.ProcessState; s != nil {
		r.processor = (s.UserTime() + s.SystemTime()).Seconds()
	}
	return r, err
}

// above is the peak above the start, as a part of some bytes.
func (r Run) above(bytes uint64) float64 { return ratio(r.Peak-min(r.Start, r.Peak), bytes) }

func ratio(a, b uint64) float64 { return float64(a) / float64(max(b, 1)) }
