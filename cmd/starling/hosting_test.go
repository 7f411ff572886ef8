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
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// hosts lets three providers host the model. One is killed in the middle of a stream: the reader gets the text that the
// model itself writes. A fourth provider hosts other weights under the root of these: a drawn check finds it. The
// providers and the holders of the model's shares are paid.
func (s *story) hosts(id, out string) {
	t, dir, network := s.T, s.dir, s.network
	t.Helper()
	var before ownedModel
	does(t, &before, "model", "shares", id, "--network", network)
	h := &hosts{story: s, out: out}
	var kill atomic.Pointer[exec.Cmd]
	first := h.start("a", "0.1", breaks(t, &kill), "--job", id, "--part", "40")
	kill.Store(first)
	for name, price := range map[string]string{"b": "0.2", "c": "0.3"} {
		h.start(name, price, nil, "--model", fmt.Sprint(h.base().Model))
	}
	payer := filepath.Join(dir, "payer")
	s.fund(payer, "10", "50")

	at, stop := h.gateway(payer, "0")
	var local struct{ Text string }
	does(t, &local, "model", "generate", out, "--prompt", "number 1", "--tokens", "40", "--temperature", "0")
	if got := streamed(t, at, "out", "number 1"); got != local.Text || local.Text == "" {
		t.Errorf("the gateway writes %q, the model %q", got, local.Text)
	}
	if kill.Load() != nil {
		t.Fatal("the first provider was not killed")
	}
	_ = first.Wait() // it was killed
	if spent := stop(); spent.Answers != 1 || spent.Failovers != 1 || spent.Spent == 0 || spent.Coin != "USDC" {
		t.Errorf("%+v", spent)
	}

	h.lie(filepath.Join(dir, "forger"))
	at, stop = h.gateway(payer, "100")
	streamed(t, at, "out", "number 2")
	spent := stop()
	if spent.Conflicts != 1 || spent.Checked != 1 || len(spent.Providers) < 2 {
		t.Fatalf("%+v", spent)
	}
	excluded := 0
	for _, p := range spent.Providers {
		if p.Excluded != "" {
			excluded++
			if p.Provider != h.liar {
				t.Errorf("an honest provider is excluded: %+v", p)
			}
		}
	}
	if excluded != 1 {
		t.Errorf("%+v", spent.Providers)
	}
	var reply hosted.Reply
	does(t, &reply, "model", "ask", "1", "number 1", "--tokens", "40", "--temperature", "0", "--budget", "20usdc",
		"--private", "--home", payer, "--network", network)
	if reply.Text != local.Text || reply.Cost == "0.00" {
		t.Errorf("%+v", reply)
	}
	h.end()
	var owned ownedModel
	does(t, &owned, "model", "shares", id, "--network", network)
	if len(owned.Coins) != 1 || len(before.Coins) != 1 || owned.Coins[0] == before.Coins[0] {
		t.Errorf("the holders of the shares had %+v, and have %+v", before, owned)
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
	*story
	out   string
	liar  string
	stops []func()
}

// start starts a provider. between is what clients reach in place of it; nil: nothing.
func (h *hosts) start(name, price string, between func(to string) string, more ...string) *exec.Cmd {
	h.T.Helper()
	home, at := filepath.Join(h.dir, name), porttest.Address(h.T)
	if name == "a" {
		home = h.consumer // it owns the model
	} else {
		fund(h.T, h.network, h.consumer, home, "50")
	}
	args := append([]string{"model", "host", h.out, "--price-in", price + "usdc", "--price-out", price + "usdc", "--bond",
		"5", "--home", home, "--network", h.network, "--listen", at, "--redeem", "1000"}, more...)
	if between != nil {
		args = append(args, "--url", between("http://"+at))
	}
	c := command(h.T, args...)
	says(h.T, news(h.T, c), "is hosted at")
	if between == nil {
		h.stops = append(h.stops, func() {
			_ = c.Process.Signal(syscall.SIGINT)
			if err := c.Wait(); err != nil {
				h.T.Errorf("provider %s: %v", name, err)
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
	h.T.Helper()
	var all struct{ Hosted []hosted.Listed }
	does(h.T, &all, "model", "hosted", "--network", h.network)
	return all.Hosted
}

// base is the whole model.
func (h *hosts) base() hosted.Listed {
	h.T.Helper()
	for _, l := range h.listed() {
		if l.Base == 0 {
			return l
		}
	}
	h.T.Fatal("no model is hosted")
	return hosted.Listed{}
}

// gateway starts a gateway that checks a percentage of the answers.
func (h *hosts) gateway(payer, check string) (at string, stop func() hosted.Spent) {
	h.T.Helper()
	at = porttest.Address(h.T)
	c := command(h.T, "model", "gateway", fmt.Sprint(h.base().Model), "--budget", "20usdc", "--check", check,
		"--private", "--home", payer, "--network", h.network, "--listen", at, "-o", "json")
	var stdout bytes.Buffer
	c.Stdout = &stdout
	says(h.T, news(h.T, c), "is served at")
	return at, func() (s hosted.Spent) {
		h.T.Helper()
		_ = c.Process.Signal(syscall.SIGINT)
		if err := c.Wait(); err != nil {
			h.T.Errorf("the gateway: %v", err)
		}
		if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
			h.T.Fatalf("%v\n%s", err, stdout.String())
		}
		return s
	}
}

// lie hosts other weights under the root of the model, for less than the others.
func (h *hosts) lie(dir string) {
	h.T.Helper()
	h.liar = fund(h.T, h.network, h.consumer, dir, "50")
	key, err := home.Read(dir)
	if err != nil {
		h.T.Fatal(err)
	}
	cl, err := client.Connect(h.network, key.Account())
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(cl.Close)
	m := h.base()
	e, err := serve.Open(hostingtest.Folder(h.T, 4, 64), serve.Options{Name: m.Name})
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(e.Close)
	head, err := cl.Ledger.Head(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	v, err := nodehosting.OpenVouchers(filepath.Join(dir, "vouchers"), head.ChainID)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = v.Close() })
	r := &nodehosting.Redeemer{Network: cl.Hosting, Provider: h.liar, Model: m.Model, Vouchers: v, Least: 1,
		Log: slog.New(slog.DiscardHandler)}
	place := hosting.Place{Model: m.Model, Provider: h.liar, Bond: 5_000_000, Prices: hosting.Prices{Denom: h.usdc,
		Input: 50_000, Output: 50_000}}
	p := nodehosting.New(e, nodehosting.Terms{Chain: head.ChainID, Place: place}, v, r.Look)
	server := httptest.NewServer(p.Handler(openai.New(p, openai.Config{})))
	h.T.Cleanup(server.Close)
	place.URL = server.URL
	if err := errors.Join(cl.Ready(h.T.Context()), cl.Hosting.Host(h.T.Context(), place)); err != nil {
		h.T.Fatal(err)
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

// streamed is the text of a stream of 40 tokens of a model.
func streamed(t *testing.T, at, model, prompt string) string {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":40,"temperature":0,"stream":true}`, model, prompt)
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
