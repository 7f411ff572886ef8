package onestage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-network/starling/internal/loopback"
	"github.com/starling-network/starling/internal/process"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/validator"
)

// network is a network of processes of this program, below a folder.
type network struct {
	self, dir, file, url string

	workers []*exec.Cmd
	all     []*exec.Cmd
	free    func() // the ports
}

// newNetwork writes the job.
func newNetwork(dir string, z size) (*network, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &network{self: self, dir: dir, file: filepath.Join(dir, "job.yaml"), free: func() {}}
	text := strings.Repeat("Each worker holds one part of the model, and passes on what it computes.\n", 200)
	return n, errors.Join(os.WriteFile(filepath.Join(dir, "text.txt"), []byte(text), 0o600),
		os.WriteFile(n.file, []byte(z.job()), 0o600))
}

// up starts a validator, the workers, each of which is allowed some MiB, and a verifier.
func (n *network) up(ctx context.Context, mib int64) error {
	const ports = 10
	port, release, err := loopback.Reserve(ports)
	if err != nil {
		return err
	}
	n.free = release
	at := filepath.Join(n.dir, "net")
	made, err := validator.InitNetwork(at, validator.NetworkOptions{ChainID: "starling-stages-1", Validators: 1,
		Workers: Workers, Verifiers: 1, Hosts: []string{"127.0.0.1"}, Port: port, BlockTime: time.Second})
	if err != nil {
		return err
	}
	n.url = made.RPC[0]
	first := made.Validators[0]
	if _, err := n.start(ctx, first, "validator", "up", "--home", filepath.Join(at, first)); err != nil {
		return err
	}
	if err := validator.AwaitNetwork(ctx, n.url); err != nil {
		return err
	}
	member := func(name, role string, more ...string) (*exec.Cmd, error) {
		return n.start(ctx, name, append([]string{"worker", "up", "--home", filepath.Join(at, name), "--network", n.url,
			"--role", role, "--threads", "1", "--disk", "64GiB"}, more...)...)
	}
	for _, name := range made.Workers {
		w, err := member(name, "worker", "--memory", fmt.Sprint(mib))
		if err != nil {
			return err
		}
		n.workers = append(n.workers, w)
	}
	_, err = member(made.Verifiers[0], "verifier")
	return errors.Join(err, n.ready(ctx, made))
}

// ready waits until all members have said that they run.
func (n *network) ready(ctx context.Context, made *keystore.Network) error {
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range append(append([]string{}, made.Workers...), made.Verifiers...) {
		for {
			said, err := os.ReadFile(n.log(name))
			if err == nil && len(said) > 0 {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("benchmark: %s does not start: %w", name, ctx.Err())
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

func (n *network) log(name string) string { return filepath.Join(n.dir, name+".log") }

// start starts this program as a process of the network.
func (n *network) start(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	log, err := os.Create(n.log(name))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has it
	cmd := exec.CommandContext(ctx, n.self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	process.Apart(cmd)
	process.Tie(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	n.all = append(n.all, cmd)
	return cmd, nil
}

// idle is the most memory that a worker has had resident so far.
func (n *network) idle() (most int64, err error) {
	for _, w := range n.workers {
		bytes, err := resident(w.Process.Pid)
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}

// stop ends all processes.
func (n *network) stop() {
	for _, cmd := range n.all {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	n.all = nil
	n.free()
	n.free = func() {}
}
