package journey

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/processes"
	"github.com/starling-network/starling/protocol/reward"
)

// Join is what a machine did to its first paid unit. It knew the URL of the network alone, and had no coins.
type Join struct {
	Commands []string `json:"commands"`
	Seconds  float64  `json:"seconds"`   // from the first command to the pay
	Paid     uint64   `json:"paid_uzen"` // as the last command says
}

// newcomer is the name of the machine that joins, and of its folder.
const newcomer = "mine"

// long is a job that is under way while machines join and pause. Its model is large enough for its memory to be seen,
// and a unit of it takes a second.
const long = `apiVersion: starling/v1
kind: TrainingJob
name: long
model:
  architecture: gpt2
  config: {n_layer: 2, n_embd: 256, n_head: 4, n_positions: 32}
  tokenizer: byte-level
datasets: [{path: text.txt, format: text}]
sequence_len: 32
training: {max_steps: 16000, global_batch_size: 32, learning_rate: 1.0e-3}
strategy: {method: fedavg, sync_steps: 16, workers: 2}
checkpoint: {every_steps: 16000}
eval: {every_steps: 16000}
budget: {max_cost: 100000}
`

// join starts a machine in an empty folder while a job is under way, and waits for its pay.
func join(ctx context.Context, s *scene) (j Join, err error) {
	file := filepath.Join(s.Dir, "job.yaml")
	if err := os.WriteFile(file, []byte(long), 0o600); err != nil {
		return j, err
	}
	if _, err := s.Start(ctx, "consumer", "train", file, "--dir", filepath.Join(s.Dir, "out"), "--network", s.URL,
		"--home", s.Home("consumer"), "-q", "--no-input"); err != nil {
		return j, err
	}
	const patience = 2 * time.Minute
	if err := processes.Until(ctx, patience, "the job does not begin", func(ctx context.Context) (bool, error) {
		jobs, err := s.chain.Training.Runs(ctx, false)
		return len(jobs) == 1, err
	}); err != nil {
		return j, err
	}
	home, begin := filepath.Join(s.Dir, newcomer), time.Now()
	up := []string{"worker", "up", "--home", home, "--network", s.URL}
	if s.machine, err = s.Start(ctx, newcomer, up...); err != nil {
		return j, err
	}
	if err := processes.Until(ctx, 10*time.Minute, "the machine is not paid", func(ctx context.Context) (bool, error) {
		now, err := status(ctx, home)
		if err != nil || now.Address == "" {
			return false, ctx.Err() // it has not begun
		}
		if len(now.Runs) == 0 {
			s.idle, err = s.memory()
			return false, err
		}
		pay, err := s.pay(ctx, now.Address)
		return pay > 0, err
	}); err != nil {
		return j, err
	}
	j.Seconds = benchmark.Rounded(time.Since(begin).Seconds(), 1)
	var said struct {
		Days []struct {
			Received uint64 `json:"received_uzen"`
		} `json:"days"`
	}
	earnings := []string{"worker", "earnings", "--home", home}
	if err := s.Run(ctx, &said, earnings...); err != nil {
		return j, err
	}
	for _, d := range said.Days {
		j.Paid += d.Received
	}
	if j.Paid == 0 {
		return j, errors.New("benchmark: starling worker earnings says that the machine was not paid")
	}
	for _, args := range [][]string{up, earnings} {
		j.Commands = append(j.Commands, fmt.Sprint("starling ", strings.ReplaceAll(strings.Join(args, " "), home, newcomer)))
	}
	return j, nil
}

// pay is what an account was paid for units so far, in uzen.
func (s *scene) pay(ctx context.Context, account string) (sum uint64, err error) {
	all, err := s.chain.Reward.Earnings(ctx, account)
	for _, r := range all {
		if r.Kind == reward.Work {
			sum += r.Amount
		}
	}
	return sum, err
}
