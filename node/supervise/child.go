package supervise

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/starling-network/starling/internal/process"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/pause"
)

// child is the process that is supervised.
type child struct {
	*exec.Cmd
	version  string        // of its release; "": the installed program
	ready    chan struct{} // closed when it says so, as systemd's services do; nil: that is known
	wasReady bool
	replaces bool // another program of this supervisor
	ended    chan error
	judged   <-chan time.Time // when it is judged as a candidate; nil: it is none
}

const (
	fileNotify = "notify.sock"
	startsIn   = time.Minute // for a program that only prints its version
	keepAfter  = 10 * time.Second
	asideIn    = 20 * time.Second // for the state of a large unit
	stopsIn    = 30 * time.Second
)

// start starts a release, or the installed program.
func (s *supervisor) start(version string) (*child, error) {
	program := s.Program
	if version != "" {
		program = s.source.Program(version)
	}
	socket := filepath.Join(s.dir, fileNotify)
	_ = os.Remove(socket) // of the process before
	from, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("supervise: the path of the folder may be too long for a socket: %w", err)
	}
	c := &child{Cmd: exec.Command(program, s.Args...), version: version, ready: make(chan struct{}),
		ended: make(chan error, 1)}
	process.Apart(c.Cmd)
	process.Tie(c.Cmd) // a supervisor that is started again could not start the program over the same folder
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket)
	if err := c.Start(); err != nil {
		return nil, errors.Join(err, from.Close())
	}
	ready := c.ready
	go hear(from, ready)
	go func() {
		c.ended <- c.Wait()
		_ = from.Close()
	}()
	return c, nil
}

// hear waits until a process says that it is ready, and says so to the supervisor's own.
func hear(from *net.UnixConn, ready chan<- struct{}) {
	b := make([]byte, 1<<10)
	for said := false; ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(b[:n])) {
			if strings.TrimSpace(line) == daemon.SdNotifyReady && !said {
				said = true
				close(ready)
				_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // there may be no service manager
			}
		}
	}
}

// kill ends a process at once.
func (c *child) kill() { _ = c.Process.Kill() } // one that has ended needs none

// starts runs a program that is to print its version.
func starts(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, startsIn)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out[:min(len(out), 1<<10)])))
	}
	return nil
}

// status is what the supervisor needs of that of a worker.
type status struct {
	Pause   pause.State               `json:"pause"`
	Actions []instrument.ActionStatus `json:"actions"`
}

// handOver ends the process that runs so that the next one continues with its work. A validator stops in order. A
// worker does not drain, since it is to leave no run: it writes the state of long computations to the disk, and is
// killed.
func (s *supervisor) handOver(ctx context.Context) {
	if s.validator() {
		_ = process.Interrupt(s.child.Process)
		select {
		case <-s.child.ended:
			return
		case <-time.After(stopsIn):
		}
	}
	var now status
	aside := control.Status(ctx, s.Home, &now) == nil && !now.Pause.Paused &&
		slices.ContainsFunc(now.Actions, worthKeeping)
	if aside {
		s.setAside(ctx)
	}
	s.child.kill()
	<-s.child.ended
	if aside {
		s.endPause()
	}
}

// worthKeeping reports whether an action has computed for long enough that it is not begun again. A pause to keep less
// would cost more: a member that is paused while a duty is nearly due leaves its run.
func worthKeeping(a instrument.ActionStatus) bool { return time.Since(a.Since) > keepAfter }

// setAside pauses a process, so that it writes the state of its units to the disk, and waits until it computes nothing.
func (s *supervisor) setAside(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, asideIn)
	defer cancel()
	if _, err := control.Pause(ctx, s.Home, asideIn); err != nil {
		return
	}
	for ctx.Err() == nil {
		var now status
		if control.Status(ctx, s.Home, &now) != nil || !slices.ContainsFunc(now.Actions, worthKeeping) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// endPause ends the pause of a process that is gone: the next one is not paused.
func (s *supervisor) endPause() {
	p, err := pause.Open(s.Home, pause.Conditions{}, time.Now)
	if err == nil {
		_, err = p.Resume()
	}
	if err != nil {
		s.Say(fmt.Sprintf("the pause of the hand-over ends by itself within %s: %v", asideIn, err))
	}
}
