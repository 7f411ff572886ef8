package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/client/validators"
	"github.com/starling-network/starling/internal/porttest"
)

// up starts a network of processes over a folder, and returns when it runs, with the processes by their names.
func up(t *testing.T, dir string, args ...string) (supervisor *exec.Cmd, processes map[string]int) {
	t.Helper()
	c := command(t, append([]string{"dev", "up", dir}, args...)...)
	s := news(t, c)
	t.Cleanup(func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() })
	process := regexp.MustCompile(`(\S+) is process (\d+)`)
	processes = map[string]int{}
	var lines []string
	for s.Scan() {
		lines = append(lines, s.Text())
		if m := process.FindStringSubmatch(s.Text()); m != nil {
			processes[m[1]], _ = strconv.Atoi(m[2])
		}
		if strings.Contains(s.Text(), "train with") {
			return c, processes
		}
	}
	t.Fatalf("the network did not start:\n%s", strings.Join(lines, "\n"))
	return nil, nil
}

// A job on a network of processes gives the model that it gives in one process, though a worker and a validator are
// killed in the middle and another worker computes on a device, checkpoints come as patches, and another party can
// verify it.
func TestNetworkOfProcessesSurvivesKills(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir := writeJob(t, ""), t.TempDir()
	set := []string{"--set", "training.max_steps=24"}
	code, stdout, stderr := starling(t,
		append([]string{"train", job, "--dir", filepath.Join(dir, "alone"), "-o", "json"}, set...)...)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	alone := summary(t, stdout)

	network, port := filepath.Join(dir, "net"), porttest.Ports(t, 40)
	_, processes := up(t, network, "--validators", "4", "--workers", "3", "--block-time", "200ms", "--port",
		fmt.Sprint(port))
	connected(t, fmt.Sprintf("http://127.0.0.1:%d", port+1), 4)
	device := takesOver(t, processes["worker-0"], filepath.Join(network, "worker-0"),
		fmt.Sprintf("http://127.0.0.1:%d", port+1))
	out := filepath.Join(dir, "out")
	c := command(t, append([]string{"train", job, "--dir", out, "-o", "table", "--network",
		fmt.Sprintf("http://127.0.0.1:%d", port+1),
		"--home", filepath.Join(network, "consumer")}, set...)...)
	var result bytes.Buffer
	c.Stdout = &result
	progress := news(t, c)
	// A worker that is killed between its commitment and its update has 300 blocks to answer, so the validator, without
	// which a block takes a second, is killed later.
	for _, k := range []struct {
		round int
		name  string
	}{{3, "worker-2"}, {5, "validator-3"}} {
		says(t, progress, fmt.Sprintf(" round=%d ", k.round))
		if err := syscall.Kill(processes[k.name], syscall.SIGKILL); err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
	}
	if err := c.Wait(); err != nil || !strings.Contains(result.String(), alone.StateRoot.String()) {
		t.Fatalf("%v\n%s\nwanted the state root %s", err, result.String(), alone.StateRoot)
	}
	if log, err := os.ReadFile(filepath.Join(out, "starling.log")); err != nil ||
		!bytes.Contains(log, []byte("checkpoint came as a patch")) {
		t.Errorf("the consumer got no checkpoint as a patch: %v\n%s", err, log)
	}
	if device != nil {
		if s := device(); s.Uses != "opencl:0" || s.Units == 0 || s.Failed > 0 || !s.Passed.Equal(passed) {
			t.Errorf("the device: %+v", s)
		}
	}
	if code, stdout, stderr := starling(t, "job", "verify", out, "-o",
		"json"); code != 0 || !strings.Contains(stdout, alone.StateRoot.String()) {
		t.Errorf("verify: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := starling(t, "dev", "up", network); code != 5 || !strings.Contains(stderr, "NETWORK_RUNNING") {
		t.Errorf("a second supervisor: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := starling(t, "dev", "down", network); code != 0 {
		t.Errorf("dev down: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := starling(t, "dev", "down", network); code != 3 ||
		!strings.Contains(stderr, "NETWORK_NOT_RUNNING") {
		t.Errorf("dev down of what is down: exit %d\n%s", code, stderr)
	}
}

// connected waits until the first of count validators is connected to the others, has their announcements, and shows
// the name of each.
func connected(t *testing.T, network string, count int) {
	t.Helper()
	var p struct{ Peers []validators.Peer }
	silent := func(p validators.Peer) bool { return p.Sent == 0 || p.Received == 0 }
	for (len(p.Peers) < count-1 || slices.ContainsFunc(p.Peers, silent)) && t.Context().Err() == nil {
		<-seldom()
		does(t, &p, "network", "peers", "--network", network)
	}
	rows := shows(t, &p, "network", "peers", "--network", network)
	var names []string
	for _, x := range p.Peers {
		if names = append(names, x.Name); x.Address != "127.0.0.1" || x.Sent < 0 || x.Received < 0 ||
			!has(rows[x.NodeID], x.NodeID, x.Name, x.Address, x.Dialled) {
			t.Errorf("%+v\n%v", x, rows[x.NodeID])
		}
	}
	slices.Sort(names)
	for i, name := range names {
		if name != fmt.Sprintf("validator-%d", i+1) {
			t.Errorf("the peers are called %q", names)
		}
	}
}

func TestNetInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net")
	if code, stdout, stderr := starling(t, "network", "init", dir, "--validators", "2", "-o",
		"json"); code != 0 || !strings.Contains(stdout, `"http://127.0.0.1:26611"`) {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	for _, c := range []struct {
		code int
		text string
		args []string
	}{
		{5, "NETWORK_EXISTS", []string{"network", "init", dir}},
		{1, "one for all, or one for each", []string{"network", "init", filepath.Join(dir, "other"), "--validators",
			"3", "--host", "10.0.0.7,10.0.0.8"}},
		{1, "no ports", []string{"network", "init", filepath.Join(dir, "other"), "--port", "65530"}},
		{3, "VALIDATOR_NOT_FOUND", []string{"validator", "up", "--home", filepath.Join(dir, "worker-0")}},
		{2, "--home and --network", []string{"worker", "up", "--home", dir}},
		{2, "use worker, verifier, generator, worker,verifier, worker,host,", []string{"worker", "up", "--home", dir,
			"--network", "http://127.0.0.1:1", "--role", "king"}},
		{2, "use opencl for a GPU", []string{"worker", "up", "--home", dir, "--network", "http://127.0.0.1:1", "--device",
			"gpu"}},
		{2, "--device is for workers", []string{"worker", "up", "--home", dir, "--network", "http://127.0.0.1:1", "--role",
			"verifier", "--device", "opencl:1"}},
	} {
		if code, _, stderr := starling(t, c.args...); code != c.code || !strings.Contains(stderr, c.text) {
			t.Errorf("%v: exit %d, wanted %d and %q\n%s", c.args, code, c.code, c.text, stderr)
		}
	}
}
