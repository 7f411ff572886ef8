package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/node/folder"
	nodehosting "github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// town is a network with providers of a model, and what a gateway needs to ask them.
type town struct {
	t       testing.TB
	network *hostingtest.Network
	model   string // its folder
	local   *serve.Engine
	asked   map[string]*counter // requests of each provider
	receipt []byte              // of all answers; nil: one for each provider
}

type counter = atomic.Int64

func begin(t *testing.T) *town {
	t.Helper()
	n := &town{t: t, network: hostingtest.New(), model: hostingtest.Folder(t, 3, 512), asked: map[string]*counter{}}
	n.local = n.engine(n.model)
	return n
}

func (n *town) engine(dir string) *serve.Engine {
	n.t.Helper()
	e, err := serve.Open(dir, serve.Options{Name: "tiny"})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(e.Close)
	return e
}

// host starts a provider with a price of answers. between may change how it answers.
func (n *town) host(name string, price uint64, m nodehosting.Model, between func(http.Handler) http.Handler) {
	n.t.Helper()
	v, err := nodehosting.OpenVouchers(filepath.Join(n.t.TempDir(), name), hostingtest.Chain)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = v.Close() })
	r := &nodehosting.Redeemer{Network: n.network.As(name), Provider: name, Model: 7, Vouchers: v, Least: 1,
		Log: slog.New(slog.DiscardHandler)}
	place := hosting.Place{Model: 7, Provider: name, Bond: 5, Prices: hosting.Prices{Input: 1_000_000, Output: price}}
	p := nodehosting.New(m, nodehosting.Terms{Chain: hostingtest.Chain, Place: place,
		Receipt: func(openai.Result) ([]byte, error) {
			if n.receipt != nil {
				return n.receipt, nil
			}
			return []byte("receipt of " + name), nil
		}}, v, r.Look)
	handler := p.Handler(openai.New(p, openai.Config{}))
	if between != nil {
		handler = between(handler)
	}
	count := &atomic.Int64{}
	n.asked[name] = count
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		handler.ServeHTTP(w, r)
	}))
	n.t.Cleanup(server.Close)
	place.URL = server.URL
	n.network.Host(place)
}

func (n *town) gateway(change func(*Config)) *Gateway {
	n.t.Helper()
	c := Config{Network: n.network.As("payer"), Private: true, Chain: hostingtest.Chain, Account: "payer",
		Model: n.network.Model, Budget: 100_000, Dir: filepath.Join(n.t.TempDir(), "gateway"), Timeout: 20 * time.Second,
		Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	g, err := Open(n.t.Context(), c)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = g.Close() }) // the test may have closed it
	return g
}

func request(seed uint64, tokens int) openai.Request {
	return openai.Request{Model: "tiny", Prompt: "once upon", Max: tokens, Temperature: 1, TopP: 1, Seed: seed, Likely: -1}
}

// write is the text of a model.
func write(ctx context.Context, m openai.Model, r openai.Request) (string, openai.Result, error) {
	var b strings.Builder
	made, err := m.Generate(ctx, r, func(p openai.Piece) error {
		b.WriteString(p.Text)
		return nil
	})
	return b.String(), made, err
}

// same asks the gateway and the model itself, and compares the texts.
func (n *town) same(g *Gateway, r openai.Request) {
	n.t.Helper()
	want, made, err := write(n.t.Context(), n.local, r)
	if err != nil {
		n.t.Fatal(err)
	}
	got, result, err := write(n.t.Context(), g, r)
	if err != nil || got != valid(want) || result.Tokens != made.Tokens || result.PromptTokens != made.PromptTokens ||
		result.Finish != made.Finish {
		n.t.Errorf("%q, %+v, %v; want %q, %+v", got, result, err, want, made)
	}
}

// dies cuts the connection after a number of bytes of an answer, while it is on.
func dies(after int, on *atomic.Bool) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if on.Load() {
				w = &cut{ResponseWriter: w, left: after}
			}
			h.ServeHTTP(w, r)
		})
	}
}

type cut struct {
	http.ResponseWriter
	status int
	left   int
}

func (c *cut) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cut) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left >= 0 || c.status != 0 && c.status != http.StatusOK {
		return c.ResponseWriter.Write(b)
	}
	connection, _, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err == nil {
		err = connection.Close()
	}
	return 0, errors.Join(err, io.ErrClosedPipe)
}

// Texts through the gateway are those of the model, by the cheapest provider; conversations too. Channels stay open
// over a restart.
func TestTextsAreThoseOfTheModel(t *testing.T) {
	n := begin(t)
	n.host("cheap", 1_000_000, n.local, nil)
	n.host("dear", 9_000_000, n.local, nil)
	dir := filepath.Join(t.TempDir(), "g")
	g := n.gateway(func(c *Config) { c.Dir = dir })
	n.same(g, request(5, 40))
	n.same(g, openai.Request{Model: "tiny", Tokens: []int32{5, 6, 7}, Max: 5, Temperature: 0, TopP: 1, Likely: -1})
	talk := []openai.Message{{Role: "user", Content: "hello"}}
	prompt, stops, err := n.local.Prompt("tiny", talk)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := write(t.Context(), n.local, openai.Request{Model: "tiny", Prompt: prompt, Stops: stops, Max: 20,
		Temperature: 0.5, TopP: 0.9, Seed: 2, Likely: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := write(t.Context(), g, openai.Request{Model: "tiny", Messages: talk, Max: 20, Temperature: 0.5,
		TopP: 0.9, Seed: 2, Likely: -1}); err != nil || got != valid(want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if c := g.Counts(); c.Answers != 3 || c.Failovers != 0 || c.Spent == 0 {
		t.Errorf("%+v", c)
	}
	if s := g.Standings(); len(s) == 0 || s[0].Provider != "cheap" || s[0].Answers != 3 || s[0].Rate <= 0 {
		t.Errorf("%+v", s)
	}
	spent := g.Counts().Spent
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = n.gateway(func(c *Config) { c.Dir = dir })
	n.same(g, request(6, 10))
	open, err := n.network.As("x").Channels(t.Context(), "payer", false)
	if err != nil || len(open) != 1 {
		t.Errorf("%+v %v", open, err)
	}
	if after := g.Counts().Spent; after <= spent || after > spent+30 {
		t.Errorf("%d grains are spent, then %d", spent, after)
	}
	if closed, err := g.CloseChannels(t.Context()); err != nil || closed != 1 {
		t.Errorf("%d %v", closed, err)
	}
	if _, err := g.Generate(t.Context(), openai.Request{Model: "tiny", Likely: 2}, nil); err == nil {
		t.Error("probabilities are passed on")
	}
}

// A provider that dies in the middle of a stream, or sends nothing, is replaced: the reader gets one text without a
// gap, and all requests are answered. The one that failed waits, and is asked last.
func TestAnotherProviderContinues(t *testing.T) {
	for name, between := range map[string]func(*atomic.Bool) func(http.Handler) http.Handler{
		"it dies in the stream": func(on *atomic.Bool) func(http.Handler) http.Handler { return dies(4000, on) },
		"it dies at once":       func(on *atomic.Bool) func(http.Handler) http.Handler { return dies(0, on) },
		"it sends nothing": func(on *atomic.Bool) func(http.Handler) http.Handler {
			return func(http.Handler) http.Handler {
				return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
				})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, on := begin(t), &atomic.Bool{}
			on.Store(true)
			n.host("a", 1_000_000, n.local, between(on))
			n.host("b", 2_000_000, n.local, nil)
			n.host("c", 3_000_000, n.local, nil)
			g := n.gateway(func(c *Config) { c.Timeout = 300 * time.Millisecond })
			n.same(g, request(5, 200))
			first := n.asked["a"].Load()
			if first == 0 || n.asked["b"].Load() == 0 {
				t.Errorf("%d and %d requests", first, n.asked["b"].Load())
			}
			if c := g.Counts(); c.Answers != 1 || (name == "it dies in the stream") != (c.Failovers == 1) {
				t.Errorf("%+v", c)
			}
			n.same(g, request(6, 20))
			if n.asked["a"].Load() != first {
				t.Error("the provider that failed is asked again at once")
			}
		})
	}
}

// checked waits until checks are over.
func checked(c *Config) { c.CheckPPM = million }

// A provider that hosts other weights than those of the model is found by a drawn check, by the model itself or by a
// third provider, and is not asked any more, also after a restart; the record has both receipts. An honest provider is
// accused of nothing.
func TestLiarsAreFound(t *testing.T) {
	for _, local := range []bool{false, true} {
		n := begin(t)
		n.host("liar", 1_000_000, n.engine(hostingtest.Folder(t, 4, 512)), nil)
		n.host("honest", 2_000_000, n.local, nil)
		n.host("other", 3_000_000, n.local, nil)
		dir := filepath.Join(t.TempDir(), "g")
		change := func(c *Config) {
			checked(c)
			c.Dir = dir
			if local {
				c.Local = n.local
			}
		}
		g := n.gateway(change)
		if _, _, err := write(t.Context(), g, request(5, 30)); err != nil {
			t.Fatal(err)
		}
		g.Wait()
		if c := g.Counts(); c.Conflicts != 1 || c.Checked != 1 {
			t.Errorf("%+v", c)
		}
		var c Conflict
		if err := folder.ReadJSON(filepath.Join(dir, dirConflicts, "000000.json"), &c); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(c.Liars) != "[liar]" || string(c.Answers[0].Receipt) != "receipt of liar" ||
			string(c.Answers[1].Receipt) != "receipt of honest" || c.Answers[0].Text == c.Answers[1].Text {
			t.Errorf("%+v", c)
		}
		asked := n.asked["liar"].Load()
		n.same(g, request(7, 30))
		g.Wait()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		g = n.gateway(change)
		n.same(g, request(8, 30))
		g.Wait()
		if n.asked["liar"].Load() != asked || g.Counts().Conflicts != 0 || g.Counts().Checked != 1 {
			t.Errorf("the liar is asked again: %+v", g.Counts())
		}
	}
}

// A liar whose stream breaks off is found when another provider does not write its text: the reader hears that, and the
// next request is right.
func TestALieThatBreaksOff(t *testing.T) {
	n, on := begin(t), &atomic.Bool{}
	on.Store(true)
	n.host("liar", 1_000_000, n.engine(hostingtest.Folder(t, 4, 512)), dies(4000, on))
	n.host("honest", 2_000_000, n.local, nil)
	n.host("other", 3_000_000, n.local, nil)
	g := n.gateway(nil)
	_, _, err := write(t.Context(), g, request(5, 200))
	if err == nil || !strings.Contains(err.Error(), "different texts") {
		t.Fatal(err)
	}
	on.Store(false) // it answers the question of the third
	g.Wait()
	n.same(g, request(5, 200))
}

// bills is a provider that states another cost, or asks for more, than its prices say.
func bills(change func(*x402.Settlement), terms func(body string) string) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			record := httptest.NewRecorder()
			h.ServeHTTP(record, r)
			for key, values := range record.Header() {
				if !strings.HasPrefix(key, http.TrailerPrefix) && key != "Content-Length" {
					w.Header()[key] = values
				}
			}
			w.WriteHeader(record.Code)
			body := record.Body.String()
			if record.Code == http.StatusPaymentRequired {
				body = terms(body)
			}
			_, _ = io.WriteString(w, body)
			if text := record.Header().Get(http.TrailerPrefix + x402.HeaderResponse); text != "" {
				s, err := x402.ReadSettlement(text)
				if err != nil {
					panic(err)
				}
				change(&s)
				w.Header().Set(http.TrailerPrefix+x402.HeaderResponse, s.Header())
			}
		})
	}
}

// A provider that charges more than its prices on the network is not asked any more. The payer loses one request at
// most.
func TestOverbilling(t *testing.T) {
	same := func(body string) string { return body }
	for name, c := range map[string]struct {
		change func(*x402.Settlement)
		terms  func(string) string
		lost   uint64
	}{
		"its cost": {func(s *x402.Settlement) { s.Cost *= 3 }, same, 9 + 20},
		"its price": {func(*x402.Settlement) {}, func(body string) string {
			return strings.Replace(body, `"output":"1000000"`, `"output":"5000000"`, 1)
		}, 0},
		"its account": {func(*x402.Settlement) {}, func(body string) string {
			return strings.Replace(body, `"payTo":"greedy"`, `"payTo":"friend"`, 1)
		}, 0},
		"its tokens": {func(*x402.Settlement) {}, func(body string) string {
			return strings.Replace(body, `"maxAnswerTokens":20`, `"maxAnswerTokens":9999`, 1)
		}, 0},
		"its most": {func(*x402.Settlement) {}, func(body string) string {
			return strings.Replace(body, `"most":"29"`, `"most":"30"`, 1)
		}, 0},
	} {
		n := begin(t)
		n.host("greedy", 1_000_000, n.local, bills(c.change, c.terms))
		n.host("honest", 2_000_000, n.local, nil)
		g := n.gateway(nil)
		n.same(g, request(5, 20))
		asked := n.asked["greedy"].Load()
		n.same(g, request(6, 20))
		if n.asked["greedy"].Load() != asked || asked == 0 {
			t.Errorf("%s: it is asked again", name)
		}
		var channels []struct {
			Provider string
			Signed   uint64
		}
		if err := folder.ReadJSON(purse.In(g.config.Dir), &channels); err != nil {
			t.Fatal(err)
		}
		signed := uint64(0)
		for _, x := range channels {
			if x.Provider == "greedy" {
				signed = x.Signed
			}
		}
		if signed != c.lost {
			t.Errorf("%s: %d grains are signed, wanted %d", name, signed, c.lost)
		}
	}
}

// A request that the budget does not cover is refused with status 402, and no channel holds more than the budget.
func TestBudget(t *testing.T) {
	n := begin(t)
	n.host("a", 1_000_000, n.local, nil)
	g := n.gateway(func(c *Config) { c.Budget = 70 })
	n.same(g, request(5, 20))
	n.same(g, request(6, 20))
	_, _, err := write(t.Context(), g, request(7, 20))
	if own, ok := errors.AsType[*Refused](err); !ok || own.Code != "budget_spent" {
		t.Error(err)
	}
	if held := n.network.Held(); held > 70 {
		t.Errorf("%d grains are held", held)
	}
	server := httptest.NewServer(openai.New(g, openai.Config{}))
	defer server.Close()
	status, body := post(t, server.URL, `{"model":"tiny","prompt":"once upon","max_tokens":20}`)
	if status != http.StatusPaymentRequired || !strings.Contains(body, "budget_spent") {
		t.Errorf("%d %s", status, body)
	}
}

// post asks a server of OpenAI's interface.
func post(t testing.TB, at, body string) (status int, answer string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v1/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(raw)
}

// A request that is to blame is answered with the refusal of the provider; without a provider there is a refusal, too.
func TestRefusals(t *testing.T) {
	n := begin(t)
	g := n.gateway(nil)
	_, _, err := write(t.Context(), g, request(5, 20))
	if err == nil || !strings.Contains(err.Error(), "No provider hosts") {
		t.Error(err)
	}
	n.host("a", 1_000_000, n.local, nil)
	g = n.gateway(nil)
	long := request(5, 20)
	long.Prompt = strings.Repeat("x", 600)
	if _, _, err := write(t.Context(), g, long); err == nil || !strings.Contains(err.Error(), "context") {
		t.Error(err)
	}
	if s := g.Standings(); len(s) != 0 {
		t.Errorf("the provider is to blame: %+v", s)
	}
}

// A folder of channels is used by one process at a time, and its file only its owner can read.
func TestFolder(t *testing.T) {
	n := begin(t)
	n.host("a", 1_000_000, n.local, nil)
	dir := filepath.Join(t.TempDir(), "g")
	g := n.gateway(func(c *Config) { c.Dir = dir })
	n.same(g, request(5, 3))
	if _, err := Open(t.Context(), g.config); err == nil {
		t.Error("two processes use one folder")
	}
	if at, err := os.Stat(purse.In(dir)); err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", at, err)
	}
}

// Streams of strangers end with a text or an error.
func FuzzReadStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Add("data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":-2}}\n\ndata: [DONE]\n\n")
	f.Add("data: {\"error\":{\"message\":\"x\"}}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		size := 0
		made, err := readStream(strings.NewReader(text), func() {}, func(piece string) error {
			size += len(piece)
			return nil
		})
		if err == nil && (made.Finish == "" || made.Tokens < 0 || made.PromptTokens < 0) || size > maxText {
			t.Errorf("%+v, %d bytes", made, size)
		}
	})
}
