// Package gateway is the client's side of hosted models: an openai.Model whose texts are written by the providers of a
// network. It chooses providers by price and measured speed, pays them through channels within a budget, continues a
// text at another provider when one fails, and has drawn answers checked by a second provider.
//
// It computes no model and follows no chain: interfaces of a few methods do.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// Config says which model is asked, and for how much.
type Config struct {
	Network  purse.Network
	Chain    string // chain ID
	Account  string // that pays
	Model    hosting.Model
	Denom    string        // of the coin of the budget; providers with prices in other coins are not asked
	Budget   uint64        // grains that channels may hold together, with those that are spent
	Dir      string        // of the channels, with their keys, and of conflicts; one process at a time uses it
	Purse    *purse.Purse  // that pays; nil: the one in Dir
	Served   string        // name by which the model is asked for here; "": that of the model
	CheckPPM uint32        // millionths of the answers that a second provider writes again
	Local    openai.Model  // the model itself, which decides conflicts; nil: a third provider does
	Timeout  time.Duration // with a provider that sends nothing; 0: a minute
	Private  bool          // providers at private addresses are asked, too
	// Height is that of the network, with which those of receipts are compared; nil: receipts are kept, and not read.
	Height func(ctx context.Context) (int64, error)
	Log    *slog.Logger
	models int // that are paid from the budget; 0: one
}

// Gateway is an openai.Model.
type Gateway struct {
	config Config
	client *http.Client
	purse  *purse.Purse
	router *router
	kin    []*Gateway // gateways to other models with the same providers
	unlock func() error

	checks   sync.WaitGroup
	life     context.Context // of checks
	end      context.CancelFunc
	mu       sync.Mutex
	counts   Counts
	conflict int // number of the next one
}

// Counts are what a gateway counts of itself.
type Counts struct {
	Answers   int    `json:"answers"`
	Failovers int    `json:"failovers"` // texts that another provider continued
	Checked   int    `json:"checked"`   // answers that a second provider wrote again
	Conflicts int    `json:"conflicts"`
	Spent     uint64 `json:"spent"` // grains
}

// Open opens the folder of a gateway. The caller closes it.
func Open(ctx context.Context, c Config) (_ *Gateway, err error) {
	c.Timeout, c.Served = cmp.Or(c.Timeout, time.Minute), cmp.Or(c.Served, c.Model.Name)
	if err := makeDir(c.Dir); err != nil {
		return nil, err
	}
	g := &Gateway{config: c, client: x402.NewClient(c.Private),
		router: &router{network: c.Network, model: c.Model.ID, denom: c.Denom, now: time.Now,
			about: map[string]*measured{}}}
	if g.unlock, err = folder.Lock(c.Dir); err != nil {
		return nil, err
	}
	if g.purse = c.Purse; g.purse == nil {
		g.purse, err = purse.Open(ctx, purse.Config{Dir: c.Dir, Chain: c.Chain, Account: c.Account, Network: c.Network,
			Budget: c.Budget, Models: c.models})
	}
	if err != nil {
		return nil, errors.Join(err, g.unlock())
	}
	if err := g.readConflicts(); err != nil {
		return nil, errors.Join(err, g.unlock())
	}
	g.life, g.end = context.WithCancel(context.WithoutCancel(ctx))
	return g, nil
}

// Close ends checks that are under way, and lets another process use the folder. Channels stay open.
func (g *Gateway) Close() error {
	g.end()
	g.checks.Wait()
	return g.unlock()
}

// CloseChannels asks to close all channels. The rest of each returns after the blocks of closing.
func (g *Gateway) CloseChannels(ctx context.Context) (closed int, _ error) { return g.purse.Close(ctx) }

// Wait waits until no check is under way.
func (g *Gateway) Wait() { g.checks.Wait() }

// Counts are those since the process began, but for the sum that is spent, which is of the folder.
func (g *Gateway) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.counts
	c.Spent = g.purse.Spent()
	return c
}

// Standings lists the providers that were asked.
func (g *Gateway) Standings() []Standing { return g.router.standings() }

// Models lists the model.
func (g *Gateway) Models() []openai.Info {
	return []openai.Info{{Name: g.config.Served, State: "fp_" + g.config.Model.Weights.String()[:16]}}
}

// Prompt leaves the conversation as it is: a provider renders it.
func (g *Gateway) Prompt(string, []openai.Message) (string, []string, error) { return "", nil, nil }

// Generate writes a text by a provider, and by another from its beginning if that fails: the same seed gives the same
// text, of which the part that was emitted is skipped.
func (g *Gateway) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	if r.Likely >= 0 {
		return openai.Result{}, refuse(http.StatusBadRequest, "unsupported_parameter",
			"A gateway passes no probabilities on: leave logprobs out.")
	}
	list, err := g.router.candidates(ctx)
	if err != nil {
		return openai.Result{}, err
	}
	t := &text{}
	var failures []error
	var by served // whose text was emitted first
	for i, p := range list {
		s, err := g.attempt(ctx, p, r, t, emit)
		if err == nil {
			g.count(func(c *Counts) {
				if c.Answers++; i > 0 && t.resumed {
					c.Failovers++
				}
			})
			g.draw(r, s, t.sent.String(), list)
			return s.made, nil
		}
		if by.place.Provider == "" && t.sent.Len() > 0 {
			by = s
		}
		if err := g.final(ctx, r, t, by, s, err); err != nil {
			return s.made, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", p.Provider, err))
		t.resumed = t.sent.Len() > 0
		g.config.Log.Warn("a provider failed", "provider", p.Provider, "url", p.URL, "error", err)
	}
	return openai.Result{}, g.unserved(failures)
}

// final is the error after which no other provider is asked, or nil.
func (g *Gateway) final(ctx context.Context, r openai.Request, t *text, by, s served, err error) error {
	var told *refused
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.failed != nil: // the client does not read
		return t.failed
	case errors.Is(err, errOther):
		g.checks.Go(func() { g.disagree(g.life, r, by, s) })
		return refuse(http.StatusBadGateway, "providers_disagree",
			"Two providers wrote different texts for the same request. Ask again: the one that lied is not asked any more.")
	case errors.As(err, &told) && told.ours():
		return refuse(told.status, told.code, told.message)
	case errors.Is(err, purse.ErrOverbill):
		g.exclude(s.place.Provider, err.Error())
	case !errors.Is(err, purse.ErrBudget):
		g.router.failed(s.place.Provider)
	}
	return nil
}

// unserved is the error of a request that no provider took.
func (g *Gateway) unserved(failures []error) error {
	err := errors.Join(failures...)
	switch {
	case errors.Is(err, purse.ErrBudget):
		return refuse(http.StatusPaymentRequired, "budget_spent", "The budget of the gateway is spent, or locked in "+
			"channels: raise --budget, or close channels with --close.")
	case len(failures) == 0:
		return refuse(http.StatusServiceUnavailable, "no_provider", "No provider hosts the model for this coin.")
	}
	return refuse(http.StatusBadGateway, "providers_failed",
		"No provider answered: "+strings.ReplaceAll(err.Error(), "\n", "; "))
}

// Refused is the error of a request that is not answered. It is an openai.Refusal.
type Refused struct {
	Status        int // of HTTP
	Code, Message string
}

// Error implements error.
func (r *Refused) Error() string { return r.Message }

// Refuse is the status and the body of the answer, in OpenAI's shape.
func (r *Refused) Refuse() (status int, body any) {
	kind := "invalid_request_error"
	if r.Status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return r.Status, map[string]any{"error": map[string]any{"message": r.Message, "type": kind, "param": nil,
		"code": r.Code}}
}

func refuse(status int, code, message string) error {
	return &Refused{Status: status, Code: code, Message: message}
}

// text is the part of an answer that was emitted.
type text struct {
	sent    strings.Builder
	resumed bool
	failed  error // of emit
}

// errOther is returned for a text that does not begin as it was emitted.
var errOther = errors.New("the provider writes another text than the one before it")

// attempt lets one provider write the text, and skips the part that was emitted.
func (g *Gateway) attempt(ctx context.Context, p hosting.Place, r openai.Request, t *text,
	emit func(openai.Piece) error) (served, error) {
	var began = time.Now()
	var first time.Duration
	at := 0 // bytes of the text of this provider
	s, err := g.ask(ctx, p, r, func(piece string) error {
		if first == 0 {
			first = max(time.Since(began), 1)
		}
		had := t.sent.String()[min(at, t.sent.Len()):]
		at += len(piece)
		n := min(len(had), len(piece))
		if had[:n] != piece[:n] {
			return errOther
		}
		if piece = piece[n:]; piece == "" {
			return nil
		}
		t.sent.WriteString(piece)
		t.failed = emit(openai.Piece{Text: piece})
		return t.failed
	})
	if err == nil && at < t.sent.Len() {
		err = errOther // it ends before
	}
	if err != nil {
		return s, err
	}
	if s.overbilled != nil {
		g.exclude(p.Provider, s.overbilled.Error())
	}
	g.router.answered(p.Provider, cmp.Or(first, time.Since(began)), time.Since(began), s.made.Tokens)
	return s, nil
}

// exclude ends the use of a provider, whatever model it is asked for.
func (g *Gateway) exclude(provider, why string) {
	g.router.exclude(provider, why)
	for _, k := range g.kin {
		k.router.exclude(provider, why)
	}
}

func (g *Gateway) count(add func(*Counts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	add(&g.counts)
}
