// Package synthetic writes the folder of a run that was never trained, at any length, for tests and measurements of
// programs that show runs. Its numbers look like a run's and mean nothing; starling job verify refuses it.
package synthetic

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/client/api"
)

// Run says what is written.
type Run struct {
	Name     string
	Steps    int  // inner steps
	Every    int  // inner steps of a round
	Finished bool // else it ends in the middle
}

const workers = 4

// Write leaves the files of a run in a folder, which it makes.
func (r Run) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rounds := r.Steps / r.Every
	run, err := json.Marshal(map[string]any{"format": 1, "id": "job-0000000000000000", "finished": r.Finished})
	if err != nil {
		return err
	}
	job := fmt.Sprintf(`apiVersion: starling/v1
kind: TrainingJob
name: %s
model: {architecture: gpt2, config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 16}, tokenizer: byte-level}
datasets: [{path: text.txt, format: text}]
sequence_len: 16
training: {max_steps: %d, global_batch_size: 8, learning_rate: 1.0e-3}
strategy: {sync_steps: %d, workers: %d}
budget: {max_cost: 25}
eval: {prompts: ["func "]}
`, r.Name, r.Steps, r.Every, workers)
	failed := errors.Join(os.WriteFile(filepath.Join(dir, "run.json"), run, 0o644),
		os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(job), 0o644))
	return errors.Join(failed, r.Append(dir, 0, rounds))
}

// Append adds the records of rounds after one up to another; those of round 0 with the first.
func (r Run) Append(dir string, after, to int) (err error) {
	files := map[string]*bufio.Writer{}
	for _, name := range []string{"metrics.jsonl", "lineage.jsonl", "samples.jsonl", "receipts.jsonl", "disputes.jsonl",
		"links.jsonl"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		files[name] = bufio.NewWriterSize(f, 1<<20)
		defer func() { err = errors.Join(err, files[name].Flush(), f.Close()) }()
	}
	put := func(name string, v any) {
		text, failed := json.Marshal(v)
		if failed == nil {
			_, failed = files[name].Write(append(text, '\n'))
		}
		err = errors.Join(err, failed)
	}
	if after == 0 {
		put("metrics.jsonl", api.Metric{Kind: "round", EvalLoss: at(1), Workers: workers})
	}
	for round := after + 1; round <= to && err == nil; round++ {
		for i := range r.Every {
			step := (round-1)*r.Every + i + 1
			put("metrics.jsonl", api.Metric{Kind: "step", Round: uint32(round), Step: uint32(step),
				Loss: *at(step) + 0.2*math.Sin(float64(step)*1.7), GradNorm: ratio(1 + 100/float64(step+10)),
				LearningRate: 1e-3 / (1 + float64(step)/1000), Tokens: uint64(128 * step), Workers: workers})
		}
		step := round * r.Every
		put("metrics.jsonl", api.Metric{Kind: "round", Round: uint32(round), Step: uint32(step), Loss: *at(step),
			EvalLoss: at(step), LearningRate: 1e-3, Tokens: uint64(128 * step),
			TokensPerSecond: 1200 + 100*math.Sin(float64(round)),
			BytesUp:         500_000, BytesDown: 1_500_000, Workers: workers, Seconds: 3, PaidUzen: uint64(1000 * round),
			Agreement: ratio(0.9 - 1/float64(round+2))})
		c := api.Checkpoint{Round: round, StateRoot: fmt.Sprintf("%064x", uint64(round)*0x9e3779b97f4a7c15),
			Checkpoint: fmt.Sprintf("bafkrei%052x", round), Updates: []string{"bafkreia", "bafkreib"}}
		for w := range workers {
			c.Signers = append(c.Signers, api.Signer{ID: worker(w), PublicKey: []byte{2}, Signature: []byte{3}})
			if round == to {
				put("links.jsonl", api.Link{By: worker(w), Of: worker((w + 1) % workers), Bytes: uint64(500_000 * round),
					Rate: 1_250_000, RTT: uint32(3 + w)})
			}
			put("receipts.jsonl", receipt(round, w, worker(w), "work", 1))
		}
		put("receipts.jsonl", receipt(round, workers, verifier, "audit", 2))
		put("lineage.jsonl", c)
		if round%max(1, to/8) == 0 {
			put("samples.jsonl", api.Sample{Round: uint32(round), Step: uint32(step), Prompt: "func ", Text: "main() {"})
		}
		if round == 2 {
			put("disputes.jsonl", api.Dispute{Worker: worker(3), Challenger: verifier, Round: 2, Unit: 3,
				Verdict: "worker_lied", Reason: "recomputed", Moves: 2, Leaf: "tile", LeafBytes: 73205, Height: 21,
				Log: []api.Move{{Height: 20, By: "verifier", What: "the state after step 3 is the first that differs"},
					{Height: 21, By: "worker", What: "shows the outputs of the 1171 operators of step 3, in 74 parts"}}})
		}
	}
	return err
}

func at(step int) *float64 {
	x := 2.2 + 3.3*math.Exp2(-math.Log2(float64(step)+1)/3)
	return &x
}

func ratio(x float64) *float64 { return &x }

// receipt is that of account who for a unit of a round, or, after those of the workers, for an audit of the first of
// them.
func receipt(round, i int, who, kind string, role int) map[string]any {
	return map[string]any{"job": "job-0000000000000000", "seq": (round-1)*(workers+1) + i, "height": 10 * round,
		"round": round, "unit": i % workers, "who": who, "role": role, "kind": kind,
		"flops": 1_000_000_000, "price": 1_000_000, "amount": 950, "fee": 50, "reason": "verified"}
}

const verifier = "starling1verifier"

func worker(i int) string {
	return fmt.Sprintf("starling1%cworker%dxxxxxxxxxxxxxxxxxxxxxxxxxx", 'a'+i, i)
}
