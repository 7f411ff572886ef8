package fault

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/node/federated/wire"
)

// federatedOwner is the process of an owner behind a proxy that records what it sends, and kills it at a message.
type federatedOwner struct {
	t     *testing.T
	args  []string
	proxy *httptest.Server

	mu     sync.Mutex
	cmd    *exec.Cmd
	log    bytes.Buffer
	wire   bytes.Buffer // what it sent
	round  string       // of the message at which it is killed; "": none
	phase  federated.Phase
	killed bool
	host   func() // kills the coordinator at the signature of this owner in round 7, and starts it again; nil: not
}

func (o *federatedOwner) start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cmd = exec.Command(program, o.args...)
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	o.cmd.Stdout, o.cmd.Stderr = &o.log, &o.log
	if err := o.cmd.Start(); err != nil {
		o.t.Error(err)
	}
}

// between returns the proxy of an owner to a coordinator. The kill happens before the message is passed on; then the
// owner is started again.
func (o *federatedOwner) between(to string) {
	target, err := url.Parse(to)
	if err != nil {
		o.t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.ErrorLog = nil
	o.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			o.mu.Lock()
			o.wire.Write(b.Bytes())
			q := r.URL.Query()
			die := !o.killed && o.round != "" && q.Get("round") == o.round && q.Get("phase") == string(o.phase)
			cmd := o.cmd
			if die {
				o.killed = true
			}
			host := o.host
			if q.Get("round") != "7" || q.Get("phase") != string(federated.Survivors) {
				host = nil
			} else {
				o.host = nil
			}
			o.mu.Unlock()
			if die {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
				o.start()
				return
			}
			if host != nil {
				host()
				panic(http.ErrAbortHandler) // the message did not arrive: the owner sends it again
			}
			r.Body = readCloser{bytes.NewReader(b.Bytes())}
		}
		pass.ServeHTTP(w, r)
	}))
	o.t.Cleanup(o.proxy.Close)
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// TestFederated trains a model on the data of five owners, each a process that is killed at another message and starts
// again, while a sixth sends garbage and the coordinator is killed twice: as a round begins, and when all vectors of
// one have come. No window of the data is on the wire. A seventh, whose program is changed, then sends a hundredfold
// update: the round has a sum that is not applied.
func TestFederated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	messages, err := os.ReadFile("../../examples/messages/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	_ = l.Close() // the coordinator takes it
	out := filepath.Join(dir, "out")
	serve := func() *exec.Cmd {
		c := exec.Command(program, "job", "federated", "serve", "../../examples/federated.yaml", "--listen", listen,
			"--dir", out, "--threads", "1", "--phase-timeout", "10s", "-o", "json", "--set", "federated.owners=7", "--set",
			"strategy.round_timeout=30s", "--set", "federated.min_cohort=3")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		log, err := os.OpenFile(filepath.Join(dir, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr, c.Stdout = log, &bytes.Buffer{}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	coordinator := serve()
	var host sync.Mutex
	restart := func() {
		host.Lock()
		defer host.Unlock()
		_ = coordinator.Process.Kill()
		_ = coordinator.Wait() // it was killed
		coordinator = serve()
	}
	var owners []*federatedOwner
	lines := strings.SplitAfter(string(messages), "\n")
	for i, p := range federated.Phases {
		o := &federatedOwner{t: t, round: fmt.Sprint(i + 1), phase: p}
		o.between("http://" + listen)
		data := filepath.Join(dir, fmt.Sprint("data", i), "messages")
		var own strings.Builder
		for k, line := range lines {
			if k%5 == i {
				own.WriteString(line)
			}
		}
		if err := errors.Join(os.MkdirAll(data, 0o755), os.WriteFile(filepath.Join(data, "messages.jsonl"),
			[]byte(own.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
		o.args = []string{"job", "federated", "join", o.proxy.URL, "--data", filepath.Dir(data), "--home",
			filepath.Join(dir, fmt.Sprint("owner", i)), "--threads", "1", "-o", "json"}
		if i == 0 {
			o.host = restart
		}
		o.start()
		owners = append(owners, o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	garbage := stranger(t, ctx, "http://"+listen, 1)
	long := stranger(t, ctx, "http://"+listen, 2)
	for round := uint32(0); round < 9; round++ {
		a, err := garbage.Announced(ctx, round)
		if err != nil {
			t.Fatal(err)
		}
		round = a.Round
		if err := garbage.Send(ctx, a.Round, federated.Keys, []byte("garbage")); err == nil {
			t.Error("garbage was taken")
		}
		switch {
		case a.Round == 6:
			restart()
		case a.Round == 8:
			hundredfold(t, ctx, long, a)
		}
	}
	for _, c := range []*wire.Client{garbage, long} { // the coordinator ends when all know that it is over
		if a, err := c.Announced(ctx, 10); err != nil || !a.Over {
			t.Errorf("%+v, %v", a, err)
		}
	}
	host.Lock()
	defer host.Unlock()
	if err := coordinator.Wait(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "serve.log"))
		t.Fatalf("%v:\n%s", err, log)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "serve.log"))
	t.Logf("coordinator:\n%s", log)
	var r struct {
		Rounds, Void, Owners int
		Dropouts             map[string]int
		First                float64 `json:"first_loss"`
		Final                float64 `json:"final_loss"`
	}
	if err := json.Unmarshal(coordinator.Stdout.(*bytes.Buffer).Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Void > 3 || r.Rounds < 7 || r.Final > r.First-0.1 || r.Owners != 7 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(string(log), "times as long as clipped updates can be") {
		t.Error("a hundredfold update was applied")
	}
	for _, p := range federated.Phases[1:] {
		if r.Dropouts[string(p)] != 1 {
			t.Errorf("%d dropouts in phase %s, wanted 1", r.Dropouts[string(p)], p)
		}
	}
	for i, o := range owners {
		if err := o.cmd.Wait(); err != nil || !o.killed {
			t.Errorf("owner %d: %v, killed: %t\n%s", i, err, o.killed, o.log.String())
		}
		for k, line := range lines {
			for at := 0; k%5 == i && at+16 <= len(line); at++ {
				if w := line[at : at+16]; !strings.HasPrefix(w, `{"text":`) && bytes.Contains(o.wire.Bytes(), []byte(w)) {
					t.Fatalf("%q of owner %d is on the wire", w, i)
				}
			}
		}
	}
}

// stranger is an owner that the test plays.
func stranger(t *testing.T, ctx context.Context, address string, seed byte) *wire.Client {
	t.Helper()
	c := wire.New(address, http.DefaultClient, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32)), time.Minute,
		wire.Wall{})
	if _, err := c.Offer(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Join(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// hundredfold takes part in a round with an update that a changed program does not clip.
func hundredfold(t *testing.T, ctx context.Context, c *wire.Client, a federated.Announcement) {
	t.Helper()
	o, err := c.Offer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = c.Announced(ctx, a.Round); err != nil {
		t.Fatal(err)
	}
	values := make([]uint32, o.Entries+1)
	each := uint32(100 * fixedpoint.Unit / math.Sqrt(float64(o.Entries)))
	for i := range values {
		values[i] = each
	}
	values[o.Entries] = fixedpoint.Unit
	m, message, err := federated.NewMember(c.Job, a, federated.Conditions{Cohort: 3}, c.Key, prg.Key{1}, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range federated.Phases {
		if p == federated.Secrets {
			err = c.Send(ctx, a.Round, p, message)
			break
		}
		var reply []byte
		if reply, err = c.Exchange(ctx, a.Round, p, message); err != nil {
			break
		}
		if message, err = m.Answer(p, reply); err != nil {
			break
		}
	}
	if err != nil {
		t.Errorf("the hundredfold update was refused by itself: %v", err)
	}
}
