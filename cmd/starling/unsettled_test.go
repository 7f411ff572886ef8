package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

// A worker that drains while its network is gone ends, says what is left to settle, and how it continues.
func TestADrainEndsWithoutANetwork(t *testing.T) {
	t.Parallel()
	l := startLedger(t, "worker", "watcher")
	worker := command(t, l.as("worker", "worker", "up", "--stake", "11000000", "--measure=false", "--drain-timeout",
		"2s")...)
	watcher := command(t, l.as("watcher", "verifier", "watch", "--drain-timeout", "2s")...)
	works, watches := news(t, worker), news(t, watcher)
	says(t, works, "offers its work")
	says(t, watches, "watches runs")
	l.stop()
	l.must(worker.Process.Signal(syscall.SIGTERM))
	l.must(watcher.Process.Signal(syscall.SIGTERM))
	for _, want := range []string{"the process ends before its work is settled",
		"no block came for 2s from " + l.network + "; its offer of work is not taken back", "start it again",
		"code: UNSETTLED"} {
		says(t, works, want)
	}
	if _ = worker.Wait(); worker.ProcessState.ExitCode() != terminal.ExitUnsettled {
		t.Errorf("the worker: %v", worker.ProcessState)
	}
	if _ = watcher.Wait(); watcher.ProcessState.ExitCode() != 0 {
		var said []string
		for watches.Scan() {
			said = append(said, watches.Text())
		}
		t.Errorf("the watcher had nothing to settle: %v\n%s", watcher.ProcessState, strings.Join(said, "\n"))
	}
}
