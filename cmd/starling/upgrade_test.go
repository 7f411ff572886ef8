package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/internal/releasetest"
	"github.com/starling-network/starling/node/releases"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/supervise"
)

// The test of a whole network takes minutes, and misses deadlines on a machine that does much else.
var (
	upgrades = flag.Bool("upgrades", false, "change the programs of a network under load (make faults)")
	nodes    = flag.Int("upgraded", 7, "nodes of that network: a validator, two or three verifiers, and workers")
)

// release is this program as a release, or a program that prints a version and does nothing else.
func release(t *testing.T, works bool) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\nexec '" + self + "' \"$@\"\n"
	if !works {
		text = "#!/bin/sh\n[ \"$1\" = version ] || exit 9\n"
	}
	file := filepath.Join(t.TempDir(), "starling")
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// supervise runs a process of a network under a supervisor.
func supervised(t *testing.T, r *releasetest.Repository, home string, args ...string) (until func(pattern string)) {
	t.Helper()
	c := command(t, append([]string{"supervise", "--home", home, "--releases", r.URL(), "--root", r.RootFile(), "--every",
		"1s", "--ready-within", "60s", "--"}, append(args, "--home", home)...)...)
	until = said(t, c)
	t.Cleanup(func() { _ = c.Process.Signal(syscall.SIGTERM) }) // the second: at once
	return until
}

// rolloutOf is the time within which nodes change, in seconds: one that starts takes a part of the same processors as
// those that compute.
func rolloutOf(nodes int) int { return nodes * 10 / 7 * max(1, nodes/7) }

// All processes of a network change to another program while they train, by themselves and one by one: nothing is
// slashed, no member misses a deadline, and the model is that of a run alone. A release that does not work changes
// nothing.
func TestUpgradesUnderLoad(t *testing.T) {
	if !*upgrades {
		t.Skip("with -upgrades")
	}
	verifiers := 2
	if *nodes > 10 {
		verifiers = 3
	}
	workers := *nodes - 1 - verifiers
	job := writeJob(t, "")
	set := []string{"--set", fmt.Sprintf("training.max_steps=%d", 18*workers), "--set",
		fmt.Sprintf("training.global_batch_size=%d", 2*workers), "--workers", fmt.Sprint(workers)}
	code, stdout, stderr := starling(t, append([]string{"train", job, "--dir", t.TempDir(), "-o", "json"}, set...)...)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	alone := summary(t, stdout)

	r := releasetest.New(t)
	dir, err := os.MkdirTemp("", "up") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port := porttest.Ports(t, 40)
	rpc := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	does(t, &struct{}{}, "network", "init", dir, "--workers", fmt.Sprint(workers), "--verifiers",
		fmt.Sprint(verifiers), "--port", fmt.Sprint(port))
	home := func(name string) string { return filepath.Join(dir, name) }
	supervised(t, r, home("validator-0"), "validator", "up")("for everybody")
	homes := []string{home("validator-0")}
	for i := range workers {
		name := home(fmt.Sprint("worker-", i))
		supervised(t, r, name, "worker", "up", "--network", rpc)("offers its work")
		homes = append(homes, name)
	}
	for i := range verifiers {
		name := home(fmt.Sprint("verifier-", i))
		supervised(t, r, name, "worker", "up", "--role", "verifier", "--network", rpc)("offers its work")
		homes = append(homes, name)
	}

	out := filepath.Join(dir, "out")
	c := command(t, append([]string{"train", job, "--dir", out, "-o", "table", "--network", rpc, "--home",
		home("consumer")}, set...)...)
	progress := news(t, c)
	says(t, progress, " round=2 ")
	late := watches(t, rpc, alone.Job)
	r.Add("v1.1.0", release(t, true), releases.Notes{Rollout: uint64(rolloutOf(*nodes))})
	r.Release()
	all(t, "the new release runs", homes, func(now supervise.Status) bool {
		return now.Running == "v1.1.0" && now.Candidate == ""
	})
	r.Add("v1.2.0", release(t, false), releases.Notes{})
	r.Release()
	all(t, "the bad release is refused", homes, func(now supervise.Status) bool {
		return now.Running == "v1.1.0" && now.Candidate == "" && now.Refused["v1.2.0"] != ""
	})
	code, _, stderr = starling(t, "fleet", "upgrade", homes[1])
	if code != 1 || !strings.Contains(stderr, "UPGRADE_REFUSED") {
		t.Errorf("the bad release by hand: exit %d\n%s", code, stderr)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	var s rundir.Summary
	if text, err := os.ReadFile(filepath.Join(out, rundir.FileSummary)); err != nil || json.Unmarshal(text, &s) != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if s.StateRoot != alone.StateRoot || s.SlashedUzen != 0 || s.Audits.Missed != 0 || len(s.Disputes) != 0 {
		t.Errorf("%+v\nalone: %+v", s, alone)
	}
	if missed := late(); len(missed) > 0 {
		t.Errorf("deadlines that were missed: %v", missed)
	}
}

// watches follows the run of a network, and returns a function that ends that and names the members and units that
// missed a deadline.
func watches(t *testing.T, rpc, job string) (late func() map[string]bool) {
	t.Helper()
	cl, err := client.Connect(rpc, wallet.KeyFromSeed([32]byte{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	ctx, end := context.WithCancel(t.Context())
	blocks, err := cl.Blocks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	missed, over := map[string]bool{}, make(chan struct{})
	go func() {
		defer close(over)
		seen := 0
		for range blocks {
			s, err := cl.Training.Run(ctx, job)
			if err != nil {
				continue
			}
			seen++
			for _, m := range s.Members {
				if m.Missed > 0 || !m.Active || m.Silent > 0 {
					missed[fmt.Sprintf("%s: %d, %d, %s", m.ID, m.Missed, m.Silent, m.Why)] = true
				}
			}
			for unit, u := range s.Units {
				if u.Attempt > 0 {
					missed[fmt.Sprintf("round %d, unit %d, attempt %d", s.Round, unit, u.Attempt)] = true
				}
			}
		}
		if seen == 0 {
			missed["no block was seen"] = true
		}
	}()
	return func() map[string]bool { end(); <-over; return missed }
}

// all waits until a status holds for the supervisors of all folders.
func all(t *testing.T, what string, homes []string, holds func(supervise.Status) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), silence)
	defer cancel()
	for _, home := range homes {
		for {
			now, err := supervise.Ask(ctx, home)
			if err != nil {
				t.Fatalf("%s: %s: %v", what, home, err)
			}
			if holds(now) {
				break
			}
			<-seldom()
		}
	}
}
