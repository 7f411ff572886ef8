package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/hosted"
	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/home"
	nodehosting "github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// A model that a network trained is hosted by three providers in processes. One is killed in the middle of a stream:
// the reader gets the text that the model itself writes. A fourth provider hosts other weights under the root of these:
// a drawn check finds it. The providers and the holders of the model's shares are paid, and the books are balanced.
func TestModelIsHosted(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir, port := writeJob(t, "budget: {contributor_part: 0.5}\n"), t.TempDir(), porttest.Ports(t, 40)
	text, err := os.ReadFile(job)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, job, bytes.Replace(text, []byte("max_position_embeddings: 16"), []byte("max_position_embeddings: 64"), 1))
	writeFile(t, filepath.Join(filepath.Dir(job), "text.jsonl"), unending())
	out, net := filepath.Join(dir, "out"), filepath.Join(dir, "net")
	network := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	up(t, net, "--workers", "3", "--block-time", "100ms", "--port", fmt.Sprint(port))
	consumer := filepath.Join(net, "consumer")
	code, stdout, stderr := starling(t, "train", job, "--dir", out, "--network", network, "--home", consumer, "-q", "-o",
		"json")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	id := summary(t, stdout).Job
	h := &hosts{t: t, network: network, out: out, consumer: consumer, dir: dir}
	var kill atomic.Pointer[exec.Cmd]
	first := h.start("a", "0.1", breaks(t, &kill), "--job", id, "--part", "40")
	kill.Store(first)
	for name, price := range map[string]string{"b": "0.2", "c": "0.3"} {
		h.start(name, price, nil, "--model", fmt.Sprint(h.listed()[0].Model))
	}
	payer := filepath.Join(dir, "payer")
	fund(t, network, consumer, payer, "50")

	at, stop := h.gateway(payer, "0")
	var local struct{ Text string }
	does(t, &local, "model", "generate", out, "--prompt", "number 1", "--tokens", "40", "--temperature", "0")
	if got := streamed(t, at, "number 1"); got != local.Text || local.Text == "" {
		t.Errorf("the gateway writes %q, the model %q", got, local.Text)
	}
	if kill.Load() != nil {
		t.Fatal("the first provider was not killed")
	}
	_ = first.Wait() // it was killed
	if s := stop(); s.Answers != 1 || s.Failovers != 1 || s.Spent == 0 {
		t.Errorf("%+v", s)
	}

	h.lie(filepath.Join(dir, "liar"))
	at, stop = h.gateway(payer, "100")
	streamed(t, at, "number 2")
	s := stop()
	if s.Conflicts != 1 || s.Checked != 1 || len(s.Providers) < 2 {
		t.Fatalf("%+v", s)
	}
	excluded := 0
	for _, p := range s.Providers {
		if p.Excluded != "" {
			excluded++
			if p.Provider != h.liar {
				t.Errorf("an honest provider is excluded: %+v", p)
			}
		}
	}
	if excluded != 1 {
		t.Errorf("%+v", s.Providers)
	}
	var reply hosted.Reply
	does(t, &reply, "model", "ask", "1", "number 1", "--tokens", "40", "--temperature", "0", "--budget", "20", "--home",
		payer, "--network", network)
	if reply.Text != local.Text || reply.Cost == "0.00" {
		t.Errorf("%+v", reply)
	}
	h.end()
	var owned ownedModel
	does(t, &owned, "model", "shares", id, "--network", network)
	if owned.Held == 0 || len(owned.Holders) < 2 {
		t.Errorf("%+v", owned)
	}
	var b inspect.Balances
	if does(t, &b, "network", "check", "--network", network); len(b.Wrong) > 0 {
		t.Error(b.Wrong)
	}
}

// unending are few long documents: a model of them ends no text soon.
func unending() []byte {
	var b bytes.Buffer
	for i := range 20 {
		b.WriteString(`{"text": "`)
		for k := range 100 {
			fmt.Fprintf(&b, "number %d follows %d and so on, ", 100*i+k+1, 100*i+k)
		}
		b.WriteString("\"}\n")
	}
	return b.Bytes()
}

// hosts are the providers of a model in processes.
type hosts struct {
	t                           *testing.T
	network, out, consumer, dir string
	liar                        string
	stops                       []func()
}

// start starts a provider. between is what clients reach in place of it; nil: nothing.
func (h *hosts) start(name, price string, between func(to string) string, more ...string) *exec.Cmd {
	h.t.Helper()
	home, at := filepath.Join(h.dir, name), porttest.Address(h.t)
	if name == "a" {
		home = h.consumer // it owns the model
	} else {
		fund(h.t, h.network, h.consumer, home, "50")
	}
	args := append([]string{"model", "host", h.out, "--price-in", price, "--price-out", price, "--bond", "5", "--home",
		home, "--network", h.network, "--listen", at, "--redeem", "1000"}, more...)
	if between != nil {
		args = append(args, "--url", between("http://"+at))
	}
	c := command(h.t, args...)
	says(h.t, news(h.t, c), "is hosted at")
	if between == nil {
		h.stops = append(h.stops, func() {
			_ = c.Process.Signal(syscall.SIGINT)
			if err := c.Wait(); err != nil {
				h.t.Errorf("provider %s: %v", name, err)
			}
		})
	}
	return c
}

func (h *hosts) end() {
	for _, stop := range h.stops {
		stop()
	}
}

func (h *hosts) listed() []hosted.Listed {
	h.t.Helper()
	var all struct{ Hosted []hosted.Listed }
	does(h.t, &all, "model", "hosted", "--network", h.network)
	return all.Hosted
}

// gateway starts a gateway that checks a percentage of the answers.
func (h *hosts) gateway(payer, check string) (at string, stop func() hosted.Spent) {
	h.t.Helper()
	at = porttest.Address(h.t)
	c := command(h.t, "model", "gateway", fmt.Sprint(h.listed()[0].Model), "--budget", "20", "--check", check, "--home",
		payer, "--network", h.network, "--listen", at, "-o", "json")
	var stdout bytes.Buffer
	c.Stdout = &stdout
	says(h.t, news(h.t, c), "is served at")
	return at, func() (s hosted.Spent) {
		h.t.Helper()
		_ = c.Process.Signal(syscall.SIGINT)
		if err := c.Wait(); err != nil {
			h.t.Errorf("the gateway: %v", err)
		}
		if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
			h.t.Fatalf("%v\n%s", err, stdout.String())
		}
		return s
	}
}

// lie hosts other weights under the root of the model, for less than the others.
func (h *hosts) lie(dir string) {
	h.t.Helper()
	h.liar = fund(h.t, h.network, h.consumer, dir, "50")
	key, err := home.Read(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	cl, err := client.Connect(h.network, key.Account())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(cl.Close)
	m := h.listed()[0]
	e, err := serve.Open(hostingtest.Folder(h.t, 4, 64), serve.Options{Name: m.Name})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(e.Close)
	head, err := cl.Ledger.Head(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	v, err := nodehosting.OpenVouchers(filepath.Join(dir, "vouchers"), head.ChainID)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = v.Close() })
	r := &nodehosting.Redeemer{Network: cl.Hosting, Provider: h.liar, Model: m.Model, Vouchers: v, Least: 1,
		Log: slog.New(slog.DiscardHandler)}
	place := hosting.Place{Model: m.Model, Provider: h.liar, Bond: 5_000_000, Prices: hosting.Prices{Input: 50_000,
		Output: 50_000}}
	p := nodehosting.New(e, nodehosting.Terms{Chain: head.ChainID, Place: place}, v, r.Look)
	server := httptest.NewServer(p.Handler(openai.New(p, openai.Config{})))
	h.t.Cleanup(server.Close)
	place.URL = server.URL
	if err := errors.Join(cl.Ready(h.t.Context()), cl.Hosting.Host(h.t.Context(), place)); err != nil {
		h.t.Fatal(err)
	}
}

// breaks stands before a provider, and kills its process in the middle of the first stream.
func breaks(t *testing.T, kill *atomic.Pointer[exec.Cmd]) func(to string) string {
	return func(to string) string {
		at, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) },
			ModifyResponse: func(r *http.Response) error {
				if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
					r.Body = &breaking{ReadCloser: r.Body, left: 1500, kill: kill}
				}
				return nil
			}, ErrorLog: nil})
		t.Cleanup(server.Close)
		return server.URL
	}
}

// breaking is a stream that kills its process after a number of bytes.
type breaking struct {
	io.ReadCloser
	left int
	kill *atomic.Pointer[exec.Cmd]
}

func (b *breaking) Read(to []byte) (int, error) {
	if b.left <= 0 {
		if c := b.kill.Swap(nil); c != nil {
			_ = c.Process.Kill()
		}
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(to[:min(len(to), b.left)])
	b.left -= n
	return n, err
}

// streamed is the text of a stream of 40 tokens.
func streamed(t *testing.T, at, prompt string) string {
	t.Helper()
	body := fmt.Sprintf(`{"model":"out","prompt":%q,"max_tokens":40,"temperature":0,"stream":true}`, prompt)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/v1/completions",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b strings.Builder
	done := false
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e struct{ Choices []struct{ Text string } }
		if done = data == "[DONE]"; !ok || done || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		for _, c := range e.Choices {
			b.WriteString(c.Text)
		}
	}
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s", r.Status)
	}
	return b.String()
}
