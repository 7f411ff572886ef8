// Package hosting has the provider's side of hosted models: a guard that lets paid requests through to a model, the
// vouchers that it keeps, and their redemption. Its gateway is the client's side. The rules are those of
// protocol/hosting.
//
// The package answers no HTTP by itself: package web/openai does, with a Provider as its model.
package hosting

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// Model is a model that knows how many tokens a request has.
type Model interface {
	openai.Model
	// Bound is the number of tokens of the prompt, and the largest number of the answer.
	Bound(r openai.Request) (prompt, most int, err error)
}

// Terms are those of a provider.
type Terms struct {
	Chain   string
	Place   hosting.Place
	Coin    coin.Coin                                // of the prices
	Receipt func(made openai.Result) ([]byte, error) // signs an answer: the bytes of an answer.Signed; nil: no receipts
}

// Provider is an openai.Model that writes paid texts alone: one for each request.
type Provider struct {
	model    Model
	terms    Terms
	vouchers *Vouchers
	look     func(ctx context.Context) error // at the channels of the network
}

// New returns the provider of a model. look looks at the channels of the network when a voucher is of one that is not
// known.
func New(m Model, t Terms, v *Vouchers, look func(ctx context.Context) error) *Provider {
	return &Provider{model: m, terms: t, vouchers: v, look: look}
}

// request is the payment of a request, and where its cost is said.
type request struct {
	header   string
	resource string
	answer   http.Header
	used     atomic.Bool
}

type paymentKey struct{}

// Handler gives the model the payments of requests that a handler answers.
func (p *Provider) Handler(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paid := &request{header: r.Header.Get(x402.HeaderPayment), resource: "http://" + r.Host + r.URL.Path,
			answer: w.Header()}
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), paymentKey{}, paid)))
	})
}

// Models lists the model.
func (p *Provider) Models() []openai.Info { return p.model.Models() }

// Prompt renders a conversation by the chat template of the model.
func (p *Provider) Prompt(name string, conversation []openai.Message) (string, []string, error) {
	return p.model.Prompt(name, conversation)
}

// Generate writes a text that is paid. One that is not is refused by an *x402.Required.
func (p *Provider) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	paid, _ := ctx.Value(paymentKey{}).(*request)
	if paid == nil || paid.used.Swap(true) {
		return openai.Result{}, errOne
	}
	prompt, most, err := p.model.Bound(r)
	if err != nil {
		return openai.Result{}, err
	}
	if most = min(most, answer.MaxTokens-prompt); most < 1 {
		return openai.Result{}, openai.ErrTooLong
	}
	r.Max = most
	hold, err := p.admit(ctx, paid, prompt, most)
	if err != nil {
		return openai.Result{}, err
	}
	emitted := false
	made, err := p.model.Generate(ctx, r, func(x openai.Piece) error {
		emitted = true
		return emit(x)
	})
	return made, errors.Join(err, p.settle(ctx, paid, hold, made, err, emitted))
}

// errOne refuses requests for several texts, of which each would need a payment.
var errOne = fmt.Errorf("%w: a hosted model writes one text for a request: leave n out, and give one prompt",
	openai.ErrRequest)

// admit takes the voucher of a request, or answers with the terms. A model without prices needs none.
func (p *Provider) admit(ctx context.Context, paid *request, prompt, most int) (*Hold, error) {
	prices := p.terms.Place.Prices
	cost := prices.Cost(uint64(prompt), uint64(most))
	if cost == 0 {
		return nil, nil
	}
	extra := x402.Extra{Model: p.terms.Place.Model, Input: prices.Input, Output: prices.Output, Prompt: prompt,
		Answer: most, Most: cost}
	ask := func(why string) error {
		return x402.Ask(why, p.terms.Coin, x402.Terms{Network: p.terms.Chain, Resource: paid.resource,
			Description: "tokens of a hosted model", MimeType: "application/json", PayTo: p.terms.Place.Provider,
			Timeout: 60, Extra: extra})
	}
	if paid.header == "" {
		return nil, ask("the header " + x402.HeaderPayment + " with a voucher of a payment channel is needed")
	}
	v, err := x402.ReadPayment(paid.header)
	if err != nil {
		return nil, ask(err.Error())
	}
	if !p.vouchers.Knows(v.Channel) {
		if err := p.look(ctx); err != nil {
			return nil, err
		}
	}
	hold, err := p.vouchers.Admit(v, cost)
	if err == nil {
		return hold, nil
	}
	if !errors.Is(err, ErrChannel) && !errors.Is(err, hosting.ErrForged) {
		extra.Channel, extra.Total = v.Channel, p.vouchers.Total(v.Channel, cost)
	}
	return nil, ask(err.Error())
}

// settle charges a request and says so in the answer: in a header, or in a trailer of a stream. A text that this
// machine failed to write costs nothing; one whose reader is gone costs the tokens so far.
func (p *Provider) settle(ctx context.Context, paid *request, hold *Hold, made openai.Result, failed error,
	emitted bool) error {
	s := x402.Settlement{Success: failed == nil, Network: p.terms.Chain, Prompt: made.PromptTokens, Answer: made.Tokens}
	if failed == nil || ctx.Err() != nil && emitted {
		s.Cost = p.terms.Place.Prices.Cost(uint64(made.PromptTokens), uint64(made.Tokens))
	}
	var err error
	if hold != nil {
		s.Channel = hold.at.channel.ID
		if s.Payer, s.Total, err = hold.Settle(s.Cost); err != nil {
			return err
		}
	}
	if failed != nil {
		return nil
	}
	if p.terms.Receipt != nil {
		if s.Receipt, err = p.terms.Receipt(made); err != nil {
			return err
		}
	}
	text := s.Header()
	paid.answer.Set(x402.HeaderResponse, text)
	paid.answer.Set(http.TrailerPrefix+x402.HeaderResponse, text)
	return nil
}
