package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/internal/porttest"
)

// ordering is a starling web that orders jobs on a network.
type ordering struct {
	t       *testing.T
	url     string
	process *exec.Cmd
}

// orders starts starling web over a folder of runs.
func orders(t *testing.T, out, data, network, home string, more ...string) *ordering {
	t.Helper()
	return serves(t, "dashboard: ", append([]string{"web", out, "--data", data, "--network", network, "--home", home},
		more...))
}

// serves starts a server, and finds its address in what it says.
func serves(t *testing.T, says string, args []string) *ordering {
	t.Helper()
	c := command(t, append(args, "--listen", "127.0.0.1:0")...)
	s := news(t, c)
	for s.Scan() {
		if at, ok := strings.CutPrefix(s.Text(), says); ok {
			o := &ordering{t: t, url: at, process: c}
			t.Cleanup(o.kill)
			return o
		}
	}
	t.Fatalf("starling %s did not start", args[0])
	return nil
}

// kill ends the server without warning.
func (o *ordering) kill() {
	_ = o.process.Process.Kill()
	_ = o.process.Wait()
}

func (o *ordering) submit(job, key string, more ...string) (j api.Job) {
	o.t.Helper()
	does(o.t, &j, append([]string{"job", "submit", job, "--api", o.url, "--key", key}, more...)...)
	return j
}

// until asks for a job until it is as wanted.
func (o *ordering) until(id string, wanted func(api.Job) bool) (j api.Job) {
	o.t.Helper()
	for !wanted(j) {
		if err := o.t.Context().Err(); err != nil {
			o.t.Fatalf("%s is %+v: %v", id, j, err)
		}
		if j.State == "failed" || j.State == "done" || j.State == "halted" || j.State == "stopped" {
			o.t.Fatalf("%s is %s: %+v", id, j.State, j.Reason)
		}
		<-seldom()
		does(o.t, &j, "job", "get", id, "--api", o.url)
	}
	return j
}

func done(j api.Job) bool { return j.State == "done" }

// Two clients' jobs are ordered on a network of processes by a server that is killed twice: while they are ordered, and
// while they are trained. None is lost, none is ordered twice, and the models are those that one process trains. A job
// that is cancelled gives its budget back.
func TestWebOrdersOnANetwork(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir := writeJob(t, ""), t.TempDir()
	code, stdout, stderr := starling(t, "train", job, "--dir", filepath.Join(dir, "alone"), "-o", "json")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	alone := summary(t, stdout)

	net, port := filepath.Join(dir, "net"), porttest.Ports(t, 40)
	up(t, net, "--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port))
	network, home := fmt.Sprintf("http://127.0.0.1:%d", port+1), filepath.Join(net, "consumer")
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	web := func() *ordering { return orders(t, out, filepath.Dir(job), network, home) }

	s := web()
	first, second := s.submit(job, "a", "--name", "first"), s.submit(job, "b", "--name", "second")
	if again := s.submit(job, "a"); again.ID != first.ID || first.ID != "first" || second.ID != "second" {
		t.Errorf("the jobs are %s and %s, the first again %s", first.ID, second.ID, again.ID)
	}
	s.kill()
	s = web()
	s.until(first.ID, func(j api.Job) bool { return j.State == "running" && j.Round > 0 })
	s.kill()
	s = web()
	if again := s.submit(job, "a"); again.ID != first.ID {
		t.Errorf("after a restart the first job is %s", again.ID)
	}
	for _, id := range []string{first.ID, second.ID} {
		j := s.until(id, done)
		if j.StateRoot != alone.StateRoot.String() || j.PaidUzen == 0 || j.BudgetUzen != j.PaidUzen+j.FeeUzen+j.RefundedUzen {
			t.Errorf("%s has the state root %s, wanted %s: %+v", id, j.StateRoot, alone.StateRoot, j)
		}
		copied := filepath.Join(dir, "copy-"+id)
		if code, _, stderr := starling(t, "job", "export", id, "--api", s.url, "--to", copied); code != 0 {
			t.Errorf("export: exit %d\n%s", code, stderr)
		}
		model, err1 := os.ReadFile(filepath.Join(copied, "model.safetensors"))
		want, err2 := os.ReadFile(filepath.Join(dir, "alone", "model.safetensors"))
		if err1 != nil || err2 != nil || !bytes.Equal(model, want) {
			t.Errorf("the model of %s is another: %v, %v", id, err1, err2)
		}
		if code, _, stderr := starling(t, "job", "verify", filepath.Join(out, id)); code != 0 {
			t.Errorf("verify: exit %d\n%s", code, stderr)
		}
	}
	var all struct{ Jobs []api.Job }
	if does(t, &all, "job", "list", "--network", network); len(all.Jobs) != 2 {
		t.Errorf("the network has %d jobs, wanted 2: %+v", len(all.Jobs), all.Jobs)
	}

	third := s.submit(job, "c", "--set", "training.max_steps=4000")
	s.until(third.ID, func(j api.Job) bool { return j.State == "running" && j.Round > 0 })
	if code, _, stderr := starling(t, "job", "cancel", third.ID, "--api", s.url); code != 0 {
		t.Fatalf("cancel: exit %d\n%s", code, stderr)
	}
	over := s.until(third.ID, func(j api.Job) bool { return j.State == "stopped" })
	if over.Reason == nil || over.Reason.Code != "cancelled" || over.RefundedUzen == 0 || over.Round == 0 {
		t.Errorf("the cancelled job is %+v: %+v", over, over.Reason)
	}
	if again := s.submit(job, "c", "--set", "training.max_steps=4000"); again.ID != third.ID || again.State != "stopped" {
		t.Errorf("submitted again, the cancelled job is %s, %s", again.ID, again.State)
	}
}

// fund makes an account with coins of the consumer of a network, and returns its folder.
func fund(t *testing.T, network, from, dir, zen string) (address string) {
	t.Helper()
	var identity workerIdentity
	does(t, &identity, "worker", "identity", "--home", dir)
	if zen == "" {
		return identity.Address
	}
	if code, _, stderr := starling(t, "account", "send", identity.Address, zen, "--home", from, "--network",
		network); code != 0 {
		t.Fatalf("send: exit %d\n%s", code, stderr)
	}
	return identity.Address
}

// A job waits while the account cannot pay its budget, and begins when another one gives coins back; a token orders no
// more than its limit; and what a server cannot begin with is explained.
func TestWebOrdersWithinBudgets(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir := writeJob(t, "budget: {max_cost: 20}\n"), t.TempDir()
	net, port := filepath.Join(dir, "net"), porttest.Ports(t, 40)
	up(t, net, "--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port))
	network, out := fmt.Sprintf("http://127.0.0.1:%d", port+1), filepath.Join(dir, "out")
	poor, empty := filepath.Join(dir, "poor"), filepath.Join(dir, "empty")
	address := fund(t, network, filepath.Join(net, "consumer"), poor, "30")
	fund(t, network, "", empty, "")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}

	s := orders(t, out, filepath.Dir(job), network, poor)
	first, second := s.submit(job, "a", "--name", "first"), s.submit(job, "b", "--name", "second")
	waits := s.until(second.ID, func(j api.Job) bool { return j.Reason != nil && j.Reason.Code == "budget" })
	if waits.State != "queued" || !strings.Contains(waits.Reason.Text, address) ||
		!strings.Contains(waits.Reason.Next, "starling account send "+address) {
		t.Errorf("%s: %+v", waits.State, waits.Reason)
	}
	large := s.submit(job, "c", "--name", "large", "--set", "budget.max_cost=500")
	s.until(large.ID, func(j api.Job) bool { return j.Reason != nil && j.Reason.Code == "queued" })
	s.until(first.ID, done)
	s.until(second.ID, done)
	s.until(large.ID, func(j api.Job) bool { return j.Reason != nil && j.Reason.Code == "budget" })
	if code, _, stderr := starling(t, "job", "cancel", large.ID, "--api", s.url); code != 0 {
		t.Fatalf("cancel: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := starling(t, "web", out, "--network", network, "--home", poor, "--listen",
		"127.0.0.1:0"); code != 5 || !strings.Contains(stderr, "HOME_IN_USE") {
		t.Errorf("a second server of the account: exit %d\n%s", code, stderr)
	}
	s.kill()

	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef read,submit limit=25\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("limit", func(t *testing.T) {
		s := orders(t, out, filepath.Dir(job), network, filepath.Join(net, "consumer"), "--token-file", tokens)
		token := []string{"--token-file", tokens}
		if code, _, stderr := starling(t, append([]string{"job", "submit", job, "--api", s.url, "--set",
			"budget.max_cost=26"}, token...)...); code == 0 || !strings.Contains(stderr, "SPENDING_LIMIT") {
			t.Errorf("a budget above the limit: exit %d\n%s", code, stderr)
		}
		j := s.submit(job, "d", token...)
		for range 2 { // also after a restart
			code, _, stderr := starling(t, append([]string{"job", "submit", job, "--api", s.url, "--key", "e"}, token...)...)
			if code == 0 || !strings.Contains(stderr, "SPENDING_LIMIT") || !strings.Contains(stderr, "5.00 ZEN more") {
				t.Errorf("two budgets above the limit: exit %d\n%s", code, stderr)
			}
			s.kill()
			s = orders(t, out, filepath.Dir(job), network, filepath.Join(net, "consumer"), "--token-file", tokens)
		}
		for j.State != "done" && t.Context().Err() == nil {
			<-seldom()
			does(t, &j, append([]string{"job", "get", j.ID, "--api", s.url}, token...)...)
		}
		s.submit(job, "e", token...) // what the first did not cost is free again
	})
	t.Run("empty", func(t *testing.T) {
		s := orders(t, out, filepath.Dir(job), network, empty)
		code, _, stderr := starling(t, "job", "submit", job, "--api", s.url)
		if code == 0 || !strings.Contains(stderr, "WALLET_EMPTY") || !strings.Contains(stderr, "starling account send") {
			t.Errorf("exit %d\n%s", code, stderr)
		}
	})
	for _, c := range []struct {
		code int
		text string
		args []string
	}{
		{3, "KEY_NOT_FOUND", []string{"--home", filepath.Join(dir, "nobody"), "--network", network}},
		{2, "--network is needed", []string{"--home", empty}},
		{2, "--read-only", []string{"--home", empty, "--network", network, "--read-only"}},
		{2, "--jobs", []string{"--network", network, "--jobs", "3"}},
	} {
		code, _, stderr := starling(t, append([]string{"web", out, "--listen", "127.0.0.1:0"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.text) {
			t.Errorf("%v: exit %d, wanted %d and %q\n%s", c.args, code, c.code, c.text, stderr)
		}
	}
	closed := url.URL{Scheme: "http", Host: porttest.Address(t)}
	if code, _, stderr := starling(t, "web", out, "--listen", "127.0.0.1:0", "--home", empty, "--network",
		closed.String()); code == 0 || !strings.Contains(stderr, "NETWORK_UNREACHABLE") {
		t.Errorf("a network that does not answer: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := starling(t, "worker", "identity", "--home", empty, "--encrypt", "--new-passphrase-file",
		tokens); code != 0 {
		t.Fatalf("encrypt: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := starling(t, "web", out, "--listen", "127.0.0.1:0", "--home", empty, "--network",
		network); code == 0 || !strings.Contains(stderr, "KEY_LOCKED") {
		t.Errorf("a locked key: exit %d\n%s", code, stderr)
	}
}

// A server waits for a network that does not answer: what is submitted meanwhile is refused with the advice to try
// again, and the job under way continues when the validator is back.
func TestWebWaitsForItsNetwork(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir := writeJob(t, ""), t.TempDir()
	net, port := filepath.Join(dir, "net"), porttest.Ports(t, 40)
	_, processes := up(t, net, "--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port))
	network, out := fmt.Sprintf("http://127.0.0.1:%d", port+1), filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	s := orders(t, out, filepath.Dir(job), network, filepath.Join(net, "consumer"))
	first := s.submit(job, "a", "--set", "training.max_steps=40")
	s.until(first.ID, func(j api.Job) bool { return j.State == "running" && j.Round > 0 })
	// A validator that hangs: the status of a job does not wait for its answers.
	if err := syscall.Kill(processes["validator-0"], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 5*time.Second; <-seldom() {
		asked := time.Now()
		var j api.Job
		if does(t, &j, "job", "get", first.ID, "--api", s.url); time.Since(asked) > 5*time.Second {
			t.Fatalf("the status took %s", time.Since(asked))
		}
	}
	if err := syscall.Kill(processes["validator-0"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := starling(t, "job", "submit", job, "--api", s.url, "--key", "b"); code == 0 ||
		!strings.Contains(stderr, "NETWORK_UNREACHABLE") {
		t.Errorf("submitted without a network: exit %d\n%s", code, stderr)
	}
	if again := s.submit(job, "a", "--set", "training.max_steps=40"); again.ID != first.ID {
		t.Errorf("without a network the first job is %s", again.ID)
	}
	c := command(t, "validator", "up", "--home", filepath.Join(net, "validator-0"))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	s.until(first.ID, done)
	second := s.submit(job, "b")
	s.until(second.ID, done)
}
