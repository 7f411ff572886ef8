package gateway

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// The receipt of an answer of thousands of tokens arrives after a stream.
func TestLongReceiptsArrive(t *testing.T) {
	n := begin(t)
	n.receipt = make([]byte, answer.MaxBytes)
	n.host("a", 1_000_000, n.local, nil)
	n.same(n.gateway(nil), request(5, 20))
}

// A provider sends no request to a machine of its choice.
func TestRedirectionsAreNotFollowed(t *testing.T) {
	n := begin(t)
	asked := atomic.Int64{}
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inner.Close()
	n.host("a", 1_000_000, n.local, func(http.Handler) http.Handler {
		return http.RedirectHandler(inner.URL, http.StatusTemporaryRedirect)
	})
	if _, _, err := write(t.Context(), n.gateway(nil), request(5, 20)); err == nil || asked.Load() > 0 {
		t.Errorf("%d requests: %v", asked.Load(), err)
	}
}

// A request without a limit of tokens costs no more than the longest answer that has a receipt.
func TestTermsAreBounded(t *testing.T) {
	n := begin(t)
	g := n.gateway(nil)
	place := hosting.Place{Model: 7, Provider: "a", Prices: hosting.Prices{Input: 1_000_000, Output: 1_000_000}}
	for tokens, right := range map[int]bool{100: true, answer.MaxTokens - 9: true, answer.MaxTokens - 8: false,
		1 << 30: false, math.MaxInt: false} {
		terms := x402.Terms{PayTo: "a", Extra: x402.Extra{Model: 7, Input: 1_000_000, Output: 1_000_000, Prompt: 9,
			Answer: tokens, Most: 100}}
		if err := g.agree(place, openai.Request{}, 100, terms); (err == nil) != right || err != nil &&
			!errors.Is(err, purse.ErrOverbill) {
			t.Errorf("%d tokens: %v", tokens, err)
		}
	}
}

// inflated counts more tokens of a prompt than it has.
type inflated struct{ *serve.Engine }

func (m inflated) Bound(r openai.Request) (prompt, most int, err error) {
	prompt, most, err = m.Engine.Bound(r)
	return 3 * prompt, most, err
}

func (m inflated) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	made, err := m.Engine.Generate(ctx, r, emit)
	made.PromptTokens *= 3
	return made, err
}

func TestInflatedPromptsAreFound(t *testing.T) {
	n := begin(t)
	n.host("greedy", 1_000_000, inflated{n.local}, nil)
	n.host("honest", 9_000_000, n.local, nil)
	g := n.gateway(func(c *Config) { c.CheckPPM, c.Local = million, n.local })
	if _, _, err := write(t.Context(), g, request(5, 20)); err != nil {
		t.Fatal(err)
	}
	g.Wait()
	found := false
	for _, s := range g.Standings() {
		found = found || s.Provider == "greedy" && s.Excluded != ""
	}
	if !found {
		t.Errorf("%+v", g.Standings())
	}
}

// A stream of events without a text ends.
func TestEndlessEvents(t *testing.T) {
	end := `data: {"usage":{"prompt_tokens":1},"choices":[{"finish_reason":"stop"}]}` + "\ndata: [DONE]\n"
	_, err := readStream(strings.NewReader(strings.Repeat("data: {}\n", maxEvents+10)+end), func() {},
		func(string) error { return nil })
	if !errors.Is(err, errStream) {
		t.Error(err)
	}
}

// A receipt is about the answer that was asked for and given, or its provider is not asked any more.
func TestReceiptsAreCompared(t *testing.T) {
	n := begin(t)
	secret := canon.Sum("test")
	key := &secp256k1.PrivKey{Key: secret[:]}
	at := account.Address(key.PubKey().Address())
	g := n.gateway(func(c *Config) { c.Height = func(context.Context) (int64, error) { return 1000, nil } })
	asked := openai.Request{Tokens: []int32{1, 2, 3}, Max: 8, Temperature: 0.7, TopP: 0.9, Seed: 5}
	right := answer.Receipt{Chain: hostingtest.Chain, Model: 7, Weights: n.network.Model.Weights,
		Program: canon.Sum("program"), Prompt: asked.Tokens, Answer: []int32{4, 5, 6}, Asked: 8, Stopped: true,
		Temperature: 700_000, TopP: 900_000, Seed: 5, Height: 990, Provider: at}
	compare := func(r answer.Receipt) error {
		s, err := answer.Sign(r, key.PubKey().Bytes(), key.Sign)
		if err != nil {
			t.Fatal(err)
		}
		return g.receipt(t.Context(), asked, served{place: hosting.Place{Provider: at},
			made:       openai.Result{PromptTokens: 3, Tokens: 2, Finish: "stop"},
			settlement: x402.Settlement{Receipt: s.Encode()}})
	}
	if err := compare(right); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(r *answer.Receipt){
		"another network":       func(r *answer.Receipt) { r.Chain = "other" },
		"another model":         func(r *answer.Receipt) { r.Model++ },
		"other weights":         func(r *answer.Receipt) { r.Weights[0]++ },
		"another seed":          func(r *answer.Receipt) { r.Seed++ },
		"another draw":          func(r *answer.Receipt) { r.First++ },
		"another temperature":   func(r *answer.Receipt) { r.Temperature = 0 },
		"another top_p":         func(r *answer.Receipt) { r.TopP-- },
		"another prompt":        func(r *answer.Receipt) { r.Prompt[2]++ },
		"a longer prompt":       func(r *answer.Receipt) { r.Prompt = append(r.Prompt, 4) },
		"a shorter answer":      func(r *answer.Receipt) { r.Answer = r.Answer[1:] },
		"more than asked for":   func(r *answer.Receipt) { r.Asked = 9 },
		"an end of no text":     func(r *answer.Receipt) { r.Answer, r.Asked, r.Stopped = r.Answer[:2], 2, false },
		"a block that is old":   func(r *answer.Receipt) { r.Height = 1000 - answer.Recent - 1 },
		"a block that is later": func(r *answer.Receipt) { r.Height = 1000 + answer.Recent + 1 },
	} {
		r := right
		r.Prompt, r.Answer = slices.Clone(r.Prompt), slices.Clone(r.Answer)
		change(&r)
		if err := compare(r); !errors.Is(err, answer.ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
	n.host("forger", 1_000_000, n.local, nil) // its receipts are not signed
	n.same(g, request(5, 20))
	if s := g.Standings(); len(s) != 1 || s[0].Excluded == "" {
		t.Errorf("%+v", s)
	}
}
