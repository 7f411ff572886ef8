package gateway

import (
	"context"

	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/web/openai"
)

// receipt compares the receipt of an answer with the request, and with the counts of its stream. It has no model:
// starling model check decides the tokens.
func (g *Gateway) receipt(ctx context.Context, r openai.Request, s served) error {
	if g.config.Height == nil {
		return nil
	}
	head, err := g.config.Height(ctx)
	if err != nil {
		g.config.Log.Warn("a receipt is not compared with the network", "provider", s.place.Provider, "error", err)
		return nil
	}
	signed, err := answer.Decode(s.settlement.Receipt)
	if err == nil {
		err = signed.Verify(account.Verify)
	}
	if err != nil {
		return err
	}
	return signed.Receipt.Compare(answer.Held{Chain: g.config.Chain, Model: g.config.Model.ID,
		Weights: g.config.Model.Weights, Provider: s.place.Provider, Seed: r.Seed,
		Temperature: generate.Millionths(r.Temperature, false), TopP: generate.Millionths(r.TopP, true),
		Tokens: r.Tokens, Prompt: s.made.PromptTokens, Made: s.made.Tokens, Most: r.Max,
		Cut: s.made.Finish != string(generate.FinishEnd) || len(r.Stops) > 0 || r.Messages != nil, Height: head})
}
