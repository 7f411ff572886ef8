package hosting

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

const provider = "starling1provider"

// host is a provider of a tiny model, and a payer with a channel.
type host struct {
	t        *testing.T
	network  *hostingtest.Network
	dir      string
	engine   *serve.Engine
	vouchers *Vouchers
	redeemer *Redeemer
	server   *httptest.Server
	key      ed25519.PrivateKey
	channel  uint64
}

func start(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, network: hostingtest.New(), dir: filepath.Join(t.TempDir(), "vouchers")}
	h.network.Host(hosting.Place{Provider: provider, URL: "http://127.0.0.1:1", Bond: 5,
		Prices: hosting.Prices{Input: 1_000_000, Output: 2_000_000}})
	var err error
	if h.engine, err = serve.Open(hostingtest.Folder(t, 3, 64), serve.Options{Name: "tiny"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.engine.Close)
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h.key = key
	places, err := h.network.As("payer").Places(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if h.channel, err = h.network.As("payer").Open(t.Context(), places[0], public, 1000); err != nil {
		t.Fatal(err)
	}
	h.begin()
	return h
}

// begin starts the process of the provider, also again.
func (h *host) begin() {
	h.t.Helper()
	if h.vouchers != nil {
		if err := h.vouchers.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
	v, err := OpenVouchers(h.dir, hostingtest.Chain)
	if err != nil {
		h.t.Fatal(err)
	}
	h.vouchers = v
	h.redeemer = &Redeemer{Network: h.network.As(provider), Provider: provider, Model: 7, Vouchers: v, Least: 30,
		Log: slog.New(slog.DiscardHandler)}
	places, err := h.network.As(provider).Places(h.t.Context(), 7)
	if err != nil {
		h.t.Fatal(err)
	}
	p := New(h.engine, Terms{Chain: hostingtest.Chain, Place: places[0], Receipt: signed}, v, h.redeemer.Look)
	if h.server != nil {
		h.server.Close()
	}
	h.server = httptest.NewServer(p.Handler(openai.New(p, openai.Config{})))
	h.t.Cleanup(h.server.Close)
}

// signed is a receipt for tests of payments: the number of tokens.
func signed(made openai.Result) ([]byte, error) {
	return fmt.Appendf(nil, "receipt of %d", made.Tokens), nil
}

func (h *host) voucher(amount uint64) string {
	return x402.Pay(hosting.Voucher{Chain: hostingtest.Chain, Channel: h.channel, Amount: amount}.Sign(h.key))
}

// ask asks for 4 tokens after a prompt of 5: 5 + 4 x 2 = 13 grains at most.
func (h *host) ask(payment string, stream bool) (*http.Response, string) {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"model": "tiny", "prompt": "hello", "max_tokens": 4, "temperature": 0,
		"stream": stream})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.post(payment, string(body))
}

func (h *host) post(payment, body string) (*http.Response, string) {
	h.t.Helper()
	q, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.server.URL+"/v1/completions",
		strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if payment != "" {
		q.Header.Set(x402.HeaderPayment, payment)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	raw, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		h.t.Fatal(err)
	}
	return r, string(raw)
}

// terms reads the terms of an answer with status 402.
func (h *host) terms(r *http.Response, body string) (string, x402.Terms) {
	h.t.Helper()
	if r.StatusCode != http.StatusPaymentRequired {
		h.t.Fatalf("%s: %s", r.Status, body)
	}
	reason, terms, err := x402.ReadRequired(bytes.NewReader([]byte(body)), hostingtest.Chain)
	if err != nil {
		h.t.Fatalf("%v: %s", err, body)
	}
	return reason, terms
}

// A request without a payment gets the terms, a paid one the text, its cost and the receipt: in a header, or in the
// trailer of a stream. Payments that are not right get the terms again, with the reason.
func TestRequestsArePaid(t *testing.T) {
	h := start(t)
	r, body := h.ask("", false)
	if _, terms := h.terms(r, body); terms.Most != "13" || terms.PayTo != provider || terms.Asset != "uzen" ||
		terms.Extra.Prompt != 5 || terms.Extra.Answer != 4 || terms.Extra.Total != 0 {
		t.Errorf("%+v", terms)
	}
	for total, stream := range map[uint64]bool{13: false} {
		r, body := h.ask(h.voucher(total), stream)
		s, err := x402.ReadSettlement(r.Header.Get(x402.HeaderResponse))
		if r.StatusCode != http.StatusOK || err != nil || s.Cost != 13 || s.Total != 13 || s.Payer != "payer" ||
			string(s.Receipt) != "receipt of 4" || s.Answer != 4 {
			t.Fatalf("%s %s: %+v %v", r.Status, body, s, err)
		}
	}
	r, body = h.ask(h.voucher(26), true)
	s, err := x402.ReadSettlement(r.Trailer.Get(x402.HeaderResponse))
	if r.StatusCode != http.StatusOK || err != nil || s.Total != 26 || !strings.Contains(body, "[DONE]") {
		t.Fatalf("%s %s: %+v %v", r.Status, body, s, err)
	}
	other := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	sign := func(v hosting.Voucher, key ed25519.PrivateKey) string { return x402.Pay(v.Sign(key)) }
	right := hosting.Voucher{Chain: hostingtest.Chain, Channel: h.channel, Amount: 39}
	elsewhere, unknown, beyond := right, right, right
	elsewhere.Chain, unknown.Channel, beyond.Amount = "starling-other", 99, 1001
	for name, c := range map[string]struct {
		header string
		want   error
		total  uint64
	}{
		"a replay":          {h.voucher(26), ErrShort, 39},
		"too little":        {h.voucher(38), ErrShort, 39},
		"another key":       {sign(right, other), hosting.ErrForged, 0},
		"another network":   {sign(elsewhere, h.key), hosting.ErrChain, 39},
		"an unknown one":    {sign(unknown, h.key), ErrChannel, 0},
		"beyond its coins":  {sign(beyond, h.key), hosting.ErrBeyond, 39},
		"no payment at all": {"x", x402.ErrForm, 0},
	} {
		r, body := h.ask(c.header, false)
		if reason, terms := h.terms(r, body); !strings.Contains(reason, c.want.Error()) || terms.Extra.Total != c.total {
			t.Errorf("%s: %q, %+v", name, reason, terms)
		}
	}
	for _, body := range []string{`{"model":"tiny","prompt":"hello","n":2}`, `{"model":"tiny","prompt":["a","b"]}`} {
		if r, answer := h.post(h.voucher(500), body); r.StatusCode != http.StatusBadRequest ||
			!strings.Contains(answer, "one text") {
			t.Errorf("%s: %s %s", body, r.Status, answer)
		}
	}
}

// A provider that is killed and starts again has its vouchers and redeems them; what it redeems is what its answers
// cost, not what was signed. A channel that closes is redeemed and settled in time.
func TestVouchersSurviveARestart(t *testing.T) {
	h := start(t)
	if r, body := h.ask(h.voucher(100), false); r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, body)
	}
	h.begin()
	h.redeemer.turn(t.Context(), 30) // 13 grains are not worth it
	if got := h.network.Coins(provider); got != 0 {
		t.Errorf("%d grains are redeemed", got)
	}
	for range 2 {
		if r, body := h.ask(h.voucher(100), false); r.StatusCode != http.StatusOK {
			t.Fatal(r.Status, body)
		}
	}
	h.redeemer.turn(t.Context(), 30)
	if got, s := h.network.Coins(provider), h.redeemer.Earned(); got != 35 || s.Fee != 1 || s.Part != 3 {
		t.Errorf("%d grains are redeemed: %+v", got, s)
	}
	if r, body := h.ask(h.voucher(100), false); r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, body)
	}
	if err := h.network.As("payer").Close(t.Context(), h.channel); err != nil {
		t.Fatal(err)
	}
	h.begin()
	h.redeemer.turn(t.Context(), 30)
	if got, held := h.network.Coins("payer"), h.network.Held(); got != -52 || held != 0 {
		t.Errorf("the payer has %d, %d are held", got, held)
	}
	h.redeemer.turn(t.Context(), 30)
	if files, err := filepath.Glob(filepath.Join(h.dir, "*.json")); err != nil || len(files) != 0 {
		t.Errorf("%v %v", files, err)
	}
	r, body := h.ask(h.voucher(100), false)
	if reason, _ := h.terms(r, body); !strings.Contains(reason, ErrChannel.Error()) {
		t.Error(reason)
	}
}

// stopping is a model that fails, or whose reader leaves, after some tokens.
type stopping struct {
	*serve.Engine
	cancel context.CancelFunc // nil: it fails
}

func (s stopping) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	if s.cancel == nil {
		return openai.Result{PromptTokens: 5, Tokens: 2}, errors.New("the machine failed")
	}
	made, err := s.Engine.Generate(ctx, r, emit)
	s.cancel()
	return made, errors.Join(err, context.Canceled)
}

// A text that the machine fails to write costs nothing; one whose reader leaves costs the tokens so far.
func TestBrokenTexts(t *testing.T) {
	h := start(t)
	for name, c := range map[string]struct {
		leaves bool
		cost   uint64
	}{"it fails": {false, 0}, "its reader leaves": {true, 13}} {
		ctx, cancel := context.WithCancel(t.Context())
		m := stopping{Engine: h.engine}
		if c.leaves {
			m.cancel = cancel
		}
		places, err := h.network.As(provider).Places(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		v, err := OpenVouchers(filepath.Join(t.TempDir(), "v"), hostingtest.Chain)
		if err != nil {
			t.Fatal(err)
		}
		look := &Redeemer{Network: h.network.As(provider), Provider: provider, Model: 7, Vouchers: v}
		p := New(m, Terms{Chain: hostingtest.Chain, Place: places[0], Coin: coin.Coin{}}, v, look.Look)
		paid := &request{header: h.voucher(500), answer: http.Header{}}
		_, err = p.Generate(context.WithValue(ctx, paymentKey{}, paid), openai.Request{Model: "tiny", Prompt: "hello", Max: 4,
			TopP: 1, Likely: -1}, func(openai.Piece) error { return nil })
		if err == nil || v.Total(h.channel, 0) != c.cost || paid.answer.Get(x402.HeaderResponse) != "" {
			t.Errorf("%s: %d grains, %v", name, v.Total(h.channel, 0), err)
		}
		cancel()
	}
}
