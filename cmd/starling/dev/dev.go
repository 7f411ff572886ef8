// Package dev is starling dev: commands for those who develop Starling or against it, which run a whole network on this
// machine, break rules on purpose, and write what the program says of itself.
package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/network"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/internal/process"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/validator"
)

// Command is starling dev.
func Command(c *terminal.Console, root *cobra.Command) *cobra.Command {
	return usage.Group("dev", "Run a whole network on this machine", `Run a network on this machine, of many processes.`,
		upCommand(c), downCommand(c), adversaryCommand(c), deviantCommand(c), strangerCommand(c), ManCommand(root),
		ExitCodesCommand(c))
}

// filePID holds the process that keeps a development network up.
const filePID = "dev.pid"

func upCommand(c *terminal.Console) *cobra.Command {
	var o validator.NetworkOptions
	cmd := &cobra.Command{
		Use:   "up DIR",
		Short: "Run validators, workers and verifiers as processes of this machine",
		Long: `Run a network on this machine until Ctrl-C or starling dev down: every validator, worker and verifier is a
process of its own, with its files below DIR. If DIR holds no network, the command makes one first, with as many
processes as the flags say; for a network that exists these flags have no effect.`,
		Example: `  starling dev up net
  starling dev up net --validators 4 --workers 3 --block-time 200ms
  starling train job.yaml --network http://127.0.0.1:26601 --home net/consumer`,
		Args: usage.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := keystore.ReadNetwork(args[0])
			if errors.Is(err, keystore.ErrNoNetwork) {
				n, err = validator.InitNetwork(args[0], o)
			}
			if err != nil {
				return cause.Network(err)
			}
			return supervise(cmd.Context(), c, args[0], n)
		},
	}
	network.InitFlags(cmd, &o)
	return cmd
}

// child is a process of the network that runs.
type child struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// supervise keeps the processes of a network until the context ends. A process that ends by itself is reported, not
// started again.
func supervise(ctx context.Context, c *terminal.Console, dir string, n *keystore.Network) error {
	pid := filepath.Join(dir, filePID)
	if other, err := running(pid); err == nil {
		return terminal.WithExit(&terminal.Problem{
			Code: "NETWORK_RUNNING", What: fmt.Sprintf("process %d keeps the network of %s up", other.Pid, dir),
			Fix: "stop it with starling dev down " + dir,
		}, terminal.ExitConflict)
	}
	if err := portsFree(n.RPC); err != nil {
		return err
	}
	if err := os.WriteFile(pid, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return err
	}
	defer os.Remove(pid)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var children []*child
	defer func() { stopAll(children) }()
	start := func(name string, args ...string) error {
		k, err := launch(c, self, dir, name, args...)
		if err == nil {
			children = append(children, k)
		}
		return err
	}
	for _, v := range n.Validators {
		if err := start(v, "validator", "up", "--home", filepath.Join(dir, v)); err != nil {
			return err
		}
	}
	if err := validator.AwaitNetwork(ctx, n.RPC[0]); err != nil {
		return err
	}
	share := disk.Share{Percent: max(1, member.DefaultDisk.Percent/max(1, len(n.Workers)+len(n.Verifiers)))}
	for _, kind := range []struct {
		role  string
		names []string
	}{{"worker", n.Workers}, {"verifier", n.Verifiers}} {
		for i, w := range kind.names {
			err := start(w, "worker", "up", "--home", filepath.Join(dir, w), "--network", n.RPC[i%len(n.RPC)], "--role",
				kind.role, "--threads", "1", "--disk", share.String())
			if err != nil {
				return err
			}
		}
	}
	c.Say(fmt.Sprintf("%d processes; train with --network %s --home %s", len(children), n.RPC[0],
		filepath.Join(dir, n.Consumer)))
	<-ctx.Done()
	return nil
}

// portsFree refuses a network whose validators would not get their ports: who answers there is another network.
func portsFree(rpc []string) error {
	for _, address := range rpc {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", u.Host)
		if err != nil {
			return terminal.WithExit(&terminal.Problem{Code: "PORT_TAKEN",
				What: "a validator of the network cannot answer at " + u.Host, Why: err.Error(),
				Fix: "stop who answers there, such as another network (starling dev down DIR), or make a network with other " +
					"ports: --port"}, terminal.ExitConflict)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a process whose news go to a file in its folder, and says when it ends.
func launch(c *terminal.Console, self, dir, name string, args ...string) (*child, error) {
	log, err := os.OpenFile(filepath.Join(dir, name, "out.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	process.Apart(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	k := &child{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		err := cmd.Wait()
		_ = log.Close()
		if err == nil {
			c.Say(name + " ended")
		} else {
			c.Say(fmt.Sprintf("%s ended: %v; %s says why", name, err, filepath.Join(dir, name, "out.log")))
		}
		close(k.done)
	}()
	c.Say(fmt.Sprintf("%s is process %d", name, cmd.Process.Pid))
	return k, nil
}

// stopAll stops processes in the reverse order of their start: workers are stopped at once, validators in order.
func stopAll(children []*child) {
	for i := len(children) - 1; i >= 0; i-- {
		k := children[i]
		// A process that has ended already cannot be signalled, and need not be.
		_ = process.Interrupt(k.cmd.Process)
		select {
		case <-k.done:
		case <-time.After(time.Second):
			_ = process.Interrupt(k.cmd.Process)
			select {
			case <-k.done:
			case <-time.After(10 * time.Second):
				_ = k.cmd.Process.Kill()
				<-k.done
			}
		}
	}
}

func downCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "down DIR",
		Short: "Stop the network of a folder",
		Long: "Stop the processes that starling dev up started over a folder. Their files stay; dev up continues " +
			"with it.",
		Example: "  starling dev down net",
		Args:    usage.Exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			pid := filepath.Join(args[0], filePID)
			p, err := running(pid)
			if err != nil {
				return terminal.WithExit(&terminal.Problem{
					Code: "NETWORK_NOT_RUNNING", What: "no network is up in " + args[0], Why: err.Error(),
					Fix: "start it with starling dev up " + args[0],
				}, terminal.ExitNotFound)
			}
			if err := process.Interrupt(p); err != nil {
				return &terminal.Problem{Code: "NETWORK_NOT_STOPPED", What: fmt.Sprintf("cannot stop process %d", p.Pid),
					Why: err.Error(), Fix: "stop it as the user who started it"}
			}
			for { // its last act is to remove the file
				if _, err := running(pid); err != nil {
					return nil
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
	}
}

// running is the process whose number a file holds, if it runs.
func running(file string) (*os.Process, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 1 {
		return nil, fmt.Errorf("%s holds no process number", file)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil, err
	}
	return p, process.Alive(p)
}
