// Package onestage trains a model that is four times as large as the memory that a worker is allowed, on six such
// workers, each a process of a network on this machine, and measures the memory of each. It is a part of starling bench
// pipeline.
package onestage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/processes"
)

// Workers is how many workers train the model, each of which holds one of as many stages.
const Workers = 6

// share is the part of the weights, gradients and moments of the model that a worker is allowed.
const share = 4

// Options say what is measured.
type Options struct {
	Quick    bool // a smaller model
	Progress func(string)
}

// Report is the outcome. Bytes are those of memory.
type Report struct {
	Parameters int64           `json:"parameters"`
	State      int64           `json:"state_bytes"`   // weights, gradients and moments of the model
	Allowed    int64           `json:"allowed_bytes"` // --memory of a worker
	Stage      int64           `json:"stage_bytes"`   // that the plan says for one worker
	Whole      int64           `json:"whole_bytes"`   // the same for the job that is not cut
	Idle       int64           `json:"idle_bytes"`    // the most that a worker had resident before the job
	Peaks      []int64         `json:"peak_bytes"`    // and in the end, of each worker
	Root       string          `json:"state_root"`
	Seconds    float64         `json:"seconds"`
	Bars       []benchmark.Bar `json:"bars"`
}

// size is a model.
type size struct{ layers, hidden, inner, heads int }

// job is the file of the job: two rounds of one step.
func (z size) job() string {
	return fmt.Sprintf(`apiVersion: starling/v1
kind: TrainingJob
name: one-stage
model:
  architecture: llama
  config: {num_hidden_layers: %d, hidden_size: %d, intermediate_size: %d, num_attention_heads: %d,
    num_key_value_heads: %[4]d, max_position_embeddings: 16, vocab_size: 256}
  tokenizer: byte-level
datasets: [{path: text.txt, format: text}]
sequence_len: 16
training: {max_steps: 2, global_batch_size: 4, learning_rate: 1.0e-3}
parallel: {stages: %d, replicas: 1, microbatches: 4}
strategy: {method: fedavg, sync_steps: 1, verification: {verifiers: 1, fraction: 1}}
checkpoint: {keep_last: 1}
eval: {every_steps: 2}
budget: {max_cost: 100000}
`, z.layers, z.hidden, z.inner, z.heads, Workers)
}

// uncut are the settings of the same job whose model is not cut.
var uncut = []string{"--set", "parallel=null", "--set", "strategy.workers=1", "--set",
	"strategy.optimizer_state_rounds=1", "--set", "training.gradient_accumulation_steps=4", "--set",
	"strategy.verification.screen=off"}

// planned is what is read of a plan.
type planned struct {
	Parameters int64 `json:"parameters"`
	Memory     int64 `json:"memory_bytes"`
}

// Measure runs the program of this process.
func Measure(ctx context.Context, o Options) (*Report, error) {
	z := size{24, 896, 2432, 14}
	if o.Quick {
		z = size{12, 640, 1728, 10}
	}
	begin := time.Now()
	dir, err := os.MkdirTemp("", "starling-onestage-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	n, err := newNetwork(dir, z)
	if err != nil {
		return nil, err
	}
	defer n.Stop()
	r, whole := &Report{}, planned{}
	o.Progress("the plans")
	var cut planned
	if err := errors.Join(n.Run(ctx, &cut, "train", n.file, "--dry-run"),
		n.Run(ctx, &whole, append([]string{"train", n.file, "--dry-run"}, uncut...)...)); err != nil {
		return nil, err
	}
	r.Parameters, r.Stage, r.Whole = cut.Parameters, cut.Memory, whole.Memory
	r.State = 16 * r.Parameters
	r.Allowed = r.State / share >> 20 << 20
	o.Progress(fmt.Sprintf("six workers of %d MiB, and a model of %d MiB", r.Allowed>>20, r.State>>20))
	if err := n.up(ctx, r.Allowed>>20); err != nil {
		return nil, err
	}
	if r.Idle, err = n.idle(); err != nil {
		return nil, err
	}
	cutRoot, err := n.train(ctx, "cut", nil)
	if err != nil {
		return nil, err
	}
	for i := range Workers {
		peak, err := processes.Memory(n.workers[i], resident)
		if err != nil {
			return nil, err
		}
		r.Peaks = append(r.Peaks, peak)
	}
	n.Stop()
	o.Progress("the model that is not cut")
	want, err := n.alone(ctx)
	if err != nil {
		return nil, err
	}
	r.Root, r.Seconds = cutRoot, benchmark.Rounded(time.Since(begin).Seconds(), 1)
	r.judge(want)
	return r, nil
}

// judge compares the figures with the bars.
func (r *Report) judge(root string) {
	var most int64
	for _, p := range r.Peaks {
		most = max(most, p)
	}
	differ := 0.
	if r.Root != root || root == "" {
		differ = 1
	}
	r.Bars = []benchmark.Bar{
		benchmark.AtLeast("weights, gradients and moments of the model, of the memory that a worker is allowed",
			float64(r.State)/float64(r.Allowed), share),
		benchmark.AtMost("most memory that a worker had resident for the job, of --memory",
			float64(most-r.Idle)/float64(r.Allowed), 1),
		benchmark.AtMost("roots that differ from that of the model that is not cut", differ, 0),
	}
}

// resident is the most memory that a process has had resident.
const resident = "VmHWM"

// root is what is read of a summary.
type root struct {
	StateRoot string `json:"state_root"`
}

// train trains on the network, and returns the root of the model.
func (n *network) train(ctx context.Context, name string, set []string) (string, error) {
	var r root
	err := n.Run(ctx, &r, append([]string{"train", n.file, "--dir", filepath.Join(n.Dir, name), "--network", n.URL,
		"--home", n.Home("consumer")}, set...)...)
	return r.StateRoot, err
}

// alone trains the job that is not cut in one process, and returns the root of the model.
func (n *network) alone(ctx context.Context) (string, error) {
	var r root
	err := n.Run(ctx, &r, append([]string{"train", n.file, "--dir", filepath.Join(n.Dir, "whole")}, uncut...)...)
	return r.StateRoot, err
}
