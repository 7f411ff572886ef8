package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/doctor"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/market"
)

// The commands by which an owner asks running processes: their state, the reasons of waiting, draining, and the
// replay of their journals.
func TestOwnersSeeTheirProcesses(t *testing.T) {
	t.Parallel()
	told := newListener(t)
	job, dir, port := writeJob(t, told.keys()), filepath.Join(t.TempDir(), "net"), porttest.Ports(t, 40)
	network := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	_, processes := up(t, dir, "--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port))
	ask := func(into any, args ...string) {
		t.Helper()
		code, stdout, stderr := starling(t, append(args, "-o", "json")...)
		if code != 0 {
			t.Fatalf("%v: exit %d\n%s", args, code, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), into); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, stdout)
		}
	}
	worker := filepath.Join(dir, "worker-0")
	var r workerReport
	for !r.Running || r.Account == nil || len(r.Account.Reasons) == 0 || r.Account.Reasons[0].Code != "no_order" {
		if t.Context().Err() != nil {
			t.Fatalf("%+v", r)
		}
		<-seldom()
		r = workerReport{}
		// it may not have begun yet
		_, stdout, _ := starling(t, "worker", "explain", "--home", worker, "--network", network, "-o", "json")
		_ = json.Unmarshal([]byte(stdout), &r)
	}
	var trained rundir.Summary
	ask(&trained, "train", job, "--dir", filepath.Join(dir, "out"), "--network", network, "--home",
		filepath.Join(dir, "consumer"), "-q")
	told.heard(t, trained)
	var s inspect.NetworkStatus
	ask(&s, "network", "status", "--network", network)
	if len(s.Validators) != 1 || !s.Validators[0].Signed || len(s.Participants) != 6 || len(s.Runs) != 0 || s.Height < 2 {
		t.Errorf("status: %+v", s)
	}
	for measured := 0; measured < 3 && t.Context().Err() == nil; { // once they have nothing else to do
		measured = 0
		<-seldom()
		ask(&s, "network", "status", "--network", network)
		for _, p := range s.Participants {
			if slices.Contains(p.Roles, "worker") && p.Class == "cpu" && p.Rate > 1e8 {
				measured++
			}
		}
	}
	quotes(t, job, network)
	views(t, dir, network, trained)
	gives(t, dir, network)
	var v inspect.ValidatorStatus
	ask(&v, "validator", "status", "--home", filepath.Join(dir, "validator-0"))
	if !v.Signed || v.Power == 0 || v.Power != v.OfPower || v.Window == 0 || v.Missed != 0 {
		t.Errorf("validator status: %+v", v)
	}
	var b inspect.Balances
	ask(&b, "network", "check", "--network", network)
	if len(b.Wrong) != 0 || len(b.Books) != 14 || b.Books[0].Owed == 0 || b.Books[0].Owed != b.Books[0].Held ||
		b.Books[1].Owed != 0 {
		t.Errorf("net check: %+v", b)
	}
	var d doctor.Report
	ask(&d, "doctor", "--network", network, "--chain-id", "starling-local-1", "--home", worker)
	for _, f := range d.Findings {
		want := doctor.OK
		if f.Check == "lock" {
			want = doctor.Warn // it runs
		}
		if strings.Contains("chain clock keys lock", f.Check) && f.Level != want ||
			strings.HasPrefix(f.Text, "not looked at") != (f.Check == "listen") {
			t.Errorf("doctor: %+v", f)
		}
	}
	replays(t, dir)
	waits(t, job, dir, network)
	pauses(t, worker)
	drains(t, worker, network, processes["validator-0"])
}

// quotes asks for offers for a job: two of three are cheap enough, and then none.
func quotes(t *testing.T, job, network string) {
	t.Helper()
	var q plan.Quote
	code, stdout, stderr := starling(t, "market", "quote", job, "--network", network, "--set", "strategy.workers=2", "-o",
		"json")
	if err := json.Unmarshal([]byte(stdout), &q); err != nil || code != 0 || !q.Matched || len(q.Members) != 5 ||
		len(q.Others) != 0 || q.Members[0].Likelihood < 0.5 || q.Work == 0 {
		t.Errorf("quote: exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	var p plan.Plan
	code, stdout, stderr = starling(t, "train", job, "--dry-run", "--network", network, "--set",
		"resources.placement.regions=[eu]", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != 7 || p.Placement != nil || p.Quote == nil ||
		p.Quote.Why != market.ConditionsUnmet || len(p.Quote.Others) < 3 {
		t.Fatalf("a plan for another place: exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	for _, o := range p.Quote.Others {
		if o.Role == "worker" && (o.Why != market.WrongRegion || o.Text == "") {
			t.Errorf("%+v", o)
		}
	}
	if !strings.Contains(stderr, `"NO_PLACEMENT"`) || !strings.Contains(stderr, `"retryable":true`) {
		t.Error(stderr)
	}
	if code, stdout, _ := starling(t, "train", job, "--dry-run", "--network", network); code != 0 ||
		!strings.Contains(stdout, "drawn with a chance") {
		t.Errorf("a plan: exit %d\n%s", code, stdout)
	}
}

// replays plays every journal of a network back.
func replays(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "events", "*.jsonl"))
	if err != nil || len(files) != 6 {
		t.Fatalf("journals of 3 workers, 2 verifiers and a consumer: %v, %v", files, err)
	}
	for _, f := range files {
		code, stdout, stderr := starling(t, "worker", "replay", f)
		if code != 0 || !strings.Contains(stdout, " 0 differences") || strings.Contains(stdout, " 0 actions") {
			t.Errorf("%s: exit %d\n%s%s", f, code, stdout, stderr)
		}
	}
	if code, _, stderr := starling(t, "worker", "replay", filepath.Join(dir, "network.json")); code != 10 ||
		!strings.Contains(stderr, "JOURNAL_UNREADABLE") {
		t.Errorf("no journal: exit %d\n%s", code, stderr)
	}
}

// pauses lets a worker pause and continue. The pause is seen in its status, and ends by itself or by its owner.
func pauses(t *testing.T, worker string) {
	t.Helper()
	state := func(args ...string) (s pause.State) {
		t.Helper()
		code, stdout, stderr := starling(t, append(append([]string{"worker"}, args...), "--home", worker, "-o", "json")...)
		if err := json.Unmarshal([]byte(stdout), &s); code != 0 || err != nil {
			t.Fatalf("%v: exit %d, %v\n%s%s", args, code, err, stdout, stderr)
		}
		return s
	}
	if s := state("pause", "--for", "1h"); !s.Paused || s.Until.Sub(s.Since) != time.Hour {
		t.Errorf("%+v", s)
	}
	for _, command := range []string{"status", "explain"} {
		_, stdout, stderr := starling(t, "worker", command, "--home", worker)
		if !strings.Contains(stdout, "paused since") || !strings.Contains(stdout, "its owner paused it") {
			t.Errorf("%s:\n%s%s", command, stdout, stderr)
		}
	}
	if s := state("pause"); !s.Paused || !s.Until.IsZero() {
		t.Errorf("%+v", s)
	}
	if s := state("resume"); s.Paused {
		t.Errorf("%+v", s)
	}
	if code, _, stderr := starling(t, "worker", "pause", "--home", worker, "--for", "-1h"); code != 2 {
		t.Errorf("a pause of less than nothing: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := starling(t, "worker", "resume", "--home", t.TempDir()); code == 0 ||
		!strings.Contains(stderr, "NOT_RUNNING") {
		t.Errorf("where no process runs: exit %d\n%s", code, stderr)
	}
}

// drains lets a worker drain, start again with metrics, and end at once.
func drains(t *testing.T, worker, network string, validator int) {
	t.Helper()
	if code, stdout, stderr := starling(t, "worker", "drain", "--home", worker); code != 0 ||
		!strings.Contains(stdout, "draining") {
		t.Fatalf("drain: exit %d\n%s%s", code, stdout, stderr)
	}
	for running := true; running; {
		if t.Context().Err() != nil {
			t.Fatal("it does not end")
		}
		code, stdout, stderr := starling(t, "worker", "status", "--home", worker, "-o", "json")
		if code != 0 {
			t.Fatalf("status: exit %d\n%s", code, stderr)
		}
		running = strings.Contains(stdout, `"running":true`)
	}
	if _, stdout, _ := starling(t, "worker", "explain", "--home", worker); !strings.Contains(stdout, "no process runs") ||
		!strings.Contains(stdout, "offers no work") {
		t.Errorf("explain of what is drained:\n%s", stdout)
	}
	if code, stdout, stderr := starling(t, "worker", "drain", "--home", worker); code != 0 ||
		!strings.Contains(stdout, "withdrawn") {
		t.Errorf("drain of what does not run: exit %d\n%s%s", code, stdout, stderr)
	}
	address := porttest.Address(t)
	c := command(t, "worker", "up", "--home", worker, "--network", network, "--metrics", address)
	s := news(t, c)
	says(t, s, "offers its work")
	defer func() { _ = c.Process.Kill() }()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "starling_chain_height ") ||
		!strings.Contains(string(text), "starling_runs 0") {
		t.Errorf("metrics: %v\n%s", err, text)
	}
	if code, _, stderr := starling(t, "worker", "up", "--home", worker, "--network", network); code != 5 ||
		!strings.Contains(stderr, "HOME_IN_USE") {
		t.Errorf("a second process over the folder: exit %d\n%s", code, stderr)
	}
	interrupts(t, c, s, validator)
}

// interrupts presses Ctrl-C twice on a worker whose validator does not answer: with the first it drains, which takes as
// long as that, and with the second it ends at once, as one that Ctrl-C ends does. A shell gives that the exit code
// 130.
func interrupts(t *testing.T, c *exec.Cmd, s *bufio.Scanner, validator int) {
	t.Helper()
	if err := syscall.Kill(validator, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(validator, syscall.SIGCONT) }()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	says(t, s, "draining")
	says(t, s, "no block came for 30s") // that it cannot take its offer back does not keep it from saying so
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()                      // its state says how it ended
	code := c.ProcessState.ExitCode() // where SIGINT is ignored from the start, as by a shell in the background
	if how := c.ProcessState.Sys().(syscall.WaitStatus); how.Signaled() {
		code = 128 + int(how.Signal())
	}
	if code != terminal.ExitInterrupted {
		t.Errorf("the second Ctrl-C: %v", c.ProcessState)
	}
}
