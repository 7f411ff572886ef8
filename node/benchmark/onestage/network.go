package onestage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/node/benchmark/processes"
)

// network is a network of processes of this program, and a job for it.
type network struct {
	*processes.Network
	file    string
	workers []*exec.Cmd
}

// newNetwork writes the job.
func newNetwork(dir string, z size) (*network, error) {
	p, err := processes.New(dir)
	if err != nil {
		return nil, err
	}
	n := &network{Network: p, file: filepath.Join(dir, "job.yaml")}
	text := strings.Repeat("Each worker holds one part of the model, and passes on what it computes.\n", 200)
	return n, errors.Join(os.WriteFile(filepath.Join(dir, "text.txt"), []byte(text), 0o600),
		os.WriteFile(n.file, []byte(z.job()), 0o600))
}

// up starts a validator, the workers, each of which is allowed some MiB, and a verifier.
func (n *network) up(ctx context.Context, mib int64) error {
	if err := n.Up(ctx, Workers, 1, time.Second); err != nil {
		return err
	}
	const disk = "64GiB"
	for _, name := range n.Made.Workers {
		w, err := n.Worker(ctx, name, "worker", "--disk", disk, "--memory", fmt.Sprint(mib))
		if err != nil {
			return err
		}
		n.workers = append(n.workers, w)
	}
	verifier := n.Made.Verifiers[0]
	if _, err := n.Worker(ctx, verifier, "verifier", "--disk", disk); err != nil {
		return err
	}
	for _, name := range slices.Concat(n.Made.Verifiers, n.Made.Workers) {
		if err := n.Says(ctx, name, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// idle is the most memory that a worker has had resident so far.
func (n *network) idle() (most int64, err error) {
	for _, w := range n.workers {
		bytes, err := processes.Memory(w, resident)
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}
