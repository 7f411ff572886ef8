package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/apply"
	"github.com/starling-network/starling/cmd/starling/hosted"
	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/accused"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
	"github.com/starling-network/starling/node/home"
	nodehosting "github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/gateway"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// Three providers host two adapters over one base, of which one fits in memory at a time. One of them is killed in the
// middle of a stream of an adapter: the reader gets the text of the adapter, from another one. A fourth provider
// answers without the adapter: a drawn check finds it, and its receipt has it convicted.
func TestAdaptersAreHosted(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	dir, port := t.TempDir(), porttest.Ports(t, 40)
	s := &story{T: t, dir: dir, network: fmt.Sprintf("http://127.0.0.1:%d", port+1), net: filepath.Join(dir, "net"),
		consumer: filepath.Join(dir, "net", "consumer"), usdc: "base/usdc"}
	up(t, s.net, "--workers", "0", "--verifiers", "0", "--block-time", "200ms", "--coin", "usdc:6", "--port",
		fmt.Sprint(port))
	out := hostingtest.Folder(t, 3, 64)
	h := &hosts{story: s, out: out}
	red, blue := hostingtest.AdapterOf(t, 5, out), hostingtest.AdapterOf(t, 6, out)
	var kill atomic.Pointer[exec.Cmd]
	first := h.start("a", "0.1", breaks(t, &kill), "--name", "base", "--adapter", "red="+red, "--adapter", "blue="+blue)
	numbers := map[string]uint64{}
	s.until("three models", func() bool {
		for _, l := range h.listed() {
			numbers[l.Name] = l.Model
		}
		return len(numbers) == 3
	})
	for name, price := range map[string]string{"b": "0.2", "c": "0.3"} {
		h.start(name, price, nil, "--model", fmt.Sprint(numbers["base"]), "--adapter-memory", "1",
			"--adapter", fmt.Sprintf("red=%s,model=%d", red, numbers["red"]),
			"--adapter", fmt.Sprintf("blue=%s,model=%d", blue, numbers["blue"]))
	}
	s.until("nine places", func() bool { return len(h.listed()) == 9 })
	payer := filepath.Join(dir, "payer")
	s.fund(payer, "20", "50")

	local, err := serve.Open(out, serve.Options{Name: "base", Checked: true,
		Adapters: []serve.Adapter{{Name: "red", Dir: red}, {Name: "blue", Dir: blue}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	at, stop := h.gateway(payer, "0")
	if names := modelsAt(t, at); !slices.Equal(names, []string{"base", "red", "blue"}) {
		t.Errorf("the gateway serves %q", names)
	}
	kill.Store(first)
	seen := map[string]bool{}
	for _, name := range []string{"red", "blue", "base", "red"} {
		want := written(t, local, name, "number 1")
		if got := streamed(t, at, name, "number 1"); got != want || got == "" {
			t.Errorf("%s writes %q, its model %q", name, got, want)
		}
		seen[want] = true
	}
	if len(seen) != 3 || kill.Load() != nil {
		t.Fatalf("%d different texts; the first provider was not killed: %t", len(seen), kill.Load() != nil)
	}
	_ = first.Wait() // it was killed
	if spent := stop(); spent.Answers != 4 || spent.Failovers != 1 || spent.Spent == 0 {
		t.Errorf("%+v", spent)
	}

	l := h.withoutAdapter(filepath.Join(dir, "forger"), red, numbers["red"], local)
	at, stop = h.gateway(payer, "100")
	if text := streamed(t, at, "red", "number 2"); text != written(t, local, "base", "number 2") {
		t.Errorf("the liar was not asked, or writes %q", text)
	}
	spent := stop()
	var excluded []string
	for _, p := range spent.Providers {
		if p.Excluded != "" && !slices.Contains(excluded, p.Provider) {
			excluded = append(excluded, p.Provider)
		}
	}
	if spent.Conflicts != 1 || !slices.Equal(excluded, []string{l.Account}) {
		t.Fatalf("%+v, and %s lies", spent, l.Account)
	}
	h.convicts(payer, out, red, numbers["red"], l)
	h.end()
}

// modelsAt lists the models of a server.
func modelsAt(t *testing.T, at string) (names []string) {
	t.Helper()
	r, err := http.Get("http://" + at + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	var list struct{ Data []struct{ ID string } }
	if err := errors.Join(err, json.Unmarshal(raw, &list)); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names
}

// written is the text of 40 tokens of a model of an engine.
func written(t *testing.T, e *serve.Engine, model, prompt string) string {
	t.Helper()
	var b strings.Builder
	_, err := e.Generate(t.Context(), openai.Request{Model: model, Prompt: prompt, Max: 40, Likely: -1},
		func(p openai.Piece) error {
			b.WriteString(p.Text)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return string([]rune(b.String()))
}

// bare answers for an adapter without it.
type bare struct{ *serve.Engine }

// Generate implements openai.Model.
func (b bare) Generate(ctx context.Context, r openai.Request, emit func(openai.Piece) error) (openai.Result, error) {
	r.Model = "base"
	return b.Engine.Generate(ctx, r, emit)
}

// withoutAdapter hosts an adapter for less than the others, answers by its base alone, signs receipts of the adapter,
// and defends them.
func (h *hosts) withoutAdapter(dir, adapter string, number uint64, e *serve.Engine) *accused.Party {
	h.T.Helper()
	account := fund(h.T, h.network, h.consumer, dir, "50")
	key, err := home.Read(dir)
	if err != nil {
		h.T.Fatal(err)
	}
	cl, err := client.Connect(h.network, key.Account())
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(cl.Close)
	base, err := pretrained.Load(h.out)
	if err != nil {
		h.T.Fatal(err)
	}
	of, err := checked.New(base)
	if err == nil {
		of, err = of.Adapted(adapter)
	}
	if err != nil {
		h.T.Fatal(err)
	}
	head, err := cl.Ledger.Head(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	v, err := nodehosting.OpenVouchers(filepath.Join(dir, "vouchers"), head.ChainID)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = v.Close() })
	r := &nodehosting.Redeemer{Network: cl.Hosting, Provider: account, Model: number, Vouchers: v, Least: 1,
		Log: slog.New(slog.DiscardHandler)}
	place := hosting.Place{Model: number, Provider: account, Bond: 5_000_000, Prices: hosting.Prices{Denom: h.usdc,
		Input: 50_000, Output: 50_000}}
	by := signer.Signer{Model: of, Chain: head.ChainID, Number: number, Key: key.Account()}
	p := nodehosting.New(bare{e}, nodehosting.Terms{Chain: head.ChainID, Place: place,
		Receipt: func(made openai.Result) ([]byte, error) {
			now, err := cl.Ledger.Head(h.T.Context())
			if err != nil {
				return nil, err
			}
			signed, err := by.Sign(made.Drawn, now.Height)
			return signed.Encode(), err
		}}, v, r.Look)
	server := httptest.NewServer(p.Handler(openai.New(p, openai.Config{})))
	h.T.Cleanup(server.Close)
	place.URL = server.URL
	if err := errors.Join(cl.Ready(h.T.Context()), cl.Hosting.Host(h.T.Context(), place)); err != nil {
		h.T.Fatal(err)
	}
	party := &accused.Party{Account: account, Model: of, Threads: 1, Network: cl.Hosting}
	blocks, err := client.Heights(h.T.Context(), cl)
	if err != nil {
		h.T.Fatal(err)
	}
	go func() { _ = party.Defend(h.T.Context(), blocks, func(uint64, error) {}) }() // until the test ends
	return party
}

// convicts accuses the receipt of the liar in the record of the gateway.
func (h *hosts) convicts(payer, out, adapter string, number uint64, liar *accused.Party) {
	h.T.Helper()
	var c gateway.Conflict
	raw, err := os.ReadFile(filepath.Join(payer, "gateway", fmt.Sprint(number), "usdc", "conflicts", "000000.json"))
	if err := errors.Join(err, json.Unmarshal(raw, &c)); err != nil {
		h.T.Fatal(err)
	}
	file := filepath.Join(h.dir, "receipts.jsonl")
	for _, a := range c.Answers {
		if a.Provider != liar.Account {
			continue
		}
		line, err := json.Marshal(map[string]any{"receipt": a.Receipt})
		if err != nil {
			h.T.Fatal(err)
		}
		writeFile(h.T, file, append(line, '\n'))
	}
	if code, _, stderr := starling(h.T, "model", "check", out, file, "--receipts"); code == 0 {
		h.T.Errorf("a receipt of an adapter passes as one of its base: %s", stderr)
	}
	var over struct{ Accusations []apply.Decided }
	does(h.T, &over, h.as(payer, "model", "accuse", out, file, "--adapter", adapter)...)
	if len(over.Accusations) != 1 || !over.Accusations[0].Convicted || over.Accusations[0].Provider != liar.Account {
		h.T.Errorf("%+v", over)
	}
	lied := func(l hosted.Listed) bool { return l.Provider == liar.Account && l.Status == "lied" }
	if !slices.ContainsFunc(h.listed(), lied) {
		h.T.Errorf("%+v", h.listed())
	}
}
