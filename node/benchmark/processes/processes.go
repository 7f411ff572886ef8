// Package processes starts networks of processes of this program on this machine, for measurements that see the program
// as its users do. It measures nothing itself.
package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/internal/loopback"
	"github.com/starling-network/starling/internal/process"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/validator"
)

// Network is a network below a folder, of one validator and the processes that are started.
type Network struct {
	Dir  string            // of the outputs of processes
	URL  string            // HTTP interface of the validator, once it is up
	Made *keystore.Network // the accounts with coins, once it is up

	self string
	all  []*exec.Cmd
	free func() // the ports
}

// New is a network of which no process is started yet. Stop ends those that are.
func New(dir string) (*Network, error) {
	self, err := os.Executable()
	return &Network{Dir: dir, self: self, free: func() {}}, err
}

// Home is the folder of an account that the network was made with.
func (n *Network) Home(name string) string { return filepath.Join(n.Dir, "net", name) }

// Up makes the network, with accounts of workers and verifiers, and starts its validator.
func (n *Network) Up(ctx context.Context, workers, verifiers int, block time.Duration) error {
	const ports = 10
	port, release, err := loopback.Reserve(ports)
	if err != nil {
		return err
	}
	n.free = release
	n.Made, err = validator.InitNetwork(filepath.Join(n.Dir, "net"), validator.NetworkOptions{
		ChainID: "starling-bench-1", Validators: 1, Workers: workers, Verifiers: verifiers, Hosts: []string{"127.0.0.1"},
		Port: port, BlockTime: block})
	if err != nil {
		return err
	}
	n.URL = n.Made.RPC[0]
	first := n.Made.Validators[0]
	if _, err := n.Start(ctx, first, "validator", "up", "--home", n.Home(first)); err != nil {
		return err
	}
	return validator.AwaitNetwork(ctx, n.URL)
}

// Worker starts a worker, or a verifier, of an account that the network was made with.
func (n *Network) Worker(ctx context.Context, name, role string, more ...string) (*exec.Cmd, error) {
	return n.Start(ctx, name, append([]string{"worker", "up", "--home", n.Home(name), "--network", n.URL, "--role", role,
		"--threads", "1"}, more...)...)
}

func (n *Network) log(name string) string { return filepath.Join(n.Dir, name+".log") }

// Start starts this program as a process of the network.
func (n *Network) Start(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
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

// Says waits until a process has written something that contains a text.
func (n *Network) Says(ctx context.Context, name, text string) error {
	const patience = 2 * time.Minute
	return Until(ctx, patience, name+" does not say "+strconv.Quote(text), func(context.Context) (bool, error) {
		said, err := os.ReadFile(n.log(name))
		return bytes.Contains(said, []byte(text)), err
	})
}

// Until asks often until something is so, and returns an error with the text after some time.
func Until(ctx context.Context, patience time.Duration, text string, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if is, err := so(ctx); err != nil || is {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("benchmark: %s: %w", text, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Explain adds the last line of every process to an error.
func (n *Network) Explain(err error) error {
	if err == nil {
		return nil
	}
	logs, _ := filepath.Glob(n.log("*")) // the pattern is none of the user's
	for _, log := range logs {
		said, failed := os.ReadFile(log)
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		err = errors.Join(err, failed, fmt.Errorf("%s: %s", filepath.Base(log), lines[len(lines)-1]))
	}
	return err
}

// Run runs a command of this program to its end, and decodes its output.
func (n *Network) Run(ctx context.Context, out any, args ...string) error {
	var printed, said bytes.Buffer
	cmd := exec.CommandContext(ctx, n.self, append(args, "-o", "json")...)
	cmd.Stdout, cmd.Stderr = &printed, &said
	err := cmd.Run()
	if decoded := json.NewDecoder(&printed).Decode(out); err == nil || decoded == nil && printed.Len() > 0 {
		err = errors.Join(err, decoded)
	}
	if err != nil {
		why := strings.TrimSpace(said.String())
		return fmt.Errorf("benchmark: starling %s: %w: %s", strings.Join(args, " "), err, why)
	}
	return nil
}

// Stop ends all processes.
func (n *Network) Stop() {
	for _, cmd := range n.all {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	n.all = nil
	n.free()
	n.free = func() {}
}

// Memory is an amount that the system counts for a process, in bytes: VmHWM, the most that was resident so far, or
// RssAnon, the resident part without pages of files.
func Memory(cmd *exec.Cmd, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("%w: the memory of other processes cannot be read on this system", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("benchmark: the system does not say how much memory a process has")
}
