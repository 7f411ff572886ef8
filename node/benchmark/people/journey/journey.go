// Package journey plays what people do on a network, with processes of this program on this machine: a machine without
// coins joins and is paid, its owner pauses it, and programs order jobs through a gateway that is killed. It measures
// what they see: commands, seconds, memory, lost jobs.
package journey

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/processes"
)

// Options say how much is measured.
type Options struct {
	Quick    bool // fewer pauses, and the jobs of the gateway are not awaited
	Progress func(string)
}

// Report is what was measured.
type Report struct {
	Join   Join            `json:"join"`
	Pauses []Pause         `json:"pauses"`
	Orders Orders          `json:"orders"`
	Bars   []benchmark.Bar `json:"-"` // of people.Report, which lists all
}

// The network: workers of an order, and their verifiers.
const (
	workers   = 2
	verifiers = 2
	blockTime = 200 * time.Millisecond
)

// scene is the network with a connection that reads its chain.
type scene struct {
	*processes.Network
	chain   *client.Client
	machine *exec.Cmd // that joined
	idle    int64     // its memory before it had work
}

// Measure plays the journeys, each on a network of its own.
func Measure(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	for _, play := range []func(context.Context, *scene) error{
		func(ctx context.Context, s *scene) (err error) {
			o.Progress("a machine without coins joins, and its owner pauses it")
			if r.Join, err = join(ctx, s); err != nil {
				return err
			}
			pauses := 10
			if o.Quick {
				pauses = 2
			}
			r.Pauses, err = pause(ctx, s, pauses)
			return err
		},
		func(ctx context.Context, s *scene) (err error) {
			o.Progress("programs order jobs through a gateway that is killed")
			r.Orders, err = orders(ctx, s, !o.Quick)
			return err
		},
	} {
		if err := onNetwork(ctx, play); err != nil {
			return nil, err
		}
	}
	r.judge()
	return r, nil
}

// onNetwork plays something on a network of processes.
func onNetwork(ctx context.Context, play func(context.Context, *scene) error) error {
	dir, err := os.MkdirTemp("", "people") // sockets have short paths
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n, err := processes.New(dir)
	if err != nil {
		return err
	}
	defer n.Stop()
	text := strings.Repeat("A number is less than the one that follows it.\n", 200)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "text.txt"), []byte(text), 0o600),
		n.Up(ctx, workers, verifiers, blockTime)); err != nil {
		return err
	}
	for _, name := range n.Made.Workers {
		if _, err := n.Worker(ctx, name, "worker", "--measure=false"); err != nil {
			return err
		}
	}
	for _, name := range n.Made.Verifiers {
		if _, err := n.Worker(ctx, name, "verifier", "--measure=false"); err != nil {
			return err
		}
	}
	s := &scene{Network: n}
	if s.chain, err = client.Connect(n.URL, wallet.KeyFromSeed([32]byte{})); err != nil { // it asks, and signs nothing
		return err
	}
	defer s.chain.Close()
	for _, name := range slices.Concat(n.Made.Workers, n.Made.Verifiers) {
		if err := n.Says(ctx, name, "offers"); err != nil {
			return err
		}
	}
	return n.Explain(play(ctx, s))
}

// judge compares the figures with the bars.
func (r *Report) judge() {
	stopped, returned, lost := 0., 0., 0.
	for _, p := range r.Pauses {
		stopped, returned = max(stopped, p.Stopped), max(returned, p.Returned)
		if p.Slashed > 0 || p.Missed > 0 || p.Convicted {
			lost++
		}
	}
	o := r.Orders
	r.Bars = []benchmark.Bar{
		benchmark.AtMost("commands that a machine without coins needs to its first paid unit",
			float64(len(r.Join.Commands)), 3),
		benchmark.AtMost("seconds to its first paid unit", r.Join.Seconds, 600),
		benchmark.AtMost("most seconds from a command to pause to the last computation", stopped, 2),
		benchmark.AtMost("most seconds to a pause that has given two thirds of the memory since the work began back",
			returned, 10),
		benchmark.AtMost("pauses after which a stake was smaller, or a deadline was missed", lost, 0),
		benchmark.AtMost("jobs of ten clients that a gateway lost, or ordered twice, when it was killed",
			float64(o.Lost+o.Twice), 0),
		benchmark.AtMost("milliseconds of 99 of 100 answers of a gateway with the status of a job", o.P99, 50),
	}
}
